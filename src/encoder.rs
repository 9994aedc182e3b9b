//! Encoding one word by the events order (SPEC section 5): the paper's Algorithm 2.
//!
//! From time 0, the earliest event that applies to the word and is later than the last one performed is performed on
//! all its occurrences, until none is left. This equals replaying the whole event list. Two ways give it, with equal
//! results: `scan` keeps the next event of every neighbour pair and token in plain arrays and looks for the minimum,
//! the better constant for short words; `queue` keeps them in a heap over a linked list, O(n log n) for long ones.
//! The proof of the queue is in `docs/algorithm.md`. Its one trap: a pair is looked up with the clock, never by its
//! first event alone, since a pair that a removal lays bare must not be merged by an event that has passed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::model::{Event, Model};
use crate::progress::Progress;

/// No event, no symbol.
const NONE: u32 = u32::MAX;
/// Stands for a character outside the alphabet; no pair holds it.
pub(crate) const UNKNOWN_SYMBOL: u32 = u32::MAX - 1;
/// Words of at most so many symbols are scanned: at 32 both ways cost about the same.
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
    merges: Vec<u32>,
    removals: Vec<u32>,
    previous: Vec<u32>,
    queue: BinaryHeap<Reverse<u64>>,
}

fn key(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
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
            self.scan(scratch, |_, _| ());
            Ok(())
        } else {
            self.queue(scratch, progress)
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

    /// Replays by linear search for the next event; tells `performed` each event and what it left of the word.
    pub(crate) fn scan(&self, scratch: &mut Scratch, mut performed: impl FnMut(u32, &[u32])) {
        let Scratch { symbols, merges, removals, .. } = scratch;
        merges.clear();
        merges.extend(symbols.windows(2).map(|pair| self.next_merge(pair[0], pair[1], None)));
        merges.push(NONE);
        removals.clear();
        removals.resize(symbols.len(), NONE);
        let mut word = Word { replayer: self, symbols, merges, removals, removable: 0 };
        while let Some(time) = word.next_event() {
            match self.actions[time as usize] {
                Action::Merge { token, .. } => {
                    let mut at = 0;
                    while at < word.symbols.len() {
                        if word.merges[at] == time {
                            word.merge(at, token, time);
                        }
                        at += 1;
                    }
                }
                Action::Remove { parts_start, parts_end, .. } => {
                    let parts = self.parts(parts_start, parts_end);
                    let mut at = 0;
                    while at < word.symbols.len() {
                        if word.removals[at] == time {
                            word.split(at, parts, time);
                        }
                        at += 1;
                    }
                }
            }
            performed(time, word.symbols);
        }
    }

    /// Replays with a heap of (time, position). A token lies at its first position, the others hold `NONE`.
    fn queue(&self, scratch: &mut Scratch, progress: &Progress) -> Result<()> {
        let Scratch { symbols, previous, queue, .. } = scratch;
        let end = symbols.len();
        previous.clear();
        previous.extend((0..end as u32).map(|at| at.wrapping_sub(1)));
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
        while let Some(Reverse(next)) = list.queue.pop() {
            let (time, at) = ((next >> 32) as u32, next as u32);
            popped = popped.wrapping_add(1);
            if popped.is_multiple_of(1 << 16) {
                progress.check()?;
            }
            match self.actions[time as usize] {
                Action::Merge { left, right, token } => list.merge(at, (left, right), token, time),
                Action::Remove { token, parts_start, parts_end } => {
                    list.split(at, token, self.parts(parts_start, parts_end), time);
                }
            }
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

/// A short word: its tokens, the next merge of each with its right neighbour, the next removal of each.
struct Word<'a> {
    replayer: &'a Replayer,
    symbols: &'a mut Vec<u32>,
    merges: &'a mut Vec<u32>,
    removals: &'a mut Vec<u32>,
    /// How many removals are to come: mostly none, then they need not be looked at.
    removable: usize,
}

impl Word<'_> {
    fn next_event(&self) -> Option<u32> {
        let mut time = self.merges.iter().copied().min().unwrap_or(NONE);
        if self.removable > 0 {
            time = time.min(self.removals.iter().copied().min().unwrap_or(NONE));
        }
        (time != NONE).then_some(time)
    }

    fn merge(&mut self, at: usize, token: u32, now: u32) {
        self.set_removal(at, NONE);
        self.set_removal(at + 1, NONE);
        self.symbols.remove(at + 1);
        self.merges.remove(at + 1);
        self.removals.remove(at + 1);
        self.symbols[at] = token;
        self.refresh(at, at + 1, now);
    }

    fn split(&mut self, at: usize, parts: &[u32], now: u32) {
        self.set_removal(at, NONE);
        self.symbols.splice(at..=at, parts.iter().copied());
        self.merges.splice(at..=at, parts.iter().map(|_| NONE));
        self.removals.splice(at..=at, parts.iter().map(|_| NONE));
        self.refresh(at, at + parts.len(), now);
    }

    /// Looks up what is due for new tokens and for the pairs that they form.
    fn refresh(&mut self, start: usize, end: usize, now: u32) {
        for at in start.saturating_sub(1)..end {
            self.merges[at] = match self.symbols.get(at + 1) {
                Some(&right) => self.replayer.next_merge(self.symbols[at], right, Some(now)),
                None => NONE,
            };
        }
        for at in start..end {
            self.set_removal(at, self.replayer.next_removal(self.symbols[at], now));
        }
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
    queue: &'a mut BinaryHeap<Reverse<u64>>,
}

impl List<'_> {
    fn after(&self, at: u32) -> usize {
        // A symbol outside the alphabet has no length of its own; it is one character.
        at as usize + self.replayer.lengths.get(self.symbols[at as usize] as usize).map_or(1, |&length| length as usize)
    }

    fn merge(&mut self, at: u32, (left, right): (u32, u32), token: u32, now: u32) {
        if self.symbols[at as usize] != left {
            return;
        }
        let second = self.after(at);
        if self.symbols.get(second) != Some(&right) {
            return;
        }
        self.symbols[second] = NONE;
        self.symbols[at as usize] = token;
        self.link(at);
        self.push_pair(self.previous[at as usize], now);
        self.push_pair(at, now);
        self.push_removal(at, now);
    }

    fn split(&mut self, at: u32, token: u32, parts: &[u32], now: u32) {
        if self.symbols[at as usize] != token {
            return;
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
            word in "[ab]{1,80}|[a-d]{1,80}",
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
            let mut scanned = Scratch { symbols: symbols.clone(), ..Scratch::default() };
            replayer.scan(&mut scanned, |_, _| ());
            let mut queued = Scratch { symbols, ..Scratch::default() };
            replayer.queue(&mut queued, &Progress::default()).unwrap();
            prop_assert_eq!(scanned.symbols, queued.symbols);
        }
    }
}
