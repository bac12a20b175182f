//! Navigation in a tree: the abandoned branch, and the new leaf.

use grove_core::Message;
use grove_fs::FsError;
use serde::Deserialize;

use crate::fields::{EntryFields, each_block, is};
use crate::index::{EntryNo, LogIndex};
use crate::kind::EntryType;
use crate::role::Role;
use crate::scan::lossy;
use crate::source::{LogSource, line};
use crate::tree_edit::{TreeEditError, find};

/// A person's options for a move in the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NavigateOptions {
    /// True if the abandoned branch is to be summarized.
    pub summarize: bool,
    /// Instructions for the summary, added to the default prompt or replacing it.
    pub custom_instructions: Option<String>,
    pub replace_instructions: bool,
    /// A label for the target.
    pub label: Option<String>,
}

/// A planned move in the tree, as hooks that may change or forbid it see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreePreparation {
    /// `None` means before the first entry.
    pub target_id: Option<String>,
    pub old_leaf_id: Option<String>,
    /// The last common entry of the abandoned branch and the target's.
    pub common_ancestor_id: Option<String>,
    /// The entries of the abandoned branch, oldest first.
    pub entries_to_summarize: Vec<EntryNo>,
    pub user_wants_summary: bool,
    pub custom_instructions: Option<String>,
    pub replace_instructions: bool,
    pub label: Option<String>,
}

/// The result of preparing a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Navigation {
    /// The target is the current position.
    AlreadyThere,
    MoveTo(TreePreparation),
}

/// The target of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NavigationTarget {
    /// The new leaf; `None` means before the first entry.
    pub leaf: Option<EntryNo>,
    /// The message for the prompt, to be edited and sent again.
    pub prefill: Option<Prefill>,
}

/// A message to be edited.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prefill {
    pub text: String,
    /// Grove's own message without its text: its attachments and options. Other programs' messages have none.
    pub message: Option<Message>,
    /// The blocks of its content other than text, mostly images, each in JSON.
    pub blocks: Vec<String>,
}

/// The point where a new session branches off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BranchPoint {
    /// The last entry of the new session. `None` means that it begins empty.
    pub leaf: Option<EntryNo>,
    pub prefill: Prefill,
}

/// A branch other than the active one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherBranch {
    pub end: EntryNo,
    /// The last common entry with the active branch.
    pub ancestor: Option<EntryNo>,
    /// Its entries after that one, oldest first.
    pub entries: Vec<EntryNo>,
}

/// The reason why there is no such branch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OtherBranchError {
    #[error(transparent)]
    TreeEdit(#[from] TreeEditError),
    #[error("entry {id} is on the active branch")]
    OnActiveBranch { id: String },
}

/// The reason why a session cannot branch off.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BranchPointError {
    #[error(transparent)]
    TreeEdit(#[from] TreeEditError),
    #[error("entry {id} is not a user message: a session can only branch off from one")]
    NotAUserMessage { id: String },
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// Prepares a move from the leaf to an entry, or before the first one.
pub fn prepare(index: &LogIndex, target: Option<&str>, options: NavigateOptions) -> Result<Navigation, TreeEditError> {
    let to = target.map(|target| find(index, target)).transpose()?;
    let old = index.leaf();
    if old == to || is_current(index, old, to) {
        return Ok(Navigation::AlreadyThere);
    }
    let (ancestor, left) = abandoned_branch(index, old, to);
    let id = |entry: EntryNo| index.id(entry).into_owned();
    Ok(Navigation::MoveTo(TreePreparation {
        target_id: to.map(id),
        old_leaf_id: old.map(id),
        common_ancestor_id: ancestor.map(id),
        entries_to_summarize: left,
        user_wants_summary: options.summarize,
        custom_instructions: options.custom_instructions,
        replace_instructions: options.replace_instructions,
        label: options.label,
    }))
}

/// True if only labels and names stand between an entry and the leaf. They hold for the whole log, so going there would
/// change nothing. Going to a user message always moves: it is taken back for editing.
fn is_current(index: &LogIndex, leaf: Option<EntryNo>, to: Option<EntryNo>) -> bool {
    let (Some(leaf), Some(to)) = (leaf, to) else { return false };
    let is_fact = |entry: EntryNo| {
        matches!(index.kind(entry), EntryType::Label | EntryType::SessionInfo | EntryType::TitleChange)
    };
    let stays = |entry: EntryNo| !reopens_for_editing(index, entry);
    stays(to) && index.links.ancestors(leaf).find(|entry| *entry == to || !is_fact(*entry)) == Some(to)
}

/// True if going to an entry takes it back for editing.
fn reopens_for_editing(index: &LogIndex, entry: EntryNo) -> bool {
    matches!(index.role(entry), Some(Role::User | Role::Custom)) || index.kind(entry) == EntryType::CustomMessage
}

/// The branch that ends at an entry, without its common part with the active one.
pub fn other_branch(index: &LogIndex, end: &str) -> Result<OtherBranch, OtherBranchError> {
    let entry = find(index, end)?;
    let (ancestor, entries) = abandoned_branch(index, Some(entry), index.leaf());
    if entries.is_empty() {
        return Err(OtherBranchError::OnActiveBranch { id: end.to_owned() });
    }
    Ok(OtherBranch { end: entry, ancestor, entries })
}

/// The last common entry of two branches, and the entries of the first after it.
fn abandoned_branch(index: &LogIndex, old: Option<EntryNo>, to: Option<EntryNo>) -> (Option<EntryNo>, Vec<EntryNo>) {
    let Some(old) = old else { return (None, Vec::new()) };
    let mut is_on_old = vec![false; index.len()];
    index.links.ancestors(old).for_each(|entry| is_on_old[entry.as_usize()] = true);
    let ancestor = to.and_then(|to| index.links.ancestors(to).find(|entry| is_on_old[entry.as_usize()]));
    let mut left: Vec<EntryNo> = index.links.ancestors(old).take_while(|entry| Some(*entry) != ancestor).collect();
    left.reverse();
    (ancestor, left)
}

/// The result of moving to an entry: a message of the user or of an extension is returned for editing and its parent
/// becomes the leaf; any other entry becomes the leaf itself.
pub fn resolve_target(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    target: EntryNo,
) -> Result<NavigationTarget, FsError> {
    if !reopens_for_editing(index, target) {
        return Ok(NavigationTarget { leaf: Some(target), prefill: None });
    }
    let prefill = prefill(&line(index, source, target)?);
    Ok(NavigationTarget { leaf: index.parent(target), prefill: Some(prefill) })
}

/// The branch point of a new session that begins with an edited user message.
pub fn branch_point(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    target: &str,
) -> Result<BranchPoint, BranchPointError> {
    let entry = find(index, target)?;
    if index.role(entry) != Some(Role::User) {
        return Err(BranchPointError::NotAUserMessage { id: target.to_owned() });
    }
    let prefill = prefill(&line(index, source, entry)?);
    Ok(BranchPoint { leaf: index.parent(entry), prefill })
}

fn prefill(line: &[u8]) -> Prefill {
    #[derive(Deserialize)]
    struct GroveFields {
        message: Option<Message>,
    }
    let EntryFields { line, message } = EntryFields::of(line);
    let mut prefill = Prefill::default();
    match message.content.or(line.content) {
        Some(text @ [b'"', ..]) => prefill.text = lossy(text).unwrap_or_default(),
        list => each_block(list, |json, block| {
            if is(block.kind, "text") {
                prefill.text.push_str(&block.text.and_then(lossy).unwrap_or_default());
            } else {
                prefill.blocks.push(String::from_utf8_lossy(json).into_owned());
            }
            std::ops::ControlFlow::Continue(())
        }),
    }
    prefill.message = line.grove.and_then(|extra| serde_json::from_slice::<GroveFields>(extra).ok()?.message);
    prefill
}
