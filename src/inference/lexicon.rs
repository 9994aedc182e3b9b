//! Matching the live vocabulary against a word: `greedy` and `shortest`.

use rustc_hash::FxHashMap;

use crate::encoder::UNKNOWN_SYMBOL;
use crate::error::Result;
use crate::model::Model;
use crate::progress::Progress;
use crate::vocabulary::Symbol;

const NONE: u32 = u32::MAX;

/// The live tokens as a trie over alphabet symbols. Node 0 is the root.
#[derive(Debug)]
pub(crate) struct Lexicon {
    children: FxHashMap<u64, u32>,
    /// By node: the live token that ends there.
    tokens: Vec<u32>,
}

impl Lexicon {
    pub(crate) fn new(model: &Model, progress: &Progress) -> Result<Self> {
        let vocabulary = model.vocabulary();
        let mut lexicon = Self { children: FxHashMap::default(), tokens: vec![NONE] };
        let mut symbols = Vec::new();
        for symbol in vocabulary.iter().filter(|&symbol| vocabulary.is_live(symbol)) {
            symbols.clear();
            vocabulary.alphabet_symbols(symbol, &mut symbols);
            lexicon.insert(&symbols, symbol, progress)?;
        }
        Ok(lexicon)
    }

    fn insert(&mut self, symbols: &[u32], token: Symbol, progress: &Progress) -> Result<()> {
        let mut node = 0;
        for &symbol in symbols {
            progress.check()?;
            let next = self.tokens.len() as u32;
            let child = *self.children.entry(u64::from(node) << 32 | u64::from(symbol)).or_insert(next);
            if child == next {
                self.tokens.push(NONE);
            }
            node = child;
        }
        self.tokens[node as usize] = token.0;
        Ok(())
    }

    /// Calls `found` with every token that begins the word, shortest first, and its length.
    fn prefixes(&self, word: &[u32], mut found: impl FnMut(u32, usize)) {
        let mut node = 0;
        for (index, &symbol) in word.iter().enumerate() {
            let Some(&child) = self.children.get(&(u64::from(node) << 32 | u64::from(symbol))) else { return };
            node = child;
            let token = self.tokens[node as usize];
            if token != NONE {
                found(token, index + 1);
            }
        }
    }

    /// The longest match from the left, again and again. Every alphabet symbol is live, so there always is one.
    pub(crate) fn greedy(&self, word: &[u32], out: &mut Vec<u32>, progress: &Progress) -> Result<()> {
        let mut start = 0;
        while start < word.len() {
            progress.check()?;
            let mut best = (UNKNOWN_SYMBOL, 1);
            self.prefixes(&word[start..], |token, length| best = (token, length));
            out.push(best.0);
            start += best.1;
        }
        Ok(())
    }

    /// The fewest tokens; among equals the one whose lengths, left to right, are larger first.
    pub(crate) fn shortest(&self, word: &[u32], out: &mut Vec<u32>, progress: &Progress) -> Result<()> {
        // From the right: the fewest tokens of each suffix, and the longest first token that reaches it.
        let mut fewest = vec![0u32; word.len() + 1];
        let mut first = vec![(UNKNOWN_SYMBOL, 1usize); word.len()];
        for start in (0..word.len()).rev() {
            progress.check()?;
            fewest[start] = fewest[start + 1] + 1;
            self.prefixes(&word[start..], |token, length| {
                let tokens = fewest[start + length] + 1;
                if tokens <= fewest[start] {
                    fewest[start] = tokens;
                    first[start] = (token, length);
                }
            });
        }
        let mut start = 0;
        while start < word.len() {
            out.push(first[start].0);
            start += first[start].1;
        }
        Ok(())
    }
}
