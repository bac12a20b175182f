//! The limit of open files of the process.
//!
//! A host needs one for each connection, and several for each active session: the usual default of 1,024 is soon used
//! up, and then no connection is accepted any more.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that a host can use.
///
/// Child processes inherit it, and some programs check each number below it: with a limit of a billion they take
/// minutes.
const MOST: u64 = 65_536;

/// Raises the limit as far as the system allows. A failure is logged.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let raised = raised(limit.maximum);
    // An unlimited or higher limit stays.
    if limit.current.is_none_or(|current| current >= raised) {
        return;
    }
    let wanted = Rlimit { current: Some(raised), maximum: limit.maximum };
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::warn!(%error, limit = limit.current, "cannot raise the limit of open files");
    }
}

/// The new limit, given the system's maximum.
fn raised(allowed: Option<u64>) -> u64 {
    allowed.map_or(MOST, |allowed| allowed.min(MOST))
}
