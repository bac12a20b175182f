//! Grove's protocol in each of its dialects.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::socket::{Socket, send};
use crate::dialect::Dialect;
use crate::shape::SESSION;

const ROOT: &str = "ahp-root://";
/// The start time of every turn: the protocol requires it, but it is not used here.
const STARTED_AT: &str = "2026-01-01T00:00:00.000Z";

/// Subscribes a connection to the session, or to its main chat.
pub(super) async fn subscribe(socket: &mut Socket, dialect: Dialect, client: &str) -> Result<()> {
    initialize(socket, dialect, client).await?;
    if dialect.ahp_version().is_none() {
        return socket.call(2, "subscribe", json!({ "resource": SESSION })).await.map(drop);
    }
    let session = look_at_session(socket, dialect, 2).await?;
    let chat = &session["defaultChat"];
    ensure!(chat == dialect.subject(), "the session's main chat is {chat} and not {}", dialect.subject());
    let found = socket.call(3, "subscribe", json!({ "channel": chat })).await?;
    ensure!(found["snapshot"]["resource"] == *chat, "no snapshot of {chat} came");
    Ok(())
}

/// Creates the session, and waits until it is ready.
pub(super) async fn create(socket: &mut Socket, dialect: Dialect) -> Result<()> {
    initialize(socket, dialect, "bench-control").await?;
    let name = if dialect.ahp_version().is_some() { "channel" } else { "session" };
    socket.call(2, "createSession", json!({ (name): dialect.session(), "provider": "scripted" })).await?;
    for id in 3..100 {
        if look_at_session(socket, dialect, id).await?["lifecycle"] == "ready" {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    bail!("the session did not become ready")
}

/// The action that starts a turn.
pub(super) fn turn_started(dialect: Dialect, turn_id: &str, text: &str) -> Value {
    match dialect.ahp_version() {
        None => json!({
            "type": "session/turnStarted", "session": SESSION, "turnId": turn_id, "userMessage": { "text": text },
        }),
        Some(_) => json!({
            "type": "chat/turnStarted", "turnId": turn_id, "startedAt": STARTED_AT,
            "message": { "text": text, "origin": { "kind": "user" } },
        }),
    }
}

/// A message that dispatches an action.
pub(super) fn dispatch(dialect: Dialect, client_seq: u64, action: &Value) -> Value {
    let params = match dialect.ahp_version() {
        None => json!({ "clientSeq": client_seq, "action": action }),
        Some(_) => json!({ "channel": dialect.subject(), "clientSeq": client_seq, "action": action }),
    };
    json!({ "jsonrpc": "2.0", "method": "dispatchAction", "params": params })
}

async fn initialize(socket: &mut Socket, dialect: Dialect, client: &str) -> Result<()> {
    match dialect.ahp_version() {
        None => {
            socket.call(1, "initialize", json!({ "protocolVersion": 1, "clientId": client })).await?;
        }
        Some(version) => {
            let params = json!({ "channel": ROOT, "protocolVersions": [version], "clientId": client });
            let agreed = socket.call(1, "initialize", params).await?;
            ensure!(agreed["protocolVersion"] == version, "{version} was offered and not taken: {agreed}");
        }
    }
    Ok(())
}

/// The session's state; its subscription ends at once.
async fn look_at_session(socket: &mut Socket, dialect: Dialect, id: u64) -> Result<Value> {
    let is_ahp = dialect.ahp_version().is_some();
    let channel = json!({ (if is_ahp { "channel" } else { "resource" }): dialect.session() });
    let mut found = socket.call(id, "subscribe", channel.clone()).await?;
    let goodbye = json!({ "jsonrpc": "2.0", "method": "unsubscribe", "params": channel });
    send(&socket.stream, &goodbye.to_string()).await?;
    let snapshot = if is_ahp { &mut found["snapshot"] } else { &mut found };
    Ok(snapshot["state"].take())
}
