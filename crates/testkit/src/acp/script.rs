//! The scripts of prompts.

use std::path::PathBuf;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::behavior::RpcError;

/// The prefix of a prompt with a script.
pub const PREFIX: &str = "acp:";

/// The most bytes of one step, repetitions included.
const LONGEST: usize = 48 << 20;
/// The most chunks of one step.
const MOST_CHUNKS: u64 = 10_000_000;

/// The prompt that makes the agent run these steps.
pub fn prompt(steps: &Value) -> String {
    format!("{PREFIX}{steps}")
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ScriptStep {
    Say(#[serde(deserialize_with = "words")] ChunkedText),
    Think(#[serde(deserialize_with = "words")] ChunkedText),
    Stream(Stream),
    Tool(Tool),
    ToolCall(Value),
    ToolUpdate(Value),
    Ask(Ask),
    Asks(Vec<Ask>),
    Plan(Value),
    Commands(Value),
    Mode(String),
    Config(Value),
    Usage(Value),
    Info(Value),
    Notice(Value),
    Update(Value),
    Later(Later),
    Raw(Value),
    Request(Request),
    Read(Value),
    Write(Value),
    Terminal(Terminal),
    Elicit(Value),
    Sleep(u64),
    AwaitFile(PathBuf),
    Hang,
    Crash(Crash),
    Stderr(String),
    CloseStdout,
    Fail(RpcError),
    Stop(#[serde(deserialize_with = "stop")] Stop),
    Spawn(Spawn),
    EchoHistory,
    Cwd,
    Env(String),
    Client,
    Settings,
    Mcp(McpCall),
    McpTools(String),
    Complaints,
}

/// A call of a tool of an MCP server.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct McpCall {
    pub(super) server: String,
    pub(super) tool: String,
    #[serde(default)]
    pub(super) arguments: Value,
}

/// Text in pieces, with a pause before each but the first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChunkedText {
    pub(super) text: String,
    #[serde(default = "one", alias = "pieces")]
    pub(super) chunks: usize,
    #[serde(default, alias = "delay")]
    pub(super) delay_ms: u64,
    /// The number of repetitions of the text.
    #[serde(default = "one")]
    pub(super) repeat: usize,
}

/// Numbered chunks at an even pace: `7:1789000000000000;` is the seventh, with the time at which it was sent, in
/// microseconds since 1970.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stream {
    pub(super) count: u64,
    pub(super) per_second: f64,
}

/// A tool call from its beginning to its end, in the way of the behavior.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tool {
    pub(super) id: Option<String>,
    #[serde(default = "shell")]
    pub(super) title: String,
    #[serde(default = "execute")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) input: Value,
    #[serde(default)]
    pub(super) output: String,
    #[serde(default)]
    pub(super) fails: bool,
    /// It asks first, unless the behavior decides that.
    #[serde(default)]
    pub(super) ask: bool,
    /// The milliseconds that it runs.
    #[serde(default)]
    pub(super) takes_ms: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    pub(super) tool_call: Value,
    /// The behavior's options if none are given.
    #[serde(default)]
    pub(super) options: Vec<Value>,
}

/// An update that comes by itself, whether the turn is still running or not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Later {
    pub(super) delay_ms: u64,
    pub(super) update: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    pub(super) method: String,
    #[serde(default)]
    pub(super) params: Value,
    /// Cancel it at once (`$/cancel_request`), and wait for the answer to that.
    #[serde(default)]
    pub(super) cancel: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Terminal {
    /// The params of the protocol, without the session.
    pub(super) create: Value,
    /// The milliseconds after which the command is killed.
    #[serde(default)]
    pub(super) kill_after_ms: Option<u64>,
    /// The client has to release it.
    #[serde(default)]
    pub(super) leave: bool,
    /// The tool call that shows it.
    #[serde(default)]
    pub(super) call: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Crash {
    Code(i32),
    Signal(i32),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    pub(super) reason: String,
    #[serde(default)]
    pub(super) usage: Option<Value>,
    #[serde(default, rename = "_meta")]
    pub(super) meta: Option<Value>,
}

/// A process that the agent leaves behind in its group.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spawn {
    #[serde(default = "minute")]
    pub(super) seconds: u64,
    /// It keeps the agent's stdout open.
    #[serde(default)]
    pub(super) holds_stdout: bool,
}

fn one() -> usize {
    1
}

fn minute() -> u64 {
    60
}

fn shell() -> String {
    "shell".to_owned()
}

fn execute() -> String {
    "execute".to_owned()
}

/// A plain string, or the long form.
#[derive(Deserialize)]
#[serde(untagged)]
enum StringOr<T> {
    Plain(String),
    Whole(T),
}

fn words<'de, D: Deserializer<'de>>(from: D) -> Result<ChunkedText, D::Error> {
    Ok(match StringOr::deserialize(from)? {
        StringOr::Plain(text) => ChunkedText { text, chunks: 1, delay_ms: 0, repeat: 1 },
        StringOr::Whole(words) => words,
    })
}

fn stop<'de, D: Deserializer<'de>>(from: D) -> Result<Stop, D::Error> {
    Ok(match StringOr::deserialize(from)? {
        StringOr::Plain(reason) => Stop { reason, usage: None, meta: None },
        StringOr::Whole(stop) => stop,
    })
}

/// The steps of a script; the error names its fault.
pub(super) fn parse(script: &str) -> Result<Vec<ScriptStep>, String> {
    let steps: Vec<Value> =
        serde_json::from_str(script).map_err(|error| format!("the script is not an array: {error}"))?;
    let step = |(n, step): (usize, Value)| {
        let step = serde_json::from_value(step).map_err(|error| format!("step {}: {error}", n + 1))?;
        match &step {
            ScriptStep::Say(words) | ScriptStep::Think(words)
                if words.text.len().saturating_mul(words.repeat) > LONGEST =>
            {
                Err(format!("step {}: at most {LONGEST} bytes are said", n + 1))
            }
            ScriptStep::Stream(stream) if stream.count > MOST_CHUNKS || !(0.001..=1e6).contains(&stream.per_second) => {
                Err(format!("step {}: at most {MOST_CHUNKS} chunks, at 0.001 to 1000000 a second", n + 1))
            }
            _ => Ok(step),
        }
    };
    steps.into_iter().enumerate().map(step).collect()
}

impl ChunkedText {
    /// The text in near-equal pieces, cut between characters; at least one piece.
    pub(super) fn pieces(&self) -> Vec<String> {
        let text = self.text.repeat(self.repeat);
        let count = text.chars().count();
        let pieces = self.chunks.clamp(1, count.max(1));
        let mut chars = text.chars();
        (0..pieces).map(|n| chars.by_ref().take(count * (n + 1) / pieces - count * n / pieces).collect()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_step_reads_as_it_is_documented() {
        // The documented steps must be valid.
        let page = include_str!("mod.rs");
        let rows: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("//! | `")).collect();
        let steps = rows.iter().filter_map(|row| row.split('`').next()).filter(|step| step.starts_with(['{', '"']));
        let mut read = 0;
        for step in steps {
            let whole = format!("[{step}]");
            parse(&whole).unwrap_or_else(|error| panic!("{step}: {error}"));
            read += 1;
        }
        assert!(read > 30, "only {read} steps are documented");
    }

    #[test]
    fn a_step_that_nobody_knows_is_named() {
        let error = parse(r#"[{"say":"a"},{"sya":"b"}]"#).unwrap_err();
        assert!(error.starts_with("step 2: ") && error.contains("sya"), "{error}");
    }

    #[test]
    fn no_text_is_lost_in_pieces() {
        for chunks in 1..12 {
            let words = ChunkedText { text: "größer".to_owned(), chunks, delay_ms: 0, repeat: 1 };
            let pieces = words.pieces();
            assert_eq!(pieces.concat(), "größer");
            assert_eq!(pieces.len(), chunks.min(6));
        }
    }

    #[test]
    fn a_step_says_no_more_than_the_bound() {
        let script = json!([{"say": {"text": "x".repeat(1024), "repeat": 1 << 20}}]).to_string();
        assert!(parse(&script).unwrap_err().contains("at most"));
    }
}
