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
/// Limits that keep one cache below 32 MiB: 12 MiB for the places of short words and 4 for their ids; 3.5 for long
/// words, 4 for their bytes and 3 for their ids.
const MAX_PLACES: usize = 1 << 19;
const MAX_SHORT_IDS: usize = 1 << 20;
const MAX_LONG: usize = 7 << 15;
const MAX_LONG_BYTES: usize = 4 << 20;
const MAX_LONG_IDS: usize = 3 << 18;

#[derive(Debug, Default)]
pub(crate) struct WordCache {
    short: ShortCache,
    long: LongCache,
}

impl WordCache {
    /// Appends the ids of a word, if they are here. `key` is that of the word, `NONE` if it is long.
    #[inline(always)]
    pub(crate) fn get(&self, word: &[u8], key: ShortWord, out: &mut Vec<u32>) -> bool {
        if key.is_none() { self.long.get(word, out) } else { self.short.get(key, out) }
    }

    /// Keeps the ids of a word that is not here.
    pub(crate) fn insert(&mut self, word: &[u8], key: ShortWord, ids: &[u32]) {
        if !key.is_none() {
            self.short.insert(key, ids);
        } else if word.len() <= MAX_WORD {
            self.long.insert(word, ids);
        }
    }

    /// Begins to load what `get` will look at.
    #[inline]
    pub(crate) fn prefetch(&self, key: ShortWord) {
        if let Some(place) = self.short.places.get(key.place(self.short.places.len())) {
            prefetch(place);
        }
    }
}

/// Short words: open addressing, at most half full; three quarters when it may not grow any more.
#[derive(Debug, Default)]
struct ShortCache {
    places: Vec<Short>,
    len: usize,
    /// Ids of words that have many, behind their number.
    ids: Vec<u32>,
}

/// A short word with its ids: in place if there are one or two, else `ids[0]` says where they begin.
#[derive(Clone, Copy, Debug, Default)]
struct Short {
    word: ShortWord,
    ids: [u32; 2],
}

/// In place of the second id: there is none, or there are more than two. No id is so large.
const ONE: u32 = u32::MAX;
const MANY: u32 = u32::MAX - 1;

impl ShortCache {
    #[inline(always)]
    fn get(&self, word: ShortWord, out: &mut Vec<u32>) -> bool {
        let Some(&Short { word: held, ids }) = self.place(word).map(|place| &self.places[place]) else { return false };
        if held != word {
            return false;
        }
        if ids[1] == MANY {
            let start = ids[0] as usize;
            let length = self.ids[start] as usize;
            out.extend_from_slice(&self.ids[start + 1..][..length]);
        } else {
            // A copy of fixed size, then a cut: cheaper than a copy of any size.
            out.extend_from_slice(&ids);
            out.truncate(out.len() - usize::from(ids[1] == ONE));
        }
        true
    }

    /// Where a word is, or where it belongs; none while the table is empty.
    #[inline]
    fn place(&self, word: ShortWord) -> Option<usize> {
        let size = self.places.len();
        let mut place = word.place(size);
        loop {
            let held = self.places.get(place)?.word;
            if held == word || held.is_none() {
                return Some(place);
            }
            place = if place + 1 < size { place + 1 } else { 0 };
        }
    }

    fn insert(&mut self, word: ShortWord, ids: &[u32]) {
        if 4 * self.len >= 3 * MAX_PLACES || self.ids.len() + ids.len() >= MAX_SHORT_IDS {
            // Starting over is simpler than choosing victims, and the common words are back at once.
            *self = Self::default();
        }
        if self.ids.capacity() == 0 {
            // Room for all there may ever be: it costs nothing until it is used, and never moves.
            self.ids.reserve_exact(MAX_SHORT_IDS);
        }
        if 2 * self.len >= self.places.len() && self.places.len() < MAX_PLACES {
            let size = (2 * self.places.len()).max(1 << 10);
            let old = std::mem::replace(&mut self.places, vec![Short::default(); size]);
            for short in old.into_iter().filter(|short| !short.word.is_none()) {
                self.put(short);
            }
        }
        let ids = match *ids {
            [id] => [id, ONE],
            [first, second] => [first, second],
            _ => {
                let start = self.ids.len() as u32;
                self.ids.push(ids.len() as u32);
                self.ids.extend_from_slice(ids);
                [start, MANY]
            }
        };
        self.put(Short { word, ids });
        self.len += 1;
    }

    fn put(&mut self, short: Short) {
        let place = self.place(short.word).expect("the table has room");
        self.places[place] = short;
    }
}

/// Long words: their bytes and ids lie end to end in buffers.
#[derive(Debug, Default)]
struct LongCache {
    table: HashTable<Long>,
    words: Vec<u8>,
    ids: Vec<u32>,
}

#[derive(Debug)]
struct Long {
    word: u32,
    ids: u32,
    word_length: u8,
    ids_length: u8,
}

const HASHER: FixedState = FixedState::with_seed(0);

impl LongCache {
    fn get(&self, word: &[u8], out: &mut Vec<u32>) -> bool {
        if word.len() > MAX_WORD {
            return false;
        }
        let same = |long: &Long| self.words[long.word as usize..][..long.word_length as usize] == *word;
        let Some(long) = self.table.find(HASHER.hash_one(word), same) else { return false };
        out.extend_from_slice(&self.ids[long.ids as usize..][..long.ids_length as usize]);
        true
    }

    fn insert(&mut self, word: &[u8], ids: &[u32]) {
        let full = self.table.len() >= MAX_LONG
            || self.words.len() + word.len() > MAX_LONG_BYTES
            || self.ids.len() + ids.len() > MAX_LONG_IDS;
        if full {
            *self = Self::default();
        }
        if self.ids.capacity() == 0 {
            self.words.reserve_exact(MAX_LONG_BYTES);
            self.ids.reserve_exact(MAX_LONG_IDS);
        }
        let long = Long {
            word: self.words.len() as u32,
            ids: self.ids.len() as u32,
            word_length: word.len() as u8,
            ids_length: ids.len() as u8,
        };
        self.words.extend_from_slice(word);
        self.ids.extend_from_slice(ids);
        let Self { table, words, .. } = self;
        let hash = |long: &Long| HASHER.hash_one(&words[long.word as usize..][..long.word_length as usize]);
        table.insert_unique(HASHER.hash_one(word), long, hash);
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
            let key = ShortWord::new(word.as_bytes());
            if !cache.get(word.as_bytes(), key, &mut out) {
                cache.insert(word.as_bytes(), key, &ids);
                assert!(cache.get(word.as_bytes(), key, &mut out));
            }
            assert_eq!(out, ids);
        }
        let WordCache { short, long } = cache;
        let held = short.places.capacity() * size_of::<Short>()
            + 4 * (short.ids.capacity() + long.ids.capacity())
            + long.words.capacity()
            + long.table.capacity() * 8 / 7 * (size_of::<Long>() + 1);
        assert!(held <= 32 << 20, "{held}");
    }
}
