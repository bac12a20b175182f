//! The output of the measuring processes, Grove's and the peers' alike.

use serde::{Deserialize, Serialize};

/// The compared programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Contestant {
    #[serde(rename = "grove")]
    Grove,
    #[serde(rename = "grove from the file")]
    GroveFromFile,
    #[serde(rename = "pi 1.5")]
    Pi15,
    #[serde(rename = "oh-my-pi 18")]
    Omp,
}

impl Contestant {
    pub(crate) const ALL: [Self; 4] = [Self::Grove, Self::GroveFromFile, Self::Pi15, Self::Omp];
    pub(crate) const PEERS: [Self; 2] = [Self::Pi15, Self::Omp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::GroveFromFile => "grove, from the file",
            Self::Pi15 => "pi 1.5",
            Self::Omp => "oh-my-pi 18",
        }
    }
}

/// The times of each step in milliseconds. Steps that a peer does not support are missing.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    /// All rows of the tree.
    pub(crate) rows: f64,
    /// A page of rows with their text, and all rows with it.
    pub(crate) page: Option<f64>,
    pub(crate) rows_with_text: Option<f64>,
    /// The branch of the deepest entry.
    pub(crate) branch: f64,
    /// The context of a model at the leaf: complete, by pi's rules and by Grove's, and the newest messages.
    pub(crate) context: f64,
    pub(crate) context_by_own_rules: Option<f64>,
    pub(crate) tail: Option<f64>,
    /// A new session with the branch of the deepest entry, written to a file; and until its content is planned.
    pub(crate) branched: f64,
    pub(crate) planned: Option<f64>,
    pub(crate) found: TreeContent,
}

/// The content, to detect contestants that leave something out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TreeContent {
    pub(crate) rows: usize,
    pub(crate) branch: usize,
    pub(crate) messages: usize,
    pub(crate) branched_bytes: u64,
}
