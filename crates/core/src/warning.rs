//! The warnings that Grove itself adds to a session and removes again, in words for a person.
//!
//! A session's details list them among others as text ([`SessionDetails::warnings`](crate::SessionDetails)), so they are
//! recognized by their words.

use crate::state::RemoteSession;

/// The end of a warning about a shared folder, which identifies it among others.
const SHARED_FOLDER: &str = "their changes may collide";

/// The warning that another session, and so many beside it, run in the same folder. It holds only as long as they do.
pub fn shared_folder(other: &str, more: usize, folder: &str) -> String {
    let running = match more {
        0 => format!("{other} is"),
        1 => format!("{other} and one other are"),
        more => format!("{other} and {more} others are"),
    };
    format!("{running} running in {folder}, too: {SHARED_FOLDER}")
}

/// Says whether a warning is about a shared folder.
pub fn is_shared_folder(warning: &str) -> bool {
    warning.ends_with(SHARED_FOLDER)
}

/// The warning that a process of an agent asked for something that persons alone may do.
pub fn agent_attempt(operation: &str) -> String {
    format!(
        "a process of this session's agent tried to act as a person ({operation}), and was refused: see `grove audit`"
    )
}

/// The warning that a session has moved to another host.
pub fn moved(to: &RemoteSession) -> String {
    let at = to.address.as_ref().map(|address| format!(" ({address})")).unwrap_or_default();
    format!("this session was moved to {}{at}: go on with it there", to.host)
}

/// The beginning of a warning about rules, which identifies it among others.
const POLICY: &str = "rules: ";

/// The warning that rules for permission requests do not count, or cannot be read.
pub fn policy(words: &str) -> String {
    format!("{POLICY}{words}")
}

/// Says whether a warning is about rules.
pub fn is_policy(warning: &str) -> bool {
    warning.starts_with(POLICY)
}
