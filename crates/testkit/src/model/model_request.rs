//! A request, in terms that all formats share.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// A request of an agent to its model.
#[derive(Clone, Debug)]
pub(super) struct ModelRequest {
    pub(super) model: String,
    /// The answer is sent as events.
    pub(super) stream: bool,
    /// The stream must end with the token usage (chat completions only send it on request).
    pub(super) wants_usage: bool,
    pub(super) system: String,
    pub(super) items: Vec<ConversationItem>,
    pub(super) tools: Vec<ModelTool>,
    /// The schema of the answer's text.
    pub(super) output: Option<Value>,
    /// An estimate.
    pub(super) input_tokens: u64,
}

/// One item of the conversation so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ConversationItem {
    /// A message of the person.
    User(String),
    /// Any output of the model.
    Model,
    /// A tool's result. Gemini's agents may leave out the call that it answers.
    Result { call: Option<String> },
}

/// A tool that the agent offers.
#[derive(Clone, Debug)]
pub(super) struct ModelTool {
    pub(super) name: String,
    pub(super) kind: ModelToolKind,
    pub(super) schema: Value,
}

/// The form of a tool's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelToolKind {
    /// JSON that fits its schema.
    Function,
    /// A list of words: the Responses API's own shell.
    LocalShell,
    /// Any text.
    Custom,
}

impl ModelRequest {
    /// Returns whether tools have answered and nobody has said anything since.
    pub(super) fn is_continued(&self) -> bool {
        matches!(self.items.last(), Some(ConversationItem::Result { .. }))
    }

    /// The call that was answered last.
    pub(super) fn answered_call(&self) -> Option<&str> {
        match self.items.last() {
            Some(ConversationItem::Result { call }) => call.as_deref(),
            _ => None,
        }
    }

    /// The person's last message.
    pub(super) fn prompt(&self) -> &str {
        let last_message = self.items.iter().rev().find_map(|item| match item {
            ConversationItem::User(text) => Some(text.as_str()),
            _ => None,
        });
        last_message.unwrap_or_default()
    }

    /// The rounds of tool calls since the person's last message.
    pub(super) fn rounds(&self) -> usize {
        let since = self.items.iter().rev().take_while(|item| !matches!(item, ConversationItem::User(_)));
        let answered: Vec<bool> = since.map(|item| matches!(item, ConversationItem::Result { .. })).collect();
        answered.iter().enumerate().filter(|&(at, result)| *result && (at == 0 || !answered[at - 1])).count()
    }

    /// A hash of the conversation up to this point.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.items.hash(&mut hasher);
        hasher.finish()
    }
}

impl ConversationItem {
    /// A user's text, unless all of it is from the agent: agents wrap their additions in tags like `<system-reminder>`.
    pub(super) fn user(text: &str) -> Option<Self> {
        let text = text.trim();
        let tag = text.strip_prefix('<').and_then(|rest| rest.split(['>', ' ']).next());
        let is_added = tag.is_some_and(|tag| tag.contains(['-', '_']) && text.ends_with(&format!("</{tag}>")));
        (!text.is_empty() && !is_added).then(|| Self::User(text.to_owned()))
    }
}

impl ModelTool {
    pub(super) fn function(name: &Value, schema: &Value) -> Option<Self> {
        Some(Self { name: name.as_str()?.to_owned(), kind: ModelToolKind::Function, schema: schema.clone() })
    }
}

/// The array's elements, or none.
pub(super) fn each(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The string, or an empty one.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The text of a message whose content is a string or a list of parts with texts.
pub(super) fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        parts => {
            let texts: Vec<&str> = each(parts).iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
    }
}
