//! One error type for the whole core. `py.rs` maps each kind to one Python exception, once.

use std::io;
use std::path::{Path, PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. Every message names the value, the limit it broke and the place.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A bad argument or bad data: `ValueError` in Python.
    #[error("{0}")]
    Value(String),
    /// A model file that cannot be trusted: `ModelError` in Python.
    #[error("{0}")]
    Model(String),
    /// An unknown token or id: `KeyError` in Python.
    #[error("{0}")]
    Key(String),
    /// A file that cannot be opened, read or written: `OSError` in Python.
    #[error("{path}: {source}", path = path.display())]
    Io { path: PathBuf, source: io::Error },
    /// The caller asked a long call to stop: the pending signal's exception in Python.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub fn value(message: impl Into<String>) -> Self {
        Self::Value(message.into())
    }

    pub fn model(message: impl Into<String>) -> Self {
        Self::Model(message.into())
    }

    pub fn key(message: impl Into<String>) -> Self {
        Self::Key(message.into())
    }

    /// Turns an `io::Error` into ours, keeping the path that it happened on.
    pub fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { path, source }
    }
}

/// A text as a message quotes it: what a user or a hostile file gives may be very long.
pub(crate) fn quote(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}
