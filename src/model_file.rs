//! The model file: versioned JSON, one event a line (specified in `docs/formats.md`).
//!
//! Reading trusts nothing: every event is replayed on the vocabulary and must be one that training could have
//! recorded there. Events spell their operands, so no file makes more memory than a small multiple of its size.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde::de::{self, Deserializer, SeqAccess, Visitor};

use crate::alphabet::{Alphabet, UNKNOWN, Unit};
use crate::error::{Error, Result, quote};
use crate::model::{Event, MAX_COUNT, Model, Stop, TrainConfig};
use crate::pretokenize::PreTokenizer;
use crate::vocabulary::{Symbol, Vocabulary};

const FORMAT: &str = "pickytok-model";
const VERSION: u64 = 1;

impl Model {
    /// Writes the model file. Equal models give equal bytes.
    pub fn write(&self, out: &mut (impl Write + ?Sized)) -> std::io::Result<()> {
        let config = self.config();
        let vocabulary = self.vocabulary();
        let alphabet: Option<Vec<char>> = match vocabulary.alphabet() {
            Alphabet::Bytes => None,
            Alphabet::Chars { chars, .. } => Some(chars.clone()),
        };
        writeln!(out, "{{")?;
        writeln!(out, "\"format\": {},", json(FORMAT))?;
        writeln!(out, "\"version\": {VERSION},")?;
        writeln!(out, "\"unicode\": {},", json(self.unicode()))?;
        writeln!(out, "\"unit\": {},", json(config.unit.name()))?;
        writeln!(out, "\"pretokenizer\": {},", json(self.pretokenizer().name()))?;
        writeln!(out, "\"threshold\": {},", json(config.threshold))?;
        writeln!(out, "\"vocab_size\": {},", config.vocab_size)?;
        writeln!(out, "\"min_frequency\": {},", config.min_frequency)?;
        writeln!(out, "\"max_token_length\": {},", json(config.max_token_length))?;
        writeln!(out, "\"coverage\": {},", json(config.coverage))?;
        writeln!(out, "\"stop\": {},", json(self.stop().name()))?;
        writeln!(out, "\"special_tokens\": {},", json(&config.special_tokens))?;
        writeln!(out, "\"alphabet\": {},", json(alphabet))?;
        write!(out, "\"events\": [")?;
        let token = |&symbol: &Symbol| json(vocabulary.printable(symbol));
        for (index, event) in self.events().iter().enumerate() {
            write!(out, "{}", if index == 0 { "\n" } else { ",\n" })?;
            match event {
                Event::Merge { left, right, count, .. } => {
                    write!(out, "[\"+\",{},{},{count}]", token(left), token(right))?;
                }
                Event::Remove { token: removed, parts, absorbed, frequency } => {
                    write!(out, "[\"-\",{},[", token(removed))?;
                    // One by one: a token of ten megabytes may fall into as many parts.
                    for (index, part) in parts.iter().enumerate() {
                        write!(out, "{}{}", if index == 0 { "" } else { "," }, token(part))?;
                    }
                    write!(out, "],{absorbed},{frequency}]")?;
                }
            }
        }
        writeln!(out, "\n]\n}}")
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.write(&mut bytes).expect("writing to memory does not fail");
        bytes
    }

    /// Parses, replays and validates a model file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let file: ModelFile<'_> = serde_json::from_slice(bytes).map_err(|error| describe(bytes, &error))?;
        file.replay().map_err(|error| match error {
            Error::Value(message) => Error::Model(message),
            other => other,
        })
    }
}

/// JSON of a value that cannot fail to have one; floats as their shortest round-trip decimal.
fn json(value: impl serde::Serialize) -> String {
    serde_json::to_string(&value).expect("strings, numbers and lists of them are JSON")
}

/// What is wrong with a file that does not parse. Another format or version is worth more than a stray field.
fn describe(bytes: &[u8], error: &serde_json::Error) -> Error {
    #[derive(Deserialize)]
    struct Kind {
        format: String,
        version: u64,
    }
    if let Ok(kind) = serde_json::from_slice::<Kind>(bytes)
        && let Err(error) = check_kind(&kind.format, kind.version)
    {
        return error;
    }
    Error::model(format!("not a model file: {error}"))
}

fn check_kind(format: &str, version: u64) -> Result<()> {
    if format != FORMAT {
        return Err(Error::model(format!("field \"format\" is {format:?}, expected {FORMAT:?}")));
    }
    if version != VERSION {
        return Err(Error::model(format!("field \"version\" is {version}; this release reads version {VERSION}")));
    }
    Ok(())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile<'a> {
    format: String,
    version: u64,
    unicode: String,
    unit: String,
    pretokenizer: String,
    threshold: f64,
    vocab_size: u64,
    min_frequency: u64,
    #[serde(deserialize_with = "present")]
    max_token_length: Option<u64>,
    #[serde(deserialize_with = "present")]
    coverage: Option<f64>,
    stop: String,
    special_tokens: Vec<String>,
    #[serde(deserialize_with = "present")]
    alphabet: Option<Vec<char>>,
    #[serde(borrow)]
    events: Vec<FileEvent<'a>>,
}

/// A value that may be null, but not missing.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> std::result::Result<Option<T>, D::Error> {
    Option::deserialize(deserializer)
}

/// A string that is borrowed from the file where it holds no escape.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

enum FileEvent<'a> {
    Merge(Text<'a>, Text<'a>, u64),
    Remove(Text<'a>, Vec<Text<'a>>, u64, u64),
}

impl<'de: 'a, 'a> Deserialize<'de> for FileEvent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_seq(EventVisitor)
    }
}

struct EventVisitor;

impl<'de> Visitor<'de> for EventVisitor {
    type Value = FileEvent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an event: [\"+\", left, right, count] or [\"-\", token, parts, absorbed, frequency]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
        let kind: Text<'_> = next(&mut seq, 0)?;
        let event = match &*kind.0 {
            "+" => FileEvent::Merge(next(&mut seq, 1)?, next(&mut seq, 2)?, next(&mut seq, 3)?),
            "-" => FileEvent::Remove(next(&mut seq, 1)?, next(&mut seq, 2)?, next(&mut seq, 3)?, next(&mut seq, 4)?),
            other => return Err(de::Error::invalid_value(de::Unexpected::Str(other), &self)),
        };
        match seq.next_element::<de::IgnoredAny>()? {
            None => Ok(event),
            Some(_) => Err(de::Error::custom(format_args!("an event of kind {:?} holds too much", kind.0))),
        }
    }
}

fn next<'de, T: Deserialize<'de>, A: SeqAccess<'de>>(seq: &mut A, index: usize) -> std::result::Result<T, A::Error> {
    seq.next_element()?.ok_or_else(|| de::Error::invalid_length(index, &EventVisitor))
}

/// The merge that a removal must follow, and how far its step has come.
struct Step {
    left: Symbol,
    right: Symbol,
    count: u64,
    /// Removals of this step so far: the left one comes first.
    removed: Option<Symbol>,
}

impl ModelFile<'_> {
    fn replay(self) -> Result<Model> {
        check_kind(&self.format, self.version)?;
        let pretokenizer = PreTokenizer::new(&self.pretokenizer)?;
        let stop = Stop::ALL
            .into_iter()
            .find(|stop| stop.name() == self.stop)
            .ok_or_else(|| Error::model(format!("field \"stop\" is {:?}, which is no reason to stop", self.stop)))?;
        let unit = Unit::parse(&self.unit)?;
        let alphabet = read_alphabet(unit, self.alphabet)?;
        if unit == Unit::Char && self.coverage.is_none() {
            return Err(Error::model("field \"coverage\" is missing: the char unit has one"));
        }
        if unit == Unit::Char && !self.special_tokens.iter().any(|token| token == UNKNOWN) {
            return Err(Error::model(format!("field \"special_tokens\" lacks {UNKNOWN:?}, which the char unit needs")));
        }
        let config = TrainConfig {
            vocab_size: self.vocab_size,
            threshold: self.threshold,
            unit,
            coverage: self.coverage,
            special_tokens: self.special_tokens,
            min_frequency: self.min_frequency,
            max_token_length: self.max_token_length,
        }
        .check(&pretokenizer)?;
        config.check_alphabet(&alphabet)?;
        let mut replay = Replay {
            vocabulary: Vocabulary::new(alphabet, config.special_tokens.clone(), config.max_token_length),
            config,
            step: None,
            merged: FxHashMap::default(),
            placed: Vec::new(),
            time: 0,
            scratch: Vec::new(),
        };
        let mut events = Vec::with_capacity(self.events.len());
        for (index, event) in self.events.iter().enumerate() {
            replay.time = index;
            let event = match event {
                FileEvent::Merge(left, right, count) => replay.merge(&left.0, &right.0, *count),
                FileEvent::Remove(token, parts, absorbed, frequency) => {
                    replay.remove(&token.0, parts, *absorbed, *frequency)
                }
            };
            events.push(event.map_err(|message| Error::model(format!("event {index}: {message}")))?);
        }
        let Replay { config, vocabulary, .. } = replay;
        let (size, target) = (vocabulary.size() as u64, config.vocab_size);
        if (stop == Stop::VocabSize) != (size == target) {
            return Err(Error::model(format!(
                "the events end with {size} tokens of {target}, which contradicts the reason to stop {:?}",
                stop.name()
            )));
        }
        Ok(Model::new(config, pretokenizer, self.unicode, vocabulary, events, stop))
    }
}

fn read_alphabet(unit: Unit, chars: Option<Vec<char>>) -> Result<Alphabet> {
    match (unit, chars) {
        (Unit::Byte, None) => Ok(Alphabet::Bytes),
        (Unit::Byte, Some(_)) => Err(Error::model("field \"alphabet\" must be null: bytes need none")),
        (Unit::Char, None) => Err(Error::model("field \"alphabet\" is missing: the char unit needs one")),
        (Unit::Char, Some(chars)) => match chars.windows(2).find(|pair| pair[0] >= pair[1]) {
            Some(pair) => Err(Error::model(format!(
                "field \"alphabet\" is not in the order of code points: {:?} before {:?}",
                pair[0], pair[1]
            ))),
            None => Ok(Alphabet::chars(chars)),
        },
    }
}

/// Replays events on the vocabulary and refuses those that training cannot have recorded.
struct Replay {
    config: TrainConfig,
    vocabulary: Vocabulary,
    step: Option<Step>,
    /// When each pair was last merged, and when each symbol was last put anywhere.
    merged: FxHashMap<(Symbol, Symbol), usize>,
    placed: Vec<usize>,
    time: usize,
    scratch: Vec<u8>,
}

type Checked<T> = std::result::Result<T, String>;

impl Replay {
    fn merge(&mut self, left: &str, right: &str, count: u64) -> Checked<Event> {
        if self.vocabulary.size() as u64 >= self.config.vocab_size {
            return Err(format!("goes on although the vocabulary has its {} tokens", self.config.vocab_size));
        }
        let (left, right) = (self.live(left)?, self.live(right)?);
        if !self.vocabulary.may_merge(left, right) {
            let made = self.vocabulary.printable(left) + &self.vocabulary.printable(right);
            return Err(format!("makes {}, too long or a special token", quote(&made)));
        }
        if count == 0 || count > MAX_COUNT {
            return Err(format!("count {count} is not between 1 and {MAX_COUNT}"));
        }
        // Overlapping pairs of one token are counted twice before they are merged, others are not.
        let most = if left == right { 2 * count } else { count };
        if most < self.config.min_frequency {
            return Err(format!("count {count} is too small for min_frequency {}", self.config.min_frequency));
        }
        // A merge leaves no such pair, so another one needs an event in between that puts one of the two somewhere.
        if let Some(last) = self.merged.insert((left, right), self.time)
            && self.last_placed(left) <= last
            && self.last_placed(right) <= last
        {
            return Err(format!("merges again what event {last} has merged, and nothing has brought it back"));
        }
        let (token, made) = self.vocabulary.merge(left, right);
        self.place(token);
        self.step = Some(Step { left, right, count, removed: None });
        Ok(Event::Merge { left, right, token, count, made })
    }

    fn remove(&mut self, token: &str, parts: &[Text<'_>], absorbed: u64, frequency: u64) -> Checked<Event> {
        let symbol = self.live(token)?;
        if self.vocabulary.is_alphabet(symbol) {
            return Err(format!("removes {}, a token of the alphabet", quote(token)));
        }
        let Some(step) = &mut self.step else {
            return Err(format!("removes {} before any merge", quote(token)));
        };
        let due = match step.removed {
            None => symbol == step.left || symbol == step.right,
            Some(removed) => removed == step.left && symbol == step.right && symbol != removed,
        };
        if !due {
            return Err(format!("removes {}, which the merge before it does not allow", quote(token)));
        }
        let consumed = if step.left == step.right { 2 * step.count } else { step.count };
        if absorbed != consumed || frequency < absorbed || frequency > MAX_COUNT {
            return Err(format!("absorbed {absorbed} of {frequency}, but the merge consumed {consumed}"));
        }
        if !self.config.removes(absorbed, frequency) {
            let threshold = self.config.threshold;
            return Err(format!("{absorbed} of {frequency} does not reach the threshold {threshold}"));
        }
        step.removed = Some(symbol);
        let expected = self.vocabulary.remove(symbol);
        let matches = expected.len() == parts.len()
            && expected.iter().zip(parts).all(|(&part, text)| self.find(&text.0) == Some(part));
        if !matches {
            let parts: Vec<String> = expected.iter().map(|&part| quote(&self.vocabulary.printable(part))).collect();
            let parts = parts.join(", ");
            return Err(format!("splits {} wrongly: its parts are {parts}", quote(token)));
        }
        expected.iter().for_each(|&part| self.place(part));
        Ok(Event::Remove { token: symbol, parts: expected.into(), absorbed, frequency })
    }

    fn place(&mut self, symbol: Symbol) {
        if self.placed.len() <= symbol.index() {
            self.placed.resize(symbol.index() + 1, 0);
        }
        self.placed[symbol.index()] = self.time;
    }

    fn last_placed(&self, symbol: Symbol) -> usize {
        self.placed.get(symbol.index()).copied().unwrap_or(0)
    }

    fn live(&mut self, token: &str) -> Checked<Symbol> {
        match self.find(token) {
            Some(symbol) if self.vocabulary.is_live(symbol) => Ok(symbol),
            Some(_) => Err(format!("names {}, which is removed at that time", quote(token))),
            None => Err(format!("names {}, which does not exist at that time", quote(token))),
        }
    }

    fn find(&mut self, token: &str) -> Option<Symbol> {
        let known = self.vocabulary.alphabet().unprintable(token, &mut self.scratch);
        known.then(|| self.vocabulary.find(&self.scratch)).flatten()
    }
}
