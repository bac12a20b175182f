//! What the measuring processes print, Grove's and the peers' alike.

use serde::{Deserialize, Serialize};

/// Who is measured.
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

/// Milliseconds that each thing took. What a peer has not is not there.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Measured {
    /// All rows of the tree.
    pub(crate) rows: f64,
    /// A page of rows with what they say, and all rows with it.
    pub(crate) page: Option<f64>,
    pub(crate) rows_with_text: Option<f64>,
    /// The way to the deepest entry.
    pub(crate) branch: f64,
    /// What a model is given at the leaf: all of it, by pi's rules and by Grove's, and the newest messages.
    pub(crate) context: f64,
    pub(crate) context_by_own_rules: Option<f64>,
    pub(crate) tail: Option<f64>,
    /// A new session of the way to the deepest entry, written to a file; and until it is known what it will hold.
    pub(crate) branched: f64,
    pub(crate) planned: Option<f64>,
    pub(crate) found: Found,
}

/// What was found, so that nobody is quick by leaving something out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Found {
    pub(crate) rows: usize,
    pub(crate) branch: usize,
    pub(crate) messages: usize,
    pub(crate) branched_bytes: u64,
}
