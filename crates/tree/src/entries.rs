//! Lines of entries, as Grove writes them. Where pi and oh-my-pi have different members for the same thing, both are
//! written, so that each finds its own.
//!
//! A line has no line feed. [`LogIndex::append`](crate::LogIndex::append) says whether it fits its log.

use grove_core::Timestamp;
use serde_json::Value;

use crate::indexer::LEAF_MARK;
use crate::object::{JsonObject, quoted};
use crate::time::iso;

/// Grove's own: something that happened to the session, for people who look at its log.
pub const INFO: &str = "grove.info";

/// What every entry has: its id, what it hangs from, and when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Stamp<'a> {
    pub id: &'a str,
    pub parent: Option<&'a str>,
    pub at: Timestamp,
}

/// Whether a person asked for something or a program that extends the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SummaryOrigin {
    Host,
    Extension,
}

/// A summary of a branch that was left.
#[derive(Clone, Copy, Debug)]
pub struct BranchSummary<'a> {
    /// Where it was gone to; nothing is before the first entry.
    pub from: Option<&'a str>,
    pub summary: &'a str,
    pub details: Option<&'a Value>,
    pub origin: SummaryOrigin,
}

/// A summary in place of the older part of a branch.
#[derive(Clone, Copy, Debug)]
pub struct Compaction<'a> {
    pub summary: &'a str,
    /// The first entry that is still given as it is. Without one nothing before the compaction is.
    pub first_kept: Option<&'a str>,
    /// How large the context was, in tokens.
    pub tokens_before: u64,
    pub details: Option<&'a Value>,
    pub origin: SummaryOrigin,
}

/// A message of an extension, which a model is given.
#[derive(Clone, Copy, Debug)]
pub struct CustomMessage<'a> {
    pub custom_type: &'a str,
    /// A text, or a list of blocks.
    pub content: &'a Value,
    /// Whether people see it.
    pub display: bool,
    pub details: Option<&'a Value>,
}

/// Gives an entry a label, or takes it away.
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
    // An entry that comes before nothing but itself is how pi says that nothing was kept; oh-my-pi finds no such entry.
    entry.set("firstKeptEntryId", text(compaction.first_kept.unwrap_or(stamp.id)));
    entry.set("tokensBefore", compaction.tokens_before.to_string());
    set(&mut entry, "details", compaction.details);
    set_origin(&mut entry, compaction.origin);
    entry.render()
}

/// The model that the conversation goes on with.
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

/// The session's name; an empty one takes it away.
pub fn session_info(stamp: Stamp<'_>, name: &str) -> Vec<u8> {
    let mut entry = entry("session_info", stamp);
    entry.set("name", text(name));
    entry.render()
}

/// Grove's own: puts the leaf somewhere, or before the first entry, until the next entry comes. It hangs from where it
/// puts the leaf, so that a program that takes the last line for the leaf finds the same branch.
pub fn leaf_mark(id: &str, at: Timestamp, leaf: Option<&str>) -> Vec<u8> {
    let mut entry = entry("custom", Stamp { id, parent: leaf, at });
    entry.set("customType", text(LEAF_MARK));
    let mut data = JsonObject::default();
    data.set("leafId", leaf.map_or_else(|| b"null".to_vec(), text));
    entry.set("data", data.render());
    entry.render()
}

/// Grove's own: something that happened to the session. `data` says what, at least as `infoType` and `message`.
pub fn info(stamp: Stamp<'_>, data: &Value) -> Vec<u8> {
    let mut entry = entry("custom", stamp);
    entry.set("customType", text(INFO));
    entry.set("data", data.to_string());
    entry.render()
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
