//! The counts file: sorted, readable, and summed up without being held in memory (specified in `docs/formats.md`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::counts::{WordCounts, check_same};
use crate::error::{Error, Result};
use crate::file::write_atomically;
use crate::model::MAX_COUNT;
use crate::pretokenize::PreTokenizer;
use crate::progress::Progress;

const FORMAT: &str = "pickytok-counts";
const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u64,
    unicode: String,
    pretokenizer: String,
}

/// The last line: without it a file that lost its end would pass for a smaller one.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Footer {
    words: u64,
    total: u64,
}

impl WordCounts {
    pub fn save(&self, path: &Path, progress: &Progress) -> Result<()> {
        write_atomically(path, |out| self.write(out, path, progress))
    }

    pub fn load(path: &Path, progress: &Progress) -> Result<Self> {
        CountsReader::open(path)?.read_all(progress)
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes, Path::new("memory"), &Progress::default()).expect("writing to memory does not fail");
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        CountsReader::new(Path::new("memory"), bytes)?.read_all(&Progress::default())
    }

    fn write(&self, out: &mut dyn Write, path: &Path, progress: &Progress) -> Result<()> {
        let mut writer = CountsWriter::new(out, path, self.pretokenizer(), self.unicode())?;
        for (word, n) in self.iter() {
            progress.check()?;
            writer.write(word, n)?;
        }
        writer.finish()
    }

    /// Adds up count files into one, a word at a time.
    pub fn merge_files(inputs: &[PathBuf], output: &Path, progress: &Progress) -> Result<()> {
        let mut readers = inputs.iter().map(|path| CountsReader::open(path)).collect::<Result<Vec<_>>>()?;
        let Some(first) = readers.first() else { return Err(Error::value("no count files to merge")) };
        let (pretokenizer, unicode) = (first.pretokenizer.clone(), first.unicode.clone());
        for reader in &readers[1..] {
            check_same(&pretokenizer, &unicode, &reader.pretokenizer, &reader.unicode)
                .map_err(|error| Error::value(format!("{}: {error}", reader.path.display())))?;
        }
        let mut heads = BinaryHeap::new();
        for (index, reader) in readers.iter_mut().enumerate() {
            if let Some((word, n)) = reader.next()? {
                heads.push(Reverse((word, index, n)));
            }
        }
        write_atomically(output, |out| {
            let mut writer = CountsWriter::new(out, output, &pretokenizer, &unicode)?;
            let mut pending: Option<(String, u64)> = None;
            while let Some(Reverse((word, index, n))) = heads.pop() {
                progress.check()?;
                if let Some((next, n)) = readers[index].next()? {
                    heads.push(Reverse((next, index, n)));
                }
                match &mut pending {
                    // Below the limit twice, so the sum fits; the writer checks it.
                    Some((last, sum)) if *last == word => *sum += n,
                    _ => {
                        if let Some((last, sum)) = pending.replace((word, n)) {
                            writer.write(&last, sum)?;
                        }
                    }
                }
                if pending.as_ref().is_some_and(|(_, sum)| *sum > MAX_COUNT) {
                    return Err(too_many());
                }
            }
            if let Some((last, sum)) = pending {
                writer.write(&last, sum)?;
            }
            writer.finish()
        })
    }
}

fn too_many() -> Error {
    Error::value(format!("the total of all counts passes the limit {MAX_COUNT}"))
}

struct CountsWriter<'a> {
    out: &'a mut dyn Write,
    path: &'a Path,
    footer: Footer,
    line: Vec<u8>,
}

impl<'a> CountsWriter<'a> {
    fn new(out: &'a mut dyn Write, path: &'a Path, pretokenizer: &PreTokenizer, unicode: &str) -> Result<Self> {
        let mut writer = Self { out, path, footer: Footer::default(), line: Vec::new() };
        writer.json(&Header {
            format: FORMAT.to_owned(),
            version: VERSION,
            unicode: unicode.to_owned(),
            pretokenizer: pretokenizer.name().to_owned(),
        })?;
        Ok(writer)
    }

    fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let line = serde_json::to_string(value).expect("strings and numbers are JSON");
        writeln!(self.out, "{line}").map_err(Error::io(self.path))
    }

    fn write(&mut self, word: &str, n: u64) -> Result<()> {
        self.footer.words += 1;
        self.footer.total = self.footer.total.checked_add(n).filter(|&t| t <= MAX_COUNT).ok_or_else(too_many)?;
        self.line.clear();
        self.line.extend_from_slice(n.to_string().as_bytes());
        self.line.push(b'\t');
        for &byte in word.as_bytes() {
            match byte {
                b'\\' => self.line.extend_from_slice(b"\\\\"),
                b'\t' => self.line.extend_from_slice(b"\\t"),
                b'\n' => self.line.extend_from_slice(b"\\n"),
                b'\r' => self.line.extend_from_slice(b"\\r"),
                _ => self.line.push(byte),
            }
        }
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(Error::io(self.path))
    }

    fn finish(mut self) -> Result<()> {
        let footer = std::mem::take(&mut self.footer);
        self.json(&footer)
    }
}

/// Reads a counts file word by word and checks its order, its counts and its end.
struct CountsReader<R> {
    path: PathBuf,
    input: R,
    pretokenizer: PreTokenizer,
    unicode: String,
    line: Vec<u8>,
    line_number: u64,
    last: String,
    seen: Footer,
}

impl CountsReader<BufReader<File>> {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path))?;
        Self::new(path, BufReader::with_capacity(1 << 16, file))
    }
}

impl<R: BufRead> CountsReader<R> {
    fn new(path: &Path, input: R) -> Result<Self> {
        let mut reader = Self {
            path: path.to_path_buf(),
            input,
            pretokenizer: PreTokenizer::new("none")?,
            unicode: String::new(),
            line: Vec::new(),
            line_number: 0,
            last: String::new(),
            seen: Footer::default(),
        };
        if !reader.read_line()? {
            return Err(reader.bad("the file is empty"));
        }
        let header: Header = serde_json::from_slice(&reader.line)
            .map_err(|error| reader.bad(format!("not the header of a counts file: {error}")))?;
        if header.format != FORMAT || header.version != VERSION {
            let (format, version) = (header.format, header.version);
            return Err(reader.bad(format!("{format:?} version {version}, expected {FORMAT:?} version {VERSION}")));
        }
        reader.pretokenizer = PreTokenizer::new(&header.pretokenizer).map_err(|error| reader.bad(error))?;
        reader.unicode = header.unicode;
        Ok(reader)
    }

    fn read_all(mut self, progress: &Progress) -> Result<WordCounts> {
        let mut counts = WordCounts::empty(self.pretokenizer.clone(), self.unicode.clone());
        while let Some((word, n)) = self.next()? {
            progress.check()?;
            counts.push(&word, n).map_err(|error| self.bad(error))?;
        }
        Ok(counts)
    }

    /// Reads a line, without its end; false at the end of the file.
    fn read_line(&mut self) -> Result<bool> {
        self.line.clear();
        self.line_number += 1;
        self.input.read_until(b'\n', &mut self.line).map_err(Error::io(&self.path))?;
        let some = !self.line.is_empty();
        if self.line.last() == Some(&b'\n') {
            self.line.pop();
        }
        Ok(some)
    }

    fn bad(&self, message: impl std::fmt::Display) -> Error {
        Error::value(format!("{}: line {}: {message}", self.path.display(), self.line_number))
    }

    fn next(&mut self) -> Result<Option<(String, u64)>> {
        if !self.read_line()? {
            return Err(self.bad("the file ends without its last line, so words are missing"));
        }
        if self.line.first() == Some(&b'{') {
            return self.check_end().map(|()| None);
        }
        let (n, word) = self.parse().map_err(|message| self.bad(message))?;
        if word <= self.last {
            return Err(self.bad(format!("word {word:?} is not after {:?}", self.last)));
        }
        self.seen.words += 1;
        self.seen.total =
            self.seen.total.checked_add(n).filter(|&t| t <= MAX_COUNT).ok_or_else(|| self.bad(too_many()))?;
        self.last.clone_from(&word);
        Ok(Some((word, n)))
    }

    fn parse(&self) -> std::result::Result<(u64, String), String> {
        let line = std::str::from_utf8(&self.line).map_err(|error| format!("not UTF-8: {error}"))?;
        let (n, word) = line.split_once('\t').ok_or_else(|| format!("no tab in {line:?}"))?;
        let count: u64 = n.parse().map_err(|_| format!("{n:?} is not a count between 1 and {MAX_COUNT}"))?;
        if count == 0 || count > MAX_COUNT || count.to_string() != n {
            return Err(format!("{n:?} is not a count between 1 and {MAX_COUNT}"));
        }
        Ok((count, unescape(word)?))
    }

    fn check_end(&mut self) -> Result<()> {
        let footer: Footer = serde_json::from_slice(&self.line)
            .map_err(|error| self.bad(format!("not the last line of a counts file: {error}")))?;
        if footer != self.seen {
            let (seen, said) = (&self.seen, &footer);
            return Err(self.bad(format!(
                "{} words with total {} are here, {} with total {} were written",
                seen.words, seen.total, said.words, said.total
            )));
        }
        if self.read_line()? {
            return Err(self.bad("goes on after its last line"));
        }
        Ok(())
    }
}

fn unescape(word: &str) -> std::result::Result<String, String> {
    if word.is_empty() {
        return Err("a word is empty".to_owned());
    }
    let mut result = String::with_capacity(word.len());
    let mut chars = word.chars();
    while let Some(c) = chars.next() {
        result.push(match c {
            // Written only as escapes: a line end of another system must not become part of a word.
            '\t' | '\r' => return Err(format!("{c:?} stands unescaped in a word")),
            '\\' => match chars.next() {
                Some('\\') => '\\',
                Some('t') => '\t',
                Some('n') => '\n',
                Some('r') => '\r',
                other => return Err(format!("unknown escape \\{}", other.map_or(String::new(), String::from))),
            },
            c => c,
        });
    }
    Ok(result)
}
