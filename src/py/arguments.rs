//! Python arguments to core values, with errors that name the argument, its value and its limits.

use std::path::PathBuf;
use std::thread::available_parallelism;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::{PyBackedBytes, PyBackedStr};
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::alphabet::Unit;
use crate::batch::Input;
use crate::model::TrainConfig;
use crate::pretokenize::PreTokenizer;
use crate::source::Errors;

/// One path, or any iterable of paths.
pub(super) fn paths(argument: &Bound<'_, PyAny>) -> PyResult<Vec<PathBuf>> {
    if let Ok(path) = argument.extract() {
        return Ok(vec![path]);
    }
    argument.try_iter()?.map(|path| path?.extract()).collect()
}

/// A whole number within limits.
pub(super) fn number(name: &str, value: &Bound<'_, PyAny>, least: u64, most: u64) -> PyResult<u64> {
    if !value.hasattr("__index__")? {
        return Err(wrong_type(name, "an integer", value));
    }
    match value.extract::<u64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(PyValueError::new_err(format!("{name} must be from {least} to {most}, got {}", value.str()?))),
    }
}

pub(super) fn wrong_type(name: &str, expected: &str, value: &Bound<'_, PyAny>) -> PyErr {
    let found = value.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {expected}, got {found}"))
}

/// How many threads to use: all cores unless the caller says less.
pub(super) fn threads(num_threads: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    match num_threads.filter(|threads| !threads.is_none()) {
        Some(threads) => Ok(number("num_threads", threads, 1, 4096)? as usize),
        None => Ok(available_parallelism().map_or(1, usize::from)),
    }
}

/// One text of a batch, borrowed from its Python object.
pub(super) enum Text {
    String(PyBackedStr),
    Bytes(PyBackedBytes),
}

impl Text {
    pub(super) fn input(&self) -> Input<'_> {
        match self {
            Self::String(text) => Input::Text(text),
            Self::Bytes(bytes) => Input::Bytes(bytes),
        }
    }
}

/// Texts of an iterable: strings, or bytes.
pub(super) fn texts(argument: &Bound<'_, PyAny>) -> PyResult<Vec<Text>> {
    if argument.is_instance_of::<PyString>() || argument.is_instance_of::<PyBytes>() {
        return Err(wrong_type("texts", "an iterable of strings or bytes", argument));
    }
    let mut texts = Vec::with_capacity(argument.len().unwrap_or(0));
    for (index, item) in argument.try_iter()?.enumerate() {
        let item = item?;
        texts.push(match item.cast::<PyBytes>() {
            Ok(bytes) => Text::Bytes(bytes.clone().into()),
            Err(_) => Text::String(text(index, &item, Errors::Strict)?),
        });
    }
    Ok(texts)
}

/// One text of an iterable. A lone surrogate has no UTF-8: an error, or U+FFFD on request.
pub(super) fn text(index: usize, text: &Bound<'_, PyAny>, errors: Errors) -> PyResult<PyBackedStr> {
    let string = text.cast::<PyString>().map_err(|_| wrong_type(&format!("text {index}"), "a string", text))?;
    match string.extract() {
        Ok(text) => Ok(text),
        Err(_) if errors == Errors::Replace => {
            let encoded = string.call_method1("encode", ("utf-16-le", "surrogatepass"))?;
            Ok(encoded.call_method1("decode", ("utf-16-le", "replace"))?.extract()?)
        }
        Err(error) => Err(PyValueError::new_err(format!("text {index}: {}", error.value(string.py())))),
    }
}

/// Ids from a list, a NumPy array of uint32, or any other sequence of integers.
pub(super) fn ids(argument: &Bound<'_, PyAny>, unknown: impl Fn(String) -> PyErr) -> PyResult<Vec<u32>> {
    if argument.is_instance_of::<PyList>() || argument.is_instance_of::<PyTuple>() {
        return each_id(argument, unknown);
    }
    if argument.hasattr("__array_interface__")?
        && let Ok(array) = argument.extract::<numpy::PyReadonlyArray1<'_, u32>>()
    {
        return Ok(array.as_array().to_vec());
    }
    each_id(argument, unknown)
}

fn each_id(argument: &Bound<'_, PyAny>, unknown: impl Fn(String) -> PyErr) -> PyResult<Vec<u32>> {
    let mut ids = Vec::with_capacity(argument.len().unwrap_or(0));
    for id in argument.try_iter()? {
        let id = id?;
        match id.extract::<u32>() {
            Ok(id) => ids.push(id),
            Err(_) if id.hasattr("__index__")? => return Err(unknown(id.str()?.to_string())),
            Err(_) => return Err(wrong_type("an id", "an integer", &id)),
        }
    }
    Ok(ids)
}

/// Something to call with `(stage, done, total)`.
pub(super) fn callback(progress: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Py<PyAny>>> {
    match progress.filter(|progress| !progress.is_none()) {
        Some(progress) if !progress.is_callable() => Err(wrong_type("progress", "callable or None", progress)),
        progress => Ok(progress.map(|progress| progress.clone().unbind())),
    }
}

/// How to cut and read a corpus.
pub(super) struct CorpusOptions {
    pub(super) pretokenizer: Option<PreTokenizer>,
    pub(super) lines: bool,
    pub(super) errors: Errors,
    pub(super) threads: usize,
    pub(super) progress: Option<Py<PyAny>>,
}

impl CorpusOptions {
    pub(super) fn pretokenizer(&self) -> PyResult<PreTokenizer> {
        match &self.pretokenizer {
            Some(pretokenizer) => Ok(pretokenizer.clone()),
            None => Ok(PreTokenizer::new("gpt4")?),
        }
    }
}

/// The keywords of a call that takes many of them; those that it does not know are an error.
pub(super) struct Keywords<'py> {
    function: &'static str,
    given: Option<Bound<'py, PyDict>>,
}

impl<'py> Keywords<'py> {
    pub(super) fn new(function: &'static str, given: Option<&Bound<'py, PyDict>>, known: &[&[&str]]) -> PyResult<Self> {
        for name in given.iter().flat_map(|given| given.keys()) {
            let name: String = name.extract()?;
            if !known.iter().any(|names| names.contains(&name.as_str())) {
                return Err(PyTypeError::new_err(format!("{function}() got an unexpected keyword argument '{name}'")));
            }
        }
        Ok(Self { function, given: given.cloned() })
    }

    /// A keyword that was given; `None` counts as not given.
    fn get(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let value = self.given.as_ref().map_or(Ok(None), |given| given.get_item(name))?;
        Ok(value.filter(|value| !value.is_none()))
    }

    fn required(&self, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let function = self.function;
        self.get(name)?
            .ok_or_else(|| PyTypeError::new_err(format!("{function}() missing required keyword argument: '{name}'")))
    }

    fn string(&self, name: &str) -> PyResult<Option<String>> {
        self.get(name)?.map(|value| value.extract().map_err(|_| wrong_type(name, "a string", &value))).transpose()
    }

    fn float(&self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<f64> {
        value.extract().map_err(|_| wrong_type(name, "a number", value))
    }

    fn strings(&self, name: &str) -> PyResult<Option<Vec<String>>> {
        let Some(value) = self.get(name)? else { return Ok(None) };
        let expected = || wrong_type(name, "an iterable of strings", &value);
        if value.is_instance_of::<PyString>() {
            return Err(expected());
        }
        let strings: PyResult<Vec<String>> = value.try_iter()?.map(|string| string?.extract()).collect();
        strings
            .map(Some)
            .map_err(|error| if error.is_instance_of::<PyValueError>(value.py()) { error } else { expected() })
    }

    /// Whether the preset of the paper is asked for.
    fn paper(&self) -> PyResult<bool> {
        match self.string("preset")?.as_deref() {
            None => Ok(false),
            Some("paper") => Ok(true),
            Some(other) => Err(PyValueError::new_err(format!("unknown preset {other:?}; the one there is: \"paper\""))),
        }
    }

    pub(super) fn train_config(&self) -> PyResult<TrainConfig> {
        let paper = self.paper()?;
        let default = TrainConfig::default();
        let (unit, special): (_, &[&str]) = match paper {
            true => (Unit::Char, &["<pad>", "<unk>", "<bos>", "<eos>"]),
            false => (default.unit, &[]),
        };
        let most = i64::MAX as u64;
        let size = number("vocab_size", &self.required("vocab_size")?, 1, crate::model::MAX_VOCAB_SIZE)?;
        let length = |name| self.get(name)?.map(|value| number(name, &value, 1, most)).transpose();
        Ok(TrainConfig {
            vocab_size: size,
            threshold: self.float("threshold", &self.required("threshold")?)?,
            unit: self.string("unit")?.map_or(Ok(unit), |unit| Unit::parse(&unit))?,
            coverage: self.get("coverage")?.map(|value| self.float("coverage", &value)).transpose()?,
            special_tokens: self
                .strings("special_tokens")?
                .unwrap_or_else(|| special.iter().map(|&token| token.to_owned()).collect()),
            min_frequency: length("min_frequency")?.unwrap_or(default.min_frequency),
            max_token_length: length("max_token_length")?,
        })
    }

    pub(super) fn corpus_options(&self) -> PyResult<CorpusOptions> {
        let paper = self.paper()?;
        let pretokenizer = self.string("pretokenizer")?.or(paper.then(|| "whitespace".to_owned()));
        let errors = self.string("errors")?;
        Ok(CorpusOptions {
            pretokenizer: pretokenizer.map(|name| PreTokenizer::new(&name)).transpose()?,
            lines: self.get("lines")?.map_or(Ok(paper), |lines| lines.is_truthy())?,
            errors: errors.map_or(Ok(Errors::Strict), |errors| Errors::parse(&errors))?,
            threads: threads(self.get("num_threads")?.as_ref())?,
            progress: callback(self.get("progress")?.as_ref())?,
        })
    }
}
