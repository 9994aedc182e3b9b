//! Finding plain words in 16 bytes at once: the words that most of most texts consists of.
//!
//! What a scanner waits for is the end of one word, where the next one begins. Here no branch on the way depends on how
//! long the word is, and the key of the word comes from the same sixteen bytes. Measured together with `WAITING` in
//! `counts`: 173 MB of English are counted in 0.51 s on one thread, 0.62 s with the scanner's loops alone.

use super::unicode::{ASCII, OTHER};

/// Sixteen bytes of text.
#[derive(Clone, Copy)]
pub(super) struct Chunk<'t>(pub(super) &'t [u8; 16]);

impl Chunk<'_> {
    /// The length of ` ?[A-Za-z]+` at the beginning, if it is a word whatever follows; else 0.
    ///
    /// It is one in gpt2 and gpt4: an optional space and a run of letters. Only a character beyond ASCII could go on
    /// with the run, and it must end within the chunk.
    #[inline]
    pub(super) fn plain_length(self) -> usize {
        let space = self.space();
        let letters = run(self.within(b'a', 25, 0x20), space);
        let length = space + letters;
        if letters > 0 && length < 16 && self.beyond_ascii() >> length & 1 == 0 {
            length as usize
        } else {
            self.lone_mark()
        }
    }

    /// 1 if it begins with a punctuation mark before a space, which is a word in all three patterns; else 0.
    #[inline]
    fn lone_mark(self) -> usize {
        usize::from(self.0[1] == b' ' && ASCII[self.0[0] as usize] == OTHER)
    }

    /// The length of ` ?[A-Z]*[a-z]+`, the same for gpt4o. An apostrophe could begin its suffix.
    #[inline]
    pub(super) fn plain_cased_length(self) -> usize {
        let space = self.space();
        let head = space + run(self.within(b'A', 25, 0), space);
        let lower = run(self.within(b'a', 25, 0), head);
        let length = head + lower;
        let ends = || self.beyond_ascii() >> length & 1 == 0 && self.0[length as usize] != b'\'';
        if lower > 0 && length < 16 && ends() { length as usize } else { self.lone_mark() }
    }

    #[inline]
    fn space(self) -> u32 {
        u32::from(self.0[0] == b' ')
    }

    /// A bit for each byte that, after setting the bits `set`, is in the range of `span` + 1 bytes from `first` on.
    #[inline]
    fn within(self, first: u8, span: u8, set: u8) -> u32 {
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "intrinsics")]
        // SAFETY: every x86-64 processor has SSE2, and the load reads the 16 bytes of the array, at any alignment.
        unsafe {
            use std::arch::x86_64::*;
            let all = |byte: u8| _mm_set1_epi8(byte.cast_signed());
            let bytes = _mm_loadu_si128(self.0.as_ptr().cast());
            let from_first = _mm_sub_epi8(_mm_or_si128(bytes, all(set)), all(first));
            _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(from_first, all(span)), from_first)).cast_unsigned()
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.bits(|byte| (byte | set).wrapping_sub(first) <= span)
    }

    /// A bit for each byte of a character beyond ASCII.
    #[inline]
    fn beyond_ascii(self) -> u32 {
        #[cfg(target_arch = "x86_64")]
        #[expect(unsafe_code, reason = "intrinsics")]
        // SAFETY: as above.
        unsafe {
            use std::arch::x86_64::*;
            _mm_movemask_epi8(_mm_loadu_si128(self.0.as_ptr().cast())).cast_unsigned()
        }
        #[cfg(not(target_arch = "x86_64"))]
        self.bits(|byte| byte >= 0x80)
    }

    #[cfg(any(test, not(target_arch = "x86_64")))]
    fn bits(self, is: impl Fn(u8) -> bool) -> u32 {
        (0..16).fold(0, |bits, at| bits | u32::from(is(self.0[at])) << at)
    }
}

/// How many bits from `start` (at most 16) on are set without a gap.
#[inline]
fn run(bits: u32, start: u32) -> u32 {
    (!(bits >> start)).trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_equal_bytes() {
        for first in 0..=255u8 {
            let chunk = Chunk(&std::array::from_fn(|at| first.wrapping_add((37 * at) as u8)));
            assert_eq!(chunk.beyond_ascii(), chunk.bits(|byte| byte >= 0x80));
            assert_eq!(chunk.within(b'a', 25, 0x20), chunk.bits(|byte| byte.is_ascii_alphabetic()));
            assert_eq!(chunk.within(b'a', 25, 0), chunk.bits(|byte| byte.is_ascii_lowercase()));
            assert_eq!(chunk.within(b'A', 25, 0), chunk.bits(|byte| byte.is_ascii_uppercase()));
        }
    }

    #[test]
    fn lengths() {
        let plain = |text: &[u8; 16]| (Chunk(text).plain_length(), Chunk(text).plain_cased_length());
        assert_eq!(plain(b" hello world and"), (6, 6));
        assert_eq!(plain(b"HelloWorld, and "), (10, 5));
        assert_eq!(plain(b" ABC, and more. "), (4, 0));
        assert_eq!(plain(b"don't and so on "), (3, 0));
        assert_eq!(plain(b" fifteenletters "), (15, 15));
        assert_eq!(plain(b" sixteenlettersx"), (0, 0));
        assert_eq!(plain(b"  two spaces... "), (0, 0));
        assert_eq!(plain(b", and a comma..."), (1, 1));
        assert_eq!(plain(b"' is not 's here"), (1, 1));
        assert_eq!(plain(b",\nand a comma..."), (0, 0));
        assert_eq!(plain(b"1 and a number.."), (0, 0));
        assert_eq!(plain(b"end\0\0\0\0\0\0\0\0\0\0\0\0\0"), (3, 3));
        assert_eq!(plain("caf\u{e9} au lait, s".as_bytes().first_chunk().unwrap()), (0, 0));
        assert_eq!(plain(b"ABCDEFGHIJKLMNOp"), (0, 0));
        assert_eq!(plain(b"ABCDEFGHIJKLMNOP"), (0, 0));
    }
}
