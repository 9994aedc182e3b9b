//! `post_removal`: vanilla BPE as if nothing had been removed, then removed tokens are taken apart.
//!
//! The approximation that the paper's Appendix A compares with: it forgets when tokens were removed.

use std::cmp::Reverse;

use dary_heap::OctonaryHeap;
use rustc_hash::FxHashMap;

use super::Lexicon;
use crate::error::Result;
use crate::model::{Event, Model};
use crate::progress::Progress;
use crate::vocabulary::key;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct PostRemoval {
    /// By pair: its first merge event, which is its rank.
    ranks: FxHashMap<u64, u32>,
    /// By rank: the pair and the token that it makes; removals have no pair.
    merges: Vec<(u32, u32, u32)>,
    lengths: Vec<u32>,
    /// By symbol: the fewest live tokens that spell it; empty for live ones.
    parts: Vec<Vec<u32>>,
}

impl PostRemoval {
    pub(crate) fn new(model: &Model, lexicon: &Lexicon, progress: &Progress) -> Result<Self> {
        let vocabulary = model.vocabulary();
        let mut ranks = FxHashMap::default();
        let mut merges = Vec::with_capacity(model.events().len());
        for event in model.events() {
            merges.push(match event {
                Event::Merge { left, right, token, .. } => {
                    ranks.entry(key(left.0, right.0)).or_insert(merges.len() as u32);
                    (left.0, right.0, token.0)
                }
                Event::Remove { .. } => (NONE, NONE, NONE),
            });
        }
        let mut symbols = Vec::new();
        let split = |symbol| -> Result<Vec<u32>> {
            let mut parts = Vec::new();
            if !vocabulary.is_live(symbol) {
                symbols.clear();
                vocabulary.alphabet_symbols(symbol, &mut symbols);
                lexicon.shortest(&symbols, &mut parts, progress)?;
            }
            Ok(parts)
        };
        let parts = vocabulary.iter().map(split).collect::<Result<_>>()?;
        Ok(Self {
            ranks,
            merges,
            lengths: vocabulary.iter().map(|symbol| vocabulary.length(symbol) as u32).collect(),
            parts,
        })
    }

    pub(crate) fn encode(&self, word: &mut [u32], out: &mut Vec<u32>, progress: &Progress) -> Result<()> {
        self.merge(word, progress)?;
        for &symbol in word.iter().filter(|&&symbol| symbol != NONE) {
            match self.parts.get(symbol as usize) {
                Some(parts) if !parts.is_empty() => out.extend_from_slice(parts),
                _ => out.push(symbol),
            }
        }
        Ok(())
    }

    /// Lowest rank first, then leftmost. A token lies at its first position, the others hold `NONE`.
    fn merge(&self, word: &mut [u32], progress: &Progress) -> Result<()> {
        let after =
            |word: &[u32], at: usize| at + self.lengths.get(word[at] as usize).map_or(1, |&length| length as usize);
        let candidate = |word: &[u32], at: usize| {
            let &right = word.get(after(word, at))?;
            let &rank = self.ranks.get(&key(word[at], right))?;
            Some(Reverse(key(rank, at as u32)))
        };
        let mut previous: Vec<usize> = (0..word.len()).map(|at| at.wrapping_sub(1)).collect();
        let mut initial = Vec::new();
        for at in 0..word.len() {
            progress.check()?;
            initial.extend(candidate(word, at));
        }
        let mut queue = OctonaryHeap::from(initial);
        while let Some(Reverse(next)) = queue.pop() {
            progress.check()?;
            let (rank, at) = ((next >> 32) as usize, next as u32 as usize);
            let (left, right, token) = self.merges[rank];
            let second = after(word, at);
            if word[at] != left || word.get(second) != Some(&right) {
                continue;
            }
            word[second] = NONE;
            word[at] = token;
            let next = after(word, at);
            if let Some(previous) = previous.get_mut(next) {
                *previous = at;
            }
            queue.extend(candidate(word, at));
            if previous[at] != usize::MAX {
                queue.extend(candidate(word, previous[at]));
            }
        }
        Ok(())
    }
}
