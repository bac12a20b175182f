//! Presence: clients see who is attached to a session, and who answered.

use std::time::Duration;

use grove_core::Scope;
use grove_host::Config;
use grove_testkit::ahp::Client;
use grove_testkit::host::TOKEN;
use grove_wire::ahp::{ROOT, ResponsePart, ToolCallState, Turn};
use grove_wire::x_grove::presence::{MAX_ATTACHED_CLIENTS, PRESENCE_CHANGED};
use serde_json::{Value, json};

use crate::harness::{TestHost, until};
use crate::tokens::TokenHost;

const URI: &str = "scripted:/s";

/// Connects as a client with a name of its own, subscribed to the session.
async fn attached(host: &TokenHost, token: &str, id: &str, name: &str) -> Client {
    let mut client = host.connect(token, id).await;
    let params = json!({
        "channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": id,
        "clientInfo": {"name": name}, "initialSubscriptions": [URI],
    });
    client.ask("initialize", params).await.unwrap();
    client
}

async fn presence(client: &mut Client, params: Value) -> Value {
    client.ask("x-grove/presence", params).await.unwrap()
}

/// The ids of the attached clients.
fn ids(presence: &Value) -> Vec<&str> {
    presence["clients"].as_array().unwrap().iter().map(|client| client["clientId"].as_str().unwrap()).collect()
}

/// The list in the newest notification.
fn told(client: &Client) -> Option<&Value> {
    client.told(PRESENCE_CHANGED).into_iter().last()
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_session_see_each_other_with_the_names_of_their_tokens() {
    let host = TokenHost::start().await;
    host.client(TOKEN, "maker").await.create_session(URI).await.unwrap();
    let phone = host.add("phone", &[Scope::Read], None);
    let mut desk = attached(&host, TOKEN, "desk", "Desk\u{1b}[2J\u{202e}").await;
    let watching = presence(&mut desk, json!({"channel": URI, "watch": true})).await;
    assert_eq!((ids(&watching), &watching["more"]), (vec!["desk"], &json!(0)));
    assert_eq!(watching["clients"][0]["name"], "Desk[2J", "nothing that could control a terminal");

    let mut reader = attached(&host, &phone, "phone", "Phone").await;
    desk.until(|client| told(client).is_some_and(|list| ids(list) == ["desk", "phone"])).await;
    let list = presence(&mut reader, json!({"channel": URI})).await;
    let row = &list["clients"][1];
    let shown = json!({"clientId": "phone", "name": "Phone", "token": "phone", "dialect": "ahp", "kind": "client",
        "since": row["since"]});
    assert_eq!(row, &shown);
    assert!(!list.to_string().contains(&phone[18..]), "a list has no secret");
    assert_eq!(reader.told(PRESENCE_CHANGED), Vec::<&Value>::new(), "it did not ask for news");

    reader.unsubscribe(URI).await;
    desk.until(|client| told(client).is_some_and(|list| ids(list) == ["desk"])).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_of_version_1_has_a_name_of_its_own_which_it_keeps() {
    let host = TestHost::start(Config::default()).await;
    let mut desk = host.ahp("desk").await;
    let chat = desk.ready_session(URI).await;
    let mut old = host.connect("old").await;
    let info = json!({"name": "grove-lamp", "title": "Lamp\u{1b}[2J"});
    let params = json!({
        "protocolVersion": 1, "clientId": "old", "clientInfo": info, "initialSubscriptions": [URI],
    });
    old.call::<Value>("initialize", params).await.unwrap();
    let named = json!("Lamp[2J");
    let list = presence(&mut desk, json!({"channel": URI})).await;
    assert_eq!((&list["clients"][1]["name"], &list["clients"][1]["dialect"]), (&named, &json!("v1")), "{list}");
    assert_eq!(list["clients"][0]["name"], Value::Null, "{list}");

    old.cut().await;
    host.bring_back(&mut old).await;
    old.subscribe(URI).await.unwrap();
    assert_eq!(presence(&mut desk, json!({"channel": URI})).await["clients"][1]["name"], named);
    let steps = json!([{"tool": {"name": "bash", "input": "ls", "permission": "shell", "output": "a"}}]);
    desk.script(&chat, "t", steps).await;
    let request = |client: &grove_testkit::Client| {
        client.session(URI).active_turn.as_ref()?.pending_permissions.keys().next().cloned()
    };
    old.until(|client| request(client).is_some()).await;
    old.dispatch(json!({
        "type": "session/permissionResolved", "session": URI, "turnId": "t", "requestId": request(&old),
        "approved": true,
    }))
    .await;
    let call = call_of(&desk.turn_end(&chat, "t").await);
    assert_eq!(answered_by(&call), json!({"token": "host", "client": "Lamp[2J"}));
}

#[tokio::test(start_paused = true)]
async fn only_a_subscriber_is_told_of_changes_and_only_as_long_as_it_wants() {
    let host = TokenHost::start().await;
    host.client(TOKEN, "maker").await.create_session(URI).await.unwrap();
    let mut desk = host.client(TOKEN, "desk").await;
    let refused = desk.ask("x-grove/presence", json!({"channel": URI, "watch": true})).await.unwrap_err();
    assert!(refused.message.contains("subscribe to the session first"), "{refused:?}");
    desk.subscribe(URI).await.unwrap();
    presence(&mut desk, json!({"channel": URI, "watch": true})).await;
    let unwatched = presence(&mut desk, json!({"channel": URI, "watch": false})).await;
    assert_eq!(ids(&unwatched), ["desk"]);
    let _other = attached(&host, TOKEN, "other", "Other").await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(ids(&presence(&mut desk, json!({"channel": URI})).await), ["desk", "other"]);
    assert_eq!(told(&desk), None);
}

#[tokio::test(start_paused = true)]
async fn a_reconnect_in_time_changes_nothing_and_later_the_client_is_gone() {
    let host = TestHost::start(Config::default()).await;
    let mut desk = host.ahp("desk").await;
    desk.ready_session(URI).await;
    let mut phone = host.ahp("phone").await;
    phone.subscribe(URI).await.unwrap();
    let before = presence(&mut desk, json!({"channel": URI, "watch": true})).await;
    assert_eq!(ids(&before), ["desk", "phone"]);

    for _ in 0..20 {
        tokio::time::sleep(Duration::from_secs(2)).await;
        phone.cut().await;
        host.bring_back_ahp(&mut phone).await;
    }
    assert_eq!(presence(&mut desk, json!({"channel": URI})).await, before, "with the time of its first attachment");
    assert_eq!(told(&desk), None, "twenty reconnects are no news");

    phone.cut().await;
    desk.until(|client| told(client).is_some_and(|list| ids(list) == ["desk"])).await;
    assert_eq!(desk.told(PRESENCE_CHANGED).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn many_clients_at_once_are_few_notices_and_a_list_is_clipped() {
    let host = TestHost::start(Config::default()).await;
    let mut desk = host.ahp("desk").await;
    desk.ready_session(URI).await;
    presence(&mut desk, json!({"channel": URI, "watch": true})).await;
    let mut clients = Vec::new();
    for number in 0..MAX_ATTACHED_CLIENTS + 20 {
        let mut client = host.ahp(&format!("client-{number}-{}", "x".repeat(200))).await;
        client.subscribe(URI).await.unwrap();
        clients.push(client);
    }
    desk.until(|client| told(client).is_some_and(|list| list["more"] == 21)).await;
    let list = told(&desk).unwrap();
    assert_eq!(list["clients"].as_array().unwrap().len(), MAX_ATTACHED_CLIENTS);
    assert!(list["clients"].as_array().unwrap().iter().all(|row| row["clientId"].as_str().unwrap().len() <= 100));
    let notices = desk.told(PRESENCE_CHANGED).len();
    assert!(notices <= 3, "{notices} notices about {} clients that came at once", clients.len());

    drop(clients);
    desk.until(|client| told(client).is_some_and(|list| ids(list) == ["desk"])).await;
    let notices = desk.told(PRESENCE_CHANGED).len();
    assert!(notices <= 6, "{notices} notices");
}

#[tokio::test(start_paused = true)]
async fn a_client_whose_token_is_revoked_disappears_at_once() {
    let host = TokenHost::start().await;
    host.client(TOKEN, "maker").await.create_session(URI).await.unwrap();
    let phone = host.add("phone", &[Scope::Read], None);
    let mut desk = attached(&host, TOKEN, "desk", "Desk").await;
    let mut reader = attached(&host, &phone, "phone", "Phone").await;
    presence(&mut desk, json!({"channel": URI, "watch": true})).await;
    let revoked_at = tokio::time::Instant::now();
    desk.ask("x-grove/tokens/revoke", json!({"name": "phone"})).await.unwrap();
    reader.until_end().await;
    desk.until(|client| told(client).is_some_and(|list| ids(list) == ["desk"])).await;
    assert!(revoked_at.elapsed() < Duration::from_secs(3), "{:?}", revoked_at.elapsed());
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_session_without_clients_stays_in_the_table() {
    let host = TestHost::start(Config::default()).await;
    let mut desk = host.ahp("desk").await;
    desk.ready_session(URI).await;
    assert_eq!(host.host.table_sizes().attended_sessions, 1);
    desk.cut().await;
    until("the client does not return", async || host.host.table_sizes().attended_sessions == 0).await;
}

/// Has the agent ask for permission, and a client answer.
async fn answer(client: &mut Client, chat: &str, turn: &str, approved: bool) -> ToolCallState {
    let steps = json!([{"tool": {"name": "bash", "input": "ls", "permission": "shell", "output": "a"}}]);
    client.script(chat, turn, steps).await;
    let waits = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(_));
    let ToolCallState::PendingConfirmation(call) = client.call_that(chat, waits).await else { unreachable!() };
    let mut action = json!({"type": "chat/toolCallConfirmed", "turnId": turn,
        "toolCallId": call.base.tool_call_id, "approved": approved,
        "_meta": {"answeredBy": {"token": "forged"}}});
    action[if approved { "confirmed" } else { "reason" }] = json!(if approved { "user-action" } else { "denied" });
    client.dispatch(chat, action).await;
    call_of(&client.turn_end(chat, turn).await)
}

fn call_of(turn: &Turn) -> ToolCallState {
    let call = turn.response_parts.iter().find_map(|part| match part {
        ResponsePart::ToolCall(part) => Some(part.tool_call.clone()),
        _ => None,
    });
    call.unwrap()
}

/// The party that answered, in the call's metadata.
fn answered_by(call: &ToolCallState) -> Value {
    let base = match call {
        ToolCallState::Completed(call) => &call.base,
        ToolCallState::Cancelled(call) => &call.base,
        other => panic!("{other:?}"),
    };
    base.meta.as_ref().unwrap()["answeredBy"].clone()
}

#[tokio::test(start_paused = true)]
async fn an_answered_permission_request_says_who_answered_also_after_a_restart() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("desk").await;
    let chat = client.ready_session(URI).await;
    let by_host = json!({"token": "host"});
    assert_eq!(answered_by(&answer(&mut client, &chat, "t1", true).await), by_host);
    assert_eq!(answered_by(&answer(&mut client, &chat, "t2", false).await), by_host);
    client.must_agree_on_all().await;

    host.kill_and_restart(Config::default()).await;
    let mut client = host.ahp("later").await;
    let chat = client.follow(URI).await;
    let calls: Vec<Value> = client.chat(&chat).turns.iter().map(|turn| answered_by(&call_of(turn))).collect();
    assert_eq!(calls, [by_host.clone(), by_host]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_names_the_token_and_the_client_behind_it() {
    let host = TokenHost::start().await;
    let mut desk = host.client(TOKEN, "desk").await;
    let chat = desk.ready_session(URI).await;
    let phone = host.add("phone", &[Scope::Read, Scope::Approve], None);
    let mut reader = attached(&host, &phone, "phone", "My phone").await;
    let steps = json!([{"tool": {"name": "bash", "input": "ls", "permission": "shell", "output": "a"}}]);
    desk.script(&chat, "t", steps).await;
    let waits = |call: &ToolCallState| matches!(call, ToolCallState::PendingConfirmation(_));
    let ToolCallState::PendingConfirmation(call) = desk.call_that(&chat, waits).await else { unreachable!() };
    let action = json!({"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": call.base.tool_call_id,
        "approved": true, "confirmed": "user-action"});
    reader.dispatch(&chat, action).await;
    let call = call_of(&desk.turn_end(&chat, "t").await);
    assert_eq!(answered_by(&call), json!({"token": "phone", "client": "My phone"}));
}
