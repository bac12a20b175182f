//! Recorded conversations with real agents: every message is understood and nothing of it is lost.
//!
//! Our own cases have the structure of each recording; the recordings are outside the repository ([`grove_fixtures`]).

use std::path::PathBuf;

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use grove_core::*;
use grove_fixtures::both;
use grove_wire::ahp::SessionConfigSchema;
use serde_json::Value;
use tokio::sync::oneshot;

use super::map::{self, UpdateContent};
use super::settings::AgentSettings;
use crate::agent::*;

/// Updates that the agents send beyond the protocol.
const EXTENSIONS: &[&str] =
    &["_auth/status_update", "craft/drainMidTurnQueue", "qwen/notify/session/prompt-suggestion"];

/// Requests that are not translated here.
const SERVED: &[&str] = &["terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"];

/// The recorded messages of each agent, with the direction of each.
fn conversations() -> Vec<(String, Vec<Value>)> {
    let folders = both("acp");
    let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap());
    let paths = files.map(|file| file.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|kind| kind == "jsonl")).collect();
    paths.sort();
    assert_eq!(paths.len(), 8 * folders.len());
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        (path.file_stem().unwrap().to_string_lossy().into_owned(), lines.collect())
    };
    paths.iter().map(read).collect()
}

/// The messages of the agents, in order, each with its agent.
fn messages() -> Vec<(String, Value)> {
    let all = conversations().into_iter().flat_map(|(agent, lines)| {
        let theirs = lines.into_iter().filter(|line| line["dir"] == "a->c");
        theirs.map(move |line| (agent.clone(), line["msg"].clone()))
    });
    all.collect()
}

/// Asserts that every word and number that was said of a call occurs in its translation.
pub(super) fn assert_nothing_lost(call: &Value, update: &ToolUpdate) {
    let mut content = ReportedContent::default();
    content.take(update);
    let members = call.as_object().into_iter().flatten();
    for (name, value) in members.filter(|(name, _)| *name != "sessionUpdate") {
        match name.as_str() {
            "status" if update.stage.is_some() => {}
            "content" => value.as_array().into_iter().flatten().for_each(|block| content.has_block(block, call)),
            _ => content.has(value, call),
        }
    }
}

/// Everything that the translation of a call holds.
#[derive(Default)]
struct ReportedContent {
    texts: Vec<String>,
    others: Vec<Value>,
    bytes: Vec<Vec<u8>>,
}

impl ReportedContent {
    fn take(&mut self, update: &ToolUpdate) {
        self.texts.push(update.call.to_string());
        self.texts.extend(update.name.iter().chain(&update.title).cloned());
        if let Some(input) = &update.input {
            self.take_leaves(&serde_json::from_str(input).expect("an input is JSON"));
        }
        for extra in update.structured.iter().chain(&update.extra) {
            self.take_leaves(&Value::Object(extra.clone()));
        }
        self.texts.extend(update.result_text.clone());
        let Some(output) = &update.output else { return };
        self.texts.push(output.text.clone());
        for piece in &output.pieces {
            match piece {
                ToolOutputPart::Edit { path, before, after } => {
                    self.texts.extend([path].into_iter().chain(before).chain(after).cloned());
                }
                ToolOutputPart::Bytes { mime_type, bytes } => {
                    self.texts.push(mime_type.clone());
                    self.bytes.push(bytes.clone());
                }
            }
        }
    }

    fn take_leaves(&mut self, value: &Value) {
        leaves(value, &mut |leaf| match leaf {
            Value::String(text) => self.texts.push(text.clone()),
            other => self.others.push(other.clone()),
        });
    }

    fn has(&self, value: &Value, call: &Value) {
        leaves(value, &mut |leaf| {
            let found = match leaf {
                Value::String(text) => {
                    let lenient = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
                    let engine = GeneralPurpose::new(&base64::alphabet::STANDARD, lenient);
                    // Bytes may be written in several lines.
                    let dense: String = text.split_ascii_whitespace().collect();
                    let decoded = || engine.decode(&dense).is_ok_and(|bytes| self.bytes.contains(&bytes));
                    self.texts.iter().any(|known_text| known_text.contains(text)) || decoded()
                }
                Value::Null => true,
                other => self.others.contains(other),
            };
            assert!(found, "{leaf} of {call} is lost");
        });
    }

    /// The kind of a block may be missing if the content that it shows is there.
    fn has_block(&self, block: &Value, call: &Value) {
        let mut block = block.clone();
        if let Some(block) = block.as_object_mut() {
            block.remove("type");
            if let Some(inner) = block.get_mut("content").and_then(Value::as_object_mut) {
                inner.remove("type");
            }
        }
        self.has(&block, call);
    }
}

fn leaves(value: &Value, see: &mut impl FnMut(&Value)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| leaves(item, see)),
        Value::Object(members) => members.values().for_each(|member| leaves(member, see)),
        leaf => see(leaf),
    }
}

#[test]
fn every_recorded_message_is_understood() {
    let messages = messages();
    let mut extensions = Vec::new();
    for (agent, message) in messages {
        let Some(method) = message["method"].as_str() else { continue };
        match method {
            "session/update" => drop(map::update(message["params"].clone()).unwrap_or_else(|error| {
                panic!("{agent}: {error}: {message}");
            })),
            "session/request_permission" => {
                let request = map::permission(message["params"].clone(), "q".into(), oneshot::channel().0);
                assert_eq!(request.unwrap().offered.len(), message["params"]["options"].as_array().unwrap().len());
            }
            method if SERVED.contains(&method) => {}
            method => extensions.push(method.to_owned()),
        }
    }
    extensions.sort();
    extensions.dedup();
    assert_eq!(extensions, EXTENSIONS);
}

#[test]
fn nothing_of_a_recorded_tool_call_is_lost() {
    let messages = messages();
    let mut calls = 0;
    for (_, message) in messages {
        let params = &message["params"];
        let (call, events) = match message["method"].as_str() {
            Some("session/update") => match map::update(params.clone()).unwrap().content {
                UpdateContent::Events(events) => (&params["update"], events),
                UpdateContent::Mode(_) | UpdateContent::Options(_) => continue,
            },
            Some("session/request_permission") => {
                let request = map::permission(params.clone(), "q".into(), oneshot::channel().0).unwrap();
                (&params["toolCall"], vec![AgentEvent::Tool(request.update)])
            }
            _ => continue,
        };
        for event in events {
            if let AgentEvent::Tool(update) = event {
                assert_nothing_lost(call, &update);
                calls += 1;
            }
        }
    }
    assert!(calls > 20, "{calls}");
}

#[test]
fn what_recorded_tools_put_out_is_shown() {
    let messages = messages();
    let mut shown = Vec::new();
    for (agent, message) in messages {
        if message["method"] != "session/update" {
            continue;
        }
        let UpdateContent::Events(events) = map::update(message["params"].clone()).unwrap().content else { continue };
        for event in events {
            if let AgentEvent::Tool(update) = event
                && update
                    .output
                    .iter()
                    .map(|gave| &gave.text)
                    .chain(&update.result_text)
                    .any(|t| t.contains("hello-from-tool\n"))
            {
                shown.push(agent.clone());
            }
        }
    }
    shown.sort();
    shown.dedup();
    // In the recordings, gemini's tool printed nothing and goose's failed; qwen's output ends with a newline.
    assert_eq!(shown, ["claude", "codex", "copilot", "omp", "opencode", "qwen"]);
}

#[test]
fn a_permission_that_was_given_is_answered_as_it_was_recorded() {
    let conversations = conversations();
    let mut answered = 0;
    for (agent, lines) in conversations {
        for line in lines.iter().filter(|line| line["msg"]["method"] == "session/request_permission") {
            let theirs = |reply: &&Value| reply["dir"] == "c->a" && reply["msg"]["id"] == line["msg"]["id"];
            let reply = lines.iter().filter(theirs).find(|reply| reply["msg"]["result"]["outcome"].is_object());
            let request = map::permission(line["msg"]["params"].clone(), "q".into(), oneshot::channel().0).unwrap();
            let outcome = map::outcome(&request.offered, Some(&Decision::Approved.into()));
            let response = serde_json::to_value(acp::RequestPermissionResponse::new(outcome)).unwrap();
            assert_eq!(response, reply.unwrap()["msg"]["result"], "{agent}");
            answered += 1;
        }
    }
    assert!(answered >= 5, "{answered}");
}

#[test]
fn every_recorded_turn_ended_well() {
    let messages = messages();
    let mut turns = 0;
    for (agent, message) in messages.iter().filter(|(_, message)| message["result"]["stopReason"].is_string()) {
        let response: acp::PromptResponse = serde_json::from_value(message["result"].clone()).unwrap();
        let (events, result) = map::turn_end(&response, false);
        assert!(result.is_ok(), "{agent}");
        let result = &message["result"];
        let tells = result["usage"].is_object() || result["_meta"]["quota"]["token_count"].is_object();
        assert_eq!(events.len(), usize::from(tells), "{agent}");
        turns += 1;
    }
    assert_eq!(turns, 8 * both("acp").len());
}

#[test]
fn what_recorded_agents_let_be_chosen_is_a_form() {
    let messages = messages();
    let mut forms = 0;
    for (agent, message) in messages {
        let result = &message["result"];
        if !["configOptions", "modes", "models"]
            .iter()
            .any(|name| result[*name].is_object() || result[*name].is_array())
        {
            continue;
        }
        let settings = AgentSettings::of(result);
        let Some(AgentEvent::AgentSettings { schema, values }) = settings.event() else { panic!("{agent}: {result}") };
        let schema: SessionConfigSchema = serde_json::from_value(Value::Object(schema)).unwrap();
        for (name, property) in &schema.properties {
            let value = &values[name];
            let fits = property.values.as_ref().is_none_or(|all| all.contains(value));
            assert!(fits, "{agent}: {name} is {value}");
            assert_eq!(property.session_mutable, Some(true));
        }
        // Codex has no modes, and Copilot reports no models if another party has chosen one for it.
        assert_eq!(schema.properties.contains_key("mode"), agent != "codex", "{agent}");
        assert_eq!(schema.properties.contains_key("model"), agent != "copilot", "{agent}");
        let chosen = |model: &ModelInfo| values["model"] == model.id.as_str();
        assert_eq!(settings.models().iter().any(chosen), agent != "copilot", "{agent}");
        forms += 1;
    }
    assert!(forms > 8, "{forms}");
}
