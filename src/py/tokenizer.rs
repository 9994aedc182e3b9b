//! `pickytok.Tokenizer`.

use std::hash::BuildHasher;
use std::path::PathBuf;

use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use super::LongCall;
use super::arguments::{Keywords, Text, callback, ids, texts, threads, wrong_type};
use super::counts::{CORPUS_KEYWORDS, PyWordCounts, count_dict, count_files, count_iterator};
use crate::alphabet::{Alphabet, Unit};
use crate::batch::{Batch, Input};
use crate::error::Error;
use crate::file::write_atomically;
use crate::inference::Mode;
use crate::model::{Event, Model};
use crate::progress::Progress;
use crate::tokenizer::{EncodeOptions, Offset, Tokenizer};
use crate::trainer::{Trainer, train};
use crate::vocabulary::{Made, Symbol};

const TRAIN_KEYWORDS: &[&str] =
    &["vocab_size", "threshold", "unit", "preset", "coverage", "special_tokens", "min_frequency", "max_token_length"];
const COUNTED_KEYWORDS: &[&str] = &["pretokenizer", "progress"];

/// Less input than this is encoded on the calling thread: it takes no longer than a tick.
const SHORT_BYTES: usize = 1 << 18;

/// A trained Picky BPE tokenizer: an alphabet, and the events that training performed on it.
#[pyclass(frozen, module = "pickytok", name = "Tokenizer")]
pub(super) struct PyTokenizer(Tokenizer);

impl PyTokenizer {
    fn model(&self) -> &Model {
        self.0.model()
    }

    fn options(&self, allowed_special: Option<&Bound<'_, PyAny>>, mode: &str) -> PyResult<EncodeOptions> {
        let mode = Mode::parse(mode)?;
        let Some(allowed) = allowed_special else { return Ok(EncodeOptions { mode, ..EncodeOptions::default() }) };
        let allowed_special = match allowed.cast::<PyString>() {
            Ok(all) if all.to_cow()? == "all" => self.0.allow_special(None)?,
            Ok(other) => {
                let message =
                    format!("allowed_special must be a set of special tokens or \"all\", got {}", other.repr()?);
                return Err(PyValueError::new_err(message));
            }
            Err(_) => {
                let mut tokens = allowed
                    .try_iter()?
                    .map(|token| token?.extract::<String>())
                    .collect::<PyResult<Vec<_>>>()
                    .map_err(|_| wrong_type("allowed_special", "a set of strings or \"all\"", allowed))?;
                tokens.sort_unstable();
                tokens.dedup();
                self.0.allow_special(Some(&tokens))?
            }
        };
        Ok(EncodeOptions { mode, allowed_special })
    }

    /// Runs at once what is short, and as a long call what is not.
    fn run<T: Send>(
        py: Python<'_>,
        bytes: usize,
        progress: Option<Py<PyAny>>,
        work: impl FnOnce(&Progress) -> crate::error::Result<T> + Send,
    ) -> PyResult<T> {
        if bytes < SHORT_BYTES && progress.is_none() {
            Ok(py.detach(|| work(&Progress::default()))?)
        } else {
            LongCall::new(progress).run(py, work)
        }
    }

    fn encode_ids(&self, py: Python<'_>, text: &str, options: &EncodeOptions) -> PyResult<Vec<u32>> {
        Self::run(py, text.len(), None, |progress| {
            let mut ids = Vec::with_capacity(text.len() / 3 + 1);
            self.0.encode(text, options, progress, &mut ids)?;
            Ok(ids)
        })
    }

    fn encode_all(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        options: &EncodeOptions,
        num_threads: Option<&Bound<'_, PyAny>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Batch> {
        let (threads, progress) = (threads(num_threads)?, callback(progress)?);
        let texts = self::texts(texts)?;
        let texts: Vec<Input<'_>> = texts.iter().map(Text::input).collect();
        let bytes = texts.iter().map(Input::len).sum();
        Self::run(py, bytes, progress, |progress| self.0.encode_batch(&texts, options, threads, progress))
    }

    fn ids(&self, argument: &Bound<'_, PyAny>) -> PyResult<Vec<u32>> {
        ids(argument, |id| self.model().unknown(id).into())
    }

    fn printable(&self, symbol: Symbol) -> String {
        self.model().vocabulary().printable(symbol)
    }

    fn event<'py>(&self, classes: &EventClasses<'py>, event: &Event) -> PyResult<Bound<'py, PyAny>> {
        match event {
            Event::Merge { left, right, token, count, made } => classes.merge.call1((
                self.printable(*left),
                self.printable(*right),
                self.printable(*token),
                *count,
                *made == Made::Restored,
            )),
            Event::Remove { token, parts, absorbed, frequency } => {
                let parts = PyTuple::new(classes.remove.py(), parts.iter().map(|&part| self.printable(part)))?;
                classes.remove.call1((self.printable(*token), parts, *absorbed, *frequency))
            }
        }
    }
}

/// The data classes of `pickytok.events`.
struct EventClasses<'py> {
    merge: Bound<'py, PyAny>,
    remove: Bound<'py, PyAny>,
    step: Bound<'py, PyAny>,
    trace: Bound<'py, PyAny>,
}

impl<'py> EventClasses<'py> {
    fn import(py: Python<'py>) -> PyResult<Self> {
        let module = py.import("pickytok.events")?;
        let class = |name| module.getattr(name);
        Ok(Self { merge: class("Merge")?, remove: class("Remove")?, step: class("Step")?, trace: class("Trace")? })
    }
}

/// Text of bytes that may end inside a character.
fn to_text<'py>(py: Python<'py>, bytes: &[u8], errors: &str) -> PyResult<Bound<'py, PyString>> {
    match str::from_utf8(bytes) {
        Ok(text) => Ok(PyString::new(py, text)),
        Err(_) => Ok(PyBytes::new(py, bytes).call_method1("decode", ("utf-8", errors))?.cast_into()?),
    }
}

fn check_errors(errors: &str) -> PyResult<()> {
    match errors {
        "strict" | "replace" | "ignore" => Ok(()),
        _ => Err(Error::value(format!("unknown errors {errors:?}; choose strict, replace or ignore")).into()),
    }
}

#[pymethods]
impl PyTokenizer {
    /// Trains on files: exactly `train_from_counts(WordCounts.from_files(...))`.
    #[staticmethod]
    #[pyo3(
        signature = (files, **options),
        text_signature = "(files, *, vocab_size, threshold, unit='byte', pretokenizer='gpt4', preset=None, coverage=None, special_tokens=(), min_frequency=1, max_token_length=None, lines=False, errors='strict', num_threads=None, progress=None)"
    )]
    fn train(py: Python<'_>, files: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::train_on(py, "train", options, |call, options| count_files(py, call, files, options))
    }

    /// Trains on documents: each item is one (with `lines=True`, each of its lines).
    #[staticmethod]
    #[pyo3(
        signature = (texts, **options),
        text_signature = "(texts, *, vocab_size, threshold, unit='byte', pretokenizer='gpt4', preset=None, coverage=None, special_tokens=(), min_frequency=1, max_token_length=None, lines=False, errors='strict', num_threads=None, progress=None)"
    )]
    fn train_from_iterator(
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        Self::train_on(py, "train_from_iterator", options, |call, options| count_iterator(py, call, texts, options))
    }

    /// Trains on words that are counted already.
    #[staticmethod]
    #[pyo3(
        signature = (counts, **options),
        text_signature = "(counts, *, vocab_size, threshold, unit='byte', pretokenizer=None, preset=None, coverage=None, special_tokens=(), min_frequency=1, max_token_length=None, progress=None)"
    )]
    fn train_from_counts(
        py: Python<'_>,
        counts: &Bound<'_, PyAny>,
        options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let keywords = Keywords::new("train_from_counts", options, &[TRAIN_KEYWORDS, COUNTED_KEYWORDS])?;
        let (config, options) = (keywords.train_config()?, keywords.corpus_options()?);
        let call = LongCall::new(options.progress);
        if let Ok(counts) = counts.cast::<PyWordCounts>() {
            let counts = &counts.get().0;
            if let Some(pretokenizer) = options.pretokenizer.filter(|given| given != counts.pretokenizer()) {
                let (given, counted) = (pretokenizer.name(), counts.pretokenizer().name());
                let message = format!("pretokenizer is {given:?}, but the counts were made with {counted:?}");
                return Err(PyValueError::new_err(message));
            }
            let model = call.run(py, |progress| train(counts, config, progress))?;
            return Ok(Self(Tokenizer::new(model)));
        }
        let pretokenizer = options.pretokenizer.ok_or_else(|| {
            PyTypeError::new_err("a mapping of words needs pretokenizer=: the one that made them, to encode with")
        })?;
        let counts = count_dict(counts, &pretokenizer)?;
        let model = call.run(py, |progress| train(&counts, config, progress))?;
        Ok(Self(Tokenizer::new(model)))
    }

    /// Reads a model file, replays and checks every event of it.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let load = || {
            let bytes = std::fs::read(&path).map_err(Error::io(&path))?;
            let model = Model::from_bytes(&bytes).map_err(|error| match error {
                Error::Model(message) => Error::model(format!("{}: {message}", path.display())),
                other => other,
            })?;
            Ok(Self(Tokenizer::new(model)))
        };
        py.detach(load).map_err(|error: Error| error.into())
    }

    /// Writes the model file; atomic, and equal training gives equal bytes.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let save = || write_atomically(&path, |out| self.model().write(out).map_err(Error::io(&path)));
        Ok(py.detach(save)?)
    }

    /// The ids of a text.
    #[pyo3(signature = (text, *, allowed_special=None, mode="events"), text_signature = "($self, text, *, allowed_special=(), mode='events')")]
    fn encode(
        &self,
        py: Python<'_>,
        text: &str,
        allowed_special: Option<&Bound<'_, PyAny>>,
        mode: &str,
    ) -> PyResult<Vec<u32>> {
        self.encode_ids(py, text, &self.options(allowed_special, mode)?)
    }

    /// The ids of bytes that need not be UTF-8; for valid UTF-8, those of `encode`.
    #[pyo3(signature = (data, *, mode="events"))]
    fn encode_bytes(&self, py: Python<'_>, data: &[u8], mode: &str) -> PyResult<Vec<u32>> {
        let mode = Mode::parse(mode)?;
        Self::run(py, data.len(), None, |progress| {
            let mut ids = Vec::new();
            self.0.encode_bytes(data, mode, progress, &mut ids)?;
            Ok(ids)
        })
    }

    /// `len(encode(text))`, without making a list.
    #[pyo3(signature = (text, *, allowed_special=None, mode="events"), text_signature = "($self, text, *, allowed_special=(), mode='events')")]
    fn count_tokens(
        &self,
        py: Python<'_>,
        text: &str,
        allowed_special: Option<&Bound<'_, PyAny>>,
        mode: &str,
    ) -> PyResult<usize> {
        Ok(self.encode_ids(py, text, &self.options(allowed_special, mode)?)?.len())
    }

    /// The ids of many texts, on all cores.
    #[pyo3(
        signature = (texts, *, allowed_special=None, mode="events", num_threads=None, progress=None),
        text_signature = "($self, texts, *, allowed_special=(), mode='events', num_threads=None, progress=None)"
    )]
    fn encode_batch<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        mode: &str,
        num_threads: Option<&Bound<'py, PyAny>>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = self.options(allowed_special, mode)?;
        let batch = self.encode_all(py, texts, &options, num_threads, progress)?;
        let lists: PyResult<Vec<_>> = batch
            .offsets
            .windows(2)
            .map(|range| PyList::new(py, &batch.ids[range[0] as usize..range[1] as usize]))
            .collect();
        PyList::new(py, lists?)
    }

    /// The ids of many texts in one array; text `i` is `ids[offsets[i]:offsets[i + 1]]`.
    #[pyo3(
        signature = (texts, *, allowed_special=None, mode="events", num_threads=None, progress=None),
        text_signature = "($self, texts, *, allowed_special=(), mode='events', num_threads=None, progress=None)"
    )]
    #[expect(clippy::type_complexity, reason = "it is the Python signature")]
    fn encode_to_numpy<'py>(
        &self,
        py: Python<'py>,
        texts: &Bound<'py, PyAny>,
        allowed_special: Option<&Bound<'py, PyAny>>,
        mode: &str,
        num_threads: Option<&Bound<'py, PyAny>>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>)> {
        let options = self.options(allowed_special, mode)?;
        let batch = self.encode_all(py, texts, &options, num_threads, progress)?;
        Ok((batch.ids.into_pyarray(py), batch.offsets.into_pyarray(py)))
    }

    /// The ids, and for each the characters `text[start:end]` that it comes from.
    #[pyo3(signature = (text, *, allowed_special=None, mode="events"), text_signature = "($self, text, *, allowed_special=(), mode='events')")]
    fn encode_with_offsets(
        &self,
        py: Python<'_>,
        text: &str,
        allowed_special: Option<&Bound<'_, PyAny>>,
        mode: &str,
    ) -> PyResult<(Vec<u32>, Vec<Offset>)> {
        let options = self.options(allowed_special, mode)?;
        Self::run(py, text.len(), None, |progress| self.0.encode_with_offsets(text, &options, progress))
    }

    /// The text of ids. A token may end inside a character: `errors` says what to do then.
    #[pyo3(signature = (ids, *, skip_special_tokens=false, errors="replace"))]
    fn decode<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
        errors: &str,
    ) -> PyResult<Bound<'py, PyString>> {
        check_errors(errors)?;
        let ids = self.ids(ids)?;
        let bytes = py.detach(|| self.0.decode(&ids, skip_special_tokens))?;
        to_text(py, &bytes, errors)
    }

    /// The bytes of ids, exactly.
    #[pyo3(signature = (ids, *, skip_special_tokens=false))]
    fn decode_bytes<'py>(
        &self,
        py: Python<'py>,
        ids: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let ids = self.ids(ids)?;
        let bytes = py.detach(|| self.0.decode(&ids, skip_special_tokens))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The texts of many sequences of ids.
    #[pyo3(signature = (batch, *, skip_special_tokens=false, errors="replace", num_threads=None))]
    fn decode_batch<'py>(
        &self,
        py: Python<'py>,
        batch: &Bound<'py, PyAny>,
        skip_special_tokens: bool,
        errors: &str,
        num_threads: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyString>>> {
        check_errors(errors)?;
        let threads = threads(num_threads)?;
        let batch: Vec<Vec<u32>> = batch.try_iter()?.map(|ids| self.ids(&ids?)).collect::<PyResult<_>>()?;
        let bytes = batch.iter().map(|ids| 4 * ids.len()).sum();
        let decode = |progress: &Progress| self.0.decode_batch(&batch, skip_special_tokens, threads, progress);
        let decoded = Self::run(py, bytes, None, decode)?;
        decoded.iter().map(|bytes| to_text(py, bytes, errors)).collect()
    }

    /// The tokens of a text as printable strings.
    #[pyo3(signature = (text, *, allowed_special=None, mode="events"), text_signature = "($self, text, *, allowed_special=(), mode='events')")]
    fn tokenize(
        &self,
        py: Python<'_>,
        text: &str,
        allowed_special: Option<&Bound<'_, PyAny>>,
        mode: &str,
    ) -> PyResult<Vec<String>> {
        let ids = self.encode_ids(py, text, &self.options(allowed_special, mode)?)?;
        Ok(ids.into_iter().map(|id| self.model().token(id)).collect::<crate::error::Result<_>>()?)
    }

    /// One word's life: what every event that touched it made of it.
    fn trace<'py>(&self, py: Python<'py>, word: &str) -> PyResult<Bound<'py, PyAny>> {
        let (word, symbols, steps) = self.0.trace(word)?;
        let classes = EventClasses::import(py)?;
        let mut traced = Vec::with_capacity(steps.len());
        for (index, tokens) in steps {
            let event = self.event(&classes, &self.model().events()[index])?;
            traced.push(classes.step.call1((index, event, PyTuple::new(py, tokens)?))?);
        }
        classes.trace.call1((word, PyTuple::new(py, symbols)?, PyTuple::new(py, traced)?))
    }

    /// How many tokens the vocabulary holds; ids are `0 .. vocab_size - 1`.
    #[getter]
    fn vocab_size(&self) -> usize {
        self.model().size()
    }

    /// All tokens, printable, with their ids, in the order of ids.
    #[getter]
    fn vocab<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let vocab = PyDict::new(py);
        for id in 0..self.model().size() as u32 {
            vocab.set_item(self.model().token(id)?, id)?;
        }
        Ok(vocab)
    }

    fn token_to_id(&self, token: &str) -> PyResult<u32> {
        let unknown = || Error::key(format!("token {token:?} is not in the vocabulary"));
        Ok(self.model().find(token).ok_or_else(unknown)?)
    }

    fn id_to_token(&self, id: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(self.model().token(self.id(id)?)?)
    }

    fn id_to_bytes<'py>(&self, py: Python<'py>, id: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, self.model().bytes(self.id(id)?)?))
    }

    /// The special tokens in the order of their ids; chars always have `<unk>`.
    #[getter]
    fn special_tokens(&self) -> Vec<String> {
        self.model().special_tokens().to_vec()
    }

    /// The alphabet in the order of ids, printable.
    #[getter]
    fn alphabet(&self) -> Vec<String> {
        let alphabet: &Alphabet = self.model().vocabulary().alphabet();
        self.model().vocabulary().iter().take(alphabet.len()).map(|symbol| self.printable(symbol)).collect()
    }

    /// All that training did, in order.
    #[getter]
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let classes = EventClasses::import(py)?;
        self.model().events().iter().map(|event| self.event(&classes, event)).collect()
    }

    /// Tokens that were removed and did not come back, in the order of their making.
    #[getter]
    fn removed(&self) -> Vec<String> {
        let vocabulary = self.model().vocabulary();
        let removed = vocabulary.iter().filter(|&symbol| !vocabulary.is_live(symbol));
        removed.map(|symbol| vocabulary.printable(symbol)).collect()
    }

    #[getter]
    fn threshold(&self) -> f64 {
        self.model().config().threshold
    }

    #[getter]
    fn unit(&self) -> &'static str {
        self.model().config().unit.name()
    }

    #[getter]
    fn pretokenizer(&self) -> &str {
        self.model().pretokenizer().name()
    }

    #[getter]
    fn coverage(&self) -> Option<f64> {
        self.model().config().coverage
    }

    #[getter]
    fn min_frequency(&self) -> u64 {
        self.model().config().min_frequency
    }

    #[getter]
    fn max_token_length(&self) -> Option<u64> {
        self.model().config().max_token_length
    }

    /// Why training ended: at its size, with no pair left, or below `min_frequency`.
    #[getter]
    fn stop_reason(&self) -> &'static str {
        self.model().stop().name()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().model() == self.model())
    }

    fn __hash__(&self) -> u64 {
        foldhash::quality::FixedState::with_seed(0).hash_one(self.model().to_bytes())
    }

    fn __len__(&self) -> usize {
        self.model().size()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let model = self.model();
        let removals = model.events().iter().filter(|event| matches!(event, Event::Remove { .. })).count();
        Ok(format!(
            "Tokenizer(vocab_size={}, threshold={}, unit='{}', pretokenizer={}, merges={}, removals={removals})",
            model.size(),
            self.threshold().into_pyobject(py)?.repr()?,
            self.unit(),
            PyString::new(py, self.pretokenizer()).repr()?,
            model.events().len() - removals,
        ))
    }

    #[staticmethod]
    fn _from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(Self(Tokenizer::new(Model::from_bytes(data)?)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let restore = py.get_type::<Self>().getattr("_from_bytes")?;
        Ok((restore, (PyBytes::new(py, &self.model().to_bytes()),)))
    }
}

impl PyTokenizer {
    fn train_on(
        py: Python<'_>,
        function: &'static str,
        options: Option<&Bound<'_, PyDict>>,
        count: impl FnOnce(&LongCall, &super::arguments::CorpusOptions) -> PyResult<crate::counts::WordCounts>,
    ) -> PyResult<Self> {
        let keywords = Keywords::new(function, options, &[TRAIN_KEYWORDS, CORPUS_KEYWORDS])?;
        let (config, options) = (keywords.train_config()?, keywords.corpus_options()?);
        // Counting may take long; what is wrong with the rest is told before.
        let config = config.check(&options.pretokenizer()?)?;
        if config.unit == Unit::Byte {
            config.check_alphabet(&Alphabet::Bytes)?;
        }
        let call = LongCall::new(options.progress.as_ref().map(|progress| progress.clone_ref(py)));
        let counts = count(&call, &options)?;
        let model = call.run(py, |progress| {
            let trainer = Trainer::new(&counts, config, progress)?;
            drop(counts);
            trainer.train(progress)
        })?;
        Ok(Self(Tokenizer::new(model)))
    }

    fn id(&self, id: &Bound<'_, PyAny>) -> PyResult<u32> {
        let ids = PyTuple::new(id.py(), [id])?;
        Ok(self.ids(ids.as_any())?[0])
    }
}
