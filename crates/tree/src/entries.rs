//! Entry lines as Grove writes them. If pi and oh-my-pi use different members for the same thing, both are written.
//!
//! Lines have no line feed. [`LogIndex::append`](crate::LogIndex::append) checks that a line fits its log.

use grove_core::Timestamp;
use serde_json::Value;

use crate::indexer::LEAF_MARK;
use crate::object::{JsonObject, quoted};
use crate::time::iso;

/// Grove's own: an event of the session, for readers of its log.
pub const INFO: &str = "grove.info";

/// The common fields of entries: id, parent and time.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    pub id: &'a str,
    pub parent: Option<&'a str>,
    pub at: Timestamp,
}

/// The requester of a summary: a person, or an extension of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryOrigin {
    Host,
    Extension,
}

/// A summary of an abandoned branch.
#[derive(Clone, Copy, Debug)]
pub struct BranchSummary<'a> {
    /// The target of the move; `None` means before the first entry.
    pub from: Option<&'a str>,
    pub summary: &'a str,
    pub details: Option<&'a Value>,
    pub origin: SummaryOrigin,
}

/// A summary that replaces the older part of a branch.
#[derive(Clone, Copy, Debug)]
pub struct Compaction<'a> {
    pub summary: &'a str,
    /// The first kept entry. `None` means that nothing before the compaction is kept.
    pub first_kept: Option<&'a str>,
    /// The size of the context in tokens.
    pub tokens_before: u64,
    pub details: Option<&'a Value>,
    pub origin: SummaryOrigin,
}

/// A message of an extension, included in a model's context.
#[derive(Clone, Copy, Debug)]
pub struct CustomMessage<'a> {
    pub custom_type: &'a str,
    /// A text, or a list of blocks.
    pub content: &'a Value,
    /// True if people see it.
    pub display: bool,
    pub details: Option<&'a Value>,
}

/// Sets or removes an entry's label.
pub fn label(stamp: Stamp<'_>, target: &str, label: Option<&str>) -> Vec<u8> {
    let mut entry = entry("label", stamp);
    entry.set("targetId", text(target));
    if let Some(label) = label.filter(|label| !label.is_empty()) {
        entry.set("label", text(label));
    }
    entry.render()
}

pub fn branch_summary(stamp: Stamp<'_>, summary: &BranchSummary<'_>) -> Vec<u8> {
    let mut entry = entry("branch_summary", stamp);
    entry.set("fromId", text(summary.from.unwrap_or("root")));
    entry.set("summary", text(summary.summary));
    set(&mut entry, "details", summary.details);
    set_origin(&mut entry, summary.origin);
    entry.render()
}

pub fn compaction(stamp: Stamp<'_>, compaction: &Compaction<'_>) -> Vec<u8> {
    let mut entry = entry("compaction", stamp);
    entry.set("summary", text(compaction.summary));
    // pi marks a compaction that kept nothing by its own id; oh-my-pi finds no such entry before it.
    entry.set("firstKeptEntryId", text(compaction.first_kept.unwrap_or(stamp.id)));
    entry.set("tokensBefore", compaction.tokens_before.to_string());
    set(&mut entry, "details", compaction.details);
    set_origin(&mut entry, compaction.origin);
    entry.render()
}

/// Sets the model of the further conversation.
pub fn model_change(stamp: Stamp<'_>, provider: &str, model_id: &str) -> Vec<u8> {
    let mut entry = entry("model_change", stamp);
    entry.set("provider", text(provider));
    entry.set("modelId", text(model_id));
    entry.set("model", text(&format!("{provider}/{model_id}")));
    entry.set("role", text("default"));
    entry.render()
}

pub fn thinking_level_change(stamp: Stamp<'_>, level: &str) -> Vec<u8> {
    let mut entry = entry("thinking_level_change", stamp);
    entry.set("thinkingLevel", text(level));
    entry.render()
}

pub fn mode_change(stamp: Stamp<'_>, mode: &str, data: Option<&Value>) -> Vec<u8> {
    let mut entry = entry("mode_change", stamp);
    entry.set("mode", text(mode));
    set(&mut entry, "data", data);
    entry.render()
}

pub fn custom_message(stamp: Stamp<'_>, message: &CustomMessage<'_>) -> Vec<u8> {
    let mut entry = entry("custom_message", stamp);
    entry.set("customType", text(message.custom_type));
    entry.set("content", message.content.to_string());
    entry.set("display", message.display.to_string());
    set(&mut entry, "details", message.details);
    entry.render()
}

/// Sets the session's name; an empty one removes it.
pub fn session_info(stamp: Stamp<'_>, name: &str) -> Vec<u8> {
    let mut entry = entry("session_info", stamp);
    entry.set("name", text(name));
    entry.render()
}

/// Grove's own: sets the leaf to an entry, or before the first one, until the next entry comes. The mark is a child of
/// that leaf, so that a program that takes the last line for the leaf finds the same branch.
pub fn leaf_mark(id: &str, at: Timestamp, leaf: Option<&str>) -> Vec<u8> {
    let mut entry = entry("custom", Stamp { id, parent: leaf, at });
    entry.set("customType", text(LEAF_MARK));
    let mut data = JsonObject::default();
    data.set("leafId", leaf.map_or_else(|| b"null".to_vec(), text));
    entry.set("data", data.render());
    entry.render()
}

/// Grove's own: an event of the session. `data` has at least `infoType` and `message`.
pub fn info(stamp: Stamp<'_>, data: &Value) -> Vec<u8> {
    let mut entry = entry("custom", stamp);
    entry.set("customType", text(INFO));
    entry.set("data", data.to_string());
    entry.render()
}

/// True for the line of an [`info`] entry.
pub fn is_info(line: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct CustomLine {
        custom_type: String,
    }
    serde_json::from_slice::<CustomLine>(line).is_ok_and(|line| line.custom_type == INFO)
}

pub(crate) fn entry<'a>(kind: &str, stamp: Stamp<'_>) -> JsonObject<'a> {
    let mut entry = JsonObject::default();
    entry.set("type", text(kind));
    entry.set("id", text(stamp.id));
    entry.set("parentId", stamp.parent.map_or_else(|| b"null".to_vec(), text));
    entry.set("timestamp", text(&iso(stamp.at)));
    entry
}

/// pi and oh-my-pi have different names for it.
fn set_origin(entry: &mut JsonObject<'_>, origin: SummaryOrigin) {
    let is_extension = (origin == SummaryOrigin::Extension).to_string();
    entry.set("fromHook", is_extension.clone());
    entry.set("fromExtension", is_extension);
}

fn set(entry: &mut JsonObject<'_>, name: &str, value: Option<&Value>) {
    if let Some(value) = value {
        entry.set(name, value.to_string());
    }
}

pub(crate) fn text(text: &str) -> Vec<u8> {
    quoted(text.as_bytes())
}
