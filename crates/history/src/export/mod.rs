//! Sessions in the normal form, written for people and for other programs.
//!
//! A writer is begun with what is known of the session, given its turns one by one, and finished: memory follows one turn.
//! [`Markdown`] and [`Html`] are for people, and so is a terminal: all three show what [`TurnOutline`] says is worth showing.
//! [`Json`] is the normal form itself; [`CopilotChat`] is what VS Code's Copilot Chat keeps and imports. Sessions of
//! Grove's own come into the normal form by [`transcript_turn`].
//!
//! What a session says is never trusted: it is data in each of these forms, and steers none of them.

mod copilot_chat;
mod from_core;
mod html;
mod json;
mod labels;
mod markdown;
mod outline;
#[cfg(test)]
mod tests;

pub use copilot_chat::CopilotChat;
pub use from_core::transcript_turn;
pub use html::Html;
pub use json::Json;
pub use markdown::Markdown;
pub use outline::{OutlineBody, OutlineItem, OutlineKind, SessionOutline, TurnOutline};

use std::io;

use crate::normal::{TranscriptSession, TranscriptTurn};

/// What is known of a session before its turns are written.
#[derive(Clone, Copy, Debug)]
pub struct Heading<'a> {
    /// Whose session it is: a source's name, or `grove`.
    pub source: &'a str,
    pub session: &'a TranscriptSession,
    /// How many of its turns lie on branches that were left, and are not written.
    pub abandoned: u32,
    /// True where a host's session allows everything without a question. `None` for a session that is not a host's.
    pub allow_all: Option<bool>,
}

/// A session that is being written.
pub trait TurnWriter {
    fn turn(&mut self, turn: &TranscriptTurn) -> io::Result<()>;

    /// Writes what comes behind the last turn. Nothing can be written after it.
    fn finish(&mut self) -> io::Result<()>;
}
