//! Tool calls: as the person sees them, and as the model made them.

use std::collections::HashSet;

use grove_core::Extra;
use serde_json::{Value, json};

use super::uri::location_of;
use super::{ExportContext, id_of};
use crate::normal::{
    Approval, CallState, FileLocation, Replacement, TodoItem, TodoStatus, ToolInput, TranscriptToolCall,
};
use crate::tools;

/// The reason of a call whose approval is not known.
const UNKNOWN: &str = "unknown";

/// The calls of a turn under construction.
#[derive(Debug)]
pub(super) struct RoundBuilder<'a> {
    export_context: &'a ExportContext,
    number: usize,
    ids: HashSet<String>,
    made: usize,
    rounds: Vec<Round>,
    results: Extra,
}

/// The model's text, and the calls after it.
#[derive(Debug, Default)]
struct Round {
    text: String,
    calls: Vec<Value>,
}

impl<'a> RoundBuilder<'a> {
    pub(super) fn new(export_context: &'a ExportContext, number: usize) -> Self {
        Self { export_context, number, ids: HashSet::new(), made: 0, rounds: Vec::new(), results: Extra::new() }
    }

    pub(super) fn is_native(&self) -> bool {
        self.export_context.is_native
    }

    /// An id that is unused in the turn.
    pub(super) fn next_id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-{}-{}", self.number, self.made)
    }

    /// The id of a call: its own, if it is unique. Results are found by it.
    pub(super) fn id_of(&mut self, call: &TranscriptToolCall) -> String {
        let own = !call.id.is_empty() && !self.ids.contains(&call.id);
        let id = if own { call.id.clone() } else { self.next_id("call") };
        self.ids.insert(id.clone());
        id
    }

    /// Adds text of the model; after calls it begins a new round.
    pub(super) fn text(&mut self, text: &str) {
        match self.rounds.last_mut() {
            Some(round) if round.calls.is_empty() => round.text.push_str(text),
            _ => self.rounds.push(Round { text: text.to_owned(), calls: Vec::new() }),
        }
    }

    /// Adds a call as the model made it, and its result.
    pub(super) fn call(&mut self, call: &TranscriptToolCall, shown_id: &str) {
        let shown = call.shown_name.as_ref().unwrap_or(&call.name);
        // Two ids of one call are matched only if the names do.
        let is_known_again = tools::canonical_tool_name(shown) == tools::canonical_tool_name(&call.name);
        let own = call.model_id.as_ref().filter(|id| is_known_again && !self.ids.contains(*id));
        let id = own.map_or_else(|| shown_id.to_owned(), Clone::clone);
        self.ids.insert(id.clone());
        if let Some(output) = call.output.as_ref().filter(|_| is_over(call)) {
            // A tree's text is kept; only this program's reader understands the rest.
            let whole = output.raw.clone().filter(|raw| self.export_context.is_native && raw.get("content").is_some());
            let plain = || json!({"$mid": 20, "content": [{"$mid": 21, "value": output.text}]});
            self.results.insert(id.clone(), whole.unwrap_or_else(plain));
        }
        let made = json!({"name": call.name, "arguments": arguments(call), "id": id});
        match self.rounds.last_mut() {
            Some(round) => round.calls.push(made),
            None => self.rounds.push(Round { text: String::new(), calls: vec![made] }),
        }
    }

    /// Rounds and results. `texts` are the model's texts of each round, if they are known beside the answer.
    pub(super) fn finish(self, texts: &[String]) -> (Vec<Value>, Extra) {
        let Self { export_context, number, mut rounds, results, .. } = self;
        if !texts.is_empty() {
            let count = rounds.len().max(texts.len());
            rounds.resize_with(count, Round::default);
            for (at, round) in rounds.iter_mut().enumerate() {
                round.text = texts.get(at).cloned().unwrap_or_default();
            }
        }
        let round = |(at, round): (usize, Round)| {
            let id = id_of("round", "", export_context, &format!("{number}.{at}"));
            json!({"response": round.text, "toolCalls": round.calls, "toolInputRetry": 0, "id": id})
        };
        (rounds.into_iter().enumerate().map(round).collect(), results)
    }

    /// The call as the person sees it.
    pub(super) fn invocation(&self, call: &TranscriptToolCall, id: &str) -> Value {
        let label = call.provider.as_deref().unwrap_or("Built-In");
        let tool = call.shown_name.as_ref().unwrap_or(&call.name);
        let words = call.intention.as_ref().unwrap_or(&call.name);
        let mut part = json!({
            "kind": "toolInvocationSerialized",
            "invocationMessage": {"value": words},
            "isConfirmed": confirmed(&call.approval),
            "isComplete": call.state != CallState::Interrupted,
            "source": {"type": if call.provider.is_some() { "extension" } else { "internal" }, "label": label},
            "toolCallId": id,
            "toolId": tool,
        });
        if let Some(summary) = &call.summary {
            part["pastTenseMessage"] = json!({"value": summary});
        }
        if let Some(data) = specific(call, self.export_context) {
            part["toolSpecificData"] = data;
        }
        if let Some(details) = details(call) {
            part["resultDetails"] = details;
        }
        part
    }
}

/// True if a result of the call means that it ended.
fn is_over(call: &TranscriptToolCall) -> bool {
    match call.state {
        CallState::Complete | CallState::Failed => true,
        CallState::Interrupted | CallState::Refused => false,
    }
}

/// VS Code's numbers for approvals.
fn confirmed(approval: &Approval) -> Value {
    let with = |kind: u8, name: &str, more: &Option<String>| match more {
        Some(more) => json!({"type": kind, name: more}),
        None => json!({"type": kind}),
    };
    match approval {
        Approval::Denied => json!({"type": 0}),
        Approval::NotNeeded { reason } => with(1, "reason", reason),
        Approval::Setting { id } => with(2, "id", id),
        Approval::Remembered { scope } => with(3, "scope", scope),
        Approval::Person { button } => with(4, "selectedButton", button),
        Approval::Skipped => json!({"type": 5}),
        // The format requires a number and has none for these: the reason is in words.
        Approval::Unknown | Approval::Waiting => json!({"type": 1, "reason": UNKNOWN}),
    }
}

/// The displayed result: an error, its text, or the named files.
fn details(call: &TranscriptToolCall) -> Option<Value> {
    let failed = call.state == CallState::Failed;
    let is_only_here = call.output.is_some() && !is_over(call);
    if !failed && !is_only_here && !call.places.is_empty() {
        return Some(call.places.iter().map(location_of).collect());
    }
    if !failed && call.output.is_none() {
        return None;
    }
    let output = call.output.iter().map(|output| json!({"type": "embed", "isText": true, "value": output.text}));
    Some(json!({"input": arguments(call), "output": output.collect::<Vec<_>>(), "isError": failed}))
}

/// VS Code's data of specific kinds of tools.
fn specific(call: &TranscriptToolCall, export_context: &ExportContext) -> Option<Value> {
    let mut data = match &call.input {
        ToolInput::Command { command, folder, language, background } => {
            let mut data = json!({
                "kind": "terminal",
                "terminalToolSessionId": "",
                "terminalCommandId": "",
                "commandLine": {"original": command},
                "language": language.as_deref().unwrap_or("sh"),
                "isBackground": background,
            });
            if let Some(folder) = folder {
                data["cwd"] = location_of(&FileLocation::local(folder));
            }
            data
        }
        ToolInput::Todos(items) => {
            json!({"kind": "todoList", "sessionId": export_context.id, "todoList": items.iter().map(todo).collect::<Vec<_>>()})
        }
        ToolInput::Subagent { agent, description, prompt } => {
            let mut data = json!({"kind": "subagent", "prompt": prompt});
            for (name, value) in [("agentName", agent), ("description", description)] {
                if let Some(value) = value {
                    data[name] = value.as_str().into();
                }
            }
            data
        }
        _ => json!({"kind": "input", "rawInput": call.raw_input.clone().or_else(|| understood(&call.input))?}),
    };
    if let (ToolInput::Command { .. }, Some(output)) = (&call.input, &call.output) {
        data["terminalCommandOutput"] = json!({"text": output.text});
    }
    if let (ToolInput::Subagent { .. }, Some(output)) = (&call.input, &call.output) {
        data["result"] = output.text.as_str().into();
    }
    if let Some(code) = call.exit_code {
        data["terminalCommandState"] = json!({"exitCode": code});
    }
    Some(data)
}

/// The input as the model wrote it: JSON as text.
fn arguments(call: &TranscriptToolCall) -> String {
    match call.raw_input.clone().or_else(|| understood(&call.input)) {
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => "{}".to_owned(),
    }
}

/// An input of known meaning, in the form of VS Code's own tools.
fn understood(input: &ToolInput) -> Option<Value> {
    let value = match input {
        ToolInput::Generic => return None,
        ToolInput::Command { command, folder, background, .. } => {
            let mut input = json!({"command": command, "isBackground": background});
            if let Some(folder) = folder {
                input["cwd"] = folder.as_str().into();
            }
            input
        }
        ToolInput::ShellOutput { terminal } => json!({"id": terminal}),
        ToolInput::File { place } => match &place.range {
            Some(range) => json!({
                "filePath": place.shown(),
                "startLine": range.start.line,
                "endLine": range.end.line.saturating_sub(1),
            }),
            None => json!({"filePath": place.shown()}),
        },
        ToolInput::Folder { place } => json!({"path": place.shown()}),
        ToolInput::Todos(items) => json!({"todoList": items.iter().map(todo).collect::<Vec<_>>()}),
        ToolInput::Subagent { agent, description, prompt } => {
            json!({"agentName": agent, "description": description, "prompt": prompt})
        }
        ToolInput::Edits(replacements) => {
            json!({"replacements": replacements.iter().map(replacement).collect::<Vec<_>>()})
        }
    };
    Some(value)
}

fn todo(item: &TodoItem) -> Value {
    let status = match item.status {
        TodoStatus::NotStarted => "not-started",
        TodoStatus::InProgress => "in-progress",
        TodoStatus::Completed => "completed",
    };
    json!({"id": item.id, "title": item.title, "description": item.description, "status": status})
}

fn replacement(replacement: &Replacement) -> Value {
    let mut value = json!({"filePath": replacement.path, "newString": replacement.after});
    if let Some(before) = &replacement.before {
        value["oldString"] = before.as_str().into();
    }
    value
}
