//! A context in the words that any agent understands: messages of the user, of the assistant, results of tools. And as
//! a story in plain text, for agents that can only be told.

use std::fmt::Write;
use std::ops::ControlFlow;

use crate::context::{COMPACTED, Context, ContextMessage, LEFT_BRANCH};
use crate::fields::{Parts, each_block, is};
use crate::index::EntryNo;
use crate::object::field;
use crate::scan::lossy;

/// How much of a tool's result a story tells. Of longer ones the beginning and the end are told.
const MAX_RESULT: usize = 2_000;

/// A message as models know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelMessage {
    /// The entry it comes from.
    pub entry: EntryNo,
    pub speaker: Speaker,
    pub content: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaker {
    System,
    User,
    Assistant,
    /// A tool, to an assistant's call.
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

/// A context's messages for a model. Summaries stand in `<summary>`, and they, messages of extensions and commands that
/// the user ran are the user's.
pub fn model_messages(context: &Context<'_>) -> Vec<ModelMessage> {
    context.messages.iter().filter_map(model_message).collect()
}

fn model_message(message: &ContextMessage<'_>) -> Option<ModelMessage> {
    let fields = Parts::of_message(message.json.bytes());
    let role = fields.role.and_then(lossy).unwrap_or_default();
    let said = |name| field(message.json.bytes(), name).and_then(lossy).unwrap_or_default();
    let (speaker, content) = match role.as_str() {
        "system" | "developer" => (Speaker::System, blocks(fields.content)),
        "assistant" => (Speaker::Assistant, blocks(fields.content)),
        "toolResult" => {
            let speaker = Speaker::Tool {
                call_id: said("toolCallId"),
                name: said("toolName"),
                is_error: fields.is_error == Some(b"true"),
            };
            (speaker, blocks(fields.content))
        }
        "compactionSummary" => (Speaker::User, vec![summary(COMPACTED, &said("summary"))]),
        "branchSummary" => (Speaker::User, vec![summary(LEFT_BRANCH, &said("summary"))]),
        "bashExecution" | "pythonExecution" if fields.exclude == Some(b"true") => return None,
        "bashExecution" => (Speaker::User, vec![ran(&said("command"), &said("output"))]),
        "pythonExecution" => (Speaker::User, vec![ran(&said("code"), &said("output"))]),
        "fileMention" => (Speaker::User, mentions(fields.files)),
        _ => (Speaker::User, blocks(fields.content)),
    };
    (!content.is_empty()).then_some(ModelMessage { entry: message.entry, speaker, content })
}

fn summary(introduction: &str, text: &str) -> Block {
    Block::Text(format!("{introduction}\n\n<summary>\n{text}\n</summary>"))
}

fn ran(command: &str, output: &str) -> Block {
    Block::Text(format!("I ran this myself:\n{command}\n\nIt gave:\n{output}"))
}

/// oh-my-pi: files that the user pointed at.
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

/// Tells a conversation in plain text of at most about `limit` bytes. The oldest is left out where it is too long, and
/// the story says so.
pub fn retell(messages: &[ModelMessage], limit: usize) -> String {
    let mut told = Vec::new();
    let mut length = 0;
    for message in messages.iter().rev() {
        let mut text = told_of(message);
        if length + text.len() > limit {
            // What is newest is told in any case, as far as it fits.
            if told.is_empty() {
                text.truncate(text.floor_char_boundary(limit));
                told.push(text);
            }
            told.push("(What was said before is left out here.)".to_owned());
            break;
        }
        length += text.len();
        told.push(text);
    }
    told.reverse();
    told.join("\n\n")
}

fn told_of(message: &ModelMessage) -> String {
    let mut text = match &message.speaker {
        Speaker::System => "Instructions:".to_owned(),
        Speaker::User => "User:".to_owned(),
        Speaker::Assistant => "Assistant:".to_owned(),
        Speaker::Tool { name, is_error: false, .. } => format!("Result of {name}:"),
        Speaker::Tool { name, is_error: true, .. } => format!("{name} failed:"),
    };
    for block in &message.content {
        let part = match block {
            Block::Text(part) if matches!(message.speaker, Speaker::Tool { .. }) => middle_cut(part),
            Block::Text(part) => part.clone(),
            // Thoughts are the model's own, and another one would take them for words.
            Block::Thinking(_) => continue,
            Block::Image { mime_type, .. } => format!("[an image, {mime_type}]"),
            Block::Call { name, arguments, .. } => format!("[calls {name} with {}]", middle_cut(arguments)),
        };
        // Writing into a text does not fail.
        write!(text, "\n{part}").ok();
    }
    text
}

/// The beginning and the end of a text that is too long.
fn middle_cut(text: &str) -> String {
    if text.len() <= MAX_RESULT {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(MAX_RESULT / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_RESULT / 2);
    format!("{}\n[… {} bytes …]\n{}", &text[..head], tail - head, &text[tail..])
}
