//! Tool calls: exactly the members that the agent sent, and no defaults.

use grove_checks::Check;
use grove_core::*;
use serde_json::{Value, json};

use super::{JsonObject, block, take_text, text};
use crate::agent::*;

/// The reason why a call cannot be read.
pub(super) const NO_ID: &str = "it has no member \"toolCallId\" that is a text";

/// The name under which a call keeps the members that are not modelled.
const EXTRA: &str = "acp";
/// Its entries beside unmodelled members: the ids of our terminals, and the rest of content blocks.
const TERMINALS: &str = "terminals";
const CONTENT: &str = "content";
const META: &str = "_meta";
/// The members of a call's metadata with pieces of the output of a terminal that the agent runs.
const TERMINAL_OUTPUTS: [&str; 2] = ["terminal_output", "terminal_output_delta"];

/// Reads a `tool_call`, a `tool_call_update`, or the call of a permission request. `None` if it names no call.
pub(super) fn read(mut members: JsonObject) -> Option<ToolUpdate> {
    let id = take_text(&mut members, "toolCallId")?;
    let mut update = ToolUpdate::of(ToolCallId::from(id));
    let kind_name = text(&members, "kind").map(str::to_owned);
    update.kind = kind_name.as_deref().and_then(kind);
    let name = take_text(&mut members, "name").or_else(|| kind_name.filter(|kind| kind != "other"));
    // Questions show it: with a line break or a change of direction it could look like another question.
    update.name = match Check::ToolName.is_enforced() {
        true => name.and_then(|name| normalized_title(&name)),
        false => name,
    };
    // A command may have several lines.
    update.title = take_text(&mut members, "title").map(|title| printable(&title)).filter(|title| !title.is_empty());
    update.stage = take_stage(&mut members);
    update.input = members.remove("rawInput").filter(|input| !is_empty(input)).map(|input| input.to_string());

    // Several agents send an empty list for "nothing yet"; it removes nothing.
    update.output = take_content(&mut members);
    let result = members.remove("rawOutput").filter(|result| !is_empty(result));
    // A result does not replace shown content: content that an update does not mention stays as it was.
    update.result_text = result.as_ref().filter(|_| update.output.is_none()).and_then(result_text);
    update.structured = result.map(|result| match result {
        Value::Object(result) => result,
        other => [("output".to_owned(), other)].into_iter().collect(),
    });
    members.retain(|_, value| !is_empty(value));
    if !members.is_empty() {
        update.extra = Some([(EXTRA.to_owned(), Value::Object(members))].into_iter().collect());
    }
    Some(update)
}

/// The ids of the terminals that a call shows.
pub(crate) fn terminals(update: &ToolUpdate) -> Vec<String> {
    let named = update.extra.as_ref().and_then(|extra| extra.get(EXTRA)?.get(TERMINALS)?.as_array());
    named.into_iter().flatten().filter_map(|id| id.as_str().map(ToOwned::to_owned)).collect()
}

/// Takes the output of terminals that the agent runs itself out of a call's data. Agents that show such terminals send
/// it as metadata, piece by piece.
pub(crate) fn take_terminal_outputs(update: &mut ToolUpdate) -> Vec<String> {
    let Some(extra) = update.extra.as_mut() else { return Vec::new() };
    let mut outputs = Vec::new();
    if let Some(Value::Object(members)) = extra.get_mut(EXTRA) {
        if let Some(Value::Object(meta)) = members.get_mut(META) {
            for name in TERMINAL_OUTPUTS {
                if let Some(data) = meta.get(name).and_then(|output| output.get("data")).and_then(Value::as_str) {
                    outputs.push(data.to_owned());
                    meta.remove(name);
                }
            }
        }
        members.retain(|_, value| !is_empty(value));
    }
    extra.retain(|_, value| !is_empty(value));
    update.extra.take_if(|extra| extra.is_empty());
    outputs
}

/// Grove's kind for a kind of tool. Other kinds are distinguished by name only.
pub(super) fn kind(name: &str) -> Option<ToolKind> {
    Some(match name {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Terminal,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::SwitchMode,
        _ => return None,
    })
}

/// The call's stage; an unknown word leaves it unchanged.
fn take_stage(members: &mut JsonObject) -> Option<ToolStage> {
    let stage = match text(members, "status")? {
        "pending" => ToolStage::Pending,
        "in_progress" => ToolStage::Running,
        "completed" => ToolStage::Completed,
        "failed" => ToolStage::Failed,
        _ => return None,
    };
    members.remove("status");
    Some(stage)
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Takes the content that blocks show. The rest of each block stays under its name; terminals are listed beside them.
fn take_content(members: &mut JsonObject) -> Option<AccumulatedOutput> {
    let blocks = match members.remove("content")? {
        Value::Array(blocks) => blocks,
        other => {
            members.insert(CONTENT.to_owned(), other);
            return None;
        }
    };
    let (mut texts, mut pieces, mut terminals, mut rest) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let takes_terminals = !members.contains_key(TERMINALS);
    for mut block in blocks {
        match take_shown(&mut block) {
            Some(ContentItem::Text(text)) => texts.push(text),
            Some(ContentItem::ToolOutputPart(piece)) => pieces.push(piece),
            Some(ContentItem::Terminal(id)) if takes_terminals => terminals.push(Value::from(id)),
            Some(ContentItem::Terminal(id)) => rest.push(json!({"type": "terminal", "terminalId": id})),
            None => {}
        }
        if !is_empty(&block) {
            rest.push(block);
        }
    }
    for (name, values) in [(TERMINALS, terminals), (CONTENT, rest)] {
        if !values.is_empty() {
            members.insert(name.to_owned(), Value::Array(values));
        }
    }
    let gave = AccumulatedOutput { text: texts.join("\n"), pieces };
    (!gave.text.is_empty() || !gave.pieces.is_empty()).then_some(gave)
}

/// The content that a block shows.
enum ContentItem {
    Text(String),
    ToolOutputPart(ToolOutputPart),
    Terminal(String),
}

/// Takes the shown content out of a block. Its kind stays if anything else does.
fn take_shown(block: &mut Value) -> Option<ContentItem> {
    let block = block.as_object_mut()?;
    let shown = match text(block, "type")? {
        "terminal" => ContentItem::Terminal(take_text(block, "terminalId")?),
        "diff" => ContentItem::ToolOutputPart(take_edit(block)?),
        "content" => {
            let inner = block.get_mut("content")?.as_object_mut()?;
            let shown = match text(inner, "type")? {
                "text" => ContentItem::Text(take_text(inner, "text")?),
                "image" | "audio" => ContentItem::ToolOutputPart(take_bytes(inner)?),
                _ => return None,
            };
            if inner.len() == 1 {
                block.remove("content");
            }
            shown
        }
        _ => return None,
    };
    if block.len() == 1 {
        block.remove("type");
    }
    Some(shown)
}

fn take_edit(block: &mut JsonObject) -> Option<ToolOutputPart> {
    let side = |name: &str| match block.get(name) {
        None | Some(Value::Null) => Some(None),
        Some(Value::String(text)) => Some(Some(text.clone())),
        Some(_) => None,
    };
    let (before, after) = (side("oldText")?, side("newText")?);
    if before.is_none() && after.is_none() {
        return None;
    }
    let path = take_text(block, "path")?;
    block.remove("oldText");
    block.remove("newText");
    Some(ToolOutputPart::Edit { path, before, after })
}

fn take_bytes(inner: &mut JsonObject) -> Option<ToolOutputPart> {
    let bytes = block::decoded(text(inner, "data")?)?;
    let mime_type = take_text(inner, "mimeType")?;
    inner.remove("data");
    Some(ToolOutputPart::Bytes { mime_type, bytes })
}

/// The text of a raw result. An agent that gives its output only there uses one of these names.
fn result_text(result: &Value) -> Option<String> {
    const NAMES: [&str; 6] = ["output", "formatted_output", "aggregated_output", "content", "text", "result"];
    let members = match result {
        Value::Object(members) => members,
        other => return plain_text(other),
    };
    NAMES.iter().find_map(|name| members.get(*name).and_then(plain_text)).or_else(|| {
        let streams = ["stdout", "stderr"].into_iter().filter_map(|name| text(members, name));
        Some(streams.collect::<Vec<_>>().join("\n")).filter(|text| !text.is_empty())
    })
}

/// A text, or the texts of a list of blocks or of results.
fn plain_text(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let text =
                |block: &Value| ["text", "result"].iter().find_map(|name| Some(block.get(*name)?.as_str()?.to_owned()));
            blocks.iter().filter_map(text).collect::<Vec<_>>().join("\n")
        }
        _ => return None,
    };
    Some(text).filter(|text| !text.is_empty())
}
