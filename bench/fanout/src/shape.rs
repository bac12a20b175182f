//! The messages that travel, the same bytes from each contestant.

use serde_json::{Value, json};

use crate::dialect::Dialect;

/// What one delta carries.
pub(crate) const CONTENT: &str = "twenty bytes of text";
pub(crate) const SESSION: &str = "scripted:/bench";
/// The session's main chat, as AHP's clients compute its URI, and the part of a turn to which the scripted agent adds.
pub(crate) const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L2JlbmNo";
const PART: &str = "part-0";

/// What tells a dialect's messages apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) delta: &'static str,
    pub(crate) turn_started: &'static str,
    pub(crate) turn_complete: &'static str,
    /// The single event of which the last to hear counts, where that is measured.
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
/// What stands before a delta's text, in either dialect.
pub(crate) const BEFORE_TEXT: &str = r#""content":""#;

/// What the bare and the Node server are asked to do, said on any connection.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Ask {
    /// The Node server has one dialect and does not look.
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

/// A delta as its dialect writes it, of a session or of its chat.
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

/// A change of model as version 1 writes it.
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

/// The prompt that makes Grove's scripted agent stream, after a pause in which the prompt's own echo can reach all.
pub(crate) fn script(deltas: usize, delay_ms: u64, pause_ms: u64) -> String {
    let say = json!({ "say": CONTENT.repeat(deltas), "chunks": deltas, "delayMs": delay_ms });
    format!("script:{}", json!([{ "sleepMs": pause_ms }, say]))
}
