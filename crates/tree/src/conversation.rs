//! A context as messages that any agent understands: of the user, of the assistant, results of tools. Also as a
//! transcript in plain text, for agents that accept only a prompt.

use std::collections::HashSet;
use std::fmt::Write;
use std::ops::ControlFlow;

use grove_fs::FsError;

use crate::context::{BRANCH_INTRODUCTION, COMPACTION_INTRODUCTION, Context, ContextMessage, Rules};
use crate::fields::{EntryFields, each_block, is};
use crate::index::{EntryNo, LogIndex};
use crate::object::field;
use crate::scan::lossy;
use crate::source::LogSource;

/// The maximum length of a tool's result in a transcript. Longer ones keep their beginning and end.
pub const MAX_RESULT: usize = 2_000;
/// The number of messages of the first read for a transcript. Few transcripts have room for more.
const FIRST_READ: usize = 200;
/// The separator of a transcript's messages.
const BETWEEN: &str = "\n\n";

/// A message in a form that any model understands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelMessage {
    /// The source entry.
    pub entry: EntryNo,
    pub speaker: MessageRole,
    pub content: Vec<Block>,
    /// True if it replaces older, compacted messages. A transcript never leaves it out.
    pub is_leading: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRole {
    System,
    User,
    Assistant,
    /// A tool's result of an assistant's call.
    Tool {
        call_id: String,
        name: String,
        is_error: bool,
    },
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    Text(String),
    Thinking(String),
    Image {
        mime_type: String,
        /// In base64.
        data: String,
    },
    Call {
        id: String,
        name: String,
        /// An object in JSON.
        arguments: String,
    },
}

/// Converts a context to messages for a model. Summaries (in `<summary>`), messages of extensions and commands that the
/// user ran become user messages.
pub fn model_messages(context: &Context<'_>) -> Vec<ModelMessage> {
    let message = |(number, message)| model_message(message, number < context.leading);
    context.messages.iter().enumerate().filter_map(message).collect()
}

/// The messages of some entries of the branch that ends at one of them, the oldest first.
pub fn messages_of(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    end: EntryNo,
    entries: &[EntryNo],
) -> Result<Vec<ModelMessage>, FsError> {
    // An entry is at most one message, so this many of the newest include them all.
    let context = Context::tail(index, source, Rules::Grove, Some(end), entries.len())?;
    let wanted: HashSet<EntryNo> = entries.iter().copied().collect();
    let mut messages = model_messages(&context);
    messages.retain(|message| wanted.contains(&message.entry));
    Ok(messages)
}

fn model_message(message: &ContextMessage<'_>, is_leading: bool) -> Option<ModelMessage> {
    let fields = EntryFields::of_message(message.json.bytes());
    let role = fields.role.and_then(lossy).unwrap_or_default();
    let text_field = |name| field(message.json.bytes(), name).and_then(lossy).unwrap_or_default();
    let (speaker, content) = match role.as_str() {
        "system" | "developer" => (MessageRole::System, blocks(fields.content)),
        "assistant" => (MessageRole::Assistant, blocks(fields.content)),
        "toolResult" => {
            let speaker = MessageRole::Tool {
                call_id: text_field("toolCallId"),
                name: text_field("toolName"),
                is_error: fields.is_error == Some(b"true"),
            };
            (speaker, blocks(fields.content))
        }
        "compactionSummary" => (MessageRole::User, vec![summary(COMPACTION_INTRODUCTION, &text_field("summary"))]),
        "branchSummary" => (MessageRole::User, vec![summary(BRANCH_INTRODUCTION, &text_field("summary"))]),
        "bashExecution" | "pythonExecution" if fields.exclude == Some(b"true") => return None,
        "bashExecution" => (MessageRole::User, vec![ran(&text_field("command"), &text_field("output"))]),
        "pythonExecution" => (MessageRole::User, vec![ran(&text_field("code"), &text_field("output"))]),
        "fileMention" => (MessageRole::User, mentions(fields.files)),
        _ => (MessageRole::User, blocks(fields.content)),
    };
    (!content.is_empty()).then_some(ModelMessage { entry: message.entry, speaker, content, is_leading })
}

fn summary(introduction: &str, text: &str) -> Block {
    Block::Text(format!("{introduction}\n\n<summary>\n{text}\n</summary>"))
}

fn ran(command: &str, output: &str) -> Block {
    Block::Text(format!("I ran this myself:\n{command}\n\nIt gave:\n{output}"))
}

/// oh-my-pi: files that the user mentioned.
fn mentions(files: Option<&[u8]>) -> Vec<Block> {
    let mut blocks = Vec::new();
    each_block(files, |_, file| {
        blocks.push(Block::Text(format!("The file {}:\n{}", text(file.path), text(file.content))));
        ControlFlow::Continue(())
    });
    blocks
}

fn blocks(content: Option<&[u8]>) -> Vec<Block> {
    let mut blocks: Vec<Block> = content.and_then(lossy).map(Block::Text).into_iter().collect();
    each_block(content, |_, block| {
        if is(block.kind, "text") {
            blocks.push(Block::Text(text(block.text)));
        } else if is(block.kind, "thinking") {
            blocks.push(Block::Thinking(text(block.thinking)));
        } else if is(block.kind, "image") {
            blocks.push(Block::Image { mime_type: text(block.mime_type), data: text(block.data) });
        } else if is(block.kind, "toolCall") {
            let arguments = String::from_utf8_lossy(block.arguments.unwrap_or(b"{}")).into_owned();
            blocks.push(Block::Call { id: text(block.id), name: text(block.name), arguments });
        }
        ControlFlow::Continue(())
    });
    blocks
}

fn text(value: Option<&[u8]>) -> String {
    value.and_then(lossy).unwrap_or_default()
}

/// The transcript of the conversation up to an entry, in at most about `limit` bytes; `None` if it is empty. Of a long
/// log only a few more messages are read than the transcript has room for.
pub fn transcript_at(
    index: &LogIndex,
    source: &(impl LogSource + ?Sized),
    at: Option<EntryNo>,
    limit: usize,
) -> Result<Option<String>, FsError> {
    let mut count = FIRST_READ;
    loop {
        let context = Context::recent(index, source, Rules::Grove, at, count)?;
        let messages = model_messages(&context);
        let has_room =
            || messages.iter().map(|message| message_text(message).len() + BETWEEN.len()).sum::<usize>() <= limit;
        if context.is_cut && has_room() {
            // Earlier messages may fit as well.
            count = count.saturating_mul(2);
            continue;
        }
        return Ok((!messages.is_empty()).then(|| transcript(&messages, limit, context.is_cut)));
    }
}

/// Renders a conversation in plain text of at most about `limit` bytes. If it is too long, the oldest messages after
/// the leading summary are left out, and the transcript says so.
pub fn render_transcript(messages: &[ModelMessage], limit: usize) -> String {
    transcript(messages, limit, false)
}

/// `is_cut`: messages are already left out between the leading ones and the rest.
fn transcript(messages: &[ModelMessage], limit: usize, is_cut: bool) -> String {
    let (leading, rest) = messages.split_at(messages.iter().take_while(|message| message.is_leading).count());
    let newest = rest.last().map_or(0, |message| message_text(message).len());
    let mut lead = leading.iter().map(message_text).collect::<Vec<_>>().join(BETWEEN);
    // A summary is cut only if the newest message would not fit beside it, which gets at most half of the room.
    lead.truncate(lead.floor_char_boundary(limit - newest.min(limit / 2)));
    let mut room = limit - lead.len();
    let mut is_cut = is_cut;
    let mut texts = Vec::new();
    for message in rest.iter().rev() {
        let mut text = message_text(message);
        let Some(left) = room.checked_sub(text.len()) else {
            is_cut = true;
            // The newest message is always included, as far as it fits.
            if texts.is_empty() {
                text.truncate(text.floor_char_boundary(room));
                texts.push(text);
            }
            break;
        };
        room = left.saturating_sub(BETWEEN.len());
        texts.push(text);
    }
    if is_cut {
        let left_out = if lead.is_empty() {
            "(What was said before is left out here.)"
        } else {
            "(What came next is left out here.)"
        };
        texts.push(left_out.to_owned());
    }
    if !lead.is_empty() {
        texts.push(lead);
    }
    texts.reverse();
    texts.join(BETWEEN)
}

fn message_text(message: &ModelMessage) -> String {
    let mut text = match &message.speaker {
        MessageRole::System => "Instructions:".to_owned(),
        MessageRole::User => "User:".to_owned(),
        MessageRole::Assistant => "Assistant:".to_owned(),
        MessageRole::Tool { name, is_error: false, .. } => format!("Result of {name}:"),
        MessageRole::Tool { name, is_error: true, .. } => format!("{name} failed:"),
    };
    for block in &message.content {
        let part = match block {
            Block::Text(part) if matches!(message.speaker, MessageRole::Tool { .. }) => elide_middle(part),
            Block::Text(part) => part.clone(),
            // Thoughts belong to their model: another one would take them for text.
            Block::Thinking(_) => continue,
            Block::Image { mime_type, .. } => format!("[an image, {mime_type}]"),
            Block::Call { name, arguments, .. } => format!("[calls {name} with {}]", elide_middle(arguments)),
        };
        // Writing into a text does not fail.
        write!(text, "\n{part}").ok();
    }
    text
}

/// Keeps the beginning and the end of a text that is too long.
fn elide_middle(text: &str) -> String {
    if text.len() <= MAX_RESULT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_RESULT / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_RESULT / 2);
    format!("{}\n[… {} bytes …]\n{}", &text[..head], tail - head, &text[tail..])
}
