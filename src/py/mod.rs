//! The border to Python: conversions, errors, the GIL, signals. No logic lives here.

mod arguments;
mod counts;
mod tokenizer;

use std::io;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::create_exception;
use pyo3::exceptions::{PyIsADirectoryError, PyKeyError, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::pretokenize::{self, unicode_version};
use crate::progress::Progress;

create_exception!(
    pickytok,
    ModelError,
    PyValueError,
    "A model file that is broken, contradictory or of an unknown version."
);

impl From<Error> for PyErr {
    fn from(error: Error) -> Self {
        match error {
            Error::Value(message) => PyValueError::new_err(message),
            Error::Model(message) => ModelError::new_err(message),
            Error::Key(message) => PyKeyError::new_err(message),
            Error::Interrupted => PyKeyboardInterrupt::new_err(()),
            Error::Io { path, source } => match (source.raw_os_error(), source.kind()) {
                // With an errno Python picks the subclass itself: FileNotFoundError, PermissionError and so on.
                (Some(errno), _) => {
                    let text = source.to_string();
                    let reason = text.split(" (os error").next().unwrap_or(&text).to_owned();
                    PyOSError::new_err((errno, reason, path.into_os_string()))
                }
                (None, io::ErrorKind::IsADirectory) => {
                    PyIsADirectoryError::new_err(format!("{} is a directory", path.display()))
                }
                (None, _) => PyOSError::new_err(format!("{}: {source}", path.display())),
            },
        }
    }
}

/// How often a long call looks for Ctrl-C and tells its progress.
const TICK: Duration = Duration::from_millis(50);

/// A long call: it works on other threads without the GIL, while this one looks after signals and progress.
struct LongCall {
    progress: Progress,
    callback: Option<Py<PyAny>>,
}

impl LongCall {
    fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { progress: Progress::default(), callback }
    }

    fn run<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&Progress) -> Result<T> + Send) -> PyResult<T> {
        let result = py.detach(|| {
            let (done, finished) = channel::<()>();
            thread::scope(|scope| {
                let progress = &self.progress;
                let worker = scope.spawn(move || {
                    let result = work(progress);
                    drop(done);
                    result
                });
                let mut raised = None;
                while finished.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                    if raised.is_none() {
                        raised = Python::attach(|py| self.tick(py)).inspect_err(|_| progress.stop()).err();
                    }
                }
                let result = worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
                raised.map_or_else(|| result.map_err(PyErr::from), Err)
            })
        })?;
        self.tick(py)?;
        Ok(result)
    }

    fn tick(&self, py: Python<'_>) -> PyResult<()> {
        py.check_signals()?;
        let (stage, done, total) = self.progress.read();
        if let Some(callback) = &self.callback {
            callback.call1(py, (stage.name(), done, total))?;
        }
        Ok(())
    }
}

/// Cuts documents into words; nothing ever merges across a word boundary.
#[pyclass(frozen, module = "pickytok", name = "PreTokenizer")]
struct PyPreTokenizer(pretokenize::PreTokenizer);

#[pymethods]
impl PyPreTokenizer {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        Ok(Self(pretokenize::PreTokenizer::new(name)?))
    }

    /// The name that it was made from.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// The words of one document, as training and encoding see them (▁ included).
    fn split(&self, text: &str) -> PyResult<Vec<String>> {
        let mut words = Vec::new();
        self.0.splitter().split(text, |word| words.push(format!("{}{word}", self.0.prefix())))?;
        Ok(words)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().0 == self.0)
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        pyo3::types::PyString::new(py, self.0.name()).hash()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("PreTokenizer({})", pyo3::types::PyString::new(py, self.0.name()).repr()?))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> (Bound<'py, PyAny>, (String,)) {
        (py.get_type::<Self>().into_any(), (self.0.name().to_owned(),))
    }
}

#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("unicode_version", unicode_version())?;
    module.add("ModelError", module.py().get_type::<ModelError>())?;
    module.add_class::<PyPreTokenizer>()?;
    module.add_class::<counts::PyWordCounts>()?;
    module.add_class::<tokenizer::PyTokenizer>()?;
    Ok(())
}
