//! Character classes, from one Unicode table.
//!
//! The classes are read once from `regex-syntax`, the crate behind custom patterns too, so a preset and a
//! pattern can never disagree on what a letter is. Eight disjoint classes cover all presets; each is one bit,
//! so that a set of classes is a mask and a test is one `&`.
//!
//! The table has two levels: a page number for every 256 code points, and the distinct pages. All of CJK shares
//! one page, and the whole table (about 40 kB) stays in cache. ASCII has its own constant table, which a test
//! compares with the large one.

use std::sync::OnceLock;

use regex_syntax::hir::{Class, HirKind};

pub(super) type Mask = u8;

/// Lu and Lt: only the first part of a `gpt4o` word.
pub(super) const UPPER: Mask = 1 << 0;
/// Ll: only the second part of a `gpt4o` word.
pub(super) const LOWER: Mask = 1 << 1;
/// Lm and Lo: both parts.
pub(super) const CASELESS: Mask = 1 << 2;
/// M: both parts, and no letter.
pub(super) const MARK: Mask = 1 << 3;
/// N.
pub(super) const NUMBER: Mask = 1 << 4;
/// `\s` without the two below.
pub(super) const SPACE: Mask = 1 << 5;
/// `\r` and `\n`.
pub(super) const NEWLINE: Mask = 1 << 6;
/// Everything else: punctuation, symbols, controls, unassigned.
pub(super) const OTHER: Mask = 1 << 7;

pub(super) const LETTER: Mask = UPPER | LOWER | CASELESS;
pub(super) const WHITE: Mask = SPACE | NEWLINE;
/// `[^\s\p{L}\p{N}]`.
pub(super) const PUNCTUATION: Mask = OTHER | MARK;

/// The classes as patterns, to be filled in this order (`\s` holds `\r` and `\n`).
const PATTERNS: [(&str, Mask); 7] = [
    (r"[\p{Lu}\p{Lt}]", UPPER),
    (r"\p{Ll}", LOWER),
    (r"[\p{Lm}\p{Lo}]", CASELESS),
    (r"\p{M}", MARK),
    (r"\p{N}", NUMBER),
    (r"\s", SPACE),
    (r"[\r\n]", NEWLINE),
];

const PAGE: usize = 256;

/// ASCII by byte; bytes of longer characters have no class.
pub(super) static ASCII: [Mask; 256] = ascii();

const fn ascii() -> [Mask; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte] = match byte as u8 {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => NUMBER,
            b'\r' | b'\n' => NEWLINE,
            b' ' | b'\t' | 0x0b | 0x0c => SPACE,
            _ => OTHER,
        };
        byte += 1;
    }
    table
}

/// The version of the Unicode tables that decide every class.
pub fn unicode_version() -> &'static str {
    "16.0.0"
}

#[derive(Debug)]
pub(super) struct Table {
    index: Vec<u8>,
    pages: Vec<[Mask; PAGE]>,
}

impl Table {
    /// The table of the process; built on first use, in about a millisecond.
    pub(super) fn get() -> &'static Self {
        static TABLE: OnceLock<Table> = OnceLock::new();
        TABLE.get_or_init(Self::build)
    }

    pub(super) fn class(&self, code: u32) -> Mask {
        let code = code as usize;
        self.pages[self.index[code / PAGE] as usize][code % PAGE]
    }

    fn build() -> Self {
        let mut flat = vec![OTHER; char::MAX as usize + 1];
        for (pattern, mask) in PATTERNS {
            for (first, last) in ranges(pattern) {
                flat[first as usize..=last as usize].fill(mask);
            }
        }
        let mut table = Self { index: Vec::new(), pages: Vec::new() };
        for chunk in flat.as_chunks::<PAGE>().0 {
            let known = table.pages.iter().position(|page| page == chunk);
            let number = known.unwrap_or_else(|| {
                table.pages.push(*chunk);
                table.pages.len() - 1
            });
            table.index.push(u8::try_from(number).expect("at most 256 distinct pages, as the tests check"));
        }
        table
    }
}

/// The ranges of code points that a class pattern matches.
fn ranges(pattern: &str) -> Vec<(char, char)> {
    let hir = regex_syntax::parse(pattern).expect("a constant pattern");
    match hir.kind() {
        HirKind::Class(Class::Unicode(class)) => class.iter().map(|range| (range.start(), range.end())).collect(),
        _ => unreachable!("{pattern} is a class of characters"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_the_one_of_the_tables() {
        let (major, _) = unicode_version().split_once('.').unwrap();
        let major: u32 = major.parse().unwrap();
        assert!(regex_syntax::parse(&format!(r"\p{{age={major}.0}}")).is_ok());
        for next in [format!("{major}.1"), format!("{}.0", major + 1)] {
            assert!(regex_syntax::parse(&format!(r"\p{{age={next}}}")).is_err(), "{next}");
        }
    }

    #[test]
    fn ascii_agrees_with_the_table() {
        for byte in 0..=127 {
            assert_eq!(ASCII[byte as usize], Table::get().class(byte), "{byte:#x}");
        }
        assert!(ASCII[128..].iter().all(|&mask| mask == 0));
    }

    #[test]
    fn classes_are_the_categories() {
        let sets = [(r"\p{L}", LETTER), (r"\p{N}", NUMBER), (r"\s", WHITE), (r"[^\s\p{L}\p{N}]", PUNCTUATION)];
        for (pattern, mask) in sets {
            let mut expected = vec![false; char::MAX as usize + 1];
            for (first, last) in ranges(pattern) {
                expected[first as usize..=last as usize].fill(true);
            }
            for char in '\0'..=char::MAX {
                let class = Table::get().class(char as u32);
                assert_eq!(class & mask != 0, expected[char as usize], "{pattern} {char:?}");
            }
        }
        assert_eq!(Table::get().class('ǅ' as u32), UPPER);
        assert_eq!(Table::get().class('ª' as u32), CASELESS);
        assert_eq!(Table::get().class('\u{301}' as u32), MARK);
    }
}
