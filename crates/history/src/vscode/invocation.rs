//! Tool calls as the person saw them: `toolInvocationSerialized`.

use grove_transcript::uri::location_from;
use grove_transcript::{Approval, CallState, ToolInput, ToolOutput, TranscriptToolCall, TranscriptToolKind, tools};
use serde_json::Value;

use super::link_labels;
use crate::json::{JsonMembers, text_of};

/// A call. Its data outside the person's view are added from the rounds later.
pub(crate) fn call_of(mut members: JsonMembers) -> TranscriptToolCall {
    let mut call = TranscriptToolCall {
        id: members.string("toolCallId").unwrap_or_default(),
        intention: link_labels::message(&mut members, "invocationMessage"),
        summary: link_labels::message(&mut members, "pastTenseMessage"),
        approval: approval_of(members.any("isConfirmed")),
        ..TranscriptToolCall::default()
    };
    let is_complete = members.flag("isComplete");
    if let Some(tool) = members.string("toolId") {
        call.kind = tools::tool_kind(&tool);
        call.name = tools::canonical_tool_name(&tool);
        call.shown_name = Some(tool);
    }
    if let Some(mut source) = members.object("source") {
        call.provider = source.string("label").or_else(|| source.string("type"));
        source.forget(&["type"]);
        members.keep("source", source);
    }
    let mut failed = false;
    if let Some(details) = members.any("resultDetails") {
        failed = result_details(&mut call, details, &mut members);
    }
    if let Some(mut data) = members.object("toolSpecificData") {
        specific(&mut call, &mut data);
        members.keep("toolSpecificData", data);
    }
    if call.name.is_empty() {
        name_by_words(&mut call);
    }
    call.state = match (&call.approval, is_complete) {
        (Approval::Denied | Approval::Skipped, _) => CallState::Refused,
        (_, Some(true)) if failed || call.exit_code.is_some_and(|code| code != 0) => CallState::Failed,
        (_, Some(true)) => CallState::Complete,
        _ => CallState::Interrupted,
    };
    members.forget(&["kind"]);
    call.raw = members.rest();
    call
}

/// `isConfirmed`: a number with its data; before 1.104 a yes or no.
pub fn approval_of(confirmed: Option<Value>) -> Approval {
    match confirmed {
        None => Approval::Unknown,
        Some(Value::Bool(true)) => Approval::Person { button: None },
        Some(Value::Bool(false)) => Approval::Denied,
        Some(value) => {
            let text = |key: &str| value.get(key).map(text_of);
            match value.get("type").and_then(Value::as_u64) {
                Some(0) => Approval::Denied,
                Some(1) => Approval::NotNeeded { reason: text("reason") },
                Some(2) => Approval::Setting { id: text("id") },
                Some(3) => Approval::Remembered { scope: text("scope") },
                Some(4) => Approval::Person { button: text("selectedButton") },
                Some(5) => Approval::Skipped,
                _ => Approval::Unknown,
            }
        }
    }
}

/// Reads a call's displayed result; returns true if it failed.
fn result_details(call: &mut TranscriptToolCall, details: Value, members: &mut JsonMembers) -> bool {
    if let Value::Array(places) = &details {
        call.places = places.iter().filter_map(location_from).collect();
        if call.places.len() == places.len() {
            return false;
        }
    }
    let mut details = match JsonMembers::of(details) {
        Ok(details) => details,
        Err(other) => {
            let mut wrapper = JsonMembers::default();
            wrapper.insert("values", other);
            members.keep("resultDetails", wrapper);
            return false;
        }
    };
    if let Some(input) = details.any("input") {
        call.raw_input = Some(parsed(input));
    }
    let failed = details.flag("isError").unwrap_or(false);
    let output = details.list("output");
    if !output.is_empty() {
        let texts: Vec<&str> = output.iter().filter_map(shown_text).collect();
        call.output = Some(ToolOutput { text: texts.join("\n"), raw: Some(Value::Array(output)) });
    }
    members.keep("resultDetails", details);
    failed
}

/// A piece of output that is text, and not bytes.
fn shown_text(piece: &Value) -> Option<&str> {
    let is_bytes = piece.get("isText").and_then(Value::as_bool) == Some(false);
    piece.as_str().or_else(|| piece.get("value")?.as_str()).filter(|_| !is_bytes)
}

/// Reads the data of a specific kind of tool. Understood members are taken, the rest stays.
fn specific(call: &mut TranscriptToolCall, data: &mut JsonMembers) {
    let kind = data.peek("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
    match kind.as_str() {
        "terminal" => terminal(call, data),
        "input" => {
            if let Some(input) = data.any("rawInput") {
                let input = parsed(input);
                call.input = tools::input_of(call.kind, &input);
                call.raw_input = Some(input);
            }
        }
        "todoList" => {
            call.input = ToolInput::Todos(tools::todo_items(&data.list("todoList")));
            known(call, TranscriptToolKind::Todo);
        }
        "subagent" => {
            known(call, TranscriptToolKind::Subagent);
            call.input = ToolInput::Subagent {
                agent: data.string("agentName"),
                description: data.string("description"),
                prompt: data.string("prompt").unwrap_or_default(),
            };
            if let Some(result) = data.any("result") {
                call.output = Some(ToolOutput { text: text_of(&result), raw: None });
            }
        }
        "simpleToolInvocation" => {
            call.raw_input = data.any("input").map(parsed).or(call.raw_input.take());
            if let Some(output) = data.any("output") {
                call.output = Some(ToolOutput { text: text_of(&output), raw: None });
            }
        }
        "resources" => call.places = data.list("values").iter().filter_map(location_from).collect(),
        // Searches, extensions, pull requests and confirmations: kept unchanged, and shown by the call's own text.
        _ => return,
    }
    data.forget(&["kind"]);
}

fn terminal(call: &mut TranscriptToolCall, data: &mut JsonMembers) {
    known(call, TranscriptToolKind::Shell);
    let mut line = data.object("commandLine").unwrap_or_default();
    // The command that ran is the one edited by the person, or else by the tool.
    let edited = line.string("userEdited").or_else(|| line.string("toolEdited"));
    let command = match edited {
        Some(command) => Some(command),
        None => line.string("original").or_else(|| data.string("command")),
    };
    data.keep("commandLine", line);
    if let Some(command) = command {
        call.input = ToolInput::Command {
            command,
            folder: data.any("cwd").and_then(|folder| location_from(&folder)).map(|place| place.shown().to_owned()),
            language: data.string("language"),
            background: data.flag("isBackground").unwrap_or(false),
        };
    }
    if let Some(mut output) = data.object("terminalCommandOutput") {
        call.output = output.string("text").map(|text| ToolOutput { text, raw: None });
        data.keep("terminalCommandOutput", output);
    }
    if let Some(mut state) = data.object("terminalCommandState") {
        call.exit_code = state.signed("exitCode");
        data.keep("terminalCommandState", state);
    }
}

/// Sets the kind from the data if the name does not tell it.
fn known(call: &mut TranscriptToolCall, kind: TranscriptToolKind) {
    if call.kind == TranscriptToolKind::Other {
        call.kind = kind;
    }
}

/// Guesses the tool's name from the displayed text: sessions of mid-2025 do not record it.
fn name_by_words(call: &mut TranscriptToolCall) {
    let link_labels = call.summary.as_deref().or(call.intention.as_deref()).unwrap_or_default();
    if let Some(title) = link_labels.strip_prefix("Using \"").and_then(|rest| rest.split('"').next()) {
        (call.name, call.kind) = match title {
            "Edit File" => ("insert_edit_into_file".to_owned(), TranscriptToolKind::Edit),
            "Run in Terminal" => ("run_in_terminal".to_owned(), TranscriptToolKind::Shell),
            _ => (title.to_owned(), call.kind),
        };
        return;
    }
    let kind = match link_labels.split(' ').next() {
        Some("Searched" | "Searching") => TranscriptToolKind::Search,
        Some("Read" | "Reading") => TranscriptToolKind::Read,
        Some("Created" | "Edited" | "Creating" | "Editing") => TranscriptToolKind::Edit,
        _ => TranscriptToolKind::Other,
    };
    known(call, kind);
    call.name = "unnamed".to_owned();
}

/// Parses JSON in text; other text stays text.
pub(crate) fn parsed(value: Value) -> Value {
    match &value {
        Value::String(text) => match serde_json::from_str(text) {
            Ok(parsed @ (Value::Object(_) | Value::Array(_))) => parsed,
            _ => value,
        },
        _ => value,
    }
}
