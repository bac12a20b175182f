//! What the model says, written down beforehand.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The command of the default script. A test looks for what it prints in the tool call's output.
pub const COMMAND: &str = "echo grove-was-here";

/// Everything that a model will say.
///
/// Which turn answers a prompt: the first one that is [told](PromptMatch::Told) what the prompt contains, else the first
/// [`PromptMatch::Next`] that no prompt has had yet, else the first [`PromptMatch::Always`], else only [`ended`](Self::ended).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    pub turns: Vec<Turn>,
    /// What is said when nothing is left to say. It calls no tool, so that an agent's loop ends.
    pub ended: String,
    /// The answer to what agents ask beside the conversation.
    pub utility: String,
    /// Whether a request that offers no tools belongs to the conversation. For coding agents it does not.
    pub without_tools: bool,
    /// What every answer is said to have cost. Otherwise it is estimated from the lengths.
    pub usage: Option<TokenUsage>,
}

/// What follows one prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    #[serde(default)]
    pub when: PromptMatch,
    /// One for each request: the first answers the prompt, the others what the tools gave, or another try of a request
    /// that met a fault. If the last one is itself a fault, every further try meets it again.
    pub answers: Vec<ReplySteps>,
}

/// What answers one request.
pub type ReplySteps = Vec<ReplyStep>;

/// Which prompts a turn belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptMatch {
    /// The next one, once.
    #[default]
    Next,
    /// Each whose last user message contains this.
    Told(String),
    /// Each that no other turn wants.
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
    /// What the model thinks aloud.
    Think { text: String },
    /// A tool call, as it is written here, whether the agent has such a tool or not.
    Call { tool: String, arguments: Value },
    /// A call of whichever of the agent's tools runs shell commands, with arguments that fit it.
    Shell { command: String },
    /// An HTTP status, or where the answer has already begun, the error that the format has for that. Without a body
    /// it is the format's own.
    Fail {
        status: u16,
        #[serde(default)]
        body: Value,
    },
    /// Nothing, for so long.
    Stall {
        #[serde(rename = "ms", with = "millis")]
        time: Duration,
    },
    /// The connection breaks.
    Cut,
}

/// What an answer is said to have cost.
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

    /// The answers to each prompt that no other turn wants.
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

    /// An error. With [`Value::Null`] as its body it looks as the format's own errors do.
    pub fn fail(status: u16, body: impl Into<Value>) -> Self {
        Self::Fail { status, body: body.into() }
    }

    pub fn stall(time: Duration) -> Self {
        Self::Stall { time }
    }

    /// Whether an agent may ask the same again after this.
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
