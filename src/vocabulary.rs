//! Which tokens exist, how they are spelled, and which of them are live.
//!
//! The trainer grows a vocabulary by the events that it decides, a loaded model by the events that it reads:
//! both call `merge` and `remove` here, so that they cannot disagree about what an event means.
//! Symbols are creation order, alphabet first, removed ones included; they never leave the crate.

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use rustc_hash::FxHashSet;
use std::hash::BuildHasher;

use crate::alphabet::Alphabet;

/// A token by creation order. Not a public id: those are dense over live tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Symbol(pub(crate) u32);

impl Symbol {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// A pair of symbols as one integer, ordered as the pair is; also a time with a position.
#[inline]
pub(crate) fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

/// What a merge did to the vocabulary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The token is new.
    New,
    /// It had been removed and is live again: the paper's second chance.
    Restored,
    /// It was live already: only the event is new.
    Again,
}

#[derive(Clone, Debug)]
pub struct Vocabulary {
    alphabet: Alphabet,
    /// Spellings of all symbols, end to end; symbol `s` is `text[starts[s]..starts[s + 1]]`.
    text: Vec<u8>,
    starts: Vec<usize>,
    /// Length in units (bytes or characters).
    lengths: Vec<u32>,
    /// The pair that first made each symbol; alphabet symbols have none and hold themselves.
    pairs: Vec<(Symbol, Symbol)>,
    live: Vec<bool>,
    live_count: usize,
    by_text: HashTable<u32>,
    special_tokens: Vec<String>,
    /// Spellings that belong to special tokens and so are never made by a merge.
    reserved: FxHashSet<Vec<u8>>,
    reserved_lengths: FxHashSet<usize>,
    max_token_length: usize,
}

const HASHER: FixedState = FixedState::with_seed(0);

impl Vocabulary {
    /// The alphabet and the special tokens, before the first event.
    pub fn new(alphabet: Alphabet, special_tokens: Vec<String>, max_token_length: Option<u64>) -> Self {
        let size = alphabet.len();
        let mut reserved = FxHashSet::default();
        for token in &special_tokens {
            let mut bytes = Vec::new();
            if alphabet.unprintable(token, &mut bytes) {
                reserved.insert(bytes);
            }
        }
        let mut vocabulary = Self {
            text: Vec::new(),
            starts: vec![0],
            lengths: Vec::new(),
            pairs: Vec::new(),
            live: Vec::new(),
            live_count: 0,
            by_text: HashTable::new(),
            special_tokens,
            reserved_lengths: reserved.iter().map(Vec::len).collect(),
            reserved,
            max_token_length: max_token_length
                .map_or(usize::MAX, |length| usize::try_from(length).unwrap_or(usize::MAX)),
            alphabet,
        };
        for symbol in 0..size {
            let mut spelling = Vec::new();
            vocabulary.alphabet.spelling(symbol, &mut spelling);
            vocabulary.text.extend_from_slice(&spelling);
            vocabulary.insert((Symbol(symbol as u32), Symbol(symbol as u32)), 1);
        }
        vocabulary
    }

    pub fn alphabet(&self) -> &Alphabet {
        &self.alphabet
    }

    /// The number of live tokens, special tokens and alphabet included.
    pub fn size(&self) -> usize {
        self.special_tokens.len() + self.live_count
    }

    /// The number of symbols, removed ones included.
    pub fn symbols(&self) -> usize {
        self.live.len()
    }

    pub fn is_live(&self, symbol: Symbol) -> bool {
        self.live[symbol.index()]
    }

    pub fn is_alphabet(&self, symbol: Symbol) -> bool {
        symbol.index() < self.alphabet.len()
    }

    /// Length in units: bytes or characters.
    pub fn length(&self, symbol: Symbol) -> usize {
        self.lengths[symbol.index()] as usize
    }

    pub fn bytes(&self, symbol: Symbol) -> &[u8] {
        &self.text[self.starts[symbol.index()]..self.starts[symbol.index() + 1]]
    }

    /// The alphabet symbols that spell a symbol.
    pub(crate) fn alphabet_symbols(&self, symbol: Symbol, into: &mut Vec<u32>) {
        self.alphabet.symbols_of_bytes(self.bytes(symbol), |symbol| into.extend(symbol));
    }

    pub fn printable(&self, symbol: Symbol) -> String {
        self.alphabet.printable(self.bytes(symbol))
    }

    /// The symbol that is spelled so, live or removed.
    pub fn find(&self, bytes: &[u8]) -> Option<Symbol> {
        let hash = HASHER.hash_one(bytes);
        self.by_text.find(hash, |&s| self.bytes(Symbol(s)) == bytes).map(|&s| Symbol(s))
    }

    /// Whether a pair is a candidate at all: not too long, and not the spelling of a special token.
    pub fn may_merge(&self, left: Symbol, right: Symbol) -> bool {
        let (first, last) = (self.bytes(left), self.bytes(right));
        self.length(left) + self.length(right) <= self.max_token_length
            && !(self.reserved_lengths.contains(&(first.len() + last.len()))
                && self.reserved.contains(&[first, last].concat()))
    }

    /// Makes `left` + `right` live, whether it is new, was removed, or is live already.
    pub fn merge(&mut self, left: Symbol, right: Symbol) -> (Symbol, Made) {
        let start = self.text.len();
        self.text.extend_from_within(self.starts[left.index()]..self.starts[left.index() + 1]);
        self.text.extend_from_within(self.starts[right.index()]..self.starts[right.index() + 1]);
        let Some(symbol) = self.find(&self.text[start..]) else {
            let length = self.lengths[left.index()] + self.lengths[right.index()];
            return (self.insert((left, right), length), Made::New);
        };
        self.text.truncate(start);
        if self.is_live(symbol) {
            return (symbol, Made::Again);
        }
        self.live[symbol.index()] = true;
        self.live_count += 1;
        (symbol, Made::Restored)
    }

    /// Registers the spelling that stands at the end of `text`.
    fn insert(&mut self, pair: (Symbol, Symbol), length: u32) -> Symbol {
        let symbol = Symbol(self.live.len() as u32);
        self.starts.push(self.text.len());
        self.lengths.push(length);
        self.pairs.push(pair);
        self.live.push(true);
        self.live_count += 1;
        let Self { by_text, text, starts, .. } = self;
        let spelling = |s: u32| &text[starts[s as usize]..starts[s as usize + 1]];
        by_text.insert_unique(HASHER.hash_one(spelling(symbol.0)), symbol.0, |&s| HASHER.hash_one(spelling(s)));
        symbol
    }

    /// Removes a live token; returns its parts: the pair that first made it, walked down to live tokens.
    pub fn remove(&mut self, symbol: Symbol) -> Vec<Symbol> {
        debug_assert!(self.is_live(symbol) && !self.is_alphabet(symbol));
        self.live[symbol.index()] = false;
        self.live_count -= 1;
        let mut parts = Vec::new();
        // A stack, not recursion: the pairs of one long word nest as deep as it is long.
        let mut pending = vec![symbol];
        while let Some(symbol) = pending.pop() {
            if self.is_live(symbol) {
                parts.push(symbol);
            } else {
                let (left, right) = self.pairs[symbol.index()];
                pending.push(right);
                pending.push(left);
            }
        }
        parts
    }

    /// Symbols in the order of creation.
    pub fn iter(&self) -> impl Iterator<Item = Symbol> + '_ {
        (0..self.live.len() as u32).map(Symbol)
    }
}
