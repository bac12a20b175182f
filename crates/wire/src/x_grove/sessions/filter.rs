//! The filter and the order of the list.

use serde::{Deserialize, Serialize};

use super::RowStatus;

/// The maximum length of the text of a filter, in bytes, and the maximum number of its providers.
pub const MAX_FILTER_TEXT: usize = 1000;
pub const MAX_FILTER_PROVIDERS: usize = 1000;

/// Selects rows of the list. A row must match every member that is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionListFilter {
    /// Words that must all be in the row: in its title, workspace, branch, agent or provider, whatever their case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Any of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<RowStatus>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<bool>,
    /// The ids of any of these providers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub providers: Vec<String>,
}

/// The groups of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SessionListGrouping {
    /// The first page has the groups of the workspaces.
    #[default]
    Project,
    /// No page has groups: only the client knows its person's days.
    Day,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SessionListSort {
    /// The session that was created last first.
    #[default]
    Created,
    /// The session that changed last first.
    Updated,
}
