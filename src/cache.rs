//! A cache of encoded words. Encoding a word depends on nothing but the word, so any cache is exact.
//!
//! A worker owns its cache while it works: no lock, nothing shared between threads or with a forked child.
//! Words of at most 15 bytes, nearly all, lie in place in their table, and so do their ids if they are few: most
//! look-ups touch one cache line.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;

use crate::prefetch::prefetch;
use crate::short_word::ShortWord;

/// Longer words are too rare to be worth a place.
const MAX_WORD: usize = 64;
/// Memory of one cache. Buffers double as they grow, so contents stay below half of it.
const MAX_BYTES: usize = 32 << 20;
/// So many ids lie in place.
const FEW: usize = 3;

/// A short word with its ids: in place if they are few, else from `ids[0]` on in the buffer of ids.
#[derive(Clone, Copy, Debug, Default)]
struct Short {
    word: ShortWord,
    length: u32,
    ids: [u32; FEW],
}

#[derive(Debug)]
struct Long {
    hash: u64,
    word: u32,
    ids: u32,
    word_length: u8,
    ids_length: u8,
}

#[derive(Debug, Default)]
pub(crate) struct WordCache {
    /// Open addressing, at most half full.
    short: Vec<Short>,
    short_len: usize,
    long: HashTable<Long>,
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
        key: Option<ShortWord>,
        out: &mut Vec<u32>,
        encode: impl FnOnce(&mut Vec<u32>) -> Result<(), E>,
    ) -> Result<(), E> {
        let Some(short) = key else { return self.get_long_or(word, out, encode) };
        if let Some(place) = self.place(short)
            && let cached = &self.short[place]
            && cached.word == short
        {
            let length = cached.length as usize;
            if length <= FEW {
                // A copy of fixed size, then a cut: cheaper than a copy of any size.
                let end = out.len() + length;
                out.extend_from_slice(&cached.ids);
                out.truncate(end);
            } else {
                out.extend_from_slice(&self.ids[cached.ids[0] as usize..][..length]);
            }
            return Ok(());
        }
        let start = out.len();
        encode(out)?;
        self.insert_short(short, &out[start..]);
        Ok(())
    }

    /// Begins to load what `get_or` will look at.
    #[inline]
    pub(crate) fn prefetch(&self, key: ShortWord) {
        if let Some(mask) = self.short.len().checked_sub(1) {
            prefetch(&self.short[key.hash() as usize & mask]);
        }
    }

    /// Where a short word is, or where it belongs; none while the table is empty.
    #[inline]
    fn place(&self, word: ShortWord) -> Option<usize> {
        let mask = self.short.len().checked_sub(1)?;
        let mut place = word.hash() as usize & mask;
        loop {
            let held = self.short[place].word;
            if held == word || held.is_none() {
                return Some(place);
            }
            place = (place + 1) & mask;
        }
    }

    #[cold]
    fn insert_short(&mut self, word: ShortWord, ids: &[u32]) {
        self.make_room(4 * ids.len() + 2 * size_of::<Short>());
        if 2 * (self.short_len + 1) > self.short.len() {
            let size = (2 * self.short.len()).max(1 << 10);
            let old = std::mem::replace(&mut self.short, vec![Short::default(); size]);
            for short in old.into_iter().filter(|short| !short.word.is_none()) {
                self.put(short);
            }
        }
        let mut short = Short { word, length: ids.len() as u32, ids: [0; FEW] };
        if ids.len() <= FEW {
            short.ids[..ids.len()].copy_from_slice(ids);
        } else {
            short.ids[0] = self.ids.len() as u32;
            self.ids.extend_from_slice(ids);
        }
        self.put(short);
        self.short_len += 1;
    }

    fn put(&mut self, short: Short) {
        let place = self.place(short.word).expect("the table has room");
        self.short[place] = short;
    }

    #[cold]
    fn get_long_or<E>(
        &mut self,
        word: &[u8],
        out: &mut Vec<u32>,
        encode: impl FnOnce(&mut Vec<u32>) -> Result<(), E>,
    ) -> Result<(), E> {
        if word.len() > MAX_WORD {
            return encode(out);
        }
        let hash = HASHER.hash_one(word);
        let same = |long: &Long| self.words[long.word as usize..][..long.word_length as usize] == *word;
        if let Some(long) = self.long.find(hash, same) {
            out.extend_from_slice(&self.ids[long.ids as usize..][..long.ids_length as usize]);
            return Ok(());
        }
        let start = out.len();
        encode(out)?;
        let ids = &out[start..];
        self.make_room(word.len() + 4 * ids.len() + 2 * size_of::<Long>());
        let long = Long {
            hash,
            word: self.words.len() as u32,
            ids: self.ids.len() as u32,
            word_length: word.len() as u8,
            ids_length: ids.len() as u8,
        };
        self.words.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
        self.long.insert_unique(hash, long, |long| long.hash);
        Ok(())
    }

    /// Starts over when another word could pass the limit: simpler than choosing victims, and the common words are
    /// back at once.
    fn make_room(&mut self, bytes: usize) {
        let tables = 2 * self.short_len * size_of::<Short>() + 2 * self.long.len() * size_of::<Long>();
        if 2 * (self.words.len() + 4 * self.ids.len() + bytes) + tables > MAX_BYTES {
            *self = Self::default();
        }
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
            // Short and long words, with few and many ids.
            let number = round % 700_000;
            let word = format!("{number:0width$}", width = 8 * (number as usize % 4));
            let ids = vec![number; 1 + number as usize % 5];
            let encode = |out: &mut Vec<u32>| -> Result<(), ()> {
                out.extend(&ids);
                Ok(())
            };
            cache.get_or(word.as_bytes(), ShortWord::new(word.as_bytes()), &mut out, encode).unwrap();
            assert_eq!(out, ids);
        }
        let held = cache.words.capacity()
            + 4 * cache.ids.capacity()
            + cache.short.capacity() * size_of::<Short>()
            + cache.long.capacity() * 8 / 7 * (size_of::<Long>() + 1);
        assert!(held <= MAX_BYTES, "{held}");
    }
}
