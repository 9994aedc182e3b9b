//! Files in, blocks of documents out, cut where no word is cut.
//!
//! One thread at a time takes the next block (reading, decompressing, looking for a cut); many threads then
//! validate and split their blocks. A block is cut where the pre-tokenizer says that it changes no word, or
//! behind a line end where documents are lines; where there is no such place it grows, doubling, so that reading
//! stays linear in the size of the file. Hence no result depends on the block size.
//!
//! Files are read with plain reads: a mapped file that shrinks would kill the process.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use flate2::bufread::MultiGzDecoder;
use memchr::{memchr_iter, memrchr};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::pipe::PipeReader;
use crate::pretokenize::PreTokenizer;
use crate::progress::Progress;

/// Large enough that threads rarely meet, small enough that a block stays in a core's cache.
const BLOCK: usize = 1 << 20;

/// The largest window that zstd can be asked for (`--long=31`).
const ZSTD_WINDOW_LOG: u32 = 31;

/// What to do with bytes that are not UTF-8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errors {
    Strict,
    Replace,
}

impl Errors {
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "strict" => Ok(Self::Strict),
            "replace" => Ok(Self::Replace),
            _ => Err(Error::value(format!("unknown errors {name:?}; choose from strict and replace"))),
        }
    }
}

/// What a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// One document.
    Text,
    /// A document a line.
    Lines,
    /// JSONL: a record a line.
    Records,
}

#[derive(Clone, Copy, Debug)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

/// Reads files one after the other, block by block.
pub struct Source {
    paths: VecDeque<PathBuf>,
    current: Option<Current>,
    pre: PreTokenizer,
    lines: bool,
    errors: Errors,
    total_bytes: u64,
    block: usize,
    stop: Arc<AtomicBool>,
}

/// The file that is being read.
struct Current {
    reader: Box<dyn Read + Send>,
    path: Arc<Path>,
    format: Format,
    /// Bytes taken from the file itself, and how many of them blocks have told.
    disk: Arc<AtomicU64>,
    told: u64,
    /// Read already, and behind the last cut.
    rest: Vec<u8>,
    /// Where `rest` begins in the decompressed file, and on which line (records only).
    offset: u64,
    line: u64,
    ended: bool,
    stop: Arc<AtomicBool>,
}

/// Whole documents, or a piece of one that was cut where no word is cut.
#[derive(Debug)]
pub struct Block {
    bytes: Vec<u8>,
    path: Arc<Path>,
    format: Format,
    errors: Errors,
    offset: u64,
    line: u64,
    disk_bytes: u64,
}

impl Source {
    /// Checks that every path can be read, so that a wrong one is known before any work is done. `-` is standard
    /// input. `lines` makes each line of a text file a document.
    pub fn open(
        paths: &[PathBuf],
        pre: &PreTokenizer,
        lines: bool,
        errors: Errors,
        progress: &Progress,
    ) -> Result<Self> {
        if paths.is_empty() {
            return Err(Error::value("no input files"));
        }
        let sizes = paths.iter().map(|path| check(path)).collect::<Result<Vec<_>>>()?;
        let total_bytes = sizes.into_iter().sum::<Option<u64>>().unwrap_or(0);
        let paths = paths.iter().cloned().collect();
        let stop = progress.stop_flag();
        Ok(Self { paths, current: None, pre: pre.clone(), lines, errors, total_bytes, block: BLOCK, stop })
    }

    /// The size of all files on disk; 0 if it is not known.
    pub fn total_bytes(&self) -> u64 {
        self.total_bytes
    }

    /// The next block, or none after the last.
    pub fn next_block(&mut self) -> Result<Option<Block>> {
        loop {
            let Some(current) = &mut self.current else {
                let Some(path) = self.paths.pop_front() else { return Ok(None) };
                self.current = Some(Current::open(&path, self.lines, &self.stop)?);
                continue;
            };
            match current.next_block(&self.pre, self.errors, self.block)? {
                Some(block) => return Ok(Some(block)),
                None => self.current = None,
            }
        }
    }
}

impl std::fmt::Debug for Source {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let current = self.current.as_ref().map(|current| &current.path);
        formatter.debug_struct("Source").field("current", &current).field("paths", &self.paths).finish_non_exhaustive()
    }
}

impl Current {
    fn open(path: &Path, lines: bool, stop: &Arc<AtomicBool>) -> Result<Self> {
        let (format, compression) = format_of(path, lines);
        let disk = Arc::new(AtomicU64::new(0));
        let reader = open_reader(path, compression, &disk, stop).map_err(Error::io(path))?;
        Ok(Self {
            reader,
            path: path.into(),
            format,
            disk,
            told: 0,
            rest: Vec::new(),
            offset: 0,
            line: 1,
            ended: false,
            stop: Arc::clone(stop),
        })
    }

    fn next_block(&mut self, pre: &PreTokenizer, errors: Errors, block: usize) -> Result<Option<Block>> {
        let mut bytes = std::mem::take(&mut self.rest);
        let mut target = block;
        while !self.ended {
            // `rest` holds no cut, so a block much longer than it is needed to find one.
            target = target.max(bytes.len().saturating_mul(2));
            self.fill(&mut bytes, target)?;
            if !self.ended
                && let Some(cut) = self.cut(pre, &bytes)
            {
                self.rest = bytes.split_off(cut);
                break;
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let disk = self.disk.load(Relaxed);
        let block = Block {
            path: Arc::clone(&self.path),
            format: self.format,
            errors,
            offset: self.offset,
            line: self.line,
            disk_bytes: disk - self.told,
            bytes,
        };
        self.told = disk;
        self.offset += block.bytes.len() as u64;
        if self.format == Format::Records {
            self.line += memchr_iter(b'\n', &block.bytes).count() as u64;
        }
        Ok(Some(block))
    }

    /// Reads until `bytes` has `target` bytes or the file ends.
    fn fill(&mut self, bytes: &mut Vec<u8>, target: usize) -> Result<()> {
        let missing = target - bytes.len();
        bytes.reserve_exact(missing);
        let mut reader = self.reader.by_ref().take(missing as u64);
        let read = reader.read_to_end(bytes);
        if self.stop.load(Relaxed) {
            return Err(Error::Interrupted);
        }
        read.map_err(Error::io(&self.path))?;
        self.ended = bytes.len() < target;
        Ok(())
    }

    /// Where to cut a block that more follows; a very long line is cut as a text is.
    fn cut(&self, pre: &PreTokenizer, bytes: &[u8]) -> Option<usize> {
        let line_end = || memrchr(b'\n', bytes).map(|at| at + 1);
        match self.format {
            Format::Text => pre.cut(bytes),
            Format::Lines => line_end().or_else(|| pre.cut(bytes)),
            Format::Records => line_end(),
        }
    }
}

impl Block {
    /// How much was read from the file for this block, before decompression.
    pub fn disk_bytes(&self) -> u64 {
        self.disk_bytes
    }

    /// Calls `document` with each document, or piece of a document, that has any text.
    pub fn documents(&self, mut document: impl FnMut(&str) -> Result<()>) -> Result<()> {
        let text = self.decode()?;
        match self.format {
            Format::Text => document(&text),
            Format::Lines => lines(&text).filter(|line| !line.is_empty()).try_for_each(document),
            Format::Records => {
                for (number, line) in (self.line..).zip(lines(&text)) {
                    let text = parse_record(line).map_err(|found| {
                        Error::value(format!("{}: line {number}: not a record: {found}", self.path.display()))
                    })?;
                    if !text.is_empty() {
                        document(&text)?;
                    }
                }
                Ok(())
            }
        }
    }

    fn decode(&self) -> Result<Cow<'_, str>> {
        match str::from_utf8(&self.bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(_) if self.errors == Errors::Replace => Ok(String::from_utf8_lossy(&self.bytes)),
            Err(error) => {
                let at = error.valid_up_to();
                Err(Error::value(format!(
                    "{}: invalid UTF-8: byte 0x{:02x} at position {}; errors=\"replace\" reads it as U+FFFD",
                    self.path.display(),
                    self.bytes[at],
                    self.offset + at as u64,
                )))
            }
        }
    }
}

/// The size of a file that can be read; none for a pipe or a terminal, which must not be opened twice.
fn check(path: &Path) -> Result<Option<u64>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let metadata = fs::metadata(path).map_err(Error::io(path))?;
    if metadata.is_dir() {
        return Err(Error::io(path)(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    File::open(path).map_err(Error::io(path))?;
    Ok(Some(metadata.len()))
}

/// The format and the compression that the suffixes tell.
fn format_of(path: &Path, lines: bool) -> (Format, Compression) {
    let suffix = |path: &Path| path.extension().and_then(|suffix| suffix.to_str()).map(str::to_ascii_lowercase);
    let compression = match suffix(path).as_deref() {
        Some("gz") => Compression::Gzip,
        Some("zst") => Compression::Zstd,
        _ => Compression::None,
    };
    let inner = match compression {
        Compression::None => path.to_owned(),
        _ => path.with_extension(""),
    };
    let format = match suffix(&inner).as_deref() {
        Some("jsonl" | "ndjson") => Format::Records,
        _ if lines => Format::Lines,
        _ => Format::Text,
    };
    (format, compression)
}

fn open_reader(
    path: &Path,
    compression: Compression,
    disk: &Arc<AtomicU64>,
    stop: &Arc<AtomicBool>,
) -> io::Result<Box<dyn Read + Send>> {
    let inner: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(PipeReader::new(|| Ok(io::stdin()), Arc::clone(stop)))
    } else if fs::metadata(path)?.is_file() {
        Box::new(File::open(path)?)
    } else {
        let path = path.to_owned();
        Box::new(PipeReader::new(|| File::open(path), Arc::clone(stop)))
    };
    let file = Counted { inner, read: Arc::clone(disk) };
    Ok(match compression {
        Compression::None => Box::new(file),
        Compression::Gzip => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, file))),
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::new(file)?;
            decoder.window_log_max(ZSTD_WINDOW_LOG)?;
            Box::new(decoder)
        }
    })
}

/// Counts the bytes that pass.
struct Counted<R> {
    inner: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.read.fetch_add(count as u64, Relaxed);
        Ok(count)
    }
}

/// Lines without their ends, `\n` or `\r\n`; a `\r` elsewhere is text, also at the end of the last line.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line),
        None => line,
    })
}

/// The text of a JSONL record, empty for a blank line; what is wrong with it otherwise.
fn parse_record(line: &str) -> std::result::Result<Cow<'_, str>, String> {
    #[derive(Deserialize)]
    struct Record<'a> {
        #[serde(borrow)]
        text: Cow<'a, str>,
    }
    let line = line.trim_matches([' ', '\t', '\r']);
    let parsed = match line.as_bytes().first() {
        None => return Ok(Cow::Borrowed("")),
        Some(b'"') => serde_json::from_str(line).map(|Bare(text)| text),
        Some(b'{') => serde_json::from_str(line).map(|record: Record| record.text),
        Some(_) => {
            let found: String = line.chars().take(20).collect();
            return Err(format!("expected an object with a \"text\" string, or a string; found {found:?}"));
        }
    };
    // The line number that serde_json adds is always 1: it sees one line.
    parsed.map_err(|error| error.to_string().replace(" at line 1 column", " at column"))
}

/// A JSON string, borrowed where it has no escapes.
#[derive(Deserialize)]
struct Bare<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A file that goes when it is dropped.
    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str, bytes: &[u8]) -> Self {
            static COUNT: AtomicU64 = AtomicU64::new(0);
            let count = COUNT.fetch_add(1, Relaxed);
            let path = std::env::temp_dir().join(format!("pickytok-{}-{count}-{name}", std::process::id()));
            fs::write(&path, bytes).unwrap();
            Self(path)
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn words_of(mut source: Source, pre: &PreTokenizer) -> Result<Vec<String>> {
        let mut splitter = pre.splitter();
        let mut words = Vec::new();
        while let Some(block) = source.next_block()? {
            block.documents(|text| splitter.split(text, |word| words.push(word.to_owned())))?;
        }
        Ok(words)
    }

    fn in_blocks(file: &Temporary, pre: &PreTokenizer, lines: bool, errors: Errors, block: usize) -> Result<Source> {
        let source = Source::open(std::slice::from_ref(&file.0), pre, lines, errors, &Progress::default())?;
        Ok(Source { block, ..source })
    }

    /// The words of one file, read in blocks of a certain size.
    fn read(name: &str, bytes: &[u8], pre: &str, lines: bool, errors: Errors, block: usize) -> Result<Vec<String>> {
        let file = Temporary::new(name, bytes);
        let pre = PreTokenizer::new(pre).unwrap();
        words_of(in_blocks(&file, &pre, lines, errors, block)?, &pre)
    }

    /// The documents of one file.
    fn documents(name: &str, bytes: &[u8], lines: bool, block: usize) -> Result<Vec<String>> {
        read(name, bytes, "none", lines, Errors::Strict, block)
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    const TEXT: &str = "It's  a téxt, 世界。今天\u{3000}12345\r\n\r\n'S K\u{301} ªAB\u{a0}end!\n/ x\u{1d}y\n\n \n z";

    #[test]
    fn block_size_changes_no_word() {
        let mut broken = TEXT.as_bytes().to_vec();
        for (at, bytes) in [(40, &b"\xe4\xb8"[..]), (33, b"\xff\xf0\x9f\x98"), (20, b"\xc3 \xed\xa0\x80"), (3, b"\x80")]
        {
            broken.splice(at..at, bytes.iter().copied());
        }
        broken.extend(b"\xf0\x9f\x98");
        let decoded = String::from_utf8_lossy(&broken).into_owned();
        for name in ["gpt2", "gpt4", "gpt4o", "whitespace", "none", "regex:[a-z]+"] {
            let mut splitter = PreTokenizer::new(name).unwrap().splitter();
            for with_lines in [false, true] {
                let mut expected = Vec::new();
                let pieces = if with_lines { lines(&decoded).collect() } else { vec![decoded.as_str()] };
                for piece in pieces {
                    splitter.split(piece, |word| expected.push(word.to_owned())).unwrap();
                }
                for block in 1..broken.len() + 2 {
                    let words = read("text", &broken, name, with_lines, Errors::Replace, block).unwrap();
                    assert_eq!(words, expected, "{name} lines={with_lines} block={block}");
                }
            }
        }
    }

    #[test]
    fn line_ends() {
        let text = b"one\r\ntwo\n\n\r\nthree\rfour\r\r\nfive\r";
        for block in 1..40 {
            let lines = documents("lines", text, true, block).unwrap();
            assert_eq!(lines, ["one", "two", "three\rfour\r", "five\r"], "{block}");
        }
    }

    #[test]
    fn records() {
        let text = b"{\"id\": [1, {}], \"text\": \"a\\nb\\u00e9\"}\r\n\n \t\r\n\"bare\"\n{\"text\":\"\"}\n  {\"text\" : \"last\"} ";
        for name in ["x.jsonl", "x.NDJSON"] {
            for block in 1..20 {
                assert_eq!(documents(name, text, false, block).unwrap(), ["a\nbé", "bare", "last"]);
            }
        }
        let bad = [
            ("{\"text\": 5}", "integer `5`"),
            ("{\"text\": null}", "null"),
            ("{\"txt\": \"\"}", "missing field `text`"),
            ("[\"text\"]", "found \"[\\\"text\\\"]\""),
            ("{\"text\": \"a\"} {}", "trailing characters at column 15"),
            ("{\"text\": \"a\"", "EOF"),
            ("\"\\ud800\"", "hex escape"),
        ];
        for (record, reason) in bad {
            let text = format!("\"good\"\n\n{record}\n\"good\"\n");
            for block in [1, 100] {
                let message = documents("x.jsonl", text.as_bytes(), true, block).unwrap_err().to_string();
                assert!(message.contains("x.jsonl: line 3: ") && message.contains(reason), "{message}");
            }
        }
    }

    #[test]
    fn compressed_files() {
        let (one, two) = ("one two ".repeat(999), "three".repeat(99));
        let both = one.clone() + &two;
        let members = [gzip(one.as_bytes()), gzip(two.as_bytes())].concat();
        let frames =
            [zstd::encode_all(one.as_bytes(), 1).unwrap(), zstd::encode_all(two.as_bytes(), 9).unwrap()].concat();
        for (name, bytes) in [("x.gz", &members), ("x.ZST", &frames)] {
            assert_eq!(documents(name, bytes, false, 100).unwrap(), [both.as_str()]);
            let broken = |bytes: &[u8]| match documents(name, bytes, false, 100).unwrap_err() {
                Error::Io { path, .. } => assert!(path.to_str().unwrap().ends_with(name)),
                other => panic!("{other}"),
            };
            broken(&bytes[..bytes.len() - 5]);
            broken(&bytes[1..]);
            broken(&[bytes, &b"junk"[..]].concat());
        }
        let records = zstd::encode_all(&b"\"a\"\n{\"text\": \"b\"}\n"[..], 1).unwrap();
        assert_eq!(documents("x.jsonl.zst", &records, false, 100).unwrap(), ["a", "b"]);
        assert_eq!(documents("x.txt.gz", &gzip(b"a\nb"), true, 100).unwrap(), ["a", "b"]);
    }

    #[test]
    fn invalid_bytes_are_placed() {
        let text = b"one two \xc3\xa9 thr\xe9e four";
        for block in 1..30 {
            let message = read("x", text, "gpt4", false, Errors::Strict, block).unwrap_err().to_string();
            assert!(
                message.contains("byte 0xe9 at position 14") && message.contains("errors=\"replace\""),
                "{message}"
            );
        }
        assert!(Errors::parse("ignore").unwrap_err().to_string().contains("\"ignore\""));
        assert_eq!(Errors::parse("strict").unwrap(), Errors::Strict);
    }

    #[test]
    fn paths_are_checked_first() {
        let pre = PreTokenizer::new("gpt4").unwrap();
        let file = Temporary::new("x", b"text");
        let open = |paths: &[PathBuf]| Source::open(paths, &pre, false, Errors::Strict, &Progress::default());
        assert_eq!(open(&[]).unwrap_err().to_string(), "no input files");
        for bad in [std::env::temp_dir(), PathBuf::from("/no/such/file")] {
            let error = open(&[file.0.clone(), bad.clone()]).unwrap_err();
            assert!(matches!(error, Error::Io { path, .. } if path == bad));
        }
        let source = open(&[file.0.clone(), file.0.clone()]).unwrap();
        assert_eq!(source.total_bytes(), 8);
        assert_eq!(words_of(source, &pre).unwrap(), ["text", "text"]);
        assert_eq!(open(&[file.0.clone(), "-".into()]).unwrap().total_bytes(), 0);
    }

    #[test]
    fn blocks_tell_what_was_read() {
        let pre = PreTokenizer::new("gpt4").unwrap();
        let bytes = zstd::encode_all("some text ".repeat(9999).as_bytes(), 1).unwrap();
        let file = Temporary::new("x.zst", &bytes);
        let mut source = in_blocks(&file, &pre, false, Errors::Strict, 1000).unwrap();
        let mut read = 0;
        while let Some(block) = source.next_block().unwrap() {
            assert!(block.bytes.len() <= 1000);
            read += block.disk_bytes();
        }
        assert_eq!(read, bytes.len() as u64);
        assert_eq!(source.total_bytes(), read);
    }
}
