//! Previews of entries for the rows of the tree: the speaker, and the beginning of the text.

use std::ops::ControlFlow;

use grove_fs::FsError;

use crate::fields::{EntryFields, LineFields, MessageFields, each_block, is};
use crate::index::{EntryNo, LogIndex};
use crate::kind::EntryType;
use crate::object::field;
use crate::role::Role;
use crate::scan::lossy;
use crate::source::{LogSource, line};

/// The maximum number of characters of a preview. Longer texts are cut.
pub const MAX_PREVIEW_CHARS: usize = 200;
/// The number of bytes of a text that are read for it: escapes and white space take room as well.
const MAX_READ: usize = 1 << 10;
/// The maximum distance from a tool's result up to its call.
const MAX_STEPS: usize = 64;
/// The arguments that describe a call best, in order.
const DESCRIPTIVE_ARGUMENTS: [&str; 9] =
    ["command", "cmd", "path", "file_path", "filePath", "pattern", "query", "url", "prompt"];

/// The preview of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryPreview {
    /// The speaker: `user`, `assistant`, the name of a tool, an extension's own type, or the entry's type.
    pub role: String,
    /// One line.
    pub text: String,
}

/// Makes previews. It caches the calls of the last assistant's message, since several results follow one message.
pub(crate) struct PreviewReader<'a, S: ?Sized> {
    index: &'a LogIndex,
    source: &'a S,
    calls: Option<(EntryNo, Vec<CallPreview>)>,
}

struct CallPreview {
    id: String,
    /// The call's name and arguments, as rows show them.
    text: String,
}

impl<'a, S: LogSource + ?Sized> PreviewReader<'a, S> {
    pub(crate) fn new(index: &'a LogIndex, source: &'a S) -> Self {
        Self { index, source, calls: None }
    }

    pub(crate) fn show(&mut self, entry: EntryNo, line: &[u8]) -> Result<EntryPreview, FsError> {
        let EntryFields { line, message } = EntryFields::of(line);
        let kind = self.index.kind(entry);
        let plain = |text: String| EntryPreview { role: kind.name().unwrap_or("unknown").to_owned(), text };
        Ok(match kind {
            EntryType::Message => self.message(entry, &message)?,
            EntryType::CustomMessage => EntryPreview {
                role: line.custom_type.and_then(start_of).unwrap_or_else(|| "custom".to_owned()),
                text: one_line(&text_in(line.content)),
            },
            EntryType::Compaction | EntryType::BranchSummary => plain(preview_text(line.summary)),
            EntryType::Label => plain(preview_text(line.label)),
            EntryType::SessionInfo => plain(preview_text(line.name)),
            EntryType::TitleChange => plain(preview_text(line.title)),
            EntryType::ThinkingLevelChange => plain(preview_text(line.thinking_level)),
            EntryType::ModeChange => plain(preview_text(line.mode)),
            EntryType::ModelChange => plain(model(&line)),
            EntryType::Custom => plain(preview_text(line.custom_type)),
            EntryType::Unknown => plain(preview_text(line.kind)),
            EntryType::Usage
            | EntryType::ContextEdit
            | EntryType::ModelUsage
            | EntryType::TtsrInjection
            | EntryType::ServiceTierChange
            | EntryType::ResetBoundary
            | EntryType::CredentialPin
            | EntryType::SessionInit
            | EntryType::Archive => plain(String::new()),
        })
    }

    fn message(&mut self, entry: EntryNo, message: &MessageFields<'_>) -> Result<EntryPreview, FsError> {
        let role = message.role.and_then(start_of).unwrap_or_default();
        let mut text = text_in(message.content);
        match role.as_str() {
            "assistant" => {
                let error = message.error_message.and_then(start_of);
                let calls = calls_in(message.content).into_iter().map(|call| call.text);
                let parts = [text].into_iter().chain(error).chain(calls);
                text = parts.filter(|part| !part.trim().is_empty()).collect::<Vec<_>>().join(" ");
            }
            "toolResult" => {
                let name = message.tool_name.and_then(start_of).unwrap_or_default();
                let call = message.tool_call_id.and_then(lossy).map(|id| self.call(entry, &id)).transpose()?.flatten();
                text = format!("{} {text}", call.unwrap_or(name));
            }
            "bashExecution" => text = preview_text(message.command),
            "pythonExecution" => text = preview_text(message.code),
            _ => {}
        }
        Ok(EntryPreview { role, text: one_line(&text) })
    }

    /// The call of a result, as rows show it: it is in the nearest assistant's message above.
    fn call(&mut self, result: EntryNo, id: &str) -> Result<Option<String>, FsError> {
        let (index, source) = (self.index, self.source);
        for entry in index.links.ancestors(result).skip(1).take(MAX_STEPS) {
            match index.role(entry) {
                Some(Role::Assistant | Role::SilentAssistant) => {}
                Some(Role::User) => break,
                Some(Role::ToolResult | Role::Custom | Role::Other) | None => continue,
            }
            if self.calls.as_ref().is_none_or(|(known, _)| *known != entry) {
                let line = line(index, source, entry)?;
                self.calls = Some((entry, calls_in(EntryFields::of(&line).message.content)));
            }
            let calls = self.calls.iter().flat_map(|(_, calls)| calls);
            if let Some(call) = calls.into_iter().find(|call| call.id == id) {
                return Ok(Some(call.text.clone()));
            }
        }
        Ok(None)
    }
}

/// The texts of a message's content, as far as a row needs them.
fn text_in(content: Option<&[u8]>) -> String {
    match content {
        Some(text @ [b'"', ..]) => start_of(text).unwrap_or_default(),
        Some(list @ [b'[', ..]) => {
            let mut text = String::new();
            each_block(Some(list), |_, block| {
                let part = if is(block.kind, "text") {
                    block.text.and_then(start_of)
                } else if is(block.kind, "image") {
                    Some("[image]".to_owned())
                } else {
                    None
                };
                text.push_str(&part.unwrap_or_default());
                text.push(' ');
                if text.len() < MAX_READ { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
            text
        }
        Some(_) | None => String::new(),
    }
}

fn calls_in(content: Option<&[u8]>) -> Vec<CallPreview> {
    let mut calls = Vec::new();
    each_block(content, |_, block| {
        if is(block.kind, "toolCall") {
            let name = block.name.and_then(start_of).unwrap_or_default();
            let arguments = block.arguments.unwrap_or_default();
            let argument = DESCRIPTIVE_ARGUMENTS.iter().find_map(|name| field(arguments, name).and_then(start_of));
            let argument = argument.or_else(|| Some(arguments).filter(|all| *all != b"{}").map(start_of_json));
            let id = block.id.and_then(lossy).unwrap_or_default();
            calls.push(CallPreview { id, text: format!("{name} {}", argument.unwrap_or_default()) });
        }
        ControlFlow::Continue(())
    });
    calls
}

/// The model in either program's form.
fn model(line: &LineFields<'_>) -> String {
    match line.model {
        Some(model) => preview_text(Some(model)),
        None => format!("{}/{}", preview_text(line.provider), preview_text(line.model_id)),
    }
}

fn preview_text(value: Option<&[u8]>) -> String {
    one_line(&value.and_then(start_of).unwrap_or_default())
}

/// Decodes the beginning of a text.
fn start_of(value: &[u8]) -> Option<String> {
    if value.len() <= MAX_READ {
        return lossy(value);
    }
    let mut cut = &value[..MAX_READ];
    // Does not cut inside an escape: the longest is `\ud83c\udf32`. In a row of backslashes every second one is escaped
    // itself.
    let near = &cut[MAX_READ - 12..];
    if let Some(first) = memchr::memchr(b'\\', near) {
        cut = &cut[..MAX_READ - 12 + first];
        let row = cut.iter().rev().take_while(|byte| **byte == b'\\').count();
        cut = &cut[..cut.len() - row % 2];
    }
    lossy(&[cut, b"\""].concat())
}

fn start_of_json(value: &[u8]) -> String {
    String::from_utf8_lossy(&value[..value.len().min(MAX_READ)]).into_owned()
}

/// A text on one line, cut to the length of a preview.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    let mut count = 0;
    let mut is_between = false;
    for character in text.chars() {
        if character.is_whitespace() || character.is_control() {
            is_between = count > 0;
            continue;
        }
        let more = 1 + usize::from(is_between);
        if count + more > MAX_PREVIEW_CHARS {
            line.push('…');
            return line;
        }
        if std::mem::take(&mut is_between) {
            line.push(' ');
        }
        line.push(character);
        count += more;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for length in MAX_READ - 20..MAX_READ + 20 {
            for end in [r"\ud83c\udf32", r"\\", r"\n", "🌲", r#"\""#, r"\\\\\u0041"] {
                let json = format!("\"{}{}\"", "a".repeat(length), end.repeat(9));
                let start = start_of(json.as_bytes()).unwrap();
                let whole: String = lossy(json.as_bytes()).unwrap();
                let sound = start.trim_end_matches('\u{fffd}');
                assert!(whole.starts_with(sound) && sound.len() + 32 > MAX_READ.min(whole.len()), "{length} {end}");
            }
        }
    }

    #[test]
    fn a_row_is_one_line_of_bounded_length() {
        assert_eq!(one_line("  a \n\n b\u{1b}[31m\t"), "a b [31m");
        assert_eq!(one_line(&"ä ".repeat(300)).chars().count(), MAX_PREVIEW_CHARS);
        assert_eq!(one_line(&"ä".repeat(300)).chars().count(), MAX_PREVIEW_CHARS + 1);
        assert_eq!(one_line(&"ä".repeat(MAX_PREVIEW_CHARS)).chars().count(), MAX_PREVIEW_CHARS);
    }
}
