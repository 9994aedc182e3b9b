//! A cache of encoded words. Encoding a word depends on nothing but the word, so any cache is exact.
//!
//! A worker owns its cache while it works: no lock, nothing shared between threads or with a forked child.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

/// Longer words are too rare to be worth a place.
const MAX_WORD: usize = 64;
/// Memory of one cache. Buffers double as they grow, so contents stay below half of it.
const MAX_BYTES: usize = 32 << 20;

#[derive(Debug)]
struct Cached {
    hash: u64,
    word: u32,
    ids: u32,
    word_length: u8,
    ids_length: u8,
}

#[derive(Debug, Default)]
pub(crate) struct WordCache {
    table: HashTable<Cached>,
    words: Vec<u8>,
    ids: Vec<u32>,
}

const HASHER: FixedState = FixedState::with_seed(0);

impl WordCache {
    /// The ids of a word, appended to `out`; made by `encode` if they are not here.
    #[inline]
    pub(crate) fn get_or<E>(
        &mut self,
        word: &[u8],
        out: &mut Vec<u32>,
        encode: impl FnOnce(&mut Vec<u32>) -> Result<(), E>,
    ) -> Result<(), E> {
        if word.len() > MAX_WORD {
            return encode(out);
        }
        let hash = HASHER.hash_one(word);
        if let Some(cached) = self.table.find(hash, |cached| self.word(cached) == word) {
            out.extend_from_slice(&self.ids[cached.ids as usize..][..cached.ids_length as usize]);
            return Ok(());
        }
        let start = out.len();
        encode(out)?;
        self.insert(hash, word, &out[start..]);
        Ok(())
    }

    fn word(&self, cached: &Cached) -> &[u8] {
        &self.words[cached.word as usize..][..cached.word_length as usize]
    }

    fn insert(&mut self, hash: u64, word: &[u8], ids: &[u32]) {
        if 2 * (self.bytes() + word.len() + 4 * ids.len()) > MAX_BYTES {
            // Starting over is simpler than choosing victims, and the common words are back at once.
            self.table.clear();
            self.words.clear();
            self.ids.clear();
        }
        let cached = Cached {
            hash,
            word: self.words.len() as u32,
            ids: self.ids.len() as u32,
            word_length: word.len() as u8,
            ids_length: ids.len() as u8,
        };
        self.words.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
        self.table.insert_unique(hash, cached, |cached| cached.hash);
    }

    fn bytes(&self) -> usize {
        self.words.len() + 4 * self.ids.len() + (self.table.len() + 1) * (size_of::<Cached>() + 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stays_within_its_memory_and_keeps_giving_right_answers() {
        let mut cache = WordCache::default();
        let mut out = Vec::new();
        for round in 0..1_200_000u32 {
            out.clear();
            let word = (round % 700_000).to_string();
            let ids = [round % 700_000, 7];
            let encode = |out: &mut Vec<u32>| -> Result<(), ()> {
                out.extend(ids);
                Ok(())
            };
            cache.get_or(word.as_bytes(), &mut out, encode).unwrap();
            assert_eq!(out, ids);
        }
        let held = cache.words.capacity()
            + 4 * cache.ids.capacity()
            + cache.table.capacity() * 8 / 7 * (size_of::<Cached>() + 1);
        assert!(held <= MAX_BYTES, "{held}");
    }
}
