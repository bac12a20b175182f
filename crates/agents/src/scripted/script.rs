//! Scripts: the steps, their parsing, and the canned script.

use std::str::FromStr;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_core::{Answers, ContextUsage, InputRequest, PermissionKind, PermissionOption, Question, Usage};
use serde::Deserialize;

use super::mcp::McpCall;
use crate::agent::{AgentError, PartContent, ToolOutputPart};

/// The longest output a step may produce, `repeat` included.
pub const MAX_OUTPUT: usize = 64 << 20;

pub(super) struct Script {
    pub(super) steps: Vec<ScriptStep>,
}

pub(super) enum ScriptStep {
    Say(Say),
    Reason(String),
    ScriptedTool(ScriptedTool),
    ClientTool(ClientCall),
    McpTool(McpCall),
    ScriptedPart(ScriptedPart),
    Usage(Usage),
    Title(String),
    /// Its id is set when it is asked.
    Ask(Box<InputRequest>),
    /// Says the instructions that the session was configured with.
    Instructions,
    Fail(String),
    Sleep(Duration),
    Hang,
}

pub(super) struct Say {
    pub(super) text: String,
    pub(super) chunks: usize,
    pub(super) delay: Duration,
}

pub(super) struct ScriptedTool {
    pub(super) name: String,
    pub(super) input: Option<String>,
    pub(super) output: Option<String>,
    pub(super) success: bool,
    pub(super) permission: Option<PermissionKind>,
    pub(super) options: Vec<PermissionOption>,
    pub(super) editable: bool,
    pub(super) edits: Vec<ScriptedEdit>,
}

/// A changed file that a call reports. Nothing is written.
#[derive(Clone, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ScriptedEdit {
    path: String,
    /// Missing for a new file.
    before: Option<String>,
    /// Missing for a deleted file.
    after: Option<String>,
}

impl ScriptedEdit {
    pub(super) fn part(&self) -> ToolOutputPart {
        let Self { path, before, after } = self.clone();
        ToolOutputPart::Edit { path, before, after }
    }
}

/// A call of a client's tool.
pub(super) struct ClientCall {
    pub(super) name: String,
    pub(super) input: Option<String>,
}

pub(super) struct ScriptedPart {
    pub(super) mime_type: String,
    pub(super) body: PartContent,
}

impl Say {
    /// The text in near-equal pieces, cut between Unicode scalar values; none is empty.
    pub(super) fn pieces(&self) -> impl Iterator<Item = &str> {
        let chars = self.text.chars().count();
        let pieces = self.chunks.clamp(1, chars.max(1));
        let mut rest = self.text.as_str();
        (0..pieces).filter_map(move |n| {
            let length = chars * (n + 1) / pieces - chars * n / pieces;
            let end = rest.char_indices().nth(length).map_or(rest.len(), |(at, _)| at);
            let (piece, tail) = rest.split_at(end);
            rest = tail;
            (!piece.is_empty()).then_some(piece)
        })
    }
}

impl FromStr for Script {
    type Err = AgentError;

    fn from_str(text: &str) -> Result<Self, AgentError> {
        let wire: Vec<WireStep> =
            serde_json::from_str(text).map_err(|error| AgentError::Script(format!("{error} of the script")))?;
        let steps = wire
            .into_iter()
            .enumerate()
            .map(|(n, step)| step.check().map_err(|problem| AgentError::Script(format!("step {}: {problem}", n + 1))));
        Ok(Self { steps: steps.collect::<Result<_, _>>()? })
    }
}

/// The answer to any other prompt.
pub(super) fn canned(text: &str) -> Script {
    let say = |text: String| {
        ScriptStep::Say(Say { chunks: text.chars().count() / 6, text, delay: Duration::from_millis(25) })
    };
    let subject = text.lines().next().unwrap_or_default();
    let title: String = subject.chars().take(60).collect();
    let mut steps = Vec::new();
    if !title.trim().is_empty() {
        steps.push(ScriptStep::Title(title));
    }
    steps.push(ScriptStep::Reason("No model is behind me, so I follow a script.".to_owned()));
    steps.push(say("Hello! I am the scripted agent: I show what a session looks like, and need no model. \
        First I would like to list this folder, if you let me.\n\n"
        .to_owned()));
    steps.push(ScriptStep::ScriptedTool(ScriptedTool {
        name: "shell".to_owned(),
        input: Some("ls".to_owned()),
        output: Some("README.md\nsrc\ntests\n".to_owned()),
        success: true,
        permission: Some(PermissionKind::Shell),
        options: Vec::new(),
        editable: false,
        edits: Vec::new(),
    }));
    steps.push(say("That is all I can do by myself. Send me `script:` and a JSON array of steps to make me do more, \
        or start a session with another agent.\n"
        .to_owned()));
    steps.push(ScriptStep::Usage(Usage {
        input_tokens: Some(text.split_whitespace().count() as u64),
        output_tokens: Some(58),
        ..Usage::default()
    }));
    Script { steps }
}

/// A step as it is written: one key is its kind, others are its parameters.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct WireStep {
    say: Option<String>,
    chunks: Option<usize>,
    delay_ms: Option<u64>,
    reason: Option<String>,
    tool: Option<WireTool>,
    client_tool: Option<WireClientCall>,
    mcp_tool: Option<WireMcpCall>,
    part: Option<WirePart>,
    usage: Option<WireUsage>,
    title: Option<String>,
    ask: Option<WireAsk>,
    instructions: Option<bool>,
    fail: Option<String>,
    sleep_ms: Option<u64>,
    hang: Option<bool>,
}

/// A question with a free-text answer, or several of any kind.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireAsk {
    Words(String),
    Questions { message: Option<String>, questions: Vec<Question> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireClientCall {
    name: String,
    input: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireMcpCall {
    server: String,
    name: String,
    input: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireTool {
    name: String,
    input: Option<serde_json::Value>,
    output: Option<String>,
    repeat: Option<usize>,
    success: Option<bool>,
    permission: Option<WirePermission>,
    #[serde(default)]
    options: Vec<PermissionOption>,
    #[serde(default)]
    editable: bool,
    #[serde(default)]
    edits: Vec<ScriptedEdit>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum WirePermission {
    Shell,
    Write,
    Mcp,
    Read,
    Url,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WirePart {
    mime_type: String,
    text: Option<String>,
    base64: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WireUsage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    /// The reported use of the context window.
    context: Option<ContextUsage>,
}

impl WireStep {
    fn check(self) -> Result<ScriptStep, String> {
        if self.say.is_none() && (self.chunks.is_some() || self.delay_ms.is_some()) {
            return Err("`chunks` and `delayMs` belong to `say`".to_owned());
        }
        let delay = Duration::from_millis(self.delay_ms.unwrap_or(0));
        let chunks = self.chunks.unwrap_or(1);
        let found = [
            self.say.map(|text| Ok(ScriptStep::Say(Say { text, chunks, delay }))),
            self.reason.map(|text| Ok(ScriptStep::Reason(text))),
            self.tool.map(|tool| tool.check().map(ScriptStep::ScriptedTool)),
            self.client_tool
                .map(|call| Ok(ScriptStep::ClientTool(ClientCall { name: call.name, input: text(call.input) }))),
            self.mcp_tool.map(|call| {
                let WireMcpCall { server, name, input } = call;
                Ok(ScriptStep::McpTool(McpCall { server, tool: name, arguments: input }))
            }),
            self.part.map(|part| part.check().map(ScriptStep::ScriptedPart)),
            self.usage.map(|usage| {
                Ok(ScriptStep::Usage(Usage {
                    input_tokens: usage.input_tokens,
                    output_tokens: usage.output_tokens,
                    context: usage.context,
                    ..Usage::default()
                }))
            }),
            self.title.map(|title| Ok(ScriptStep::Title(title))),
            self.ask.map(|ask| Ok(ScriptStep::Ask(Box::new(ask.request())))),
            self.instructions.map(|_| Ok(ScriptStep::Instructions)),
            self.fail.map(|message| Ok(ScriptStep::Fail(message))),
            self.sleep_ms.map(|ms| Ok(ScriptStep::Sleep(Duration::from_millis(ms)))),
            self.hang.map(|hang| if hang { Ok(ScriptStep::Hang) } else { Ok(ScriptStep::Sleep(Duration::ZERO)) }),
        ];
        let mut found = found.into_iter().flatten();
        match (found.next(), found.next()) {
            (Some(step), None) => step,
            (None, _) => Err("it has no action".to_owned()),
            (Some(_), Some(_)) => Err("it has more than one action".to_owned()),
        }
    }
}

impl WireTool {
    fn check(self) -> Result<ScriptedTool, String> {
        let repeat = self.repeat.unwrap_or(1);
        let output = match self.output {
            Some(output) if output.len().saturating_mul(repeat) > MAX_OUTPUT => {
                return Err(format!("the output would be longer than {MAX_OUTPUT} bytes"));
            }
            output => output.map(|output| output.repeat(repeat)),
        };
        if self.edits.iter().any(|edit| edit.before.is_none() && edit.after.is_none()) {
            return Err("an edit has `before`, `after` or both".to_owned());
        }
        let input = text(self.input);
        let permission = self.permission.map(|permission| match permission {
            WirePermission::Shell => PermissionKind::Shell,
            WirePermission::Write => PermissionKind::Write,
            WirePermission::Mcp => PermissionKind::Mcp,
            WirePermission::Read => PermissionKind::Read,
            WirePermission::Url => PermissionKind::Url,
        });
        Ok(ScriptedTool {
            name: self.name,
            input,
            output,
            success: self.success.unwrap_or(true),
            permission,
            options: self.options,
            editable: self.editable,
            edits: self.edits,
        })
    }
}

/// An input as text: a string as it is, anything else as JSON.
fn text(input: Option<serde_json::Value>) -> Option<String> {
    input.map(|input| match input {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    })
}

impl WireAsk {
    fn request(self) -> InputRequest {
        match self {
            WireAsk::Words(question) => InputRequest::ask("".into(), question),
            WireAsk::Questions { message, questions } => InputRequest {
                id: "".into(),
                message,
                url: None,
                questions,
                answers: Answers::new(),
                outcome: None,
                answered_by: None,
            },
        }
    }
}

impl WirePart {
    fn check(self) -> Result<ScriptedPart, String> {
        let body = match (self.text, self.base64) {
            (Some(text), None) => PartContent::Text(text),
            (None, Some(encoded)) => PartContent::Bytes(
                BASE64_STANDARD.decode(encoded).map_err(|error| format!("`base64` cannot be decoded: {error}"))?,
            ),
            (None, None) | (Some(_), Some(_)) => return Err("a part has either `text` or `base64`".to_owned()),
        };
        Ok(ScriptedPart { mime_type: self.mime_type, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(text: &str, chunks: usize) -> Vec<String> {
        Say { text: text.to_owned(), chunks, delay: Duration::ZERO }.pieces().map(str::to_owned).collect()
    }

    #[test]
    fn pieces_are_near_equal_and_cut_between_scalar_values() {
        assert_eq!(pieces("abcdefg", 3), ["ab", "cd", "efg"]);
        assert_eq!(pieces("äöü€", 2), ["äö", "ü€"]);
        assert_eq!(pieces("ab", 5), ["a", "b"], "no piece is empty");
        assert_eq!(pieces("", 3), Vec::<String>::new());
        assert_eq!(pieces("abc", 0), ["abc"]);
        let long = "x€".repeat(1_000);
        assert_eq!(pieces(&long, 333).concat(), long);
    }

    #[test]
    fn a_script_that_does_not_parse_says_where() {
        let problem = |text: &str| match text.parse::<Script>() {
            Ok(_) => "fine".to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(problem(r#"[{"say":"a"},{}]"#), "the script cannot be run: step 2: it has no action");
        assert_eq!(
            problem(r#"[{"say":"a","fail":"b"}]"#),
            "the script cannot be run: step 1: it has more than one action"
        );
        assert!(problem(r#"[{"shout":"a"}]"#).contains("unknown field `shout`"));
        assert!(problem(r#"[{"part":{"mimeType":"a/b"}}]"#).contains("either `text` or `base64`"));
        assert!(problem(r#"[{"part":{"mimeType":"a/b","base64":"?"}}]"#).contains("cannot be decoded"));
        assert!(problem(r#"[{"tool":{"name":"a","output":"xxxx","repeat":999999999}}]"#).contains("longer than"));
        assert!(problem(r#"[{"tool":{"name":"a","edits":[{"path":"/a"}]}}]"#).contains("`before`, `after` or both"));
        assert!(problem("{").contains("line 1"));
        assert_eq!(problem("[]"), "fine");
    }
}
