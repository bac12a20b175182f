//! Client-stored sessions: what is published when, what is held, and what is on this machine's disk.

mod failures;
mod isolation;
mod lifecycle;
mod publication;

use std::sync::Arc;
use std::time::Duration;

use grove_core::StoreName;
use grove_host::{AgentSetup, Config, CreateSession};
use grove_testkit::ahp::{Client, markdown};
use grove_wire::ahp::ToolCallState;
use serde_json::{Value, json};

use crate::harness::TestHost;
use crate::storage_client::{self, Fault, FaultyStorageClient};

const URI: &str = "scripted:/s";

fn lent() -> StoreName {
    StoreName::from("lent")
}

fn wanted(uri: &str) -> CreateSession {
    CreateSession {
        uri: uri.into(),
        agent: None,
        model: None,
        working_directories: vec![],
        config: None,
        store: Some(lent()),
        setup: AgentSetup::default(),
        active_client: None,
    }
}

/// A host with a storage client that serves session `s`.
async fn host_with(storage_client: &Arc<FaultyStorageClient>) -> TestHost {
    let host = TestHost::start(Config::default()).await;
    host.host.attach_storage_client(&lent(), storage_client::config(), storage_client.clone()).await.unwrap();
    host
}

/// A host with a storage client, with the session, and a client that follows it.
async fn begun() -> (TestHost, Arc<FaultyStorageClient>, Client, String) {
    let storage_client = FaultyStorageClient::new();
    storage_client.open("s");
    let host = host_with(&storage_client).await;
    host.host.create_session(wanted(URI)).await.unwrap();
    let mut client = host.ahp("a").await;
    let chat = client.follow(URI).await;
    (host, storage_client, client, chat)
}

fn said(client: &Client, chat: &str) -> Vec<String> {
    client.chat(chat).turns.iter().map(|turn| markdown(&turn.response_parts)).collect()
}

fn unsaved(client: &Client) -> Option<String> {
    client.session(URI).meta.as_ref()?.get("unsaved")?.as_str().map(str::to_owned)
}

/// Every line of a log, parsed.
fn entries(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn count(log: &str, what: &str) -> usize {
    log.matches(what).count()
}

/// Restores the storage client. Unanswered calls of the old connection never get an answer.
async fn repaired(host: &TestHost, storage_client: &Arc<FaultyStorageClient>) {
    storage_client.fail(Fault::None);
    host.host.storage_client_left(&lent()).await.unwrap();
    host.host.storage_client_returned(&lent(), storage_client.clone()).await.unwrap();
}

/// Waits until the storage client has had no calls for a while.
async fn quiet(storage_client: &FaultyStorageClient) {
    loop {
        let before = storage_client.asked().len();
        tokio::time::sleep(Duration::from_secs(3)).await;
        if storage_client.asked().len() == before {
            return;
        }
    }
}

async fn asks(client: &mut Client, chat: &str, turn: &str) -> (String, Value) {
    let steps = json!([{"tool": {"name": "make", "output": "it ran", "permission": "shell"}}, {"say": "done"}]);
    client.script(chat, turn, steps).await;
    let call = client.call_that(chat, |call| matches!(call, ToolCallState::PendingConfirmation(_))).await;
    let id = call.id().unwrap().to_owned();
    let approve = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": id, "approved": true,
        "confirmed": "user-action"});
    (id, approve)
}
