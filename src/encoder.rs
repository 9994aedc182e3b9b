//! Encoding one word by the events order (SPEC section 5): the paper's Algorithm 2.
//!
//! From time 0, the earliest event that applies to the word and is later than the last one performed is performed on
//! all its occurrences, until none is left. This equals replaying the whole event list. Two ways give it, with equal
//! results: `scan` keeps the next event of every neighbour pair and token in plain arrays and looks for the minimum,
//! the better constant for short words; `queue` keeps them in a heap over a linked list, O(n log n) for long ones.
//! The proof of the queue is in `docs/algorithm.md`. Its one trap: a pair is looked up with the clock, never by its
//! first event alone, since a pair that a removal lays bare must not be merged by an event that has passed.

use std::cmp::Reverse;

use dary_heap::OctonaryHeap;
use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::model::{Event, Model};
use crate::progress::Progress;
use crate::vocabulary::key;

/// No event, no symbol.
pub(crate) const NONE: u32 = u32::MAX;
/// Stands for a character outside the alphabet; no pair holds it.
pub(crate) const UNKNOWN_SYMBOL: u32 = u32::MAX - 1;
/// Words of at most so many symbols are scanned: nearly all there are.
const SCAN_LIMIT: usize = 32;

/// The events of one pair or token, in order; nearly always there is just one.
#[derive(Clone, Copy, Debug)]
struct Times {
    first: u32,
    /// Place of the others in `Replayer::later`, or `NONE`.
    later: u32,
}

const NEVER: Times = Times { first: NONE, later: NONE };

/// What an event does, in symbols.
#[derive(Clone, Copy, Debug)]
enum Action {
    Merge { left: u32, right: u32, token: u32 },
    Remove { token: u32, parts_start: u32, parts_end: u32 },
}

/// The events of a model, indexed for replay on single words.
#[derive(Debug)]
pub(crate) struct Replayer {
    actions: Vec<Action>,
    parts: Vec<u32>,
    pairs: FxHashMap<u64, Times>,
    /// By symbol: when it is removed.
    removals: Vec<Times>,
    later: Vec<Vec<u32>>,
    lengths: Vec<u32>,
}

/// Positions in a word are `u32`, and one value means none.
pub(crate) const MAX_WORD: usize = NONE as usize - 1;

/// Buffers of one thread.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// The word: alphabet symbols before, its tokens after.
    pub(crate) symbols: Vec<u32>,
    previous: Vec<u32>,
    queue: OctonaryHeap<Reverse<u64>>,
}

impl Replayer {
    pub(crate) fn new(model: &Model) -> Self {
        let vocabulary = model.vocabulary();
        let mut replayer = Self {
            actions: Vec::with_capacity(model.events().len()),
            parts: Vec::new(),
            pairs: FxHashMap::with_capacity_and_hasher(model.events().len(), Default::default()),
            removals: vec![NEVER; vocabulary.symbols()],
            later: Vec::new(),
            lengths: vocabulary.iter().map(|symbol| vocabulary.length(symbol) as u32).collect(),
        };
        for (time, event) in model.events().iter().enumerate() {
            let time = time as u32;
            let Self { parts, pairs, removals, later, .. } = &mut replayer;
            let action = match event {
                Event::Merge { left, right, token, .. } => {
                    let (left, right, token) = (left.0, right.0, token.0);
                    pairs.entry(key(left, right)).or_insert(NEVER).add(time, later);
                    Action::Merge { left, right, token }
                }
                Event::Remove { token, parts: into, .. } => {
                    removals[token.index()].add(time, later);
                    let parts_start = parts.len() as u32;
                    parts.extend(into.iter().map(|part| part.0));
                    Action::Remove { token: token.0, parts_start, parts_end: parts.len() as u32 }
                }
            };
            replayer.actions.push(action);
        }
        replayer
    }

    /// Turns the alphabet symbols in `scratch.symbols` into tokens.
    pub(crate) fn encode(&self, scratch: &mut Scratch, progress: &Progress) -> Result<()> {
        if scratch.symbols.len() <= SCAN_LIMIT {
            self.scan(&mut scratch.symbols);
            Ok(())
        } else {
            self.queue(scratch, progress, |_, _| ())
        }
    }

    /// The first merge of a pair after `now`, or from the beginning of time.
    #[inline]
    fn next_merge(&self, left: u32, right: u32, now: Option<u32>) -> u32 {
        self.pairs.get(&key(left, right)).map_or(NONE, |&times| self.next(times, now))
    }

    #[inline]
    fn next_removal(&self, token: u32, now: u32) -> u32 {
        self.removals.get(token as usize).map_or(NONE, |&times| self.next(times, Some(now)))
    }

    #[inline]
    fn next(&self, times: Times, now: Option<u32>) -> u32 {
        match now {
            Some(now) if times.first <= now => {
                let later = self.later.get(times.later as usize).map_or(&[][..], Vec::as_slice);
                later.get(later.partition_point(|&time| time <= now)).copied().unwrap_or(NONE)
            }
            _ => times.first,
        }
    }

    fn parts(&self, start: u32, end: u32) -> &[u32] {
        &self.parts[start as usize..end as usize]
    }

    /// Replays by linear search for the next event, for at most `SCAN_LIMIT` symbols.
    fn scan(&self, symbols: &mut Vec<u32>) {
        let mut word = Word::new(self, symbols);
        while let Some(time) = word.next_event() {
            match self.actions[time as usize] {
                Action::Merge { token, .. } => {
                    for at in 0..word.length {
                        if word.merges[at] == time {
                            word.merge(at, token, time);
                        }
                    }
                }
                Action::Remove { parts_start, parts_end, .. } => {
                    let parts = self.parts(parts_start, parts_end);
                    for at in 0..word.length {
                        if word.removals[at] == time {
                            word.split(at, parts, time);
                        }
                    }
                }
            }
        }
        symbols.clear();
        let mut at = 0;
        while at < word.length {
            symbols.push(word.symbols[at]);
            at = word.next[at] as usize;
        }
    }

    /// Replays with a heap of (time, position). A token lies at its first position, the others hold `NONE`.
    /// Tells `performed` each event that changed the word, and the word with its gaps.
    pub(crate) fn queue(
        &self,
        scratch: &mut Scratch,
        progress: &Progress,
        mut performed: impl FnMut(u32, &[u32]),
    ) -> Result<()> {
        let Scratch { symbols, previous, queue } = scratch;
        previous.clear();
        previous.extend((0..symbols.len() as u32).map(|at| at.wrapping_sub(1)));
        queue.clear();
        let mut initial = std::mem::take(queue).into_vec();
        for (at, pair) in symbols.windows(2).enumerate() {
            let time = self.next_merge(pair[0], pair[1], None);
            if time != NONE {
                initial.push(Reverse(key(time, at as u32)));
            }
        }
        *queue = initial.into();
        let mut list = List { replayer: self, symbols, previous, queue };
        let mut popped: u32 = 0;
        let mut changed = None;
        while let Some(Reverse(next)) = list.queue.pop() {
            let (time, at) = ((next >> 32) as u32, next as u32);
            popped = popped.wrapping_add(1);
            if popped.is_multiple_of(1 << 16) {
                progress.check()?;
            }
            if let Some(last) = changed.take_if(|last| *last != time) {
                performed(last, list.symbols);
            }
            let done = match self.actions[time as usize] {
                Action::Merge { left, right, token } => list.merge(at, (left, right), token, time),
                Action::Remove { token, parts_start, parts_end } => {
                    list.split(at, token, self.parts(parts_start, parts_end), time)
                }
            };
            if done {
                changed = Some(time);
            }
        }
        if let Some(last) = changed {
            performed(last, list.symbols);
        }
        symbols.retain(|&symbol| symbol != NONE);
        Ok(())
    }
}

impl Times {
    fn add(&mut self, time: u32, later: &mut Vec<Vec<u32>>) {
        if self.first == NONE {
            self.first = time;
        } else if self.later == NONE {
            self.later = later.len() as u32;
            later.push(vec![time]);
        } else {
            later[self.later as usize].push(time);
        }
    }
}

/// A short word. A token lies at its first position, with its next merge with the token after it, its next removal, and
/// where its neighbours are; nothing is ever due at the other positions.
///
/// Arrays of fixed size with gaps, so that nothing moves when tokens merge.
struct Word<'a> {
    replayer: &'a Replayer,
    length: usize,
    symbols: [u32; SCAN_LIMIT],
    merges: [u32; SCAN_LIMIT],
    removals: [u32; SCAN_LIMIT],
    next: [u8; SCAN_LIMIT],
    previous: [u8; SCAN_LIMIT],
    /// How many removals are to come: mostly none, then they need not be looked at.
    removable: usize,
}

/// Before the first token there is none.
const NOWHERE: u8 = u8::MAX;

impl<'a> Word<'a> {
    fn new(replayer: &'a Replayer, symbols: &[u32]) -> Self {
        let mut word = Self {
            replayer,
            length: symbols.len(),
            symbols: [NONE; SCAN_LIMIT],
            merges: [NONE; SCAN_LIMIT],
            removals: [NONE; SCAN_LIMIT],
            next: std::array::from_fn(|at| at as u8 + 1),
            previous: std::array::from_fn(|at| (at as u8).wrapping_sub(1)),
            removable: 0,
        };
        word.symbols[..symbols.len()].copy_from_slice(symbols);
        for (at, pair) in symbols.windows(2).enumerate() {
            word.merges[at] = replayer.next_merge(pair[0], pair[1], None);
        }
        word
    }

    fn next_event(&self) -> Option<u32> {
        let mut time = self.merges[..self.length].iter().copied().min().unwrap_or(NONE);
        if self.removable > 0 {
            time = time.min(self.removals[..self.length].iter().copied().min().unwrap_or(NONE));
        }
        (time != NONE).then_some(time)
    }

    fn merge(&mut self, at: usize, token: u32, now: u32) {
        let second = self.next[at] as usize;
        self.set_removal(second, NONE);
        self.merges[second] = NONE;
        self.symbols[at] = token;
        self.link(at, self.next[second] as usize);
        self.refresh_merge(self.previous[at], now);
        self.refresh(at, now);
    }

    fn split(&mut self, at: usize, parts: &[u32], now: u32) {
        let end = self.next[at] as usize;
        let mut start = at;
        for &part in parts {
            self.symbols[start] = part;
            let after = start + self.replayer.lengths[part as usize] as usize;
            self.link(start, after);
            start = after;
        }
        self.refresh_merge(self.previous[at], now);
        let mut start = at;
        while start < end {
            self.refresh(start, now);
            start = self.next[start] as usize;
        }
    }

    fn link(&mut self, at: usize, after: usize) {
        self.next[at] = after as u8;
        if after < self.length {
            self.previous[after] = at as u8;
        }
    }

    /// Looks up what is due for a new token.
    fn refresh(&mut self, at: usize, now: u32) {
        self.refresh_merge(at as u8, now);
        self.set_removal(at, self.replayer.next_removal(self.symbols[at], now));
    }

    fn refresh_merge(&mut self, at: u8, now: u32) {
        if at == NOWHERE {
            return;
        }
        let at = at as usize;
        let after = self.next[at] as usize;
        self.merges[at] = match after < self.length {
            true => self.replayer.next_merge(self.symbols[at], self.symbols[after], Some(now)),
            false => NONE,
        };
    }

    fn set_removal(&mut self, at: usize, time: u32) {
        self.removable -= usize::from(self.removals[at] != NONE);
        self.removable += usize::from(time != NONE);
        self.removals[at] = time;
    }
}

/// A long word as a linked list over positions, and what is due in it.
///
/// Every pair and token that is there has its next event in the queue. An entry whose content no longer matches is
/// skipped; one that matches is due, whenever it was pushed. So entries need no version.
struct List<'a> {
    replayer: &'a Replayer,
    symbols: &'a mut [u32],
    previous: &'a mut [u32],
    queue: &'a mut OctonaryHeap<Reverse<u64>>,
}

impl List<'_> {
    fn after(&self, at: u32) -> usize {
        // A symbol outside the alphabet has no length of its own; it is one character.
        at as usize + self.replayer.lengths.get(self.symbols[at as usize] as usize).map_or(1, |&length| length as usize)
    }

    /// Merges the pair at a position, if it is still there.
    fn merge(&mut self, at: u32, (left, right): (u32, u32), token: u32, now: u32) -> bool {
        if self.symbols[at as usize] != left {
            return false;
        }
        let second = self.after(at);
        if self.symbols.get(second) != Some(&right) {
            return false;
        }
        self.symbols[second] = NONE;
        self.symbols[at as usize] = token;
        self.link(at);
        self.push_pair(self.previous[at as usize], now);
        self.push_pair(at, now);
        self.push_removal(at, now);
        true
    }

    /// Splits the token at a position, if it is still there.
    fn split(&mut self, at: u32, token: u32, parts: &[u32], now: u32) -> bool {
        if self.symbols[at as usize] != token {
            return false;
        }
        let mut start = at;
        for &part in parts {
            self.symbols[start as usize] = part;
            self.link(start);
            start = self.after(start) as u32;
        }
        self.push_pair(self.previous[at as usize], now);
        let mut start = at;
        for _ in parts {
            self.push_pair(start, now);
            self.push_removal(start, now);
            start = self.after(start) as u32;
        }
        true
    }

    /// Tells the token after `at` what stands before it.
    fn link(&mut self, at: u32) {
        let after = self.after(at);
        if let Some(previous) = self.previous.get_mut(after) {
            *previous = at;
        }
    }

    fn push_pair(&mut self, at: u32, now: u32) {
        if at == NONE {
            return; // Nothing stands before the first token.
        }
        if let Some(&right) = self.symbols.get(self.after(at)) {
            self.push(self.replayer.next_merge(self.symbols[at as usize], right, Some(now)), at);
        }
    }

    fn push_removal(&mut self, at: u32, now: u32) {
        self.push(self.replayer.next_removal(self.symbols[at as usize], now), at);
    }

    fn push(&mut self, time: u32, at: u32) {
        if time != NONE {
            self.queue.push(Reverse(key(time, at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::alphabet::byte_symbol;
    use crate::counts::WordCounts;
    use crate::model::TrainConfig;
    use crate::pretokenize::PreTokenizer;
    use crate::trainer::train;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn scan_and_queue_agree(
            words in prop::collection::vec(("[ab]{1,12}|[a-c]{1,20}", 1..30u64), 1..6),
            word in "[ab]{1,32}|[a-d]{1,32}",
            threshold in 0.3..=1.0f64,
        ) {
            let counts = WordCounts::from_words(
                words.iter().map(|(word, n)| (word.as_str(), *n)),
                &PreTokenizer::new("none").unwrap(),
            );
            let config = TrainConfig { vocab_size: 290, threshold, ..TrainConfig::default() };
            let model = train(&counts.unwrap(), config, &Progress::default()).unwrap();
            let replayer = Replayer::new(&model);
            // Letters beyond the alphabet of a char model stand between others as `d` does here.
            let symbol = |byte| if byte == b'd' { UNKNOWN_SYMBOL } else { byte_symbol(byte) };
            let symbols: Vec<u32> = word.bytes().map(symbol).collect();
            let mut scanned = symbols.clone();
            replayer.scan(&mut scanned);
            let mut queued = Scratch { symbols, ..Scratch::default() };
            replayer.queue(&mut queued, &Progress::default(), |_, _| ()).unwrap();
            prop_assert_eq!(scanned, queued.symbols);
        }
    }
}
