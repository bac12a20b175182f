//! Turns as entries of a log, and entries as turns: the one place for it.
//!
//! A turn is written in the words of the format: what the person said is a `user` message, what the agent said an
//! `assistant` message with its text, thinking and tool calls, and each result a `toolResult`. So other programs find a
//! conversation that they understand. What they have no word for rides on the same entries in the field `grove`; how
//! the turn ended is a `custom` entry of type [`TURN_END`].
//!
//! Reading them gives the same turn again. Entries of other programs, which have no such field, become turns by their
//! messages alone.

mod read;
mod span;
mod window;
mod write;

pub(crate) use read::turn_in;
pub use read::{parse_turn_end, turns};
pub use span::{TurnSpan, locate_turn, turn_started_at};
pub use window::{EntryRange, LoggedTurns, TurnLimit, newest, newest_turns_at, newest_turns_in};
pub use write::{LogLines, TurnAttribution, header_line, name_line, settings_lines, turn_lines};

use grove_core::{Message, Outcome, Part, Timestamp, TurnId, Usage};
use serde::{Deserialize, Serialize};

/// The `customType` of the entry that ends a turn.
pub const TURN_END: &str = "grove.turnEnd";

/// What rides on a message's entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct GroveFields {
    turn: TurnId,
    /// On a user's message: all of it but its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Message>,
    /// On an assistant's message: the parts that it stands for, without the texts that stand in the message itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<Part>,
}

/// How a turn ended.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TurnEnd {
    turn: TurnId,
    outcome: Outcome,
    started_at: Timestamp,
    ended_at: Timestamp,
    /// When it had ended by the host's clock; the other times may be a client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seen_end: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}
