//! A trained model: configuration, alphabet and events. Everything else is derived by replaying the events.
//!
//! The map between internal symbols (creation order, removed ones included) and public ids (dense over live tokens:
//! special tokens, alphabet, then creation order) lives here and nowhere else.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::alphabet::{Alphabet, UNKNOWN, Unit};
use crate::error::{Error, Result};
use crate::pretokenize::PreTokenizer;
use crate::vocabulary::{Made, Symbol, Vocabulary};

/// Largest vocabulary size: ids fit a signed 32-bit integer wherever they go.
pub const MAX_VOCAB_SIZE: u64 = i32::MAX as u64;
/// Largest count anywhere: twice of it still fits 64 bits.
pub const MAX_COUNT: u64 = i64::MAX as u64;
pub const DEFAULT_COVERAGE: f64 = 0.9999;

/// What to train. `check` brings it into its one normal form.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainConfig {
    pub vocab_size: u64,
    /// T of the paper.
    pub threshold: f64,
    pub unit: Unit,
    pub coverage: Option<f64>,
    pub special_tokens: Vec<String>,
    pub min_frequency: u64,
    pub max_token_length: Option<u64>,
}

impl Default for TrainConfig {
    fn default() -> Self {
        Self {
            vocab_size: 32_768,
            threshold: 0.9,
            unit: Unit::Byte,
            coverage: None,
            special_tokens: Vec::new(),
            min_frequency: 1,
            max_token_length: None,
        }
    }
}

impl TrainConfig {
    /// Checks every value and fills in what the char unit implies: `<unk>` and the default coverage.
    pub fn check(mut self, pretokenizer: &PreTokenizer) -> Result<Self> {
        if !(self.threshold > 0.0 && self.threshold <= 1.0) {
            return Err(Error::value(format!("threshold must be above 0 and at most 1, got {}", self.threshold)));
        }
        if self.vocab_size > MAX_VOCAB_SIZE {
            return Err(Error::value(format!("vocab_size must be at most {MAX_VOCAB_SIZE}, got {}", self.vocab_size)));
        }
        if self.min_frequency == 0 {
            return Err(Error::value("min_frequency must be at least 1, got 0"));
        }
        if self.max_token_length == Some(0) {
            return Err(Error::value("max_token_length must be at least 1, got 0"));
        }
        match self.unit {
            Unit::Byte if self.coverage.is_some() => {
                return Err(Error::value("coverage needs unit=\"char\": bytes always cover everything"));
            }
            Unit::Byte if !pretokenizer.is_partition() => {
                let name = pretokenizer.name();
                return Err(Error::value(format!("pretokenizer {name:?} loses white space and needs unit=\"char\"")));
            }
            Unit::Byte => {}
            Unit::Char => {
                let coverage = *self.coverage.get_or_insert(DEFAULT_COVERAGE);
                if !(coverage > 0.0 && coverage <= 1.0) {
                    return Err(Error::value(format!("coverage must be above 0 and at most 1, got {coverage}")));
                }
                if !self.special_tokens.iter().any(|token| token == UNKNOWN) {
                    self.special_tokens.insert(0, UNKNOWN.to_owned());
                }
            }
        }
        let mut seen = FxHashSet::default();
        for (index, token) in self.special_tokens.iter().enumerate() {
            if token.is_empty() {
                return Err(Error::value(format!("special token {index} is empty")));
            }
            if !seen.insert(token) {
                return Err(Error::value(format!("special token {token:?} is given twice")));
            }
        }
        Ok(self)
    }

    /// Checks what can only be checked against an alphabet: clashes with special tokens, and room for both.
    pub fn check_alphabet(&self, alphabet: &Alphabet) -> Result<()> {
        let mut bytes = Vec::new();
        for token in &self.special_tokens {
            let mut symbols = 0;
            let mut known = alphabet.unprintable(token, &mut bytes);
            if known {
                match alphabet {
                    Alphabet::Bytes => symbols = bytes.len(),
                    Alphabet::Chars { .. } => alphabet.symbols(token, |symbol| {
                        symbols += 1;
                        known &= symbol.is_some();
                    }),
                }
            }
            if known && symbols == 1 {
                return Err(Error::value(format!("special token {token:?} is a token of the alphabet")));
            }
        }
        let least = (alphabet.len() + self.special_tokens.len()) as u64;
        if self.vocab_size < least {
            return Err(Error::value(format!(
                "vocab_size must be at least {least} ({} alphabet and {} special tokens), got {}",
                alphabet.len(),
                self.special_tokens.len(),
                self.vocab_size
            )));
        }
        Ok(())
    }

    /// Whether a token leaves, of whose `frequency` occurrences one merge consumed `absorbed`.
    pub fn removes(&self, absorbed: u64, frequency: u64) -> bool {
        // One IEEE division, the same everywhere; 9 of 10 reaches 0.9.
        self.threshold < 1.0 && absorbed as f64 / frequency as f64 >= self.threshold
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Merge { left: Symbol, right: Symbol, token: Symbol, count: u64, made: Made },
    Remove { token: Symbol, parts: Box<[Symbol]>, absorbed: u64, frequency: u64 },
}

/// Why training ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The vocabulary has its size.
    VocabSize,
    /// No pair is left that may be merged.
    Exhausted,
    /// The best pair is rarer than `min_frequency`.
    MinFrequency,
}

impl Stop {
    pub const ALL: [Self; 3] = [Self::VocabSize, Self::Exhausted, Self::MinFrequency];

    pub fn name(self) -> &'static str {
        match self {
            Self::VocabSize => "vocab_size",
            Self::Exhausted => "exhausted",
            Self::MinFrequency => "min_frequency",
        }
    }
}

/// A trained model. Immutable; made by `train` or by reading a model file.
#[derive(Clone, Debug)]
pub struct Model {
    config: TrainConfig,
    pretokenizer: PreTokenizer,
    unicode: String,
    stop: Stop,
    events: Vec<Event>,
    vocabulary: Vocabulary,
    /// Public id of each symbol, `NO_ID` for removed ones.
    ids: Vec<u32>,
    /// Symbol of each public id after the special tokens.
    symbols: Vec<Symbol>,
    special_ids: FxHashMap<String, u32>,
}

const NO_ID: u32 = u32::MAX;

impl PartialEq for Model {
    fn eq(&self, other: &Self) -> bool {
        self.config == other.config
            && self.pretokenizer == other.pretokenizer
            && self.unicode == other.unicode
            && self.stop == other.stop
            && self.vocabulary.alphabet() == other.vocabulary.alphabet()
            && self.events == other.events
    }
}

impl Model {
    /// A model from training that is complete: `vocabulary` is what `events` made of the alphabet.
    pub(crate) fn new(
        config: TrainConfig,
        pretokenizer: PreTokenizer,
        unicode: String,
        vocabulary: Vocabulary,
        events: Vec<Event>,
        stop: Stop,
    ) -> Self {
        let mut ids = Vec::with_capacity(vocabulary.symbols());
        let mut symbols = Vec::with_capacity(vocabulary.size());
        for symbol in vocabulary.iter() {
            if vocabulary.is_live(symbol) {
                ids.push((config.special_tokens.len() + symbols.len()) as u32);
                symbols.push(symbol);
            } else {
                ids.push(NO_ID);
            }
        }
        let special_ids = (0..).zip(&config.special_tokens).map(|(id, token)| (token.clone(), id)).collect();
        Self { config, pretokenizer, unicode, stop, events, vocabulary, ids, symbols, special_ids }
    }

    pub fn config(&self) -> &TrainConfig {
        &self.config
    }

    pub fn pretokenizer(&self) -> &PreTokenizer {
        &self.pretokenizer
    }

    /// The version of the Unicode tables that cut the training words.
    pub fn unicode(&self) -> &str {
        &self.unicode
    }

    pub fn stop(&self) -> Stop {
        self.stop
    }

    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    pub fn special_tokens(&self) -> &[String] {
        &self.config.special_tokens
    }

    /// The number of live tokens; public ids are `0..size()`.
    pub fn size(&self) -> usize {
        self.vocabulary.size()
    }

    /// The public id of a live symbol.
    pub(crate) fn id(&self, symbol: Symbol) -> Option<u32> {
        Some(self.ids[symbol.index()]).filter(|&id| id != NO_ID)
    }

    /// The symbol of a public id; special tokens have none.
    pub(crate) fn symbol(&self, id: u32) -> Option<Symbol> {
        let index = (id as usize).checked_sub(self.config.special_tokens.len())?;
        self.symbols.get(index).copied()
    }

    /// The id of a special token.
    pub(crate) fn special_id(&self, token: &str) -> Option<u32> {
        self.special_ids.get(token).copied()
    }

    /// The bytes that an id decodes to.
    pub fn bytes(&self, id: u32) -> Result<&[u8]> {
        match self.config.special_tokens.get(id as usize) {
            Some(token) => Ok(token.as_bytes()),
            None => self.symbol(id).map(|symbol| self.vocabulary.bytes(symbol)).ok_or_else(|| self.unknown(id)),
        }
    }

    /// The printable form of an id's token.
    pub fn token(&self, id: u32) -> Result<String> {
        match self.config.special_tokens.get(id as usize) {
            Some(token) => Ok(token.clone()),
            None => self.symbol(id).map(|symbol| self.vocabulary.printable(symbol)).ok_or_else(|| self.unknown(id)),
        }
    }

    /// The id of a token in printable form.
    pub fn find(&self, token: &str) -> Option<u32> {
        if let Some(id) = self.special_id(token) {
            return Some(id);
        }
        let mut bytes = Vec::new();
        if !self.vocabulary.alphabet().unprintable(token, &mut bytes) {
            return None;
        }
        self.vocabulary.find(&bytes).and_then(|symbol| self.id(symbol))
    }

    pub(crate) fn unknown(&self, id: impl std::fmt::Display) -> Error {
        Error::key(format!("id {id} is not in the vocabulary: ids are 0 to {}", self.size().saturating_sub(1)))
    }
}
