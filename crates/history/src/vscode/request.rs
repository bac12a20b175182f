//! A request with its response: one turn.

use grove_core::{ErrorInfo, Extra, Timestamp};
use grove_transcript::uri::location_from;
use grove_transcript::{
    CodeBlock, CodeCitation, Notice, TranscriptAgent, TranscriptMessage, TranscriptModel, TranscriptPart,
    TranscriptTurn, TranscriptUsage, TurnOutcome,
};
use serde_json::{Number, Value};

use super::attachments::attachment_of;
use super::pairing::{ModelCall, pair};
use super::parts::response_of;
use super::prompt_blocks::blocks_of;
use crate::json::{JsonMembers, text_of};

/// A turn, and its request's data on the workspace.
#[derive(Debug)]
pub(crate) struct RequestTurn {
    pub turn: TranscriptTurn,
    /// The URIs of the workspace's folders.
    pub cache_key: Option<String>,
}

/// Reads a request; a value that is not an object is returned as the error.
pub(crate) fn request_of(value: Value) -> Result<RequestTurn, Value> {
    let mut request = JsonMembers::of(value)?;
    let mut result = request.object("result");
    let is_answered = result.is_some() || request.has("modelState");
    let mut turn = TranscriptTurn {
        id: request.string("requestId").unwrap_or_default(),
        response_id: request.string("responseId"),
        started_at: request.time("timestamp"),
        ..TranscriptTurn::default()
    };
    turn.message = message_of(&mut request);
    let values = match request.any("response") {
        Some(Value::Array(values)) => values,
        Some(Value::Null) | None => Vec::new(),
        Some(other) => vec![other],
    };
    let response = response_of(values);
    turn.parts = response.parts;
    turn.references = response.references;

    let mut cache_key = None;
    let mut display = None;
    let mut usage = usage_of(&mut request);
    let mut error = error_of(request.object("responseErrorDetails"));
    if let Some(result) = &mut result {
        timings(&mut turn, result);
        error = error_of(result.object("errorDetails")).or(error);
        display = result.message("details");
        usage.fill(usage_of(result));
        if let Some(mut metadata) = result.object("metadata") {
            cache_key = metadata.string("cacheKey");
            usage.fill(usage_of(&mut metadata));
            metadata_of(&mut turn, &mut metadata);
            result.keep("metadata", metadata);
        }
    }
    turn.usage = Some(usage).filter(|usage| !usage.is_empty());
    turn.model = model_of(request.string("modelId"), display, response.chosen_model);
    turn.agent = agent_of(&mut request, turn.agent.take());
    turn.mode = mode_of(&mut request);
    end(&mut turn, &mut request, error, is_answered);
    turn.references.extend(request.list("contentReferences").iter().filter_map(reference_of));
    turn.citations = request.list("codeCitations").into_iter().map(citation_of).collect();
    turn.followups = request.list("followups").iter().filter_map(followup_of).collect();
    if let Some(result) = result {
        request.keep("result", result);
    }
    request.forget(&["isCanceled"]);
    turn.raw = request.rest();
    Ok(RequestTurn { turn, cache_key })
}

fn message_of(request: &mut JsonMembers) -> TranscriptMessage {
    let mut message = TranscriptMessage::default();
    match request.any("message") {
        Some(Value::Object(members)) => {
            let mut members = JsonMembers::of(Value::Object(members)).unwrap_or_default();
            message.text = members.string("text").unwrap_or_default();
            let parts = members.list("parts");
            add_words(&mut message.text, &parts);
            // Plain text parts repeat the text.
            let telling: Vec<Value> =
                parts.into_iter().filter(|part| part.get("kind").and_then(Value::as_str) != Some("text")).collect();
            message.command = telling.iter().find_map(command_of);
            message.raw = members.rest();
            if !telling.is_empty() {
                message.raw.insert("parts".to_owned(), Value::Array(telling));
            }
        }
        Some(other) => message.text = text_of(&other),
        None => {}
    }
    if let Some(mut data) = request.object("variableData") {
        message.attachments = data.list("variables").into_iter().map(attachment_of).collect();
        request.keep("variableData", data);
    }
    if let Some(command) = request.object("slashCommand").and_then(|mut command| command.string("name")) {
        message.command = Some(command);
    }
    if request.flag("isSystemInitiated") == Some(true) {
        message.origin = grove_core::MessageOrigin::SystemNotification;
    }
    message
}

/// Adds text that is only in the parts of a message: all of it if the message has no text of its own.
fn add_words(text: &mut String, parts: &[Value]) {
    let words: Vec<String> = parts.iter().filter_map(words_of).collect();
    let joined = words.concat();
    if text.trim().is_empty() || (joined.len() > text.len() && joined.contains(text.trim())) {
        *text = joined;
        return;
    }
    for word in words.iter().map(|word| word.trim()).filter(|word| !word.is_empty()) {
        if !text.contains(word) {
            text.push('\n');
            text.push_str(word);
        }
    }
}

/// A part of a message as the person wrote it.
fn words_of(part: &Value) -> Option<String> {
    let text = |key: &str| part.get(key).and_then(Value::as_str);
    let name = |key: &str| part.get(key).and_then(|inner| inner.as_str().or_else(|| inner.get("name")?.as_str()));
    if let Some(text) = text("text") {
        return Some(text.to_owned());
    }
    let (sign, name) = match text("kind")? {
        "agent" => ("@", name("agent")),
        "subcommand" => ("/", name("command")),
        "slash" => ("/", name("slashCommand").or_else(|| part.get("slashCommand")?.get("command")?.as_str())),
        "prompt" => ("/", text("name").or_else(|| text("promptName"))),
        "tool" => ("#", text("toolName")),
        "toolset" => ("#", text("name")),
        "var" => ("#", text("variableName")),
        _ => ("", None),
    };
    name.map(|name| format!("{sign}{name}"))
}

fn command_of(part: &Value) -> Option<String> {
    let kind = part.get("kind")?.as_str()?;
    let command = part.get(match kind {
        "subcommand" => "command",
        "slash" => "slashCommand",
        _ => return None,
    })?;
    command.as_str().or_else(|| command.get("name").or_else(|| command.get("command"))?.as_str()).map(str::to_owned)
}

fn timings(turn: &mut TranscriptTurn, result: &mut JsonMembers) {
    if let Some(mut timings) = result.object("timings") {
        turn.first_response_ms = timings.unsigned("firstProgress");
        turn.total_ms = timings.unsigned("totalElapsed");
        result.keep("timings", timings);
    }
}

fn metadata_of(turn: &mut TranscriptTurn, metadata: &mut JsonMembers) {
    turn.agent_session = metadata.string("sessionId");
    turn.model_message_id = metadata.string("modelMessageId");
    turn.agent = metadata.string("agentId").map(|id| TranscriptAgent { id, ..TranscriptAgent::default() });
    turn.code_blocks = metadata.list("codeBlocks").into_iter().filter_map(code_block_of).collect();
    for key in ["renderedUserMessage", "renderedGlobalContext"] {
        turn.context.extend(blocks_of(&metadata.list(key)));
    }
    let mut calls = Vec::new();
    let mut thoughts = Vec::new();
    for round in metadata.list("toolCallRounds") {
        let Ok(mut round) = JsonMembers::of(round) else { continue };
        turn.rounds.extend(round.string("response").filter(|text| !text.is_empty()));
        calls.extend(round.list("toolCalls").into_iter().filter_map(ModelCall::of));
        if let Some(text) = round.object("thinking").and_then(|mut thinking| thinking.string("text")) {
            thoughts.push(TranscriptPart::Reasoning { text, title: None, duration_ms: None });
        }
    }
    let mut results = metadata.object("toolCallResults").unwrap_or_default();
    pair(&mut turn.parts, calls, &mut results);
    metadata.keep("toolCallResults", results);
    if !turn.parts.iter().any(|part| matches!(part, TranscriptPart::Reasoning { .. })) {
        turn.parts.splice(0..0, thoughts);
    }
}

fn code_block_of(value: Value) -> Option<CodeBlock> {
    let mut block = JsonMembers::of(value).ok()?;
    Some(CodeBlock {
        code: block.string("code").unwrap_or_default(),
        language: block.string("language").unwrap_or_default(),
        before: block.string("markdownBeforeBlock").unwrap_or_default(),
        raw: block.rest(),
    })
}

fn citation_of(value: Value) -> CodeCitation {
    let text = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    CodeCitation {
        source: value.get("value").and_then(location_from).map(|place| place.uri).unwrap_or_default(),
        licence: text("license"),
        snippet: text("snippet"),
    }
}

fn reference_of(value: &Value) -> Option<grove_transcript::FileLocation> {
    let reference = value.get("reference").unwrap_or(value);
    location_from(reference).or_else(|| location_from(reference.get("value")?))
}

fn followup_of(value: &Value) -> Option<String> {
    value.get("message").or_else(|| value.get("title")).unwrap_or(value).as_str().map(str::to_owned)
}

fn usage_of(members: &mut JsonMembers) -> TranscriptUsage {
    let completion = members.unsigned("completionTokens");
    TranscriptUsage {
        input_tokens: members.unsigned("promptTokens"),
        output_tokens: completion.or_else(|| members.unsigned("outputTokens")),
        cost: members.number("copilotCredits"),
        ..TranscriptUsage::default()
    }
}

/// `details` reads as `Name • 3x`: the model's display name, and the cost of a request.
pub fn details_of(details: &str) -> (&str, Option<Number>) {
    let split = details.rsplit_once('•').and_then(|(name, factor)| {
        let factor = factor.trim().strip_suffix('x')?;
        let whole = factor.parse::<u64>().ok().map(Number::from);
        Some((name.trim(), whole.or_else(|| Number::from_f64(factor.parse().ok()?))?))
    });
    split.map_or((details.trim(), None), |(name, factor)| (name, Some(factor)))
}

fn model_of(id: Option<String>, details: Option<String>, chosen: Option<String>) -> Option<TranscriptModel> {
    let mut model = id.as_deref().filter(|id| !id.is_empty()).map(TranscriptModel::new);
    if let Some(details) = details.filter(|details| !details.trim().is_empty()) {
        let (name, multiplier) = details_of(&details);
        // A model without an id is identified by its display name.
        let model =
            model.get_or_insert_with(|| TranscriptModel { model: name.to_owned(), ..TranscriptModel::default() });
        model.display_name = Some(name.to_owned());
        model.multiplier = multiplier;
    } else if let Some(model) = &mut model {
        model.display_name = chosen;
    }
    model
}

fn agent_of(request: &mut JsonMembers, known: Option<TranscriptAgent>) -> Option<TranscriptAgent> {
    let Some(mut agent) = request.object("agent") else { return known };
    let extension = agent.object("extensionId").and_then(|mut id| id.string("value"));
    let read = TranscriptAgent {
        id: agent.string("id").or(known.map(|known| known.id)).unwrap_or_default(),
        name: agent.string("fullName").or_else(|| agent.string("name")).unwrap_or_default(),
        extension: extension.or_else(|| agent.string("extensionId")),
        version: agent.string("extensionVersion"),
    };
    // Repeated with each request: the agent's description and offers.
    agent.forget(&[
        "name",
        "description",
        "when",
        "metadata",
        "disambiguation",
        "slashCommands",
        "locations",
        "modes",
        "isDefault",
        "isCore",
        "publisherDisplayName",
        "extensionPublisherId",
        "extensionDisplayName",
    ]);
    request.keep("agent", agent);
    Some(read)
}

fn mode_of(request: &mut JsonMembers) -> Option<String> {
    let mut mode = request.object("modeInfo")?;
    let kind = mode.string("kind").or_else(|| mode.string("telemetryModeName"));
    mode.forget(&["isBuiltin"]);
    request.keep("modeInfo", mode);
    kind
}

fn error_of(details: Option<JsonMembers>) -> Option<ErrorInfo> {
    let mut details = details?;
    let message = details.message("message").unwrap_or_default();
    let is = |details: &JsonMembers, key: &str| details.peek(key).and_then(Value::as_bool) == Some(true);
    let kind = match details.string("code") {
        Some(code) => code,
        None if is(&details, "isQuotaExceeded") => "quotaExceeded".to_owned(),
        None if is(&details, "isRateLimited") => "rateLimited".to_owned(),
        None if is(&details, "responseIsFiltered") => "filtered".to_owned(),
        None => "agentFailed".to_owned(),
    };
    Some(ErrorInfo::new(kind, message))
}

/// Sets the outcome and the end time of the turn.
fn end(turn: &mut TranscriptTurn, request: &mut JsonMembers, error: Option<ErrorInfo>, is_answered: bool) {
    let is_cancelled = request.flag("isCanceled").unwrap_or(false);
    let mut completed_at = None;
    let mut state = None;
    if let Some(mut model_state) = request.object("modelState") {
        state = model_state.unsigned("value");
        completed_at = model_state.time("completedAt");
        request.keep("modelState", model_state);
    }
    turn.total_ms = turn.total_ms.or_else(|| request.unsigned("elapsedMs"));
    let after = turn.started_at.zip(turn.total_ms).map(|(at, ms)| Timestamp(at.0.saturating_add(ms)));
    turn.ended_at = completed_at.or(after).or_else(|| request.time("responseTimestamp"));
    let failed = |error: Option<ErrorInfo>| {
        TurnOutcome::Failed(error.unwrap_or_else(|| ErrorInfo::new("agentFailed", "The turn failed; no reason given.")))
    };
    turn.outcome = match state {
        Some(1) => {
            // It was answered all the same.
            turn.parts.extend(error.map(|error| {
                TranscriptPart::Notice(Notice { kind: error.kind, text: error.message, raw: Extra::new() })
            }));
            TurnOutcome::Complete
        }
        Some(2) => TurnOutcome::Cancelled,
        Some(3) => failed(error),
        // It ran, or waited for an answer, when its file was last written.
        Some(0 | 4) => TurnOutcome::Interrupted,
        Some(_) | None if is_cancelled => TurnOutcome::Cancelled,
        Some(_) | None if error.is_some() => failed(error),
        Some(_) | None if is_answered => TurnOutcome::Complete,
        Some(_) | None => TurnOutcome::Interrupted,
    };
}
