//! WebSocket control frames as messages: for connections on which each line is a message (`grove serve --stdio`).

use serde::{Deserialize, Serialize};

use crate::jsonrpc;

/// The notification that the connection is closed, on its last line.
pub const CLOSED: &str = "x-grove/closed";

/// The id of [`liveness_probe`]. Ids of other requests of Grove's clients are numbers.
const LIVENESS_ID: &str = "\"sign-of-life\"";

/// The reason for the close, with the WebSocket close code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LineCloseReason {
    pub code: u16,
    pub reason: String,
}

/// The last line of a connection.
pub fn close_line(close_line: &LineCloseReason) -> serde_json::Result<String> {
    jsonrpc::notification(CLOSED, close_line)
}

/// The close reason of a line, if it is the last one.
pub fn parse_close_line(line: &str) -> Option<LineCloseReason> {
    #[derive(Deserialize)]
    struct CloseNotification {
        method: String,
        params: LineCloseReason,
    }
    if !line.contains(CLOSED) {
        return None;
    }
    let notification: CloseNotification = serde_json::from_str(line).ok()?;
    (notification.method == CLOSED).then_some(notification.params)
}

/// A liveness probe, in every dialect. Any response counts.
pub fn liveness_probe() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{LIVENESS_ID},"method":"ping","params":{{"channel":"ahp-root://"}}}}"#)
}

/// True if a line answers the probe.
pub fn is_liveness_reply(line: &str) -> bool {
    line.contains(LIVENESS_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_read_as_it_is_written_and_nothing_else_is_taken_for_it() {
        let end = LineCloseReason { code: 4001, reason: "taken over".to_owned() };
        assert_eq!(parse_close_line(&close_line(&end).unwrap()), Some(end));
        for other in ["{}", r#"{"method":"x","params":{"code":1,"reason":"x-grove/closed"}}"#, "x-grove/closed"] {
            assert_eq!(parse_close_line(other), None, "{other}");
        }
        assert!(is_liveness_reply(&liveness_probe()));
    }
}
