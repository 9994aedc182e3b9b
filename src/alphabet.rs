//! The symbols that words are made of before anything is merged (SPEC section 2).

use std::fmt;

use rustc_hash::FxHashMap;

use crate::corpus::too_long;
use crate::counts::WordCounts;
use crate::error::{Error, Result};
use crate::model::MAX_COUNT;

/// The mark that the `whitespace` pre-tokenizer puts before every word.
pub const WORD_MARK: char = '▁';
/// What stands for a character outside the alphabet.
pub const UNKNOWN: &str = "<unk>";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Byte,
    Char,
}

impl Unit {
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "byte" => Ok(Self::Byte),
            "char" => Ok(Self::Char),
            _ => Err(Error::value(format!("unknown unit {name:?}; choose \"byte\" or \"char\""))),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Byte => "byte",
            Self::Char => "char",
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// GPT-2's printable stand-in of a byte: itself where it is printable, else the next free code point from U+0100 on.
const PRINTABLE: [char; 256] = printable_table();

const fn is_printable(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

const fn printable_table() -> [char; 256] {
    let mut table = ['\0'; 256];
    let mut byte = 0;
    let mut substitutes = 0;
    while byte < 256 {
        table[byte] = if is_printable(byte as u8) {
            byte as u8 as char
        } else {
            substitutes += 1;
            match char::from_u32(0xFF + substitutes) {
                Some(c) => c,
                None => unreachable!(),
            }
        };
        byte += 1;
    }
    table
}

/// The byte that a printable character stands for.
fn byte_of(printable: char) -> Option<u8> {
    match printable as u32 {
        code @ 0..=0xFF if is_printable(code as u8) => Some(code as u8),
        0x100..0x144 => PRINTABLE.iter().position(|&c| c == printable).map(|byte| byte as u8),
        _ => None,
    }
}

/// The alphabet: symbols `0..len()`, in the order of their printable characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alphabet {
    Bytes,
    Chars { chars: Vec<char>, index: FxHashMap<char, u32> },
}

/// Symbol of each byte, and byte of each symbol: printable bytes keep their order, the others follow.
const BYTE_SYMBOLS: ([u32; 256], [u8; 256]) = {
    let mut symbol_of = [0; 256];
    let mut byte_of = [0; 256];
    let mut next = 0;
    let mut pass = 0;
    while pass < 2 {
        let mut byte = 0;
        while byte < 256 {
            if is_printable(byte as u8) == (pass == 0) {
                symbol_of[byte] = next;
                byte_of[next as usize] = byte as u8;
                next += 1;
            }
            byte += 1;
        }
        pass += 1;
    }
    (symbol_of, byte_of)
};

impl Alphabet {
    /// Characters in the order of their code points, none twice.
    pub fn chars(chars: Vec<char>) -> Self {
        debug_assert!(chars.is_sorted());
        let index = chars.iter().enumerate().map(|(i, &c)| (c, i as u32)).collect();
        Self::Chars { chars, index }
    }

    /// The characters of the training words that reach the coverage: most frequent first, ties by code point.
    pub fn covering(counts: &WordCounts, coverage: f64) -> Result<Self> {
        let mut frequency: FxHashMap<char, u64> = FxHashMap::default();
        let mut total: u64 = 0;
        for (word, n) in counts.iter() {
            for c in word.chars() {
                total = total.checked_add(n).filter(|&total| total <= MAX_COUNT).ok_or_else(too_long)?;
                *frequency.entry(c).or_default() += n;
            }
        }
        let mut by_count: Vec<(char, u64)> = frequency.into_iter().collect();
        by_count.sort_unstable_by_key(|&(c, n)| (std::cmp::Reverse(n), c));
        let mut kept = 0;
        let mut chars: Vec<char> = Vec::new();
        for &(c, n) in &by_count {
            if coverage < 1.0 && kept as f64 / total as f64 >= coverage {
                break;
            }
            kept += n;
            chars.push(c);
        }
        if by_count[chars.len()..].iter().any(|&(c, _)| c == WORD_MARK) {
            chars.push(WORD_MARK);
        }
        chars.sort_unstable();
        Ok(Self::chars(chars))
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Bytes => 256,
            Self::Chars { chars, .. } => chars.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of an alphabet symbol.
    pub fn spelling(&self, symbol: usize, into: &mut Vec<u8>) {
        match self {
            Self::Bytes => into.push(BYTE_SYMBOLS.1[symbol]),
            Self::Chars { chars, .. } => {
                into.extend_from_slice(chars[symbol].encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }

    /// Calls `symbol` for every symbol of a word, with `None` for what the alphabet does not know.
    pub fn symbols(&self, word: &str, mut symbol: impl FnMut(Option<u32>)) {
        match self {
            Self::Bytes => word.bytes().for_each(|byte| symbol(Some(byte_symbol(byte)))),
            Self::Chars { index, .. } => word.chars().for_each(|c| symbol(index.get(&c).copied())),
        }
    }

    /// The same for bytes, which only the byte alphabet takes as they come.
    pub fn symbols_of_bytes(&self, word: &[u8], mut symbol: impl FnMut(Option<u32>)) {
        match self {
            Self::Bytes => word.iter().for_each(|&byte| symbol(Some(byte_symbol(byte)))),
            Self::Chars { .. } => self.symbols(&String::from_utf8_lossy(word), symbol),
        }
    }

    /// The printable form of a token's bytes.
    pub fn printable(&self, bytes: &[u8]) -> String {
        match self {
            Self::Bytes => bytes.iter().map(|&byte| PRINTABLE[byte as usize]).collect(),
            Self::Chars { .. } => String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// The bytes that a printable form stands for, if it stands for any.
    pub fn unprintable(&self, printable: &str, into: &mut Vec<u8>) -> bool {
        into.clear();
        match self {
            Self::Bytes => printable.chars().all(|c| byte_of(c).map(|byte| into.push(byte)).is_some()),
            Self::Chars { .. } => {
                into.extend_from_slice(printable.as_bytes());
                true
            }
        }
    }
}

#[inline]
pub fn byte_symbol(byte: u8) -> u32 {
    BYTE_SYMBOLS.0[byte as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_stand_in_the_order_of_their_printable_characters() {
        let order: Vec<char> = BYTE_SYMBOLS.1.iter().map(|&byte| PRINTABLE[byte as usize]).collect();
        assert!(order.is_sorted());
        assert_eq!(PRINTABLE[b' ' as usize], 'Ġ');
        assert_eq!(PRINTABLE[b'\n' as usize], 'Ċ');
        assert_eq!(PRINTABLE[0xAD], 'Ń');
        for byte in 0..=255u8 {
            assert_eq!(byte_of(PRINTABLE[byte as usize]), Some(byte));
            assert_eq!(BYTE_SYMBOLS.1[byte_symbol(byte) as usize], byte);
        }
        for other in ['\u{144}', ' ', '\u{AD}', '▁'] {
            assert_eq!(byte_of(other), None);
        }
    }
}
