//! Conversion of turns to log entries and back.
//!
//! A turn is written in the format's own types: a `user` message, an `assistant` message with text, thinking and tool
//! calls, and a `toolResult` for each result. So other programs can read the conversation. Data without a counterpart
//! in the format are stored on the same entries in the field `grove`; the turn's outcome is a `custom` entry of type
//! [`TURN_END`].
//!
//! Reading restores the same turn. Entries of other programs, which lack that field, become turns by their messages
//! alone.

mod read;
mod span;
mod window;
mod write;

pub use read::{parse_turn_end, turns, turns_of_all_branches};
pub(crate) use read::{turn_id_in, turn_in};
pub use span::{TurnSpan, locate_turn, turn_started_at};
pub use window::{EntryRange, LoggedTurns, TurnLimit, newest, newest_turns_at, newest_turns_in};
pub use write::{LogLines, TurnAttribution, header_line, name_line, settings_lines, turn_lines};

use grove_core::{Message, Outcome, Part, Timestamp, TurnId, Usage};
use serde::{Deserialize, Serialize};

/// The `customType` of the entry that ends a turn.
pub const TURN_END: &str = "grove.turnEnd";

/// Grove's data on a message's entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroveFields {
    turn: TurnId,
    /// On a user message: the message without its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    /// On an assistant's message: its parts, without the texts that are in the message itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

/// The outcome of a turn.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnEnd {
    turn: TurnId,
    outcome: Outcome,
    started_at: Timestamp,
    ended_at: Timestamp,
    /// The end time by the host's clock; the other times may be a client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen_end: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}
