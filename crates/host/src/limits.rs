//! The bounds of this crate that the table of limits names (`crates/limits`, `docs/limits.md`).

pub use crate::audit::MAX_SUBJECT_BYTES as AUDITED_SUBJECT_BYTES;
pub use crate::audit::MAX_TEXT_CHARS as AUDIT_TEXT_CHARS;
pub use crate::client_hooks::{
    CLIENT_WAIT as HOOK_CLIENT_WAIT, HOOK_TIME as CLIENT_HOOK_TIME, MAX_CONTEXT_BYTES as HOOK_CONTEXT_BYTES,
    MAX_REASON_CHARS as HOOK_REASON_CHARS,
};
pub use crate::editors::ANSWER_TIMEOUT as EDITOR_TIMEOUT;
pub use crate::editors::QUESTIONS as EDITOR_QUESTIONS;
pub use crate::editors::WRITE_BYTES as EDITOR_WRITE_BYTES;
pub use crate::editors::WRITE_TIMEOUT as EDITOR_WRITE_TIMEOUT;
pub use crate::eviction::MAX_TRACKED_SESSIONS as TRACKED_SESSIONS;
pub use crate::host::creation::MAX_DIRECTORIES as DIRECTORIES;
pub use crate::import::MAX_DAMAGE_ITEMS as IMPORT_DAMAGE;
pub use crate::import::MOST_SOURCE_BYTES as IMPORT_SOURCE_BYTES;
pub use crate::presence::NOTICE_DELAY as PRESENCE_NOTICE;
pub use crate::presence::RETURN_GRACE as PRESENCE_GRACE;
pub use crate::removal::COPY_TIMEOUT;
pub use crate::removal::MAX_LISTED as DELETED_SESSIONS;
pub use crate::sequencer::BATCH as SEQUENCER_BATCH;
pub use crate::sequencer::INBOX as SEQUENCER_INBOX;
pub use crate::session::INBOX as SESSION_INBOX;
pub use crate::session::agents::REPORTS as AGENT_REPORTS;
pub use crate::session::client_hooks::{MAX_HELD_PROMPTS as HOOKED_PROMPTS, MAX_STOP_BLOCKS as STOP_BLOCKS};
pub use crate::session::memory::AGENT_COPY_TIMEOUT;
pub use crate::session::outbox::MAX_WARNINGS as WARNINGS;
pub use crate::session::pastes::INLINE_BYTES as PASTE_BEGINNING_BYTES;
pub use crate::session::reports::MAX_COMMANDS as AGENT_COMMANDS;
pub use crate::session::tree::ENTRIES_BYTES;
pub use crate::session::tree::summarize::DEFAULT_TRANSCRIPT_BYTES as SUMMARIZED_BYTES;
pub use crate::session::tree::summarize::HOOK_BYTES;
pub use crate::session::workspace::request_queue::MAX_QUEUED_REQUESTS as WORKSPACE_REQUESTS;
pub use crate::terminals::MAX_ACTION_BYTES as TERMINAL_ACTION_BYTES;
pub use crate::terminals::MAX_CONNECTION_TERMINALS as CONNECTION_TERMINALS;
pub use crate::terminals::MAX_INPUT_BYTES as TERMINAL_INPUT_BYTES;
pub use crate::terminals::MAX_SIDE as TERMINAL_SIDE;
pub use crate::terminals::MAX_TERMINALS as CLIENT_TERMINALS;
pub use crate::terminals::MAX_TITLE_BYTES as TERMINAL_TITLE_BYTES;
pub use crate::terminals::STALL_TIME as TERMINAL_STALL;
pub use crate::terminals::screen::MESSAGE_BYTES as TERMINAL_MESSAGE_BYTES;
pub use crate::terminals::screen::SCROLLBACK_BYTES;
pub use crate::terminals::screen::WINDOW_BYTES as TERMINAL_WINDOW_BYTES;
pub use crate::tokens::MAX_TOKEN_NAME as TOKEN_NAME_BYTES;
pub use crate::tokens::MAX_TOKENS as TOKENS;
pub use crate::tokens::registry::BROWSER_LIFETIME as PAGE_TOKEN_TIME;
pub use crate::tokens::registry::CODE_LIFETIME as CODE_TIME;
pub use crate::tokens::registry::MAX_BROWSER_TOKENS as PAGE_TOKENS;
pub use crate::tokens::registry::MAX_CODES as CODES;
pub use crate::usage::MAX_ADDRESSES as USAGE_ADDRESSES;
