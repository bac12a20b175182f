//! The messages, with the same bytes from each contestant.

use serde_json::{Value, json};

use crate::dialect::Dialect;

/// The text of one delta.
pub(crate) const CONTENT: &str = "twenty bytes of text";
pub(crate) const SESSION: &str = "scripted:/bench";
/// The URI of the session's main chat, as AHP clients compute it, and the id of the scripted agent's part.
pub(crate) const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L2JlbmNo";
const PART: &str = "part-0";

/// The words that identify a dialect's messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) delta: &'static str,
    pub(crate) turn_started: &'static str,
    pub(crate) turn_complete: &'static str,
    /// The single event of the last-client measurement.
    pub(crate) event: Option<&'static str>,
}

pub(crate) const V1: Words = Words {
    delta: r#""session/delta""#,
    turn_started: r#""session/turnStarted""#,
    turn_complete: r#""session/turnComplete""#,
    event: Some(r#""session/modelChanged""#),
};
pub(crate) const AHP: Words = Words {
    delta: r#""chat/delta""#,
    turn_started: r#""chat/turnStarted""#,
    turn_complete: r#""chat/turnComplete""#,
    event: None,
};
/// The text before a delta's content, in either dialect.
pub(crate) const BEFORE_TEXT: &str = r#""content":""#;

/// A request to the bare and the Node server, on any connection.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Ask {
    /// The Node server has one dialect and ignores it.
    Stream {
        dialect: Dialect,
        session: String,
        turn_id: String,
        content: String,
        deltas: usize,
        delay_ms: u64,
    },
    Event {
        session: String,
        model: String,
    },
}

/// A delta of a session or of its chat in a dialect.
pub(crate) fn delta(dialect: Dialect, subject: &str, turn_id: &str, content: &str, server_seq: u64) -> String {
    let [subject, turn_id, content] = [subject, turn_id, content].map(Value::from);
    match dialect.ahp_version() {
        None => {
            let action =
                format!(r#"{{"session":{subject},"type":"session/delta","turnId":{turn_id},"content":{content}}}"#);
            envelope(&action, server_seq)
        }
        Some(_) => {
            let action = format!(r#"{{"type":"chat/delta","turnId":{turn_id},"partId":"{PART}","content":{content}}}"#);
            let params = format!(r#"{{"channel":{subject},"action":{action},"serverSeq":{server_seq}}}"#);
            format!(r#"{{"jsonrpc":"2.0","method":"action","params":{params}}}"#)
        }
    }
}

/// A change of the model in version 1.
pub(crate) fn model_changed(session: &str, model: &str, server_seq: u64) -> String {
    let action = format!(
        r#"{{"session":{},"type":"session/modelChanged","model":{}}}"#,
        Value::from(session),
        Value::from(model)
    );
    envelope(&action, server_seq)
}

fn envelope(action: &str, server_seq: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"action","params":{{"envelope":{{"action":{action},"serverSeq":{server_seq}}}}}}}"#
    )
}

/// The prompt that makes Grove's scripted agent stream, after a pause for the prompt's own echo.
pub(crate) fn script(deltas: usize, delay_ms: u64, pause_ms: u64) -> String {
    let say = json!({ "say": CONTENT.repeat(deltas), "chunks": deltas, "delayMs": delay_ms });
    format!("script:{}", json!([{ "sleepMs": pause_ms }, say]))
}
