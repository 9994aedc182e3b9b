//! How a long call tells how far it is, and how it is told to stop.
//!
//! The core never calls out: it writes plain atomics, and whoever waits for the result reads them.
//! So a worker thread needs no lock, no callback and no interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    Count,
    Train,
    Encode,
}

impl Stage {
    pub fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::Train => "train",
            Self::Encode => "encode",
        }
    }
}

/// Shared between the threads that work and the one that waits.
#[derive(Debug)]
pub struct Progress {
    stage: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
    stop: Arc<AtomicBool>,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            stage: AtomicU8::new(Stage::Count as u8),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            stop: Arc::default(),
        }
    }
}

impl Progress {
    /// Begins a stage of `total` units (bytes read, tokens in the vocabulary, bytes encoded).
    pub fn begin(&self, stage: Stage, total: u64) {
        self.done.store(0, Relaxed);
        self.total.store(total, Relaxed);
        self.stage.store(stage as u8, Relaxed);
    }

    /// Adds to what is done; an error when the caller asked to stop.
    pub fn advance(&self, units: u64) -> Result<()> {
        self.done.fetch_add(units, Relaxed);
        self.check()
    }

    /// Sets what is done; an error when the caller asked to stop.
    pub fn reach(&self, done: u64) -> Result<()> {
        self.done.store(done, Relaxed);
        self.check()
    }

    pub fn check(&self) -> Result<()> {
        if self.stop.load(Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    pub fn stop(&self) {
        self.stop.store(true, Relaxed);
    }

    /// The wish to stop by itself, for who outlives the call.
    pub(crate) fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// The stage, how many units are done, and of how many (0: unknown).
    pub fn read(&self) -> (Stage, u64, u64) {
        let stage = match self.stage.load(Relaxed) {
            0 => Stage::Count,
            1 => Stage::Train,
            _ => Stage::Encode,
        };
        (stage, self.done.load(Relaxed), self.total.load(Relaxed))
    }
}
