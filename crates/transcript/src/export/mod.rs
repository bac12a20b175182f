//! Writers of sessions in the normal form, for people and for other programs.
//!
//! A writer starts with the session's heading, gets its turns one by one, and is finished: memory depends on one turn.
//! [`Markdown`] and [`Html`] are for people, and so is a terminal: all three show the contents of [`TurnOutline`].
//! [`Json`] is the normal form itself; [`CopilotChat`] is the format of VS Code's Copilot Chat, which can be imported
//! there. [`transcript_turn`](crate::transcript_turn) converts Grove's own sessions to the normal form.
//!
//! A session's contents are never trusted: they are data in each of these formats, and cannot control them.

mod copilot_chat;
mod html;
mod json;
pub(crate) mod labels;
mod markdown;
mod outline;

pub use copilot_chat::CopilotChat;
pub use html::Html;
pub use json::Json;
pub use markdown::Markdown;
pub use outline::{OutlineBody, OutlineItem, OutlineKind, SessionOutline, TurnOutline};

use std::io;

use crate::normal::{TranscriptSession, TranscriptTurn};

/// The session's data before its turns.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// The owner of the session: a source's name, or `grove`.
    pub source: &'a str,
    pub session: &'a TranscriptSession,
    /// The number of turns on abandoned branches, which are not written.
    pub abandoned: u32,
    /// True where a host's session allows everything without a question. `None` for a session that is not a host's.
    pub allow_all: Option<bool>,
}

/// A writer of one session.
pub trait TurnWriter {
    fn turn(&mut self, turn: &TranscriptTurn) -> io::Result<()>;

    /// Writes the end of the file. Nothing can be written after it.
    fn finish(&mut self) -> io::Result<()>;
}
