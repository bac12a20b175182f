//! Updates of tool calls, merged into the known call.
//!
//! Agents report their calls in any order: some request permission before they report the call, some start with a call
//! without its command, some only send changes. So every update is compared with the current call, and becomes the
//! steps that lead from there to the reported state. Late updates change nothing.

use bytes::Bytes;
use grove_agents::{AccumulatedOutput, ToolOutputPart, ToolStage, ToolUpdate};
use grove_core::*;
use similar::{Algorithm, ChangeTag, TextDiff};
use std::time::Duration;

use super::ReportTranslator;

/// The member that holds the title of a call that has not started to run.
const TITLE: &str = "title";
/// The answer of the host to a request whose agent goes on without one.
const NOT_AWAITED: &str = "the agent did not wait for an answer";
/// The depth to which objects are merged member by member; below, the newer value replaces the older.
const MERGED_DEPTH: usize = 8;
/// The time for comparing the lines of an edit; past it, the count is rough.
const DIFF_TIMEOUT: Duration = Duration::from_millis(100);

pub(super) fn upsert(update: &mut ToolUpdate, active: &ActiveTurn, out: &mut ReportTranslator<'_>) {
    let turn = &active.id;
    let known = active.tool_call(&update.call);
    if let Some(extra) = &mut update.extra {
        // An agent could claim that a person approved its call.
        HOST_METADATA.iter().for_each(|name| drop(extra.remove(*name)));
    }
    let waiting_title = known.and_then(|call| call.extra.as_ref()?.get(TITLE)?.as_str().map(ToOwned::to_owned));
    let title = update.title.take().filter(|title| !title.is_empty());
    let call = match known {
        Some(known) => NewToolCall { extra: merged(known.extra.as_ref(), update.extra.take()), ..known.names() },
        None => begin(update),
    };
    let ran = match known.map(|call| &call.status) {
        None | Some(ToolCallStatus::Streaming) => {
            let extra = call.extra.clone();
            // An update of an existing call would be lost if it were not reported now.
            let adds =
                known.is_some_and(|known| call.extra != known.extra || title.is_some() && title != waiting_title);
            let says_more = adds
                || update.permission.is_some()
                || update.output.is_some()
                || update.result_text.is_some()
                || update.input.is_some()
                || !matches!(update.stage, None | Some(ToolStage::Pending));
            if known.is_none() {
                // The title of a call without content is shown when the call says what it does.
                let waiting = title.clone().filter(|_| !says_more);
                let extra = with_title(extra.clone(), waiting);
                out.chat(ChatEvent::ToolCallStarted {
                    turn: turn.clone(),
                    call: NewToolCall { extra, ..call.clone() },
                });
            }
            if !says_more {
                return;
            }
            let invocation_message = title.or(waiting_title).unwrap_or_else(|| call.display_name.clone());
            let input = update.input.take();
            out.chat(ChatEvent::ToolCallReady {
                turn: turn.clone(),
                call: NewToolCall { extra: without_title(extra), ..call.clone() },
                invocation_message: invocation_message.clone(),
                input: input.clone(),
                gate: if update.permission.is_some() { Gate::Follows } else { Gate::None },
            });
            ask(update, turn, &call, invocation_message.clone(), input, out);
            StartedCall { title: invocation_message, restated: false }
        }
        Some(ToolCallStatus::Running) => {
            let Some(known) = known else { return };
            let message = title.unwrap_or_else(|| known.invocation_message.clone());
            let input = update.input.take().filter(|input| known.input.as_ref() != Some(input));
            if update.permission.is_some() {
                ask(update, turn, &call, message.clone(), input, out);
                StartedCall { title: message, restated: false }
            } else if message != known.invocation_message || input.is_some() || call.extra != known.extra {
                let confirmed =
                    known.confirmed.as_ref().map_or(ConfirmationReason::NotNeeded, |confirmed| confirmed.by);
                let restated =
                    InvocationUpdate { call: call.clone(), invocation_message: message.clone(), input, confirmed };
                out.chat(ChatEvent::ToolCallRestated { turn: turn.clone(), restated: Box::new(restated) });
                StartedCall { title: message, restated: true }
            } else {
                StartedCall { title: message, restated: false }
            }
        }
        Some(ToolCallStatus::PendingConfirmation(pending)) => {
            let Some(known) = known.filter(|_| withdraw(update.stage, turn, pending, out)) else { return };
            StartedCall { title: known.invocation_message.clone(), restated: false }
        }
        Some(
            ToolCallStatus::Ready
            | ToolCallStatus::PendingResultConfirmation(_)
            | ToolCallStatus::Completed(_)
            | ToolCallStatus::Cancelled(_),
        ) => return,
    };
    go_on(update, turn, &call, known, ran, out);
}

/// Answers a permission request for which the agent does not wait any longer. Returns false if the update says nothing
/// of the kind, or drops the call.
fn withdraw(
    stage: Option<ToolStage>,
    turn: &TurnId,
    pending: &PermissionRequest,
    out: &mut ReportTranslator<'_>,
) -> bool {
    let by = ConfirmationReason::Setting;
    let verdict = match stage {
        Some(ToolStage::Completed) => Verdict { by, ..Decision::Approved.into() },
        Some(ToolStage::Failed) => Verdict { by, skipped: true, ..Decision::Denied.into() },
        Some(ToolStage::Pending | ToolStage::Running) | None => return false,
    };
    let continues = verdict.decision == Decision::Approved;
    // It withdraws its request, which nobody has decided: the host does.
    let resolve = ClientCommand::ResolvePermission {
        chat: out.place.chat.id.clone(),
        turn: turn.clone(),
        question: PermissionTarget::Request(pending.id.clone()),
        verdict,
        answered_by: Some(Box::new(Answerer::rule(NOT_AWAITED))),
    };
    out.command(Command::Host(resolve.into()));
    continues
}

/// A call that runs, or is waiting for permission.
struct StartedCall {
    title: String,
    /// Its output so far must be repeated.
    restated: bool,
}

/// Translates a call's output and its end.
fn go_on(
    update: &mut ToolUpdate,
    turn: &TurnId,
    call: &NewToolCall,
    known: Option<&ToolCall>,
    ran: StartedCall,
    out: &mut ReportTranslator<'_>,
) {
    let success = match update.stage {
        Some(ToolStage::Completed) => true,
        Some(ToolStage::Failed) => false,
        // A call that waits for permission has no output yet.
        Some(ToolStage::Pending | ToolStage::Running) | None if update.permission.is_some() => return,
        Some(ToolStage::Pending | ToolStage::Running) | None => {
            let before = known.and_then(|call| call.output.as_ref());
            let output = match (update.output.take(), update.result_text.take()) {
                (Some(gave), _) => Some(running_output(gave, out)),
                (None, Some(text)) if !before.is_some_and(shows_more_than_text) => {
                    Some(running_output(AccumulatedOutput { text, pieces: Vec::new() }, out))
                }
                (None, _) => before.cloned(),
            };
            if let Some(output) = output.filter(|output| ran.restated || before != Some(output)) {
                out.chat(ChatEvent::ToolCallOutput { turn: turn.clone(), call: call.id.clone(), output });
            }
            return;
        }
    };
    let (output, attached) = match update.output.take() {
        Some(gave) => {
            let attached = attach(gave.pieces, out);
            (Some(gave.text).filter(|text| !text.is_empty()), attached)
        }
        // Output that the update does not mention stays: above all a diff is not removed by a result.
        None => {
            let before = known.and_then(|call| call.output.clone());
            let before = before.unwrap_or(ToolOutput { text: String::new(), pieces: None, attached: Vec::new() });
            let result_text = update.result_text.take();
            let text = match shows_more_than_text(&before) && !before.text.is_empty() {
                true => Some(before.text),
                false => result_text.or(Some(before.text)),
            };
            (text.filter(|text| !text.is_empty()), before.attached)
        }
    };
    let extra = update.structured.take().map(|structured| {
        let mut extra = Extra::new();
        extra.insert("structuredContent".to_owned(), structured.into());
        extra
    });
    let result = ToolResult { success, past_tense_message: ran.title, output, attached, extra };
    let result = out.bounded(turn, result);
    out.chat(ChatEvent::ToolCallCompleted { turn: turn.clone(), call: call.id.clone(), result, run: None });
}

/// Says whether a call shows edits or bytes, which a text cannot replace.
fn shows_more_than_text(output: &ToolOutput) -> bool {
    !output.attached.is_empty()
}

fn begin(update: &mut ToolUpdate) -> NewToolCall {
    let named = update.name.take().filter(|name| !name.is_empty());
    let display_name = named.clone().unwrap_or_else(|| label(update.kind).to_owned());
    NewToolCall {
        id: update.call.clone(),
        name: named.unwrap_or_else(|| "tool".to_owned()),
        display_name,
        kind: update.kind,
        language: (update.kind == Some(ToolKind::Terminal)).then(|| "shellscript".to_owned()),
        client: update.client.take(),
        extra: update.extra.take(),
    }
}

fn label(kind: Option<ToolKind>) -> &'static str {
    match kind {
        Some(ToolKind::Terminal) => "Run a command",
        Some(ToolKind::Read) => "Read",
        Some(ToolKind::Edit) => "Edit",
        Some(ToolKind::Delete) => "Delete",
        Some(ToolKind::Move) => "Move",
        Some(ToolKind::Search) => "Search",
        Some(ToolKind::Think) => "Think",
        Some(ToolKind::Fetch) => "Fetch",
        Some(ToolKind::SwitchMode) => "Switch the mode",
        None => "Use a tool",
    }
}

fn ask(
    update: &mut ToolUpdate,
    turn: &TurnId,
    call: &NewToolCall,
    invocation_message: String,
    input: Option<String>,
    out: &mut ReportTranslator<'_>,
) {
    if let Some(asked) = &mut update.permission {
        // The permission request shows the edits.
        let pieces = update.output.take().map(|gave| gave.pieces).unwrap_or_default();
        asked.request.edits = attach(pieces, out).into_iter().filter_map(edit).collect();
        let gated = ToolCallGate {
            call: call.id.clone(),
            request: asked.request.clone(),
            invocation_message: Some(invocation_message),
            input,
            hook: asked.asks.hook_gate(),
        };
        out.chat(ChatEvent::ToolCallGated { turn: turn.clone(), gated: Box::new(gated) });
    }
}

/// The output of a running call: its end, which is the interesting part while it grows.
fn running_output(gave: AccumulatedOutput, out: &mut ReportTranslator<'_>) -> ToolOutput {
    let most = out.place.limits.preview_bytes;
    let text = match gave.text.len() > most {
        true => gave.text[gave.text.ceil_char_boundary(gave.text.len() - most)..].to_owned(),
        false => gave.text,
    };
    ToolOutput { text, pieces: None, attached: attach(gave.pieces, out) }
}

fn attach(pieces: Vec<ToolOutputPart>, out: &mut ReportTranslator<'_>) -> Vec<ToolAttachment> {
    let attach = |piece| match piece {
        ToolOutputPart::Bytes { mime_type, bytes } => {
            ToolAttachment::Content(out.content(Bytes::from(bytes), Some(mime_type)))
        }
        ToolOutputPart::Edit { path, before, after } => {
            let (added, removed) = compare(before.as_deref(), after.as_deref());
            let mut side = |text: String| out.content(Bytes::from(text), Some("text/plain".to_owned()));
            let (before, after) = (before.map(&mut side), after.map(&mut side));
            ToolAttachment::Edit(FileChange { path, before, after, added, removed })
        }
    };
    pieces.into_iter().map(attach).collect()
}

fn edit(attached: ToolAttachment) -> Option<FileChange> {
    match attached {
        ToolAttachment::Edit(change) => Some(change),
        ToolAttachment::Content(_) => None,
    }
}

/// The numbers of added and of removed lines.
fn compare(before: Option<&str>, after: Option<&str>) -> (u64, u64) {
    let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
    let diff = TextDiff::configure().algorithm(Algorithm::RawMyers).timeout(DIFF_TIMEOUT).diff_lines(before, after);
    diff.iter_all_changes().fold((0, 0), |(added, removed), change| match change.tag() {
        ChangeTag::Insert => (added + 1, removed),
        ChangeTag::Delete => (added, removed + 1),
        ChangeTag::Equal => (added, removed),
    })
}

/// Merges new metadata of a call into the known ones, member by member.
fn merged(known: Option<&Extra>, update: Option<Extra>) -> Option<Extra> {
    let Some(update) = update else { return known.cloned() };
    let mut merged = known.cloned().unwrap_or_default();
    merge(&mut merged, update, MERGED_DEPTH);
    Some(merged)
}

fn merge(known: &mut Extra, update: Extra, depth: usize) {
    for (name, value) in update {
        match (known.get_mut(&name), value) {
            (Some(serde_json::Value::Object(mine)), serde_json::Value::Object(theirs)) if depth > 0 => {
                merge(mine, theirs, depth - 1);
            }
            (_, value) => drop(known.insert(name, value)),
        }
    }
}

fn with_title(extra: Option<Extra>, title: Option<String>) -> Option<Extra> {
    let Some(title) = title else { return extra };
    let mut extra = extra.unwrap_or_default();
    extra.insert(TITLE.to_owned(), title.into());
    Some(extra)
}

fn without_title(extra: Option<Extra>) -> Option<Extra> {
    let mut extra = extra?;
    extra.remove(TITLE);
    Some(extra)
}

#[cfg(test)]
mod tests;
