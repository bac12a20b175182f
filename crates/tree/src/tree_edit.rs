//! Changes of a tree as plans: the line to append, and the new leaf. Planning changes nothing, so neither does a
//! refusal.

use grove_core::Timestamp;
use serde_json::Value;

use crate::entries::{self, BranchSummary, Compaction, Stamp, SummaryOrigin};
use crate::index::{EntryNo, LogIndex, Owner};

/// A planned change of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEdit {
    /// The line to append, without a line feed. `None` if there is nothing to do.
    pub line: Option<Vec<u8>>,
    /// The new leaf; `None` means before the first entry.
    pub leaf: Option<String>,
}

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TreeEditError {
    #[error("there is no entry {id} in this session: look at its tree again")]
    UnknownEntry { id: String },
    #[error("entry {id} is not on the path to the leaf: choose an entry of the active branch")]
    NotOnBranch { id: String },
}

/// The id and the time for a line that may have to be written.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry<'a> {
    pub id: &'a str,
    pub at: Timestamp,
}

/// Finds an entry of the tree.
pub fn find(index: &LogIndex, id: &str) -> Result<EntryNo, TreeEditError> {
    let found = index.find(id).filter(|entry| index.owner(*entry) == Owner::Tree);
    found.ok_or_else(|| TreeEditError::UnknownEntry { id: id.to_owned() })
}

/// Moves the leaf to an entry: the next entry becomes its child.
pub fn branch(index: &LogIndex, target: &str, new: NewEntry<'_>) -> Result<TreeEdit, TreeEditError> {
    let target = find(index, target)?;
    Ok(put(index, Some(target), new))
}

/// Moves the leaf before the first entry: the next entry becomes a new root.
pub fn reset_leaf(index: &LogIndex, new: NewEntry<'_>) -> TreeEdit {
    put(index, None, new)
}

/// Moves the leaf to an entry, or before the first one, and appends a summary of the abandoned branch.
pub fn branch_with_summary(
    index: &LogIndex,
    target: Option<&str>,
    summary: &str,
    details: Option<&Value>,
    origin: SummaryOrigin,
    new: NewEntry<'_>,
) -> Result<TreeEdit, TreeEditError> {
    if let Some(target) = target {
        find(index, target)?;
    }
    let summary = BranchSummary { from: target, summary, details, origin };
    let stamp = Stamp { id: new.id, parent: target, at: new.at };
    Ok(appended(entries::branch_summary(stamp, &summary), new))
}

/// Sets or removes an entry's label. The label is an entry at the leaf and becomes the leaf.
pub fn label(
    index: &LogIndex,
    target: &str,
    label: Option<&str>,
    new: NewEntry<'_>,
) -> Result<TreeEdit, TreeEditError> {
    find(index, target)?;
    let parent = leaf_id(index);
    let stamp = Stamp { id: new.id, parent: parent.as_deref(), at: new.at };
    Ok(appended(entries::label(stamp, target, label), new))
}

/// Replaces the part of the branch before an entry by a summary.
pub fn compact(index: &LogIndex, compaction: &Compaction<'_>, new: NewEntry<'_>) -> Result<TreeEdit, TreeEditError> {
    if let Some(first) = compaction.first_kept {
        let entry = find(index, first)?;
        if !index.leaf().is_some_and(|leaf| index.links.ancestors(leaf).any(|above| above == entry)) {
            return Err(TreeEditError::NotOnBranch { id: first.to_owned() });
        }
    }
    let parent = leaf_id(index);
    let stamp = Stamp { id: new.id, parent: parent.as_deref(), at: new.at };
    Ok(appended(entries::compaction(stamp, compaction), new))
}

fn put(index: &LogIndex, leaf: Option<EntryNo>, new: NewEntry<'_>) -> TreeEdit {
    let id = leaf.map(|leaf| index.id(leaf).into_owned());
    let is_there = index.leaf() == leaf;
    let line = (!is_there).then(|| entries::leaf_mark(new.id, new.at, id.as_deref()));
    TreeEdit { line, leaf: id }
}

fn appended(line: Vec<u8>, new: NewEntry<'_>) -> TreeEdit {
    TreeEdit { line: Some(line), leaf: Some(new.id.to_owned()) }
}

fn leaf_id(index: &LogIndex) -> Option<String> {
    index.leaf().map(|leaf| index.id(leaf).into_owned())
}
