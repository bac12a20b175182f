//! Sessions that were disposed, and removing any for good.
//!
//! A session that is disposed leaves lists and state, and its folder stays. Neither method names a `channel`: a disposed
//! session has none.

use serde::{Deserialize, Serialize};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalMethod {
    Disposed,
    Erase,
}

impl RemovalMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            RemovalMethod::Disposed => "x-grove/disposed",
            RemovalMethod::Erase => "x-grove/erase",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisposedResult {
    /// The one that changed last first.
    pub sessions: Vec<DisposedSession>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DisposedSession {
    pub session: String,
    pub title: String,
    pub store: String,
    /// Milliseconds since 1970.
    pub modified_at: u64,
}

/// Removes a session with everything that it has. One that is open is disposed first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EraseParams {
    /// Its URI.
    pub session: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EraseResult {
    /// Whether there was one.
    pub erased: bool,
}
