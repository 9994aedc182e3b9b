//! Other ways to cut a word into the same live vocabulary, all deterministic (SPEC section 5).

mod lexicon;
mod post_removal;

pub(crate) use lexicon::Lexicon;
pub(crate) use post_removal::PostRemoval;

use crate::error::{Error, Result};

/// How a word becomes tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Replay merges and removals in the order in which they happened: what training means.
    #[default]
    Events,
    /// Vanilla BPE over live and removed tokens; then removed ones become the fewest live ones.
    PostRemoval,
    /// The longest token from the left, again and again.
    Greedy,
    /// The fewest tokens.
    Shortest,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Events, Self::PostRemoval, Self::Greedy, Self::Shortest];

    pub fn name(self) -> &'static str {
        match self {
            Self::Events => "events",
            Self::PostRemoval => "post_removal",
            Self::Greedy => "greedy",
            Self::Shortest => "shortest",
        }
    }

    pub fn parse(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|mode| mode.name()).collect();
            Error::value(format!("unknown mode {name:?}; choose one of {}", names.join(", ")))
        })
    }
}
