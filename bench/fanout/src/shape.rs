//! The messages that travel, the same bytes from each contestant.

use serde_json::{Value, json};

/// What one delta carries.
pub(crate) const CONTENT: &str = "twenty bytes of text";
pub(crate) const SESSION: &str = "scripted:/bench";
/// What tells the messages apart.
pub(crate) const DELTA: &str = r#""session/delta""#;
pub(crate) const TURN_STARTED: &str = r#""session/turnStarted""#;
pub(crate) const TURN_COMPLETE: &str = r#""session/turnComplete""#;
pub(crate) const MODEL_CHANGED: &str = r#""session/modelChanged""#;

/// What the bare and the Node server are asked to do, said on any connection.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
#[serde(tag = "ask", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum Ask {
    Stream { session: String, turn_id: String, content: String, deltas: usize, delay_ms: u64 },
    Event { session: String, model: String },
}

/// A delta as version 1 writes it.
pub(crate) fn delta(session: &str, turn_id: &str, content: &str, server_seq: u64) -> String {
    envelope(
        &format!(
            r#"{{"session":{},"type":"session/delta","turnId":{},"content":{}}}"#,
            Value::from(session),
            Value::from(turn_id),
            Value::from(content)
        ),
        server_seq,
    )
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
