//! Pre-tokenizers: a document in, words out. Nothing ever merges across a word boundary.
//!
//! The presets are hand-written scanners (`scan`), a custom pattern is a regular expression (`custom`), and both
//! take their character classes from one Unicode table (`unicode`). `cut` finds places where a document can be
//! taken apart, so that a large one is counted in blocks. All but `whitespace` are partitions: the words, joined,
//! are the document. Presets take time linear in the text and allocate nothing.

mod chunk;
mod custom;
mod cut;
mod scan;
#[cfg(test)]
mod tests;
mod unicode;

use crate::error::{Error, Result};
use crate::short_word::ShortWord;
use custom::{Matcher, Pattern};
use scan::Scanner;
use unicode::Table;
pub use unicode::unicode_version;

/// The presets by name; `regex:PATTERN` is the sixth choice.
pub const NAMES: [&str; 5] = ["gpt4", "gpt4o", "gpt2", "whitespace", "none"];

/// A way to cut documents into words, known by its name.
#[derive(Clone, Debug)]
pub struct PreTokenizer {
    name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Preset(Preset),
    Custom(Pattern),
}

#[derive(Clone, Copy, Debug)]
enum Preset {
    Gpt2,
    Gpt4,
    Gpt4o,
    Whitespace,
    None,
}

impl PreTokenizer {
    /// The pre-tokenizer of that name: one of [`NAMES`], or `regex:` and a pattern.
    pub fn new(name: &str) -> Result<Self> {
        // Build the table now: a process that forks later must not find it half-built.
        Table::get();
        let kind = match name {
            "gpt2" => Kind::Preset(Preset::Gpt2),
            "gpt4" => Kind::Preset(Preset::Gpt4),
            "gpt4o" => Kind::Preset(Preset::Gpt4o),
            "whitespace" => Kind::Preset(Preset::Whitespace),
            "none" => Kind::Preset(Preset::None),
            _ => match name.strip_prefix("regex:") {
                Some(pattern) => Kind::Custom(Pattern::new(pattern)?),
                None => {
                    let names = NAMES.join(", ");
                    return Err(Error::value(format!(
                        "unknown pre-tokenizer {name:?}; choose from {names} and regex:PATTERN"
                    )));
                }
            },
        };
        Ok(Self { name: name.to_owned(), kind })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the caller puts before each word.
    pub fn prefix(&self) -> &'static str {
        if self.is_partition() { "" } else { "\u{2581}" }
    }

    /// Whether the words, joined, always give the document back.
    pub fn is_partition(&self) -> bool {
        !matches!(self.kind, Kind::Preset(Preset::Whitespace))
    }

    /// What one thread needs to split text. Cheap for presets; a custom pattern gets memory of its own, and one
    /// with look-around is compiled again, so keep the splitter.
    pub fn splitter(&self) -> Splitter {
        Splitter(match &self.kind {
            Kind::Preset(preset) => Engine::Preset(*preset, Table::get()),
            Kind::Custom(pattern) => Engine::Custom(pattern.matcher()),
        })
    }

    /// The last place in `block` where its document can be cut, or none if none can be shown to be safe.
    ///
    /// `block` is the beginning of what remains of a document, perhaps not valid UTF-8, perhaps ending within a
    /// character; more follows. For `0 < cut < block.len()` and whatever follows, the words of the document are
    /// those of the part before the cut and then those of the part behind it.
    pub fn cut(&self, block: &[u8]) -> Option<usize> {
        match self.kind {
            Kind::Preset(Preset::Gpt2 | Preset::Gpt4 | Preset::Gpt4o) => cut::last_cut(block, Table::get()),
            Kind::Preset(Preset::Whitespace) => cut::last_white(block),
            Kind::Preset(Preset::None) | Kind::Custom(_) => None,
        }
    }
}

impl PartialEq for PreTokenizer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for PreTokenizer {}

/// Splits documents into words, for one thread.
#[derive(Debug)]
pub struct Splitter(Engine);

#[derive(Debug)]
enum Engine {
    Preset(Preset, &'static Table),
    Custom(Matcher),
}

impl Splitter {
    /// Calls `word` with each word of `text` in order: slices of it, never empty.
    ///
    /// An error only for a custom pattern with look-around or back references that gives up on this text.
    pub fn split<'t>(&mut self, text: &'t str, mut word: impl FnMut(&'t str)) -> Result<()> {
        self.split_keyed(text, |bytes, _| word(str::from_utf8(bytes).expect("words are whole characters")))
    }

    /// The same with words as bytes, each with its key, `NONE` if it is long: what a table of words wants.
    pub(crate) fn split_keyed<'t>(&mut self, text: &'t str, mut word: impl FnMut(&'t [u8], ShortWord)) -> Result<()> {
        match &mut self.0 {
            Engine::Custom(matcher) => {
                return matcher.split(text, |found| word(found.as_bytes(), ShortWord::new(found.as_bytes())));
            }
            Engine::Preset(preset, table) => {
                let scanner = Scanner::new(text, table);
                match preset {
                    Preset::Gpt2 => scanner.gpt2(word),
                    Preset::Gpt4 => scanner.gpt4(word),
                    Preset::Gpt4o => scanner.gpt4o(word),
                    Preset::Whitespace => scanner.whitespace(word),
                    Preset::None if text.is_empty() => (),
                    Preset::None => word(text.as_bytes(), ShortWord::new(text.as_bytes())),
                }
            }
        }
        Ok(())
    }
}
