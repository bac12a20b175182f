//! The normal form: one data model for sessions of any tool.
//!
//! Data that a reader does not understand are kept (`raw`), so that reading loses nothing.

mod file_location;
mod message;
mod model;
mod part;
mod session;
mod tool;
mod turn;

pub use file_location::{FileLocation, TextPosition, TextRange};
pub use message::{TranscriptAttachment, TranscriptAttachmentKind, TranscriptMessage};
pub use model::{TranscriptModel, TranscriptUsage, model_key, split_model_id};
pub use part::{
    CodeBlock, CodeCitation, ContextBlock, EditKind, Notice, Question, TextChange, TranscriptEdit, TranscriptPart,
};
pub use session::{
    FIRST_MESSAGE_LENGTH, NO_MESSAGES, TranscriptSession, TranscriptSource, TranscriptState, TranscriptWorkspace,
    Worktree,
};
pub use tool::{
    Approval, CallState, Replacement, TodoItem, TodoStatus, ToolInput, ToolOutput, TranscriptChat, TranscriptToolCall,
    TranscriptToolKind,
};
pub use turn::{TranscriptAgent, TranscriptTurn, TurnOutcome, TurnParent, path, path_among_newest, path_of};

/// True for a type's default value, which is not written.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
