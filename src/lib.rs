//! The core of `pickytok`: exact, deterministic Picky BPE.
//!
//! Data flows one way; each stage takes the previous stage's value and returns a new one:
//!
//! ```text
//! source       files ─▶ blocks of documents
//! pretokenize  document ─▶ words
//! counts       words ─▶ WordCounts
//! trainer      WordCounts + TrainConfig ─▶ Model
//! model        Model ◀─▶ model file
//! encoder      Model ─▶ Tokenizer
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used))]

pub mod alphabet;
pub mod batch;
mod cache;
mod corpus;
pub mod counts;
mod counts_file;
mod encoder;
pub mod error;
pub mod file;
pub mod inference;
pub mod model;
mod model_file;
mod pipe;
mod prefetch;
pub mod pretokenize;
pub mod progress;
#[cfg(feature = "python")]
mod py;
mod short_word;
pub mod source;
pub mod tokenizer;
pub mod trainer;
pub mod vocabulary;
