//! The presets as scanners: each finds the end of the word that begins at a given place.
//!
//! A scanner decides what the published pattern decides, alternative by alternative, but without trying them in
//! turn: the first one or two characters choose the alternative, and every run is walked once. Where a pattern
//! would backtrack, the scanner has noted the place on its way. So a character is looked at a bounded number of
//! times, and time is linear whatever the text. The patterns, `X` being `[^\r\n\p{L}\p{N}]`:
//!
//! ```text
//! gpt2   '(?:[sdmt]|ll|ve|re) |  ?\p{L}+ |  ?\p{N}+ |  ?[^\s\p{L}\p{N}]+ | \s+(?!\S) | \s+
//! gpt4   '(?i:[sdmt]|ll|ve|re) | X?\p{L}+ | \p{N}{1,3} |  ?[^\s\p{L}\p{N}]+[\r\n]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//! gpt4o  X?U*W+S? | X?U+W*S? | \p{N}{1,3} |  ?[^\s\p{L}\p{N}]+[\r\n/]* | \s*[\r\n]+ | \s+(?!\S) | \s+
//!        U = [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]   W = [\p{Ll}\p{Lm}\p{Lo}\p{M}]   S = (?i:'s|'t|'re|'ve|'m|'ll|'d)
//! ```

use crate::short_word::ShortWord;

use super::chunk::Chunk;
use super::unicode::{ASCII, CASELESS, LETTER, LOWER, MARK, Mask, NEWLINE, NUMBER, PUNCTUATION, Table, UPPER, WHITE};

/// `U` and `W` of the gpt4o pattern, and what they share.
const HEAD: Mask = UPPER | SHARED;
const TAIL: Mask = LOWER | SHARED;
const SHARED: Mask = CASELESS | MARK;

/// A text with what is needed to classify its characters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scanner<'t> {
    bytes: &'t [u8],
    table: &'static Table,
}

/// A character's class and its length in bytes; no class and no length at the end of the text.
#[derive(Clone, Copy, Debug)]
struct Char {
    class: Mask,
    len: usize,
}

impl Char {
    fn is(self, set: Mask) -> bool {
        self.class & set != 0
    }
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str, table: &'static Table) -> Self {
        Self { bytes: text.as_bytes(), table }
    }

    /// Python's `str.split()`.
    pub(super) fn whitespace(self, mut word: impl FnMut(&'t [u8], ShortWord)) {
        let mut start = 0;
        let mut end = 0;
        while end < self.bytes.len() {
            let char = self.char(end);
            if !self.is_python_space(end, char) {
                end = self.skip(end + char.len, |chunk| leading_in(b'!', 0x7f, chunk));
                continue;
            }
            if start < end {
                word(&self.bytes[start..end], ShortWord::new(&self.bytes[start..end]));
            }
            end += char.len;
            start = end;
        }
        if start < end {
            word(&self.bytes[start..end], ShortWord::new(&self.bytes[start..end]));
        }
    }

    /// What `str.isspace` is true of: `\s` and four ASCII controls.
    fn is_python_space(self, at: usize, char: Char) -> bool {
        char.is(WHITE) || matches!(self.bytes[at], 0x1c..=0x1f)
    }

    pub(super) fn gpt2(self, word: impl FnMut(&'t [u8], ShortWord)) {
        self.words(word, |chunk| chunk.plain_length(), |at| self.gpt2_end(at));
    }

    pub(super) fn gpt4(self, word: impl FnMut(&'t [u8], ShortWord)) {
        self.words(word, |chunk| chunk.plain_length(), |at| self.gpt4_end(at));
    }

    pub(super) fn gpt4o(self, word: impl FnMut(&'t [u8], ShortWord)) {
        self.words(word, |chunk| chunk.plain_cased_length(), |at| self.gpt4o_end(at));
    }

    /// Most words of most texts are plain: found, and packed into their key, from one chunk of 16 bytes without a
    /// branch that depends on their length. `end` decides all others.
    #[inline]
    fn words(
        self,
        mut word: impl FnMut(&'t [u8], ShortWord),
        plain: impl Fn(Chunk<'_>) -> usize,
        end: impl Fn(usize) -> usize,
    ) {
        let mut start = 0;
        // Behind the last 16 bytes come zeros, which end a word as the end of the text does.
        let mut padded = [0; 32];
        let tail = self.bytes.len().saturating_sub(16);
        padded[..self.bytes.len() - tail].copy_from_slice(&self.bytes[tail..]);
        while start < self.bytes.len() {
            let (rest, ahead) = (&self.bytes[start..], start.checked_sub(tail));
            let chunk = match ahead {
                Some(ahead) => padded[ahead..].first_chunk(),
                None => rest.first_chunk(),
            };
            let chunk = chunk.expect("16 bytes are left, if only of zeros");
            let length = plain(Chunk(chunk));
            if length > 0 {
                word(&rest[..length], ShortWord::from_chunk(chunk, length));
                start += length;
                continue;
            }
            let end = end(start);
            let found = &self.bytes[start..end];
            word(found, ShortWord::new(found));
            start = end;
        }
    }

    fn gpt2_end(self, start: usize) -> usize {
        let first = self.char(start);
        let next = start + first.len;
        if self.bytes[start] == b'\''
            && let Some(end) = self.contraction(next, false)
        {
            return end;
        }
        // An optional space, then the run of whatever follows.
        let (body, from) = match self.bytes[start] {
            b' ' => {
                let second = self.char(next);
                (second, next + second.len)
            }
            _ => (first, next),
        };
        if body.is(LETTER) {
            return self.letters_end(from);
        }
        for set in [NUMBER, PUNCTUATION] {
            if body.is(set) {
                return self.run(from, set);
            }
        }
        self.white_end(start, 0)
    }

    fn gpt4_end(self, start: usize) -> usize {
        let first = self.char(start);
        let next = start + first.len;
        if first.is(LETTER) {
            return self.letters_end(next);
        }
        if first.is(NUMBER) {
            return self.number_end(next);
        }
        if first.is(NEWLINE) {
            return self.white_end(start, NEWLINE);
        }
        if self.bytes[start] == b'\''
            && let Some(end) = self.contraction(next, true)
        {
            return end;
        }
        let second = self.char(next);
        if second.is(LETTER) {
            return self.letters_end(next + second.len);
        }
        if first.is(PUNCTUATION) || (self.bytes[start] == b' ' && second.is(PUNCTUATION)) {
            // The first character is in the run or is the space before it; either way the run goes on at `next`.
            let end = self.run(next, PUNCTUATION);
            return self.run(end, NEWLINE);
        }
        self.white_end(start, NEWLINE)
    }

    fn gpt4o_end(self, start: usize) -> usize {
        let first = self.char(start);
        let next = start + first.len;
        if first.is(NUMBER) {
            return self.number_end(next);
        }
        if first.is(NEWLINE) {
            return self.white_end(start, NEWLINE);
        }
        if let Some(end) = self.cased_end(start, first) {
            return self.suffix_end(end);
        }
        if first.is(PUNCTUATION) || (self.bytes[start] == b' ' && self.char(next).is(PUNCTUATION)) {
            let mut end = self.run(next, PUNCTUATION);
            while matches!(self.bytes.get(end), Some(b'\r' | b'\n' | b'/')) {
                end += 1;
            }
            return end;
        }
        self.white_end(start, NEWLINE)
    }

    /// `X?U*W+` or, failing that, `X?U+W*`; `first` is neither a number nor a newline.
    ///
    /// `X?` takes the first character unless it is a letter. `U*` then takes all it can. If a lower-case letter
    /// follows, `W+` goes on from there. If not, `U*` gives back until `W+` can take one character: the last
    /// shared one, after which only upper case was given back, so the word ends behind it. If there is none, a
    /// mark taken by `X?` can serve as `W+` itself, alone, since no character of `W` follows it. Without such a
    /// mark the first pattern has failed, and the second takes the upper case that `U*` found.
    fn cased_end(self, start: usize, first: Char) -> Option<usize> {
        let from = if first.is(LETTER) { start } else { start + first.len };
        let mut end = from;
        let mut shared_end = None;
        let mut char = self.char(end);
        while char.is(HEAD) {
            end += char.len;
            if char.is(SHARED) {
                shared_end = Some(end);
            }
            char = self.char(end);
        }
        if char.is(LOWER) {
            let end = self.skip(end + char.len, |chunk| leading_in(b'a', b'z', chunk));
            return Some(self.run(end, TAIL));
        }
        if shared_end.is_none() && first.is(MARK) {
            return Some(from);
        }
        shared_end.or((end > from).then_some(end))
    }

    /// The end of a contraction that begins at `at`, or `at`.
    fn suffix_end(self, at: usize) -> usize {
        match self.bytes.get(at) {
            Some(b'\'') => self.contraction(at + 1, true).unwrap_or(at),
            _ => at,
        }
    }

    /// The end of `[sdmt]|ll|ve|re` at `at`, which follows an apostrophe. Of these letters only `s` has a case
    /// variant outside ASCII: `ſ`, U+017F, is `C5 BF`.
    fn contraction(self, at: usize, any_case: bool) -> Option<usize> {
        let fold = |at: usize| match self.bytes.get(at) {
            Some(byte) if any_case => byte.to_ascii_lowercase(),
            Some(&byte) => byte,
            None => 0,
        };
        match (fold(at), fold(at + 1)) {
            (b's' | b'd' | b'm' | b't', _) => Some(at + 1),
            (b'l', b'l') | (b'v' | b'r', b'e') => Some(at + 2),
            (0xc5, 0xbf) if any_case => Some(at + 2),
            _ => None,
        }
    }

    /// `\p{N}{1,3}`, the first one ending at `at`.
    fn number_end(self, mut at: usize) -> usize {
        for _ in 0..2 {
            let char = self.char(at);
            if !char.is(NUMBER) {
                break;
            }
            at += char.len;
        }
        at
    }

    /// `\s*[\r\n]+` (if `newline` is that class), `\s+(?!\S)` or `\s+`.
    ///
    /// The first one ends behind the last newline of the run. The second is the whole run at the end of the text,
    /// else all of it but one character, which goes with what follows; the third is for a run of one.
    fn white_end(self, start: usize, newline: Mask) -> usize {
        let mut end = start;
        let mut last = start;
        let mut newline_end = None;
        let mut char = self.char(end);
        while char.is(WHITE) {
            last = end;
            end += char.len;
            if char.is(newline) {
                newline_end = Some(end);
            }
            char = self.char(end);
        }
        newline_end.unwrap_or(if end == self.bytes.len() || last == start { end } else { last })
    }

    /// The end of the run of letters that begins at `at`.
    fn letters_end(self, at: usize) -> usize {
        self.run(self.skip(at, |chunk| leading_in(b'a', b'z', chunk | (0x20 * ONES))), LETTER)
    }

    /// The end of the run of characters of `set` that begins at `at`.
    fn run(self, mut at: usize, set: Mask) -> usize {
        loop {
            while self.bytes.get(at).is_some_and(|&byte| ASCII[byte as usize] & set != 0) {
                at += 1;
            }
            // The run ends here unless a longer character of the set follows.
            let char = self.char(at);
            if !char.is(set) {
                return at;
            }
            at += char.len;
        }
    }

    /// Skips bytes in chunks of eight as long as `leading` accepts all of them. Most words end within one chunk,
    /// and a loop over bytes would pay a mispredicted branch for each (measured: 300 MB/s instead of 490).
    /// It may stop early, near the end of the text, so a slower loop must follow.
    fn skip(self, mut at: usize, leading: impl Fn(u64) -> usize) -> usize {
        while let Some(chunk) = self.bytes.get(at..).and_then(<[u8]>::first_chunk) {
            let count = leading(u64::from_le_bytes(*chunk));
            at += count;
            if count < 8 {
                break;
            }
        }
        at
    }

    fn char(self, at: usize) -> Char {
        match self.bytes.get(at) {
            None => Char { class: 0, len: 0 },
            Some(&byte) if byte < 0x80 => Char { class: ASCII[byte as usize], len: 1 },
            Some(&byte) => self.long_char(at, byte),
        }
    }

    /// Decodes a character of two bytes or more; the text is valid UTF-8.
    fn long_char(self, at: usize, lead: u8) -> Char {
        let tail = |offset: usize| u32::from(self.bytes[at + offset] & 0x3f);
        let lead = u32::from(lead);
        let (code, len) = match lead {
            0xc2..0xe0 => ((lead & 0x1f) << 6 | tail(1), 2),
            0xe0..0xf0 => ((lead & 0x0f) << 12 | tail(1) << 6 | tail(2), 3),
            _ => ((lead & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3), 4),
        };
        Char { class: self.table.class(code), len }
    }
}

const ONES: u64 = 0x0101_0101_0101_0101;

/// How many of the eight bytes of `chunk`, from the lowest, are in an ASCII range.
fn leading_in(first: u8, last: u8, chunk: u64) -> usize {
    const HIGH: u64 = 0x80 * ONES;
    // Without its high bit, no byte's sum carries into the next one.
    let low = chunk & !HIGH;
    let from_first = low + u64::from(0x80 - first) * ONES;
    let above_last = low + u64::from(0x7f - last) * ONES;
    let others = (!from_first | above_last | chunk) & HIGH;
    others.trailing_zeros() as usize / 8
}
