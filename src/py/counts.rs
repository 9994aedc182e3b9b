//! `pickytok.WordCounts`.

use std::path::PathBuf;

use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyMapping};

use super::LongCall;
use super::arguments::{CorpusOptions, Keywords, number, paths, text, wrong_type};
use crate::counts::{Counter, WordCounts, count_documents};
use crate::model::MAX_COUNT;
use crate::pretokenize::PreTokenizer;
use crate::progress::Stage;
use crate::source::lines;

/// Documents of an iterator are counted in batches of about so many bytes.
const BATCH_BYTES: usize = 8 << 20;

pub(super) const CORPUS_KEYWORDS: &[&str] = &["pretokenizer", "lines", "errors", "num_threads", "progress"];

/// How often each word occurs: all that training needs to know of a corpus.
#[pyclass(frozen, module = "pickytok", name = "WordCounts")]
pub(super) struct PyWordCounts(pub(super) WordCounts);

pub(super) fn count_files(
    py: Python<'_>,
    call: &LongCall,
    files: &Bound<'_, PyAny>,
    options: &CorpusOptions,
) -> PyResult<WordCounts> {
    let (paths, pretokenizer) = (paths(files)?, options.pretokenizer()?);
    let (lines, errors, threads) = (options.lines, options.errors, options.threads);
    call.run(py, |progress| WordCounts::from_files(&paths, &pretokenizer, lines, errors, threads, progress))
}

pub(super) fn count_iterator(
    py: Python<'_>,
    call: &LongCall,
    iterator: &Bound<'_, PyAny>,
    options: &CorpusOptions,
) -> PyResult<WordCounts> {
    if iterator.is_instance_of::<pyo3::types::PyString>() {
        return Err(wrong_type("texts", "an iterable of strings", iterator));
    }
    let pretokenizer = options.pretokenizer()?;
    let mut counters: Vec<Counter> = (0..options.threads).map(|_| Counter::new(&pretokenizer)).collect();
    let mut batch: Vec<PyBackedStr> = Vec::new();
    let mut bytes = 0;
    call.progress.begin(Stage::Count, 0);
    let mut count = |batch: &mut Vec<PyBackedStr>| {
        let documents: Vec<&str> = match options.lines {
            true => batch.iter().flat_map(|document| lines(document)).collect(),
            false => batch.iter().map(|document| &**document).collect(),
        };
        call.run(py, |progress| count_documents(&mut counters, &documents, progress))?;
        batch.clear();
        PyResult::Ok(())
    };
    for (index, document) in iterator.try_iter()?.enumerate() {
        let document = text(index, &document?, options.errors)?;
        bytes += document.len();
        batch.push(document);
        if bytes >= BATCH_BYTES {
            count(&mut batch)?;
            bytes = 0;
        }
    }
    count(&mut batch)?;
    Ok(WordCounts::from_counters(&pretokenizer, counters)?)
}

pub(super) fn count_dict(words: &Bound<'_, PyAny>, pretokenizer: &PreTokenizer) -> PyResult<WordCounts> {
    let mapping = words.cast::<PyMapping>().map_err(|_| wrong_type("words", "a mapping of words to counts", words))?;
    let mut counted = Vec::with_capacity(mapping.len()?);
    for (index, item) in mapping.items()?.iter().enumerate() {
        let (word, n): (Bound<'_, PyAny>, Bound<'_, PyAny>) = item.extract()?;
        let word = text(index, &word, crate::source::Errors::Strict)?;
        let n = number(&format!("the count of {:?}", &*word), &n, 1, MAX_COUNT)?;
        counted.push((word, n));
    }
    Ok(WordCounts::from_words(counted.iter().map(|(word, n)| (&**word, *n)), pretokenizer)?)
}

#[pymethods]
impl PyWordCounts {
    /// Counts the words of text and JSONL files, plain or compressed (`.gz`, `.zst`).
    #[staticmethod]
    #[pyo3(
        signature = (files, **options),
        text_signature = "(files, *, pretokenizer='gpt4', lines=False, errors='strict', num_threads=None, progress=None)"
    )]
    fn from_files(py: Python<'_>, files: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = Keywords::new("from_files", options, &[CORPUS_KEYWORDS])?.corpus_options()?;
        let call = LongCall::new(options.progress.as_ref().map(|progress| progress.clone_ref(py)));
        count_files(py, &call, files, &options).map(Self)
    }

    /// Counts the words of documents; each item is one (with `lines=True`, each of its lines).
    #[staticmethod]
    #[pyo3(
        signature = (texts, **options),
        text_signature = "(texts, *, pretokenizer='gpt4', lines=False, errors='strict', num_threads=None, progress=None)"
    )]
    fn from_iterator(py: Python<'_>, texts: &Bound<'_, PyAny>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let options = Keywords::new("from_iterator", options, &[CORPUS_KEYWORDS])?.corpus_options()?;
        let call = LongCall::new(options.progress.as_ref().map(|progress| progress.clone_ref(py)));
        count_iterator(py, &call, texts, &options).map(Self)
    }

    /// Takes finished words with their counts; for `whitespace`, words carry their ▁.
    #[staticmethod]
    #[pyo3(signature = (words, *, pretokenizer))]
    fn from_dict(words: &Bound<'_, PyAny>, pretokenizer: &str) -> PyResult<Self> {
        count_dict(words, &PreTokenizer::new(pretokenizer)?).map(Self)
    }

    /// Reads a file that `save` wrote.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        LongCall::new(None).run(py, |progress| WordCounts::load(&path, progress)).map(Self)
    }

    /// Adds up count files into one, a word at a time: memory does not grow with their size.
    #[staticmethod]
    fn merge_files(py: Python<'_>, inputs: &Bound<'_, PyAny>, output: PathBuf) -> PyResult<()> {
        let inputs = paths(inputs)?;
        LongCall::new(None).run(py, |progress| WordCounts::merge_files(&inputs, &output, progress))
    }

    /// Writes a sorted, readable file; atomic.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        LongCall::new(None).run(py, |progress| self.0.save(&path, progress))
    }

    /// The name of the pre-tokenizer that made the words.
    #[getter]
    fn pretokenizer(&self) -> &str {
        self.0.pretokenizer().name()
    }

    /// How many words there are, repetitions included.
    #[getter]
    fn total(&self) -> u64 {
        self.0.total()
    }

    /// All words with their counts, sorted by the words' UTF-8 bytes.
    fn items(&self) -> Vec<(&str, u64)> {
        self.0.iter().collect()
    }

    fn __getitem__(&self, word: &str) -> PyResult<u64> {
        self.0.get(word).ok_or_else(|| PyKeyError::new_err(word.to_owned()))
    }

    fn __contains__(&self, word: &Bound<'_, PyAny>) -> bool {
        word.extract::<&str>().is_ok_and(|word| self.0.get(word).is_some())
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    fn __add__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        match other.cast::<Self>() {
            Ok(other) => {
                let other = &other.get().0;
                let sum = py.detach(|| self.0.add(other))?;
                Ok(Py::new(py, Self(sum))?.into_any())
            }
            Err(_) => Ok(py.NotImplemented()),
        }
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        (self.0.len(), self.0.total(), self.pretokenizer()).into_pyobject(py)?.hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = pyo3::types::PyString::new(py, self.pretokenizer()).repr()?;
        Ok(format!("WordCounts(words={}, total={}, pretokenizer={name})", self.0.len(), self.0.total()))
    }

    #[staticmethod]
    fn _from_bytes(data: &[u8]) -> PyResult<Self> {
        Ok(Self(WordCounts::from_bytes(data)?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let restore = py.get_type::<Self>().getattr("_from_bytes")?;
        Ok((restore, (PyBytes::new(py, &self.0.to_bytes()),)))
    }
}
