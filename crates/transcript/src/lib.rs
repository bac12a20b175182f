//! A session for people to read: one normal form for sessions of any tool and for Grove's own, and its exporters.
//!
//! # Contents
//!
//! - The normal form: a [`TranscriptSession`] is a session's data for a list, a [`TranscriptTurn`] a person's message and
//!   its results. Data that a reader does not understand are kept raw.
//! - [`TurnParent`] and [`path`]: several tools keep trees. All turns are returned, in file order, each with its parent
//!   turn.
//! - [`transcript_turn`]: a turn of Grove's own in the normal form. [`core_turn`] is the inverse, which `grove-tree`
//!   writes as entries.
//! - [`export`]: writes sessions for people (Markdown, HTML) and for programs (JSON, Copilot Chat).
//! - [`tools`]: the known tools of agents, and the meaning of their input. [`uri`]: URIs as VS Code writes them.
//! - [`Damage`]: the unreadable places of a session.
//! - [`TurnBuffer`]: the turns of a session for a second look, in bounded memory.
//!
//! `grove-history` reads other tools' sessions into the normal form. This crate opens no file but the buffer's temporary
//! one, and reads no clock. Memory depends on one turn, or on the buffer's limit.

#![forbid(unsafe_code)]

mod damage;
pub mod export;
mod from_core;
pub mod limits;
mod normal;
mod to_core;
pub mod tools;
mod turn_buffer;
pub mod uri;

pub use damage::{Damage, DamageKind, DamageLocation};
pub use from_core::transcript_turn;
pub use normal::*;
pub use to_core::{ChildChat, CoreTurn, HISTORY, core_turn};
pub use tools::{canonical_tool_name, tool_kind};
pub use turn_buffer::{TurnBuffer, json_size};
