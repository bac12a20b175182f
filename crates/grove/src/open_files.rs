//! How many files the process may have open.
//!
//! A host has one for each connection, and several for each session that is at work: the 1,024 that systems give to a
//! program unasked are soon used up, and then nobody is answered any more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// As many as a host can use. What it starts inherits the limit, and some programs look at each number below it: where a
/// system allows a billion, they would take minutes.
const MOST: u64 = 65_536;

/// Raises the limit as far as the system allows. Where it does not, that is said, and the host does with less.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = raised(limit.maximum);
    // No limit at all, or one that is higher already, stays.
    if limit.current.is_none_or(|current| current >= raised) {
        return;
    }
    let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, limit = limit.current, "more files cannot be opened than this");
    }
}

/// The limit that is wanted where the system allows so many.
fn raised(allowed: Option<u64>) -> u64 {
    allowed.map_or(MOST, |allowed| allowed.min(MOST))
}
