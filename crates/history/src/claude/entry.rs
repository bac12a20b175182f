//! A line of a session, and the meaning of a user line.

use grove_core::Timestamp;
use grove_transcript::ContextBlock;
use serde_json::Value;

use crate::json::JsonMembers;

/// A line. Unread members stay in its body.
#[derive(Debug)]
pub(super) struct LogEntry {
    pub kind: String,
    pub id: Option<String>,
    pub parent: EntryParent,
    /// True if it belongs to a subagent's conversation.
    pub is_side: bool,
    /// True if the program added it for the model alone.
    pub is_hidden: bool,
    pub at: Option<Timestamp>,
    pub body: JsonMembers,
}

/// The parent of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryParent {
    /// Not given.
    Unspecified,
    Root,
    Of(String),
}

impl LogEntry {
    /// Converts a line's value to an entry; any other value is returned as the error.
    pub(super) fn of(value: Value) -> Result<Self, Value> {
        let mut body = JsonMembers::of(value)?;
        let Some(kind) = body.string("type") else { return Err(body.into_value()) };
        let is_root = body.peek("parentUuid").is_some_and(Value::is_null);
        // After a compaction only the logical parent leads back.
        let parent = body.string("parentUuid");
        let parent = match body.string("logicalParentUuid").or(parent) {
            Some(parent) => EntryParent::Of(parent),
            None if is_root => EntryParent::Root,
            None => EntryParent::Unspecified,
        };
        let mut flag = |key: &str| body.flag(key).unwrap_or(false);
        let is_hidden = flag("isMeta");
        Ok(Self {
            kind,
            parent,
            is_side: flag("isSidechain"),
            is_hidden,
            id: body.string("uuid"),
            at: body.time("timestamp"),
            body,
        })
    }

    /// True if the program wrote a summary of the earlier conversation.
    pub(super) fn is_recap(&self) -> bool {
        let is = |key: &str| self.body.peek(key).and_then(Value::as_bool).unwrap_or(false);
        is("isCompactSummary") || is("isVisibleInTranscriptOnly")
    }
}

/// The meaning of a text in a user line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UserText {
    /// A person's words, their command, and the program's additions around them.
    Person { text: String, command: Option<String>, context: Vec<ContextBlock> },
    /// A finished background task asks for an answer.
    Automation(String),
    /// The person has stopped the turn.
    Stopped,
    /// A message of the program itself.
    Program { kind: &'static str, text: String },
    /// Only the program's additions.
    Context(Vec<ContextBlock>),
}

/// Tags around the program's additions to a person's words.
const AROUND: &[&str] = &["system-reminder", "ide_opened_file", "ide_selection"];
/// Beginnings of texts in user lines that are not a person's.
const PROGRAM: &[(&str, &str)] = &[
    ("<local-command-", "local-command"),
    ("Caveat: The messages below", "local-command"),
    ("<bash-stdout>", "bash-output"),
    ("<bash-stderr>", "bash-output"),
    ("Stop hook feedback:", "stop-hook"),
    ("This session is being continued", "compact-summary"),
];

pub(super) fn words_of(text: &str) -> UserText {
    let (bare, context) = without_context(text);
    let bare = bare.trim();
    if bare.is_empty() && !context.is_empty() {
        return UserText::Context(context);
    }
    if bare.starts_with("[Request interrupted") {
        return UserText::Stopped;
    }
    if bare.starts_with("<task-notification>") {
        return UserText::Automation(bare.to_owned());
    }
    if let Some((_, kind)) = PROGRAM.iter().find(|(head, _)| bare.starts_with(head)) {
        return UserText::Program { kind, text: bare.to_owned() };
    }
    if let Some(command) = inside(bare, "bash-input") {
        return UserText::Person { text: format!("! {command}"), command: None, context };
    }
    // Commands are written as tags, with their name and arguments among them.
    if let Some(name) = inside(bare, "command-name").filter(|_| bare.starts_with("<command-")) {
        let given = inside(bare, "command-args").unwrap_or_default().trim();
        let name = name.trim();
        let text = if given.is_empty() { name.to_owned() } else { format!("{name} {given}") };
        return UserText::Person { text, command: Some(name.trim_start_matches('/').to_owned()), context };
    }
    UserText::Person { text: bare.to_owned(), command: None, context }
}

/// A text without the program's additions.
fn without_context(text: &str) -> (String, Vec<ContextBlock>) {
    let (mut bare, mut context) = (String::new(), Vec::new());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let name =
            AROUND.iter().find(|name| rest[open + 1..].strip_prefix(**name).is_some_and(|on| on.starts_with('>')));
        let body = name.and_then(|name| {
            let body = &rest[open + name.len() + 2..];
            let end = format!("</{name}>");
            body.find(&end).map(|at| (*name, &body[..at], &body[at + end.len()..]))
        });
        let Some((name, inner, behind)) = body else {
            bare.push_str(&rest[..=open]);
            rest = &rest[open + 1..];
            // A quick check: most text has no such tag at all.
            if !AROUND.iter().any(|name| rest.contains(name)) {
                break;
            }
            continue;
        };
        bare.push_str(&rest[..open]);
        context.push(ContextBlock { name: name.into(), text: inner.trim().into(), ..ContextBlock::default() });
        rest = behind;
    }
    bare.push_str(rest);
    (bare, context)
}

fn inside<'a>(text: &'a str, tag: &str) -> Option<&'a str> {
    let (_, body) = text.split_once(&format!("<{tag}>"))?;
    body.split_once(&format!("</{tag}>")).map(|(inner, _)| inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(text: &str, command: Option<&str>, context: &[(&str, &str)]) -> UserText {
        let block = |(name, text): &(&str, &str)| ContextBlock {
            name: (*name).into(),
            text: (*text).into(),
            ..ContextBlock::default()
        };
        let context = context.iter().map(block).collect();
        UserText::Person { text: text.into(), command: command.map(str::to_owned), context }
    }

    #[test]
    fn a_persons_words_are_told_from_what_the_program_says() {
        for (text, expected) in [
            ("fix <b> it", person("fix <b> it", None, &[])),
            (
                "<system-reminder>\nlook\n</system-reminder>\nfix <it>",
                person("fix <it>", None, &[("system-reminder", "look")]),
            ),
            ("a <system-reminder> that never ends", person("a <system-reminder> that never ends", None, &[])),
            (
                "<command-message>x</command-message>\n<command-name>/review</command-name><command-args>all</command-args>",
                person("/review all", Some("review"), &[]),
            ),
            ("<bash-input>ls</bash-input>", person("! ls", None, &[])),
            ("[Request interrupted by user for tool use]", UserText::Stopped),
            (
                "<local-command-stdout>ok</local-command-stdout>",
                UserText::Program {
                    kind: "local-command",
                    text: "<local-command-stdout>ok</local-command-stdout>".into(),
                },
            ),
            ("<task-notification>x", UserText::Automation("<task-notification>x".into())),
        ] {
            assert_eq!(words_of(text), expected, "{text}");
        }
        assert!(matches!(words_of("<ide_selection>x</ide_selection>"), UserText::Context(blocks) if blocks.len() == 1));
    }

    #[test]
    fn text_full_of_tags_is_read_in_reasonable_time() {
        let text = "<system-reminder".repeat(20_000);
        assert!(matches!(words_of(&text), UserText::Person { text: read, .. } if read == text));
    }
}
