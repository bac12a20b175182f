//! The script of the model's answers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The command of the default script. A test searches the tool call's output for its text.
pub const COMMAND: &str = "echo grove-was-here";

/// All answers of a model.
///
/// The turn that answers a prompt is the first [`PromptMatch::Told`] whose text the prompt contains, else the first
/// [`PromptMatch::Next`] that no prompt has had yet, else the first [`PromptMatch::Always`], else only
/// [`ended`](Self::ended).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub turns: Vec<Turn>,
    /// The answer when the script has ended. It calls no tool, so that an agent's loop ends.
    pub ended: String,
    /// The answer to requests beside the conversation.
    pub utility: String,
    /// A request without tools belongs to the conversation. For coding agents it does not.
    pub without_tools: bool,
    /// The reported token usage of every answer. Otherwise it is estimated from the lengths.
    pub usage: Option<TokenUsage>,
}

/// The answers to one prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    #[serde(default)]
    pub when: PromptMatch,
    /// One for each request: the first answers the prompt, the others the tools' results, or a retry of a request that
    /// met a fault. If the last one is itself a fault, every further retry meets it again.
    pub answers: Vec<ReplySteps>,
}

/// The answer to one request.
pub type ReplySteps = Vec<ReplyStep>;

/// The prompts that a turn answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptMatch {
    /// The next one, once.
    #[default]
    Next,
    /// Each whose last user message contains this text.
    Told(String),
    /// Each that no other turn answers.
    Always,
}

/// A piece of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ReplyStep {
    /// Text, in so many pieces, with a pause before each but the first.
    Say {
        text: String,
        #[serde(default = "one")]
        chunks: usize,
        #[serde(default, rename = "delay_ms", with = "millis")]
        delay: Duration,
    },
    /// A thought of the model.
    Think { text: String },
    /// A tool call, exactly as written here, whether the agent has such a tool or not.
    Call { tool: String, arguments: Value },
    /// A call of the agent's tool that runs shell commands, with arguments that fit it.
    Shell { command: String },
    /// An HTTP status or, if the answer has already begun, the format's error for that. Without a body it is the
    /// format's own.
    Fail {
        status: u16,
        #[serde(default)]
        body: Value,
    },
    /// A pause.
    Stall {
        #[serde(rename = "ms", with = "millis")]
        time: Duration,
    },
    /// The connection breaks.
    Cut,
}

/// The reported token usage of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenUsage {
    pub input: u64,
    pub output: u64,
}

fn one() -> usize {
    1
}

impl Default for Script {
    /// Each prompt is answered by `echo grove-was-here` in the agent's shell, then by a closing text.
    fn default() -> Self {
        let call = vec![
            ReplyStep::think("A shell will do."),
            ReplyStep::say("I will run a command."),
            ReplyStep::shell(COMMAND),
        ];
        let close = vec![ReplyStep::slowly("The command has run; grove was here.", 4, Duration::from_millis(5))];
        Self::new([Turn::always([call, close])])
    }
}

impl Script {
    pub fn new(turns: impl Into<Vec<Turn>>) -> Self {
        Self {
            turns: turns.into(),
            ended: "The script has ended.".to_owned(),
            utility: "A short text".to_owned(),
            without_tools: false,
            usage: None,
        }
    }
}

impl Turn {
    /// The answers to the next prompt.
    pub fn next(answers: impl Into<Vec<ReplySteps>>) -> Self {
        Self { when: PromptMatch::Next, answers: answers.into() }
    }

    /// The answers to each prompt that contains a text.
    pub fn told(text: &str, answers: impl Into<Vec<ReplySteps>>) -> Self {
        Self { when: PromptMatch::Told(text.to_owned()), answers: answers.into() }
    }

    /// The answers to each prompt that no other turn answers.
    pub fn always(answers: impl Into<Vec<ReplySteps>>) -> Self {
        Self { when: PromptMatch::Always, answers: answers.into() }
    }
}

impl ReplyStep {
    /// Text in one piece.
    pub fn say(text: &str) -> Self {
        Self::slowly(text, 1, Duration::ZERO)
    }

    /// Text in pieces, with a pause between them.
    pub fn slowly(text: &str, chunks: usize, delay: Duration) -> Self {
        Self::Say { text: text.to_owned(), chunks, delay }
    }

    pub fn think(text: &str) -> Self {
        Self::Think { text: text.to_owned() }
    }

    pub fn call(tool: &str, arguments: Value) -> Self {
        Self::Call { tool: tool.to_owned(), arguments }
    }

    pub fn shell(command: &str) -> Self {
        Self::Shell { command: command.to_owned() }
    }

    /// An error. With [`Value::Null`] as its body it looks like the format's own errors.
    pub fn fail(status: u16, body: impl Into<Value>) -> Self {
        Self::Fail { status, body: body.into() }
    }

    pub fn stall(time: Duration) -> Self {
        Self::Stall { time }
    }

    /// Returns whether an agent may retry after this.
    pub(super) fn is_fault(&self) -> bool {
        matches!(self, Self::Fail { .. } | Self::Stall { .. } | Self::Cut)
    }
}

/// Times as whole milliseconds.
mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
        time.as_millis().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_millis)
    }
}
