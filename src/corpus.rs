//! The trainer's working state: all unique words in one flat array, an index of pairs, and a queue of candidates.
//!
//! **Slots.** Every unit (byte or character) of every unique word has one slot; words are separated by `BOUNDARY`,
//! which also stands for `<unk>`, since neither merges with anything. A token's symbol stands in its first slot and,
//! if it is longer than one, with the flag `LAST` in its last slot. So both neighbours are found in O(1), and a split
//! rewrites in place. Slots inside a token hold `DEAD` or a flagged symbol, never a bare one:
//! *a bare symbol is always the start of a token that is there now.*
//!
//! **Postings.** A pair keeps the positions where it came to be, a symbol (if it can be removed) those where it was
//! made. Neither is ever cleaned up; a position counts if the slots there still say so.
//!
//! **Counts rise.** A removal, and a merge whose token is live already or comes back, raises the counts of pairs that
//! exist. The queue of other BPE trainers is right only because counts fall; here every rise queues the pair again.
//!
//! One step costs O(occurrences touched + distinct neighbours x hash look-up): neighbours are first summed up in two
//! arrays indexed by symbol, so the hash table is not asked for every occurrence.

use std::cmp::Ordering;

use dary_heap::OctonaryHeap;
use rustc_hash::FxHashMap;

use crate::alphabet::Alphabet;
use crate::counts::WordCounts;
use crate::error::{Error, Result};
use crate::model::MAX_COUNT;
use crate::progress::Progress;
use crate::vocabulary::{Symbol, key};

const LAST: u32 = 1 << 31;
const BOUNDARY: u32 = LAST - 1;
const DEAD: u32 = LAST - 2;
/// More symbols than this cannot be told from the marks above.
pub(crate) const MAX_SYMBOLS: usize = DEAD as usize;
/// Positions are `u32`.
const MAX_SLOTS: u64 = 1 << 32;

/// A pair that may be merged next: largest count first, then smallest pair of symbols.
#[derive(Debug, PartialEq, Eq)]
struct Candidate {
    count: u64,
    key: u64,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.count.cmp(&other.count).then(other.key.cmp(&self.key))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[derive(Debug)]
struct Pair {
    key: u64,
    /// f_p of the paper.
    count: u64,
    /// The count of the one entry in the queue that is not outdated; 0: none; never below `count`.
    queued: u64,
    positions: Vec<u32>,
}

/// A pair that may never be merged; no count reaches it, so it is never queued again.
const NEVER: u64 = u64::MAX;

/// Words of equal count lie side by side: slots before `end` (and after the run before) weigh `weight`.
#[derive(Debug)]
struct Run {
    end: u32,
    weight: u64,
}

/// Slots in one block of the index of runs.
const BLOCK_BITS: u32 = 4;

#[derive(Debug)]
pub(crate) struct Corpus {
    slots: Vec<u32>,
    runs: Vec<Run>,
    /// The run of the first slot of each block.
    blocks: Vec<u32>,
    lengths: Vec<u32>,
    /// f_t of the paper.
    frequencies: Vec<u64>,
    /// Where each symbol beyond the alphabet was made; kept only if tokens can be removed.
    made: Vec<Vec<u32>>,
    keeps_made: bool,
    alphabet: usize,
    index: FxHashMap<u64, u32>,
    pairs: Vec<Pair>,
    queue: OctonaryHeap<Candidate>,
    left: Neighbours,
    right: Neighbours,
}

/// Sums up, for one event, what stands beside the places that it touched.
#[derive(Debug, Default)]
struct Neighbours {
    /// Weight by symbol; zero outside an event.
    weight: Vec<u64>,
    /// The pair that the neighbour forms after the event, valid where `weight` is not zero.
    pair: Vec<u32>,
    touched: Vec<u32>,
}

impl Corpus {
    pub(crate) fn new(counts: &WordCounts, alphabet: &Alphabet, keeps_made: bool, progress: &Progress) -> Result<Self> {
        let mut order: Vec<u32> = (0..counts.len() as u32).collect();
        // Equal counts side by side make few runs; nothing else depends on the order of words.
        order.sort_unstable_by_key(|&word| std::cmp::Reverse(counts.count(word as usize)));
        let mut slots = Vec::with_capacity(counts.bytes() + counts.len() + 1);
        slots.push(BOUNDARY);
        let mut runs: Vec<Run> = Vec::new();
        for &word in &order {
            progress.check()?;
            let weight = counts.count(word as usize);
            alphabet.symbols(counts.word(word as usize), |symbol| slots.push(symbol.unwrap_or(BOUNDARY)));
            slots.push(BOUNDARY);
            if slots.len() as u64 >= MAX_SLOTS {
                return Err(Error::value(format!("the unique words are longer than {MAX_SLOTS} units together")));
            }
            let end = slots.len() as u32;
            match runs.last_mut() {
                Some(run) if run.weight == weight => run.end = end,
                _ => runs.push(Run { end, weight }),
            }
        }
        let mut blocks = Vec::with_capacity((slots.len() >> BLOCK_BITS) + 1);
        let mut run = 0;
        for start in (0..slots.len()).step_by(1 << BLOCK_BITS) {
            while run < runs.len() && runs[run].end as usize <= start {
                run += 1;
            }
            blocks.push(run as u32);
        }
        let mut corpus = Self {
            slots,
            runs,
            blocks,
            lengths: vec![1; alphabet.len()],
            frequencies: vec![0; alphabet.len()],
            made: vec![Vec::new(); alphabet.len()],
            keeps_made,
            alphabet: alphabet.len(),
            index: FxHashMap::default(),
            pairs: Vec::new(),
            queue: OctonaryHeap::new(),
            left: Neighbours::default(),
            right: Neighbours::default(),
        };
        corpus.left.reserve(alphabet.len());
        corpus.right.reserve(alphabet.len());
        corpus.count(progress)?;
        Ok(corpus)
    }

    /// Counts symbols and pairs, and queues the pairs.
    fn count(&mut self, progress: &Progress) -> Result<()> {
        let mut occurrences: Vec<u32> = Vec::new();
        let mut length: u64 = 0;
        for position in 1..self.slots.len() - 1 {
            let (left, right) = (self.slots[position], self.slots[position + 1]);
            if left == BOUNDARY {
                progress.check()?;
                continue;
            }
            let weight = self.weight(position as u32);
            length = length.checked_add(weight).filter(|&length| length <= MAX_COUNT).ok_or_else(too_long)?;
            self.frequencies[left as usize] += weight;
            if right != BOUNDARY {
                let pair = self.pair(left, right);
                self.pairs[pair].count += weight;
                occurrences.resize(self.pairs.len(), 0);
                occurrences[pair] += 1;
            }
        }
        for (pair, &occurrences) in self.pairs.iter_mut().zip(&occurrences) {
            pair.positions.reserve_exact(occurrences as usize);
        }
        for position in 1..self.slots.len() - 1 {
            let (left, right) = (self.slots[position], self.slots[position + 1]);
            if left != BOUNDARY && right != BOUNDARY {
                let pair = self.pair(left, right);
                self.pairs[pair].positions.push(position as u32);
            }
        }
        for pair in &mut self.pairs {
            pair.queued = pair.count;
        }
        let candidates: Vec<_> = self.pairs.iter().map(|&Pair { count, key, .. }| Candidate { count, key }).collect();
        self.queue = candidates.into();
        Ok(())
    }

    /// f_t: how many positions hold the symbol.
    pub(crate) fn frequency(&self, symbol: Symbol) -> u64 {
        self.frequencies[symbol.index()]
    }

    /// The pair with the largest f_p that `may_merge` allows, ties to the smallest pair of symbols.
    pub(crate) fn best_pair(&mut self, may_merge: impl Fn(Symbol, Symbol) -> bool) -> Option<(Symbol, Symbol, u64)> {
        while let Some(Candidate { count, key }) = self.queue.pop() {
            let pair = &mut self.pairs[self.index[&key] as usize];
            if pair.queued != count {
                continue; // A newer entry stands for this pair.
            }
            if pair.count != count {
                pair.queued = pair.count;
                if pair.count > 0 {
                    self.queue.push(Candidate { count: pair.count, key });
                }
                continue;
            }
            let (left, right) = (Symbol((key >> 32) as u32), Symbol(key as u32));
            if may_merge(left, right) {
                pair.queued = 0;
                return Some((left, right, count));
            }
            pair.queued = NEVER;
            pair.positions = Vec::new();
        }
        None
    }

    /// Merges a pair everywhere, left to right without overlap; returns the merges performed, weighted.
    pub(crate) fn merge(&mut self, left: Symbol, right: Symbol, token: Symbol) -> u64 {
        let (x1, x2, x3) = (left.0, right.0, token.0);
        let (length1, length2) = (self.lengths[left.index()], self.lengths[right.index()]);
        let length3 = length1 + length2;
        self.register(token, length3);
        let pair = self.pair(x1, x2);
        let mut positions = std::mem::take(&mut self.pairs[pair].positions);
        if x1 == x2 {
            // Left to right matters only where occurrences can overlap.
            positions.sort_unstable();
        }
        let mut merges = 0;
        for position in positions {
            let second = position + length1;
            if self.slots[position as usize] != x1 || self.slots[second as usize] != x2 {
                continue;
            }
            let weight = self.weight(position);
            self.touch_left(position, x3, weight);
            self.touch_right(second + length2, position, x3, weight);
            self.slots[second as usize] = DEAD;
            self.slots[(position + length3 - 1) as usize] = x3 | LAST;
            self.slots[position as usize] = x3;
            if self.keeps_made {
                self.made[token.index()].push(position);
            }
            merges += weight;
        }
        self.frequencies[left.index()] -= merges;
        self.frequencies[right.index()] -= merges;
        self.frequencies[token.index()] += merges;
        self.pairs[pair].count = self.pairs[pair].count.wrapping_sub(merges);
        self.settle(x1, x2);
        merges
    }

    /// Replaces a symbol by its parts wherever it is left.
    pub(crate) fn split(&mut self, token: Symbol, parts: &[Symbol]) {
        let x = token.0;
        let length = self.lengths[token.index()];
        let (first, last) = (parts[0].0, parts[parts.len() - 1].0);
        let last_start = length - self.lengths[last as usize];
        let inner: Vec<usize> = parts.windows(2).map(|pair| self.pair(pair[0].0, pair[1].0)).collect();
        let mut splits = 0;
        for position in std::mem::take(&mut self.made[token.index()]) {
            if self.slots[position as usize] != x {
                continue;
            }
            let weight = self.weight(position);
            self.touch_left(position, first, weight);
            self.touch_right(position + length, position + last_start, last, weight);
            self.write_parts(position, parts, &inner);
            splits += weight;
        }
        self.frequencies[token.index()] -= splits;
        for &part in parts {
            self.frequencies[part.index()] += splits;
        }
        for &pair in &inner {
            self.pairs[pair].count += splits;
        }
        self.settle(x, x);
        for pair in inner {
            queue_rise(&mut self.pairs[pair], &mut self.queue);
        }
    }

    fn write_parts(&mut self, position: u32, parts: &[Symbol], inner: &[usize]) {
        let mut start = position;
        for (index, part) in parts.iter().enumerate() {
            let length = self.lengths[part.index()];
            self.slots[(start + length - 1) as usize] = part.0 | LAST;
            self.slots[start as usize] = part.0;
            if part.index() >= self.alphabet {
                self.made[part.index()].push(start);
            }
            if let Some(&pair) = inner.get(index) {
                self.pairs[pair].positions.push(start);
            }
            start += length;
        }
    }

    /// The token before `position` gets `to` as its right neighbour.
    fn touch_left(&mut self, position: u32, to: u32, weight: u64) {
        let before = self.slots[position as usize - 1];
        if before == BOUNDARY {
            return;
        }
        let neighbour = before & !LAST;
        if self.left.touch(neighbour, weight) {
            self.left.pair[neighbour as usize] = self.pair(neighbour, to) as u32;
        }
        let pair = self.left.pair[neighbour as usize] as usize;
        self.pairs[pair].positions.push(position - self.lengths[neighbour as usize]);
    }

    /// The token at `after` gets `to`, which starts at `start`, as its left neighbour.
    fn touch_right(&mut self, after: u32, start: u32, to: u32, weight: u64) {
        let neighbour = self.slots[after as usize];
        if neighbour == BOUNDARY {
            return;
        }
        if self.right.touch(neighbour, weight) {
            self.right.pair[neighbour as usize] = self.pair(to, neighbour) as u32;
        }
        let pair = self.right.pair[neighbour as usize] as usize;
        self.pairs[pair].positions.push(start);
    }

    /// Books an event: neighbours of what began with `first` and ended with `last` now stand beside what replaced it.
    ///
    /// Counts wrap on the way: in `x y x y` the second merge takes back a pair that the first one has just made.
    fn settle(&mut self, first: u32, last: u32) {
        let Self { index, pairs, queue, left, right, .. } = self;
        let moves = |side: &Neighbours, key_before: &dyn Fn(u32) -> u64| -> Vec<(usize, usize, u64)> {
            let book = |&neighbour: &u32| {
                let before = index[&key_before(neighbour)];
                (before as usize, side.pair[neighbour as usize] as usize, side.weight[neighbour as usize])
            };
            side.touched.iter().map(book).collect()
        };
        let mut moved = moves(left, &|neighbour| key(neighbour, first));
        moved.extend(moves(right, &|neighbour| key(last, neighbour)));
        for &(before, after, weight) in &moved {
            pairs[before].count = pairs[before].count.wrapping_sub(weight);
            pairs[after].count = pairs[after].count.wrapping_add(weight);
        }
        for (before, after, _) in moved {
            if pairs[before].count == 0 {
                pairs[before].positions = Vec::new(); // It stands nowhere, so no position is of use.
            }
            queue_rise(&mut pairs[after], queue);
        }
        left.clear();
        right.clear();
    }

    /// The place of a pair in `pairs`; made if there is none.
    fn pair(&mut self, left: u32, right: u32) -> usize {
        let key = key(left, right);
        let next = self.pairs.len() as u32;
        let pair = *self.index.entry(key).or_insert(next);
        if pair == next {
            self.pairs.push(Pair { key, count: 0, queued: 0, positions: Vec::new() });
        }
        pair as usize
    }

    /// Makes room for a symbol that is new.
    fn register(&mut self, token: Symbol, length: u32) {
        if token.index() == self.lengths.len() {
            self.lengths.push(length);
            self.frequencies.push(0);
            self.made.push(Vec::new());
            self.left.reserve(token.index() + 1);
            self.right.reserve(token.index() + 1);
        }
    }

    /// How often the word at a position occurs.
    #[inline]
    fn weight(&self, position: u32) -> u64 {
        let mut run = self.blocks[(position >> BLOCK_BITS) as usize] as usize;
        while self.runs[run].end <= position {
            run += 1;
        }
        self.runs[run].weight
    }

    /// Recounts everything from the slots and compares: for tests.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let mut frequencies = vec![0; self.frequencies.len()];
        let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
        let mut position = 0;
        let mut before = BOUNDARY;
        while position < self.slots.len() {
            let symbol = self.slots[position];
            assert!(symbol < DEAD || symbol == BOUNDARY, "slot {position} is no start");
            if symbol == BOUNDARY {
                before = BOUNDARY;
                position += 1;
                continue;
            }
            let length = self.lengths[symbol as usize] as usize;
            for inside in position + 1..position + length {
                assert!(self.slots[inside] == DEAD || self.slots[inside] & LAST != 0);
            }
            assert!(length == 1 || self.slots[position + length - 1] == symbol | LAST);
            let weight = self.weight(position as u32);
            frequencies[symbol as usize] += weight;
            if before != BOUNDARY {
                *counts.entry(key(before, symbol)).or_default() += weight;
            }
            before = symbol;
            position += length;
        }
        assert_eq!(frequencies, self.frequencies);
        for pair in &self.pairs {
            assert_eq!(pair.count, counts.remove(&pair.key).unwrap_or(0), "pair {:x}", pair.key);
            assert!(pair.queued >= pair.count);
        }
        assert!(counts.is_empty());
    }
}

/// Queues a pair whose count rose above that of its entry in the queue.
fn queue_rise(pair: &mut Pair, queue: &mut OctonaryHeap<Candidate>) {
    if pair.count > pair.queued {
        pair.queued = pair.count;
        queue.push(Candidate { count: pair.count, key: pair.key });
    }
}

pub(crate) fn too_long() -> Error {
    Error::value(format!("all words together, weighted by their counts, are longer than {MAX_COUNT} units"))
}

impl Neighbours {
    fn reserve(&mut self, symbols: usize) {
        self.weight.resize(symbols, 0);
        self.pair.resize(symbols, 0);
    }

    /// Adds the weight of one more place; true if it is the neighbour's first in this event.
    #[inline]
    fn touch(&mut self, neighbour: u32, weight: u64) -> bool {
        let sum = &mut self.weight[neighbour as usize];
        let first = *sum == 0;
        *sum += weight;
        if first {
            self.touched.push(neighbour);
        }
        first
    }

    fn clear(&mut self) {
        for neighbour in self.touched.drain(..) {
            self.weight[neighbour as usize] = 0;
        }
    }
}
