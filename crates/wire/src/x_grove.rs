//! What Grove adds to the protocols: methods with the prefix `x-grove/`, the same on connections of every dialect.
//!
//! Each names its session, or one of its chats, by `channel`; version 1 may write `session`. Without a chat the main one
//! is meant.

use serde::{Deserialize, Serialize};

/// What every method's name begins with.
pub const PREFIX: &str = "x-grove/";

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    Tree,
    Navigate,
    Label,
    Branch,
    Fork,
}

impl Method {
    pub const ALL: [Self; 5] = [Self::Tree, Self::Navigate, Self::Label, Self::Branch, Self::Fork];

    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Tree => "x-grove/tree",
            Method::Navigate => "x-grove/navigate",
            Method::Label => "x-grove/label",
            Method::Branch => "x-grove/branch",
            Method::Fork => "x-grove/fork",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.as_str() == name)
    }
}

/// The session or chat that a request is about; the rest of its params is its own.
#[derive(Clone, Debug, Deserialize)]
pub struct Channel {
    #[serde(alias = "session")]
    pub channel: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TreeParams {
    /// `default`, `no-tools`, `user-only`, `labeled-only` or `all`.
    pub filter: Option<String>,
    /// Words that must all be in a row.
    pub search: Option<String>,
    /// Goes on behind the last page.
    pub cursor: Option<String>,
    pub limit: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeResult {
    pub rows: Vec<TreeRow>,
    /// How many there are in all.
    pub total: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// An entry of the log, in its place: depth first, the active branch first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TreeRow {
    pub id: String,
    /// The nearest entry above it that is shown.
    pub parent: Option<String>,
    pub depth: u32,
    /// How many forks there are above it.
    pub indent: u32,
    /// The entry's type in the log.
    pub kind: String,
    /// Who speaks: `user`, `assistant`, `toolResult`, or what the entry is.
    pub role: String,
    /// One line of it.
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<i64>,
    /// Whether it is on the way to the leaf.
    pub active: bool,
    pub leaf: bool,
    pub has_children: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NavigateParams {
    /// Where to go; null is before the first entry. It must be said: nobody goes there by forgetting it.
    #[serde(deserialize_with = "said")]
    pub entry: Option<String>,
    /// A name for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

/// Tells `null` from absent.
fn said<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(deserializer)
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NavigateResult {
    /// Whether anything changed: who goes to where they are stays there.
    pub moved: bool,
    pub leaf: Option<String>,
    /// The message that was taken back to be said anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelParams {
    pub entry: String,
    /// Without one, or with an empty one, the entry has none any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelResult {
    pub leaf: Option<String>,
}

/// A new session with what was said before a message of the user.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BranchParams {
    /// The message, which is taken back to be said anew.
    pub entry: String,
}

/// A new session with everything that this one has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ForkParams {
    /// What it is called; without one, as this one, and that it is a fork.
    pub title: Option<String>,
}

/// The answer to both.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSessionResult {
    /// The new session's URI.
    pub session: String,
    /// The message to begin with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}
