//! Tool calls: description, status and result.

use grove_core as core;
use serde_json::Value;

use super::{extra, from_extra};
use crate::ahp::*;
use crate::value_reader::from_value;

/// A call's metadata beside its name.
pub fn call_meta(
    kind: Option<core::ToolKind>,
    language: Option<&String>,
    agent_extra: Option<&core::Extra>,
    ran_ms: Option<u64>,
) -> Option<Object> {
    let kind = kind.map(|kind| match kind {
        core::ToolKind::Terminal => "terminal",
        core::ToolKind::Read => "read",
        core::ToolKind::Edit => "edit",
        core::ToolKind::Delete => "delete",
        core::ToolKind::Move => "move",
        core::ToolKind::Search => "search",
        core::ToolKind::Think => "think",
        core::ToolKind::Fetch => "fetch",
        core::ToolKind::SwitchMode => "switchMode",
    });
    let known = extra([
        ("toolKind", kind.map(|kind| Ok(Value::from(kind)))),
        ("language", language.map(|language| Ok(Value::from(language.as_str())))),
        ("ranMs", ran_ms.map(|ran_ms| Ok(Value::from(ran_ms)))),
    ]);
    match (known, agent_extra) {
        (known, None) => known,
        (known, Some(agent_extra)) => {
            let mut meta = agent_extra.clone();
            meta.extend(known.unwrap_or_default());
            Some(meta)
        }
    }
}

pub fn contributor(client: Option<&core::ClientId>) -> Option<ToolCallContributor> {
    let of = |client: &core::ClientId| ToolCallClientContributor { client_id: client.to_string() };
    client.map(|client| ToolCallContributor::Client(of(client)))
}

pub(super) fn base(call: &core::ToolCall) -> ToolCallBase {
    ToolCallBase {
        tool_call_id: call.id.to_string(),
        tool_name: call.name.clone(),
        display_name: call.display_name.clone(),
        intention: call.intention.clone(),
        contributor: contributor(call.client.as_ref()),
        meta: call_meta(call.kind, call.language.as_ref(), call.extra.as_ref(), call.ran_ms),
    }
}

pub(super) fn parameters(call: &core::ToolCall) -> ToolCallParameters {
    ToolCallParameters {
        invocation_message: call.invocation_message.as_str().into(),
        tool_input: call.input.as_ref().map(|input| ToolInput::Inline(input.clone())),
    }
}

pub fn confirmed_by(by: core::ConfirmationReason) -> ToolCallConfirmationReason {
    match by {
        core::ConfirmationReason::NotNeeded => ToolCallConfirmationReason::NotNeeded,
        core::ConfirmationReason::Person => ToolCallConfirmationReason::UserAction,
        core::ConfirmationReason::Setting => ToolCallConfirmationReason::Setting,
    }
}

pub fn option(option: &core::PermissionOption) -> ConfirmationOption {
    ConfirmationOption {
        id: option.id.clone(),
        label: option.label.clone(),
        kind: if option.allows { ConfirmationOptionKind::Approve } else { ConfirmationOptionKind::Deny },
        // Lasting options are grouped apart.
        group: option.lasting.then_some(1),
    }
}

/// The question in words: the agent's, or a description of the request.
pub fn confirmation_title(request: &core::PermissionRequest) -> StringOrMarkdown {
    let path = request.path.as_deref();
    match (&request.title, request.kind, path) {
        (Some(title), _, _) => title.as_str().into(),
        (None, core::PermissionKind::Shell, _) => "Run this command?".into(),
        (None, core::PermissionKind::Write, Some(path)) => format!("Write {path}?").into(),
        (None, core::PermissionKind::Write, None) => "Write a file?".into(),
        (None, core::PermissionKind::Read, Some(path)) => format!("Read {path}?").into(),
        (None, core::PermissionKind::Read, None) => "Read a file?".into(),
        (None, core::PermissionKind::Mcp, _) => "Call this tool?".into(),
        (None, core::PermissionKind::Url, _) => "Open this address?".into(),
    }
}

/// The changes that a waiting call would make.
pub fn edits(session: &core::SessionId, request: &core::PermissionRequest) -> Option<FileEditCollection> {
    let items: Vec<_> = request.edits.iter().map(|change| file_edit(session, change)).collect();
    Some(FileEditCollection { items }).filter(|edits| !edits.items.is_empty())
}

pub fn options(request: &core::PermissionRequest) -> Option<Vec<ConfirmationOption>> {
    Some(request.options.iter().map(option).collect::<Vec<_>>()).filter(|options| !options.is_empty())
}

pub fn result(session: &core::SessionId, result: &core::ToolResult) -> ToolCallResult {
    let extra = result.extra.as_ref();
    let given = || {
        let text = result.output.iter().map(|text| text_content(text));
        let content: Vec<_> = text.chain(attached(session, &result.attached)).collect();
        Some(content).filter(|content| !content.is_empty())
    };
    ToolCallResult {
        success: result.success,
        past_tense_message: from_extra(extra, "pastTenseMessage")
            .unwrap_or_else(|| result.past_tense_message.as_str().into()),
        content: from_extra(extra, "content").or_else(given),
        structured_content: from_extra(extra, "structuredContent"),
        error: from_extra(extra, "error"),
    }
}

fn text_content(text: &str) -> ToolResultContent {
    ToolResultContent::Text(ToolResultTextContent { text: text.to_owned() })
}

fn attached<'a>(
    session: &'a core::SessionId,
    attached: &'a [core::ToolAttachment],
) -> impl Iterator<Item = ToolResultContent> + 'a {
    attached.iter().map(move |attached| match attached {
        core::ToolAttachment::Content(content) => ToolResultContent::Resource(super::content_ref(session, content)),
        core::ToolAttachment::Edit(change) => ToolResultContent::FileEdit(file_edit(session, change)),
    })
}

fn file_edit(session: &core::SessionId, change: &core::FileChange) -> FileEdit {
    let side = |content: &core::ContentRef| FileEditSide {
        uri: super::directory(&change.path),
        content: super::content_ref(session, content),
    };
    FileEdit {
        before: change.before.as_ref().map(side),
        after: change.after.as_ref().map(side),
        diff: Some(FileEditDiffStats { added: Some(change.added), removed: Some(change.removed) }),
    }
}

pub fn output(session: &core::SessionId, output: &core::ToolOutput) -> Vec<ToolResultContent> {
    let pieces = output
        .pieces
        .as_ref()
        .map(|pieces| pieces.iter().filter_map(|piece| from_value(piece).ok()).collect::<Vec<_>>());
    pieces.unwrap_or_else(|| {
        let text = Some(text_content(&output.text)).filter(|_| !output.text.is_empty() || output.attached.is_empty());
        text.into_iter().chain(attached(session, &output.attached)).collect()
    })
}

pub(super) fn confirmed(call: &core::ToolCall) -> (ToolCallConfirmationReason, Option<ConfirmationOption>) {
    match &call.confirmed {
        Some(confirmed) => (confirmed_by(confirmed.by), confirmed.option.as_ref().map(option)),
        None => (ToolCallConfirmationReason::NotNeeded, None),
    }
}

pub(super) fn running(session: &core::SessionId, call: &core::ToolCall) -> ToolCallRunning {
    let (confirmed, selected_option) = confirmed(call);
    let content = call.output.as_ref().map(|output| self::output(session, output));
    ToolCallRunning { base: base(call), parameters: parameters(call), confirmed, selected_option, content }
}

pub fn tool_call(session: &core::SessionId, call: &core::ToolCall) -> ToolCallState {
    let (base, parameters) = (base(call), parameters(call));
    let (confirmed, selected_option) = confirmed(call);
    match &call.status {
        core::ToolCallStatus::Streaming => ToolCallState::Streaming(ToolCallStreaming {
            base,
            partial_input: call.input.clone(),
            invocation_message: None,
        }),
        core::ToolCallStatus::Ready => ToolCallState::PendingConfirmation(ToolCallPendingConfirmation {
            base,
            parameters,
            ..ToolCallPendingConfirmation::default()
        }),
        core::ToolCallStatus::PendingConfirmation(request) => {
            ToolCallState::PendingConfirmation(ToolCallPendingConfirmation {
                base,
                parameters,
                confirmation_title: Some(confirmation_title(request)),
                edits: edits(session, request),
                editable: Some(request.editable),
                options: options(request),
                ..ToolCallPendingConfirmation::default()
            })
        }
        core::ToolCallStatus::Running => ToolCallState::Running(running(session, call)),
        core::ToolCallStatus::PendingResultConfirmation(result) => {
            let result = self::result(session, result);
            ToolCallState::PendingResultConfirmation(ToolCallPendingResultConfirmation {
                base,
                parameters,
                result,
                confirmed,
                selected_option,
            })
        }
        core::ToolCallStatus::Completed(result) => {
            let result = self::result(session, result);
            ToolCallState::Completed(ToolCallCompleted { base, parameters, result, confirmed, selected_option })
        }
        core::ToolCallStatus::Cancelled(cancellation) => {
            let extra = cancellation.extra.as_ref();
            ToolCallState::Cancelled(ToolCallCancelled {
                base,
                parameters,
                reason: cancel_reason(cancellation.reason),
                reason_message: from_extra(extra, "reasonMessage"),
                user_suggestion: from_extra(extra, "userSuggestion"),
                selected_option: cancellation.option.as_ref().map(option),
            })
        }
    }
}

pub fn cancel_reason(reason: core::CancelReason) -> ToolCallCancellationReason {
    match reason {
        core::CancelReason::Denied => ToolCallCancellationReason::Denied,
        core::CancelReason::Skipped => ToolCallCancellationReason::Skipped,
        core::CancelReason::ResultDenied => ToolCallCancellationReason::ResultDenied,
    }
}

/// A call in a finished turn: a call that has not ended is cancelled.
pub(super) fn finished_call(session: &core::SessionId, call: &core::ToolCall) -> ToolCallState {
    match &call.status {
        core::ToolCallStatus::Completed(_) | core::ToolCallStatus::Cancelled(_) => tool_call(session, call),
        unfinished => ToolCallState::Cancelled(ToolCallCancelled {
            base: base(call),
            parameters: match unfinished {
                // An incomplete input is dropped.
                core::ToolCallStatus::Streaming => ToolCallParameters::default(),
                _ => parameters(call),
            },
            reason: ToolCallCancellationReason::Skipped,
            reason_message: None,
            user_suggestion: None,
            selected_option: None,
        }),
    }
}
