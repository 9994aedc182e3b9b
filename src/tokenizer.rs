//! From text to ids and back: special tokens, words, the cache, batches, offsets.

use std::sync::{Arc, Mutex};

use aho_corasick::{AhoCorasick, MatchKind};

use crate::alphabet::{UNKNOWN, Unit, WORD_MARK};
use crate::batch::Input;
use crate::cache::WordCache;
use crate::encoder::{MAX_WORD, NONE, Replayer, Scratch, UNKNOWN_SYMBOL};
use crate::error::{Error, Result, quote};
use crate::inference::{Lexicon, Mode, PostRemoval};
use crate::model::Model;
use crate::pretokenize::Splitter;
use crate::progress::Progress;
use crate::short_word::ShortWord;
use crate::vocabulary::Symbol;

/// A model that is ready to encode. Immutable; safe to share between threads.
#[derive(Debug)]
pub struct Tokenizer {
    model: Model,
    replayer: Replayer,
    unknown_id: u32,
    /// Workers at rest. Only ever tried, never waited for: a fork may copy the lock while it is held.
    workers: Mutex<Vec<Worker>>,
    /// What the other modes need, made when one is first used.
    other_modes: Mutex<Option<Arc<OtherModes>>>,
}

/// What one thread needs to encode.
#[derive(Debug)]
struct Worker {
    splitter: Splitter,
    buffers: Buffers,
}

#[derive(Debug, Default)]
struct Buffers {
    cache: WordCache,
    scratch: Scratch,
    tokens: Vec<u32>,
    other_modes: Option<Arc<OtherModes>>,
}

#[derive(Debug)]
struct OtherModes {
    lexicon: Lexicon,
    post_removal: PostRemoval,
}

/// Which special tokens to recognise in text: none unless they are named.
#[derive(Clone, Debug, Default)]
pub struct AllowedSpecial {
    matcher: Option<AhoCorasick>,
    ids: Vec<u32>,
}

/// How to encode.
#[derive(Clone, Debug, Default)]
pub struct EncodeOptions {
    pub mode: Mode,
    pub allowed_special: AllowedSpecial,
}

/// A piece of text whose ids have just been appended.
enum Piece<'t> {
    Word(&'t [u8]),
    Special(&'t str),
}

/// Where a token comes from: its first character and the one after its last.
pub type Offset = (usize, usize);

/// One event in the life of a word: its number, and the tokens after it.
pub type TraceStep = (usize, Vec<String>);

/// So many words are cut before the first is looked up in the cache; their places are fetched meanwhile.
const WAITING: usize = 16;

impl Tokenizer {
    pub fn new(model: Model) -> Self {
        Self {
            replayer: Replayer::new(&model),
            unknown_id: model.special_id(UNKNOWN).unwrap_or(0),
            workers: Mutex::new(Vec::new()),
            other_modes: Mutex::new(None),
            model,
        }
    }

    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Special tokens to recognise: all, or those named.
    pub fn allow_special(&self, tokens: Option<&[String]>) -> Result<AllowedSpecial> {
        let special = self.model.special_tokens();
        let tokens = tokens.unwrap_or(special);
        let mut ids = Vec::with_capacity(tokens.len());
        for token in tokens {
            let id = self.model.special_id(token).ok_or_else(|| {
                Error::value(format!("allowed_special names {token:?}; the special tokens are {special:?}"))
            })?;
            ids.push(id);
        }
        if tokens.is_empty() {
            return Ok(AllowedSpecial::default());
        }
        let matcher = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(tokens)
            .map_err(|error| Error::value(format!("special tokens cannot be searched for: {error}")))?;
        Ok(AllowedSpecial { matcher: Some(matcher), ids })
    }

    /// Appends the ids of a text.
    pub fn encode(&self, text: &str, options: &EncodeOptions, progress: &Progress, out: &mut Vec<u32>) -> Result<()> {
        self.with_worker(|worker| self.encode_text(worker, text, options, progress, out, |_, _| ()))
    }

    /// Appends the ids of bytes, which need not be text.
    pub fn encode_bytes(&self, bytes: &[u8], mode: Mode, progress: &Progress, out: &mut Vec<u32>) -> Result<()> {
        let options = EncodeOptions { mode, ..EncodeOptions::default() };
        self.with_worker(|worker| self.encode_pieces(worker, bytes, &options, progress, out))
    }

    /// Appends the ids of several texts; tells how many each has.
    pub(crate) fn encode_each(
        &self,
        texts: &[Input<'_>],
        options: &EncodeOptions,
        progress: &Progress,
        out: &mut Vec<u32>,
        mut encoded: impl FnMut(usize),
    ) -> Result<()> {
        self.with_worker(|worker| {
            for text in texts {
                let start = out.len();
                match text {
                    Input::Text(text) => self.encode_text(worker, text, options, progress, out, |_, _| ())?,
                    Input::Bytes(bytes) => self.encode_pieces(worker, bytes, options, progress, out)?,
                }
                encoded(out.len() - start);
                progress.advance(text.len() as u64)?;
            }
            Ok(())
        })
    }

    /// What is not UTF-8 makes words of its own, each run of bad bytes one, and what is between are documents; with
    /// the pre-tokenizer `none` all of it is one word, as always.
    fn encode_pieces(
        &self,
        worker: &mut Worker,
        bytes: &[u8],
        options: &EncodeOptions,
        progress: &Progress,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        if let Ok(text) = str::from_utf8(bytes) {
            return self.encode_text(worker, text, options, progress, out, |_, _| ());
        }
        if self.model.config().unit == Unit::Byte && self.model.pretokenizer().name() == "none" {
            let word = [(bytes, ShortWord::new(bytes))];
            return self.encode_words(&mut worker.buffers, &word, options.mode, progress, out, &mut |_, _| ());
        }
        let mut rest = bytes;
        while !rest.is_empty() {
            let valid = rest.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            self.encode_text(worker, valid, options, progress, out, |_, _| ())?;
            rest = &rest[valid.len()..];
            let bad = rest.utf8_chunks().take_while(|chunk| chunk.valid().is_empty()).map(|c| c.invalid().len()).sum();
            let (word, others) = rest.split_at(bad);
            if !word.is_empty() && self.model.config().unit == Unit::Char {
                let position = bytes.len() - rest.len();
                return Err(Error::value(format!("invalid UTF-8 at byte {position}; the char unit needs text")));
            }
            rest = others;
            if !word.is_empty() {
                let word = [(word, ShortWord::new(word))];
                self.encode_words(&mut worker.buffers, &word, options.mode, progress, out, &mut |_, _| ())?;
            }
        }
        Ok(())
    }

    /// The ids of a text, and for each the characters that it comes from.
    pub fn encode_with_offsets(
        &self,
        text: &str,
        options: &EncodeOptions,
        progress: &Progress,
    ) -> Result<(Vec<u32>, Vec<Offset>)> {
        let mut ids = Vec::new();
        let mut offsets = Vec::new();
        let mut cursor = Cursor { text, byte: 0, chars: 0 };
        let marked = !self.model.pretokenizer().prefix().is_empty();
        self.with_worker(|worker| {
            self.encode_text(worker, text, options, progress, &mut ids, |piece, ids| match piece {
                Piece::Special(token) => {
                    let end = token.as_ptr() as usize - text.as_ptr() as usize + token.len();
                    let start = cursor.chars_before(end - token.len());
                    offsets.push((start, cursor.chars_before(end)));
                }
                Piece::Word(word) => {
                    let start = word.as_ptr() as usize - text.as_ptr() as usize;
                    match self.model.config().unit {
                        Unit::Byte => self.byte_offsets(start, ids, &mut cursor, &mut offsets),
                        Unit::Char => self.char_offsets(cursor.chars_before(start), marked, ids, &mut offsets),
                    }
                }
            })
        })?;
        Ok((ids, offsets))
    }

    fn byte_offsets(&self, start: usize, ids: &[u32], cursor: &mut Cursor<'_>, out: &mut Vec<Offset>) {
        let mut first = start;
        for &id in ids {
            let end = first + self.length(id);
            // A token may begin inside a character: then that character is its first.
            let begin = cursor.chars_before(first) - usize::from(!cursor.text.is_char_boundary(first));
            out.push((begin, cursor.chars_before(end)));
            first = end;
        }
    }

    /// An added word mark is a unit of the word, but no character of the text.
    fn char_offsets(&self, start: usize, marked: bool, ids: &[u32], out: &mut Vec<Offset>) {
        let mark = usize::from(marked);
        let mut first = 0;
        for &id in ids {
            let end = first + self.length(id);
            out.push((start + first.max(mark) - mark, start + end - mark));
            first = end;
        }
    }

    /// Length of an id's token in units; `<unk>` is one character.
    fn length(&self, id: u32) -> usize {
        self.model.symbol(id).map_or(1, |symbol| self.model.vocabulary().length(symbol))
    }

    /// One word's life: its first symbols, and each event that touched it.
    pub fn trace(&self, text: &str) -> Result<(String, Vec<String>, Vec<TraceStep>)> {
        let mut words = Vec::new();
        self.model.pretokenizer().splitter().split(text, |word| words.push(word))?;
        let &[word] = words.as_slice() else {
            let (count, first) = (words.len(), &words[..words.len().min(5)]);
            let text = quote(text);
            return Err(Error::value(format!("trace takes one word, but {text} is cut into {count}: {first:?}")));
        };
        let mut scratch = Scratch::default();
        self.load(word.as_bytes(), &mut scratch.symbols)?;
        let tokens = |symbols: &[u32]| {
            symbols.iter().filter(|&&symbol| symbol != NONE).map(|&symbol| self.printable(symbol)).collect()
        };
        let symbols = tokens(&scratch.symbols);
        let mut steps = Vec::new();
        let performed = |time: u32, symbols: &[u32]| steps.push((time as usize, tokens(symbols)));
        self.replayer.queue(&mut scratch, &Progress::default(), performed)?;
        Ok((format!("{}{word}", self.model.pretokenizer().prefix()), symbols, steps))
    }

    fn printable(&self, symbol: u32) -> String {
        if symbol == UNKNOWN_SYMBOL { UNKNOWN.to_owned() } else { self.model.vocabulary().printable(Symbol(symbol)) }
    }

    /// The bytes of ids. Word marks become spaces again, without the first.
    pub fn decode(&self, ids: &[u32], skip_special_tokens: bool) -> Result<Vec<u8>> {
        let marked = !self.model.pretokenizer().prefix().is_empty();
        let special = self.model.special_tokens().len();
        let mut bytes = Vec::with_capacity(4 * ids.len());
        for &id in ids {
            let token = self.model.bytes(id)?;
            if (id as usize) < special {
                if !skip_special_tokens {
                    bytes.extend_from_slice(token);
                }
            } else if marked {
                let text = String::from_utf8_lossy(token).replace(WORD_MARK, " ");
                bytes.extend_from_slice(text.as_bytes());
            } else {
                bytes.extend_from_slice(token);
            }
        }
        if marked && bytes.first() == Some(&b' ') {
            bytes.remove(0);
        }
        Ok(bytes)
    }

    /// Lends a worker: one at rest, or a new one. It is lost if `work` panics, which is fine.
    fn with_worker<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let rested = self.workers.try_lock().ok().and_then(|mut workers| workers.pop());
        let mut worker = rested
            .unwrap_or_else(|| Worker { splitter: self.model.pretokenizer().splitter(), buffers: Buffers::default() });
        let result = work(&mut worker);
        if let Ok(mut workers) = self.workers.try_lock() {
            workers.push(worker);
        }
        result
    }

    /// Cuts special tokens out; each remaining piece is a document of its own.
    fn encode_text<'t>(
        &self,
        worker: &mut Worker,
        text: &'t str,
        options: &EncodeOptions,
        progress: &Progress,
        out: &mut Vec<u32>,
        mut encoded: impl FnMut(Piece<'t>, &[u32]),
    ) -> Result<()> {
        let AllowedSpecial { matcher, ids } = &options.allowed_special;
        let mut start = 0;
        for found in matcher.iter().flat_map(|matcher| matcher.find_iter(text)) {
            self.encode_document(worker, &text[start..found.start()], options.mode, progress, out, &mut encoded)?;
            out.push(ids[found.pattern()]);
            encoded(Piece::Special(&text[found.range()]), &out[out.len() - 1..]);
            start = found.end();
        }
        self.encode_document(worker, &text[start..], options.mode, progress, out, &mut encoded)
    }

    fn encode_document<'t>(
        &self,
        worker: &mut Worker,
        document: &'t str,
        mode: Mode,
        progress: &Progress,
        out: &mut Vec<u32>,
        encoded: &mut impl FnMut(Piece<'t>, &[u32]),
    ) -> Result<()> {
        let Worker { splitter, buffers } = worker;
        let mut result = Ok(());
        let mut waiting: [(&[u8], ShortWord); WAITING] = [(&[], ShortWord::NONE); WAITING];
        let mut length = 0;
        let split = splitter.split_keyed(document, |word, key| {
            buffers.cache.prefetch(key);
            waiting[length] = (word, key);
            length += 1;
            if length == WAITING {
                length = 0;
                if result.is_ok() {
                    result = self.encode_words(buffers, &waiting, mode, progress, out, encoded);
                }
            }
        });
        result?;
        self.encode_words(buffers, &waiting[..length], mode, progress, out, encoded)?;
        split
    }

    #[inline]
    fn encode_words<'t>(
        &self,
        buffers: &mut Buffers,
        words: &[(&'t [u8], ShortWord)],
        mode: Mode,
        progress: &Progress,
        out: &mut Vec<u32>,
        encoded: &mut impl FnMut(Piece<'t>, &[u32]),
    ) -> Result<()> {
        progress.check()?;
        for &(word, key) in words {
            let start = out.len();
            if mode != Mode::Events || !buffers.cache.get(word, key, out) {
                self.encode_word(buffers, word, key, mode, progress, out)?;
            }
            encoded(Piece::Word(word), &out[start..]);
        }
        Ok(())
    }

    /// Appends the ids of a word that is not in the cache. Apart from the loop over words, which it would slow down.
    #[cold]
    #[inline(never)]
    fn encode_word(
        &self,
        buffers: &mut Buffers,
        word: &[u8],
        key: ShortWord,
        mode: Mode,
        progress: &Progress,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let Buffers { cache, scratch, tokens, other_modes } = buffers;
        self.load(word, &mut scratch.symbols)?;
        if mode == Mode::Events {
            let start = out.len();
            self.replayer.encode(scratch, progress)?;
            self.push_ids(&scratch.symbols, out);
            cache.insert(word, key, &out[start..]);
            return Ok(());
        }
        let modes = match other_modes {
            Some(modes) => modes,
            None => other_modes.insert(self.other_modes(progress)?),
        };
        tokens.clear();
        match mode {
            Mode::Events => {}
            Mode::PostRemoval => modes.post_removal.encode(&mut scratch.symbols, tokens, progress)?,
            Mode::Greedy => modes.lexicon.greedy(&scratch.symbols, tokens, progress)?,
            Mode::Shortest => modes.lexicon.shortest(&scratch.symbols, tokens, progress)?,
        }
        self.push_ids(tokens, out);
        Ok(())
    }

    /// The alphabet symbols of a word, with the mark that the pre-tokenizer puts before it.
    fn load(&self, word: &[u8], symbols: &mut Vec<u32>) -> Result<()> {
        if word.len() > MAX_WORD {
            return Err(Error::value(format!("a word of {} bytes is too long: the limit is {MAX_WORD}", word.len())));
        }
        let alphabet = self.model.vocabulary().alphabet();
        symbols.clear();
        let mut push = |symbol: Option<u32>| symbols.push(symbol.unwrap_or(UNKNOWN_SYMBOL));
        alphabet.symbols(self.model.pretokenizer().prefix(), &mut push);
        alphabet.symbols_of_bytes(word, &mut push);
        Ok(())
    }

    fn push_ids(&self, symbols: &[u32], out: &mut Vec<u32>) {
        out.extend(symbols.iter().map(|&symbol| match symbol {
            UNKNOWN_SYMBOL => self.unknown_id,
            _ => self.model.id(Symbol(symbol)).expect("no mode emits a removed token"),
        }));
    }

    fn other_modes(&self, progress: &Progress) -> Result<Arc<OtherModes>> {
        if let Some(made) = self.other_modes.try_lock().ok().and_then(|modes| modes.clone()) {
            return Ok(made);
        }
        let lexicon = Lexicon::new(&self.model, progress)?;
        let post_removal = PostRemoval::new(&self.model, &lexicon, progress)?;
        let modes = Arc::new(OtherModes { lexicon, post_removal });
        if let Ok(mut shared) = self.other_modes.try_lock() {
            *shared = Some(Arc::clone(&modes));
        }
        Ok(modes)
    }
}

/// Counts characters while it walks forward through a text.
struct Cursor<'t> {
    text: &'t str,
    byte: usize,
    chars: usize,
}

impl Cursor<'_> {
    /// How many characters begin before a byte position, which is not before the last one asked for.
    fn chars_before(&mut self, byte: usize) -> usize {
        let passed = &self.text.as_bytes()[self.byte..byte];
        self.chars += passed.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
        self.byte = byte;
        self.chars
    }
}
