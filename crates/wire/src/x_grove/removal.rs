//! Disposed sessions, and deleting sessions for good.
//!
//! A disposed session leaves lists and state, and its folder stays. Neither method names a `channel`: a disposed
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
    /// The most recently changed one comes first.
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

/// Deletes a session with all its data. An open one is disposed first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EraseParams {
    /// Its URI.
    pub session: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EraseResult {
    /// True if there was one.
    pub erased: bool,
}
