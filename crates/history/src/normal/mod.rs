//! The normal form: what a session of any tool is, told in one way.
//!
//! What a reader does not understand it keeps (`raw`), so that nothing of a session is lost by being read.

mod message;
mod model;
mod part;
mod place;
mod session;
mod tool;
mod turn;

pub use message::{AttachmentKind, ForeignAttachment, ForeignMessage};
pub use model::{ForeignModel, ForeignUsage, model_key, split_model_id};
pub use part::{
    ChangeKind, CodeBlock, CodeCitation, ContextBlock, ForeignEdit, ForeignPart, Notice, Question, TextChange,
};
pub use place::{Place, Position, Range};
pub use session::{FIRST_MESSAGE_LENGTH, ForeignSession, NO_MESSAGES, SessionState, Source, Workspace, Worktree};
pub use tool::{
    Approval, CallState, ForeignChat, ForeignToolCall, ForeignToolKind, Replacement, TodoItem, TodoStatus, ToolInput,
    ToolOutput,
};
pub(crate) use turn::path_among_newest;
pub use turn::{Follows, ForeignAgent, ForeignTurn, TurnOutcome, path, path_of};
