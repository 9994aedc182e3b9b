//! Where a document may be cut in two without changing its words.
//!
//! A place between characters `c` and `o` is safe for a pattern without look-behind if, once `c` is taken, no
//! alternative can go on with `o`, and none asks anything of `o` that the end of the text would answer
//! differently. Then every match that begins before the place ends at or before it, as it would if the text ended
//! there, and matching goes on at the place, as it would if the text began there. For all three presets:
//!
//! * `c` in `\p{L}` or `\p{N}`, `o` in `\s` or, apart from `'`, in `[^\s\p{L}\p{N}\p{M}]`. What holds `c` is a
//!   run of letters (or of letters and marks, `gpt4o`), of numbers, or a contraction. None takes `o`: the one
//!   thing that `gpt4o` may take behind letters is a contraction, which begins with `'`. Whether `gpt4o` gives
//!   back depends on a lower-case letter, which `o` is not.
//! * `c` in `[^\s\p{L}\p{N}]`, `o` in `\s` but not `\r` or `\n`. What holds `c` is a run of punctuation, behind
//!   which come `\r`, `\n` and `/` only, the optional first character of a word, which needs a letter behind it,
//!   or, being a mark, a run as above. `'` alone begins a contraction, and needs a letter.
//!
//! The look-ahead `(?!\S)` is asked behind white space only, and `c` is none. Both characters must be whole and
//! valid; since a lead byte always begins a character, nothing before or behind them can change that, and the
//! count of U+FFFD on either side does not depend on the cut.

use super::unicode::{ASCII, LETTER, Mask, NUMBER, OTHER, PUNCTUATION, SPACE, Table, WHITE};

/// The last safe place in `block` for `gpt2`, `gpt4` and `gpt4o`.
pub(super) fn last_cut(block: &[u8], table: &Table) -> Option<usize> {
    let mut at = block.len();
    // The class of the character at `at`; none at the end, for an invalid byte and for an apostrophe.
    let mut next = 0;
    while at > 0 {
        let (class, len) = char_before(block, at, table);
        let behind_word = class & (LETTER | NUMBER) != 0 && next & (WHITE | OTHER) != 0;
        let behind_punctuation = class & PUNCTUATION != 0 && next & SPACE != 0;
        if behind_word || behind_punctuation {
            return Some(at);
        }
        at -= len;
        next = if block[at] == b'\'' { 0 } else { class };
    }
    None
}

/// The last safe place in `block` for `whitespace`: before a white-space byte. One of several bytes would do as
/// well, but text that has only such ones is rare, and a longer block is its only cost.
pub(super) fn last_white(block: &[u8]) -> Option<usize> {
    let is_white = |byte: u8| ASCII[byte as usize] & WHITE != 0 || matches!(byte, 0x1c..=0x1f);
    block.iter().rposition(|&byte| is_white(byte)).filter(|&at| at > 0)
}

/// The class and the length of the character that ends at `at`; no class and one byte if there is no valid one.
fn char_before(block: &[u8], at: usize, table: &Table) -> (Mask, usize) {
    let last = block[at - 1];
    if last < 0x80 {
        return (ASCII[last as usize], 1);
    }
    // The slice begins with the nearest lead byte, so if it is valid it is one character.
    let is_lead = |len: &usize| block[at - len] >= 0xc0;
    let char = (2..=at.min(4)).find(is_lead).and_then(|len| str::from_utf8(&block[at - len..at]).ok()?.chars().next());
    char.map_or((0, 1), |char| (table.class(u32::from(char)), char.len_utf8()))
}
