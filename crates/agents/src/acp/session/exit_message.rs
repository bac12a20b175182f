//! The exit of an agent, in words for a person.

use std::path::Path;

use grove_shim::{AgentEnd, EndReason, stderr_tail};

/// The bytes of stderr that are shown.
pub const BYTES: u64 = 2 << 10;
const LINES: usize = 5;

pub(super) fn describe_exit(end: &AgentEnd) -> String {
    let exit = end.exit.map(|exit| format!("it {exit}")).unwrap_or_else(|| "it ended".to_owned());
    let how = match end.reason {
        EndReason::Exited | EndReason::Other => exit,
        EndReason::NotStarted => "it could not be started".to_owned(),
        EndReason::LineTooLong => "it sent a line longer than the limit, and was ended".to_owned(),
        EndReason::StdoutClosed => {
            return format!("it closed its stdout, over which it answers, and ran on; it was ended ({exit})");
        }
        EndReason::Requested => format!("it was told to end ({exit})"),
        EndReason::Abandoned => "no host came back within the limit, and it was ended".to_owned(),
    };
    match &end.message {
        Some(message) => format!("{how}: {message}"),
        None => how,
    }
}

/// Appends the last lines of stderr.
pub(super) async fn with_stderr_tail(how: String, folder: &Path) -> String {
    let folder = folder.to_owned();
    let stderr = tokio::task::spawn_blocking(move || stderr_tail(&folder, BYTES).unwrap_or_default()).await;
    let stderr = stderr.unwrap_or_default();
    let lines: Vec<&str> = stderr.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    match &lines[lines.len().saturating_sub(LINES)..] {
        [] => how,
        last => format!("{how}. Its stderr ends with:\n{}", last.join("\n")),
    }
}
