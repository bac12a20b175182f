//! A request, in terms that all formats share.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// What an agent asks its model.
#[derive(Clone, Debug)]
pub(super) struct ModelRequest {
    pub(super) model: String,
    /// Whether the answer is wanted as events.
    pub(super) stream: bool,
    /// Whether the stream must end with what it cost (chat completions only say so when asked).
    pub(super) wants_usage: bool,
    pub(super) system: String,
    pub(super) items: Vec<ConversationItem>,
    pub(super) tools: Vec<ModelTool>,
    /// The schema that the answer's text must fit.
    pub(super) output: Option<Value>,
    /// An estimate.
    pub(super) input_tokens: u64,
}

/// One thing in the conversation so far.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum ConversationItem {
    /// What the person said.
    User(String),
    /// Anything of the model's.
    Model,
    /// What a tool gave. Gemini's agents may leave out which call it answers.
    Result { call: Option<String> },
}

/// A tool that the agent offers.
#[derive(Clone, Debug)]
pub(super) struct ModelTool {
    pub(super) name: String,
    pub(super) kind: ModelToolKind,
    pub(super) schema: Value,
}

/// How a tool is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ModelToolKind {
    /// With JSON that fits its schema.
    Function,
    /// With a list of words: the Responses API's own shell.
    LocalShell,
    /// With any text.
    Custom,
}

impl ModelRequest {
    /// Whether tools have answered and nobody has said anything since.
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

    /// What the person said last.
    pub(super) fn prompt(&self) -> &str {
        let said = self.items.iter().rev().find_map(|item| match item {
            ConversationItem::User(text) => Some(text.as_str()),
            _ => None,
        });
        said.unwrap_or_default()
    }

    /// How often the model has called tools since the person spoke.
    pub(super) fn rounds(&self) -> usize {
        let since = self.items.iter().rev().take_while(|item| !matches!(item, ConversationItem::User(_)));
        let answered: Vec<bool> = since.map(|item| matches!(item, ConversationItem::Result { .. })).collect();
        answered.iter().enumerate().filter(|&(at, result)| *result && (at == 0 || !answered[at - 1])).count()
    }

    /// The same for the same conversation at the same point.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.items.hash(&mut hasher);
        hasher.finish()
    }
}

impl ConversationItem {
    /// A user's text, unless it is all from the agent: these wrap what they add in tags like `<system-reminder>`.
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

/// The array's elements, or nothing.
pub(super) fn each(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The string, or nothing.
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
