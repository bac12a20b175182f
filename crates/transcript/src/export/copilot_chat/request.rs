//! A turn as a request with its response.

use grove_core::MessageOrigin;
use serde_json::{Value, json};

use super::call::RoundBuilder;
use super::parts::response;
use super::uri::{location_of, uri_of};
use super::{ExportContext, id_of};
use crate::normal::{
    CodeCitation, ContextBlock, FileLocation, TranscriptAgent, TranscriptAttachment, TranscriptAttachmentKind,
    TranscriptModel, TranscriptTurn, TurnOutcome,
};

/// VS Code's default agent for a session without one.
const AGENT: &str = "github.copilot.editsAgent";
const EXTENSION: &str = "GitHub.copilot-chat";

/// The turn of this number.
pub(super) fn request(turn: &TranscriptTurn, number: usize, export_context: &ExportContext) -> Value {
    let what = number.to_string();
    let response_id = id_of("response", turn.response_id.as_deref().unwrap_or_default(), export_context, &what);
    let mut calls = RoundBuilder::new(export_context, number);
    let parts = response(&turn.parts, &mut calls);
    let began = turn.started_at.unwrap_or(export_context.began);
    let mut request = json!({
        "requestId": id_of("request", &turn.id, export_context, &what),
        "responseId": response_id,
        "message": message(&turn.message.text),
        "variableData": {"variables": turn.message.attachments.iter().map(variable).collect::<Vec<_>>()},
        "response": parts,
        "result": result(turn, export_context, calls),
        "isCanceled": turn.outcome == TurnOutcome::Cancelled,
        "followups": turn.followups.iter().map(|text| json!({"kind": "reply", "message": text, "agentId": AGENT}))
            .collect::<Vec<_>>(),
        "timestamp": began,
        "modelId": turn.model.as_ref().map(|model| model.id.as_str()).unwrap_or_default(),
        "agent": agent(turn.agent.as_ref(), export_context),
        "responseMarkdownInfo": [],
        "contentReferences": turn.references.iter()
            .map(|place| json!({"kind": "reference", "reference": location_of(place)})).collect::<Vec<_>>(),
        "codeCitations": turn.citations.iter().map(citation).collect::<Vec<_>>(),
        "modelState": state(turn),
    });
    request["result"]["metadata"]["responseId"] = response_id.into();
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            request[name] = value;
        }
    };
    add("slashCommand", turn.message.command.as_ref().map(|name| json!({"name": name, "description": ""})));
    add("isSystemInitiated", (turn.message.origin == MessageOrigin::SystemNotification).then_some(true.into()));
    add("modeInfo", turn.mode.as_deref().map(mode));
    let usage = turn.usage.as_ref();
    add("promptTokens", usage.and_then(|usage| usage.input_tokens).map(Value::from));
    add("completionTokens", usage.and_then(|usage| usage.output_tokens).map(Value::from));
    add("copilotCredits", usage.and_then(|usage| usage.cost.clone()).map(Value::Number));
    request
}

/// A message with one part that covers all of it. Offsets count UTF-16 units, as in JavaScript.
fn message(text: &str) -> Value {
    let last = text.rsplit('\n').next().unwrap_or_default();
    json!({
        "text": text,
        "parts": [{
            "range": {"start": 0, "endExclusive": text.encode_utf16().count()},
            "editorRange": {
                "startLineNumber": 1,
                "startColumn": 1,
                "endLineNumber": text.matches('\n').count() + 1,
                "endColumn": last.encode_utf16().count() + 1,
            },
            "text": text,
            "kind": "text",
        }],
    })
}

fn variable(attachment: &TranscriptAttachment) -> Value {
    let kind = match attachment.kind {
        TranscriptAttachmentKind::File | TranscriptAttachmentKind::Selection => "file",
        TranscriptAttachmentKind::Folder => "directory",
        TranscriptAttachmentKind::Symbol => "symbol",
        TranscriptAttachmentKind::Text => "string",
        TranscriptAttachmentKind::Image => "image",
        TranscriptAttachmentKind::Prompt => "promptText",
        TranscriptAttachmentKind::Tool => "tool",
        TranscriptAttachmentKind::Command => "command",
        TranscriptAttachmentKind::Output => "terminalCommand",
        TranscriptAttachmentKind::Diagnostic => "diagnostic",
        TranscriptAttachmentKind::Change => "scmHistoryItem",
        TranscriptAttachmentKind::Session => "sessionReference",
        TranscriptAttachmentKind::Other => "generic",
    };
    let mut members = attachment.raw.clone();
    let foreign = Some(attachment.foreign_kind.as_str()).filter(|kind| !kind.is_empty());
    let value = match (&attachment.place, &attachment.text) {
        (Some(place), _) => Some(location_of(place)),
        (None, Some(text)) => Some(Value::from(text.as_str())),
        (None, None) => None,
    };
    members.insert("kind".to_owned(), foreign.unwrap_or(kind).into());
    members.insert("name".to_owned(), attachment.name.as_str().into());
    if !members.contains_key("id") {
        members.insert("id".to_owned(), attachment.name.as_str().into());
    }
    if let Some(value) = value {
        members.insert("value".to_owned(), value);
    } else if !members.contains_key("value") {
        members.insert("value".to_owned(), "".into());
    }
    Value::Object(members)
}

fn result(turn: &TranscriptTurn, export_context: &ExportContext, calls: RoundBuilder<'_>) -> Value {
    let took = turn.total_ms.or_else(|| Some(turn.ended_at?.0.saturating_sub(turn.started_at?.0))).unwrap_or(0);
    let context: Vec<Value> = turn.context.iter().map(|block| json!({"type": 1, "text": rendered(block)})).collect();
    let blocks = turn.code_blocks.iter().map(|block| {
        let mut members = block.raw.clone();
        members.insert("code".to_owned(), block.code.as_str().into());
        members.insert("language".to_owned(), block.language.as_str().into());
        members.insert("markdownBeforeBlock".to_owned(), block.before.as_str().into());
        Value::Object(members)
    });
    let agent = turn.agent.as_ref().map(|agent| agent.id.as_str()).filter(|id| !id.is_empty()).unwrap_or(AGENT);
    let (rounds, results) = calls.finish(&turn.rounds);
    let mut result = json!({
        "timings": {"firstProgress": turn.first_response_ms.unwrap_or(took), "totalElapsed": took},
        "metadata": {
            "codeBlocks": blocks.collect::<Vec<_>>(),
            "renderedUserMessage": context,
            "toolCallRounds": rounds,
            "toolCallResults": results,
            "cacheKey": export_context.cache_key,
            "modelMessageId": turn.model_message_id.as_deref().unwrap_or_default(),
            "sessionId": turn.agent_session.as_deref().unwrap_or(&export_context.id),
            "agentId": agent,
        },
        "details": turn.model.as_ref().map(details).unwrap_or_default(),
    });
    if let TurnOutcome::Failed(error) = &turn.outcome {
        result["errorDetails"] = json!({"message": error.message, "code": error.kind});
    }
    result
}

/// A block in the form of the prompt.
fn rendered(block: &ContextBlock) -> String {
    let ContextBlock { name, attributes, text } = block;
    match (name.is_empty(), attributes.is_empty()) {
        (true, _) => text.clone(),
        (false, true) => format!("<{name}>\n{text}\n</{name}>"),
        (false, false) => format!("<{name} {attributes}>\n{text}\n</{name}>"),
    }
}

fn details(model: &TranscriptModel) -> String {
    let name = model.display_name.as_deref().unwrap_or_default();
    match &model.multiplier {
        Some(multiplier) => format!("{name} • {multiplier}x"),
        None => name.to_owned(),
    }
}

fn state(turn: &TranscriptTurn) -> Value {
    let value = match &turn.outcome {
        TurnOutcome::Interrupted => 0,
        TurnOutcome::Complete => 1,
        TurnOutcome::Cancelled => 2,
        TurnOutcome::Failed(_) => 3,
    };
    match turn.ended_at {
        Some(at) => json!({"value": value, "completedAt": at}),
        None => json!({"value": value}),
    }
}

fn mode(mode: &str) -> Value {
    match mode {
        "ask" | "edit" | "agent" => json!({"kind": mode, "isBuiltin": true, "telemetryModeId": mode}),
        other => json!({"isBuiltin": false, "telemetryModeId": "custom", "telemetryModeName": other}),
    }
}

fn citation(cited: &CodeCitation) -> Value {
    let place = FileLocation { uri: cited.source.clone(), ..FileLocation::default() };
    let mut value = uri_of(&place);
    // The original text, even if it is not a URI.
    value["external"] = cited.source.as_str().into();
    json!({"kind": "codeCitation", "value": value, "license": cited.licence, "snippet": cited.snippet})
}

fn agent(agent: Option<&TranscriptAgent>, export_context: &ExportContext) -> Value {
    let non_empty =
        |text: Option<&str>, otherwise: &str| text.filter(|text| !text.is_empty()).unwrap_or(otherwise).to_owned();
    let extension = non_empty(agent.and_then(|agent| agent.extension.as_deref()), EXTENSION);
    let name = non_empty(agent.map(|agent| agent.name.as_str()), &export_context.agent);
    json!({
        "extensionId": {"value": extension, "_lower": extension.to_lowercase()},
        "extensionVersion": non_empty(agent.and_then(|agent| agent.version.as_deref()), ""),
        "publisherDisplayName": "",
        "extensionPublisherId": extension.split('.').next().unwrap_or_default(),
        "extensionDisplayName": "",
        "id": non_empty(agent.map(|agent| agent.id.as_str()), AGENT),
        "description": "",
        "when": "",
        "metadata": {"themeIcon": {"id": "tools"}, "hasFollowups": false, "supportIssueReporting": false},
        "name": name,
        "fullName": name,
        "isDefault": true,
        "locations": ["panel"],
        "modes": ["agent"],
        "slashCommands": [],
        "disambiguation": [],
    })
}
