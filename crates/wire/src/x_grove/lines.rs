//! What a WebSocket says beside messages, said in messages: for connections on which each line is one (`grove serve
//! --stdio`).

use serde::{Deserialize, Serialize};

use crate::jsonrpc;

/// The notification that the connection is over, which is its last line.
pub const CLOSED: &str = "x-grove/closed";

/// The id of [`sign_of_life`]. Ids of other requests of Grove's clients are numbers.
const SIGN_OF_LIFE: &str = "\"sign-of-life\"";

/// Why it is over, with the code that would have closed a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub code: u16,
    pub reason: String,
}

/// The last line of a connection.
pub fn closed(closed: &Closed) -> serde_json::Result<String> {
    jsonrpc::notification(CLOSED, closed)
}

/// What a line says of the end, where it is the last one.
pub fn as_closed(line: &str) -> Option<Closed> {
    #[derive(Deserialize)]
    struct Said {
        method: String,
        params: Closed,
    }
    if !line.contains(CLOSED) {
        return None;
    }
    let said: Said = serde_json::from_str(line).ok()?;
    (said.method == CLOSED).then_some(said.params)
}

/// The request for a sign of life, in every dialect. Whatever is answered is one.
pub fn sign_of_life() -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{SIGN_OF_LIFE},"method":"ping","params":{{"channel":"ahp-root://"}}}}"#)
}

/// Whether a line answers that.
pub fn is_sign_of_life(line: &str) -> bool {
    line.contains(SIGN_OF_LIFE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_read_as_it_is_written_and_nothing_else_is_taken_for_it() {
        let end = Closed { code: 4001, reason: "taken over".to_owned() };
        assert_eq!(as_closed(&closed(&end).unwrap()), Some(end));
        for other in ["{}", r#"{"method":"x","params":{"code":1,"reason":"x-grove/closed"}}"#, "x-grove/closed"] {
            assert_eq!(as_closed(other), None, "{other}");
        }
        assert!(is_sign_of_life(&sign_of_life()));
    }
}
