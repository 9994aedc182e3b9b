//! Words of at most 15 bytes as two integers: nearly all words of running text.
//!
//! Tables keyed by them hold their keys in place, so a look-up costs one cache line instead of two, and comparing
//! costs two instructions instead of a call. Measured: counting 173 MB of English on one thread took 1.05 s with words in a
//! buffer, 0.62 s with short words in place.

/// The bytes, padded with zeros, and the length in the highest byte. So no two words are alike, and none is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ShortWord {
    low: u64,
    high: u64,
}

impl ShortWord {
    /// What stands for a word that is not short, and fills an empty place in a table.
    pub(crate) const NONE: Self = Self { low: 0, high: 0 };

    #[inline]
    pub(crate) fn new(word: &[u8]) -> Self {
        let length = word.len();
        // Loads overlap where the length is no power of two: the same bytes fall on the same places.
        let (low, high) = match length {
            9..=15 => (first_eight(word), last_eight(word) >> (8 * (16 - length))),
            8 => (first_eight(word), 0),
            4..=7 => {
                let first = word.first_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes));
                let last = word.last_chunk().map_or(0, |&bytes| u32::from_le_bytes(bytes));
                (u64::from(first) | u64::from(last) << (8 * (length - 4)), 0)
            }
            1..=3 => {
                let byte = |at: usize| u64::from(word[at]) << (8 * at);
                (byte(0) | byte(length / 2) | byte(length - 1), 0)
            }
            _ => return Self::NONE,
        };
        Self { low, high: high | (length as u64) << 56 }
    }

    /// The first `length` bytes of a chunk, from 1 to 15.
    #[inline]
    pub(crate) fn from_chunk(chunk: &[u8; 16], length: usize) -> Self {
        let key = u128::from_le_bytes(*chunk) & MASKS[length] | (length as u128) << 120;
        Self { low: key as u64, high: (key >> 64) as u64 }
    }

    pub(crate) fn is_none(self) -> bool {
        self.high == 0
    }

    /// Where a table of `size` places begins to look for the word: a hash of one multiplication, scaled by another.
    #[inline]
    pub(crate) fn place(self, size: usize) -> usize {
        let product = u128::from(self.low ^ 0x9E37_79B9_7F4A_7C15) * u128::from(self.high ^ 0xD1B5_4A32_D192_ED03);
        let hash = (product >> 64) as u64 ^ product as u64;
        ((u128::from(hash) * size as u128) >> 64) as usize
    }

    /// Orders words as their bytes do: the bytes, padded with zeros, then the length.
    pub(crate) fn order(self) -> u128 {
        u128::from(self.low.swap_bytes()) << 64 | u128::from(self.high.swap_bytes())
    }
}

/// By length: the bytes that count. A table is quicker than shifting 128 bits.
const MASKS: [u128; 16] = {
    let mut masks = [0; 16];
    let mut length = 1;
    while length < 16 {
        masks[length] = masks[length - 1] << 8 | 0xFF;
        length += 1;
    }
    masks
};

#[inline]
fn first_eight(word: &[u8]) -> u64 {
    word.first_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

#[inline]
fn last_eight(word: &[u8]) -> u64 {
    word.last_chunk().map_or(0, |&bytes| u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_the_word_and_its_order() {
        let words: Vec<&[u8]> = vec![
            b"\0",
            b"\0\0",
            b"a",
            b"a\0",
            b"ab",
            b"abc",
            b"abcd",
            b"abcdefg",
            b"abcdefgh",
            b"abcdefghi",
            b"abcdefghijklmno",
        ];
        let short: Vec<ShortWord> = words.iter().map(|word| ShortWord::new(word)).collect();
        for (word, short) in words.iter().zip(&short) {
            let bytes = short.order().to_be_bytes();
            assert_eq!(&bytes[..bytes[15] as usize], *word);
            assert!(!short.is_none());
        }
        assert!(short.is_sorted_by(|a, b| a.order() < b.order()));
        assert_eq!(ShortWord::new(b""), ShortWord::NONE);
        assert_eq!(ShortWord::new(b"abcdefghijklmnop"), ShortWord::NONE);
        assert_eq!(ShortWord::from_chunk(b"abcdefghijklmnop", 5), ShortWord::new(b"abcde"));
        assert_eq!(ShortWord::from_chunk(b"abcdefghijklmnop", 15), ShortWord::new(b"abcdefghijklmno"));
    }
}
