//! Refusals: each is reported, with the true reason.

use grove_core::MAX_CHATS;
use grove_host::{Config, Limits};
use grove_testkit::Client as V1;
use grove_testkit::ahp::{message, turn_started};
use grove_wire::ahp::Method;
use serde_json::{Value, json};

use crate::harness::TestHost;
use crate::tree::{URI, say};

#[tokio::test(start_paused = true)]
async fn no_session_takes_the_name_of_something_else() {
    let host = TestHost::start(Config::default()).await;
    let mut old: V1 = host.client("old").await;
    for uri in ["agenthost:/root", "AgentHost:/root", "ahp-session:/x", "ahp-chat:/x", "file:/x", "grove-content:/x"] {
        let refused =
            old.call::<()>("createSession", json!({"session": uri, "provider": "scripted"})).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{uri}: {refused:?}");
    }
    for uri in ["agenthost:root", "scripted:/a/b", "scripted:/", "scripted", "scripted:/..", ""] {
        let refused =
            old.call::<()>("createSession", json!({"session": uri, "provider": "scripted"})).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{uri}: {refused:?}");
    }
    let mut client = host.ahp("a").await;
    for uri in ["agenthost:/root", "ahp-chat:/x", "ahp-root://", "file:/x"] {
        let refused = client.refused(Method::CreateSession, json!({"channel": uri, "provider": "scripted"})).await;
        assert_eq!(refused.code, -32602, "{uri}: {refused:?}");
    }
    let listed: Value = old.call("listSessions", json!({})).await.unwrap();
    assert_eq!(listed["sessions"], json!([]), "nothing was made");
}

#[tokio::test(start_paused = true)]
async fn an_id_that_another_agents_session_has_is_refused_for_that_reason() {
    let host = TestHost::start(Config::default()).await;
    let mut old: V1 = host.client("old").await;
    old.ready_session("scripted:/x").await;
    for (uri, words) in [("other:/x", "scripted:/x"), ("scripted:/x", "there is a session scripted:/x already")] {
        let refused =
            old.call::<()>("createSession", json!({"session": uri, "provider": "scripted"})).await.unwrap_err();
        assert_eq!(refused.code, -32003, "{uri}: {refused:?}");
        assert!(refused.message.contains(words), "{uri}: {refused:?}");
        assert!(!refused.message.contains("a session other:/x already"), "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_with_a_number_that_cannot_be_used_is_refused_and_not_dropped() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let action =
        json!({"type": "chat/turnStarted", "turnId": "t", "message": {"text": "x", "origin": {"kind": "user"}}});
    client.barrier().await;
    for number in [json!(-1), json!(1.5), json!(1e300)] {
        client.notify("dispatchAction", json!({"channel": chat, "clientSeq": number, "action": action})).await;
        let told = client.json().await;
        assert_eq!(told["method"], "action", "{told}");
        let envelope = &told["params"];
        assert_eq!((&envelope["channel"], &envelope["action"]), (&json!(chat), &action), "{told}");
        assert_eq!(envelope["origin"], json!({"clientId": "a", "clientSeq": number}));
        assert!(envelope["rejectionReason"].as_str().unwrap().contains("clientSeq"), "{told}");
    }
    for params in [
        json!({"channel": chat, "clientSeq": "1", "action": action}),
        json!({"channel": chat, "action": action}),
        json!({"channel": chat, "clientSeq": null, "action": action}),
    ] {
        client.notify("dispatchAction", params).await;
        let told = client.json().await;
        assert_eq!((&told["id"], &told["error"]["code"]), (&Value::Null, &json!(-32602)), "{told}");
    }
    let mut old: V1 = host.client("old").await;
    let started = json!({"type": "session/turnStarted", "session": URI, "turnId": "t", "userMessage": {"text": "x"}});
    let dispatched =
        json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"clientSeq": -7, "action": started}});
    old.send(dispatched.to_string()).await;
    let told: Value = serde_json::from_str(&old.frame().await.unwrap()).unwrap();
    let envelope = &told["params"]["envelope"];
    assert_eq!(envelope["origin"], json!({"clientId": "old", "clientSeq": -7}), "{told}");
    assert!(envelope.get("channel").is_none() && envelope["rejectionReason"].is_string(), "{told}");
    let dispatched =
        json!({"jsonrpc": "2.0", "method": "dispatchAction", "params": {"clientSeq": null, "action": started}});
    old.send(dispatched.to_string()).await;
    let told: Value = serde_json::from_str(&old.frame().await.unwrap()).unwrap();
    assert_eq!(told["error"]["code"], -32602, "{told}");
    assert!(client.chat(&chat).turns.is_empty(), "nothing was begun");
}

#[tokio::test(start_paused = true)]
async fn the_id_of_a_turn_that_only_the_log_has_is_not_given_again() {
    let config = || Config { limits: Limits { snapshot_turns: 2, ..Limits::default() }, ..Config::default() };
    let mut host = TestHost::start(config()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for turn in ["t1", "t2", "t3", "t4", "t5"] {
        say(&mut client, &chat, turn, turn).await;
    }
    let start = |turn: &str| turn_started(turn, "script:[{\"say\":\"again\"}]");
    for in_memory in [5, 2] {
        for turn in ["t1", "t3", "t5"] {
            let reason = client.rejected(&chat, start(turn)).await;
            assert!(reason.contains(&format!("turn {turn} exists already")), "{in_memory}: {reason}");
        }
        host.kill_and_restart(config()).await;
        client = host.ahp("a").await;
        client.follow(URI).await;
    }
    // A queued message becomes a turn of its own id.
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "t2",
        "message": message("x")});
    let reason = client.rejected(&chat, queued).await;
    assert!(reason.contains("t2"), "{reason}");
    say(&mut client, &chat, "t6", "a new one").await;
    // A fork has the turns of its source.
    let fork =
        client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap()["session"].as_str().unwrap().to_owned();
    host.kill_and_restart(config()).await;
    let mut client = host.ahp("b").await;
    let chat = client.follow(&fork).await;
    let reason = client.rejected(&chat, start("t1")).await;
    assert!(reason.contains("t1"), "{reason}");
    say(&mut client, &chat, "t7", "and a new one").await;
}

#[tokio::test(start_paused = true)]
async fn a_new_chat_is_refused_for_the_true_reason() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    client.ready_session("scripted:/other").await;
    let computed = |chat: &str, session: &str| grove_wire::ahp::uri::computed(chat, session);
    client.get(Method::CreateChat, json!({"channel": URI, "chat": "ahp-chat:/side"})).await;
    for (session, chat, code, words) in [
        (URI, "scripted:/x".to_owned(), -32602, "is not a chat's URI"),
        (URI, "nonsense".to_owned(), -32602, "is not a chat's URI"),
        (URI, "ahp-chat:/a b".to_owned(), -32602, "is not a chat's URI"),
        (URI, computed("new", "scripted:/other"), -32602, "another session"),
        (URI, computed("default", URI), -32010, "main chat"),
        (URI, "ahp-chat:/main".to_owned(), -32010, "main chat"),
        (URI, "ahp-chat:/other".to_owned(), -32010, "the main chat of the session other"),
        (URI, "ahp-chat:/side".to_owned(), -32010, "a chat of the session scripted:/s already"),
        ("scripted:/other", "ahp-chat:/side".to_owned(), -32010, "a chat of the session scripted:/s already"),
    ] {
        let refused = client.refused(Method::CreateChat, json!({"channel": session, "chat": chat})).await;
        assert_eq!(refused.code, code, "{chat}: {refused:?}");
        assert!(refused.message.contains(words), "{chat}: {refused:?}");
    }
    for number in 0..MAX_CHATS - 2 {
        client.get(Method::CreateChat, json!({"channel": URI, "chat": format!("ahp-chat:/n{number}")})).await;
    }
    let refused = client.refused(Method::CreateChat, json!({"channel": URI, "chat": "ahp-chat:/last"})).await;
    assert_eq!(refused.code, -32600, "{refused:?}");
    assert!(refused.message.contains(&format!("{MAX_CHATS} chats")), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_used_up_the_numbers_of_a_position_gets_a_new_one() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client: V1 = host.client("a").await;
    client.ready_session(URI).await;
    client.settle().await;
    let begun = host.host.status().await.unwrap().server_seq;
    let mut last = begun;
    // The client checks that numbers grow.
    for _ in 0..2_500 {
        let sent = client.dispatch(json!({"type": "session/turnCancelled", "session": URI, "turnId": "none"})).await;
        let refused = client.answer_to(sent).await;
        assert!(refused.rejection_reason.is_some());
        assert!(refused.server_seq > last);
        last = refused.server_seq;
        client.envelopes.clear();
    }
    let now = host.host.status().await.unwrap().server_seq;
    assert_eq!((now - begun, now % 1_024), (2 * 1_024, 0), "two positions, and nothing for the refusals themselves");
    // A returning client goes on after the last number that it saw.
    assert!(host.bring_back(&mut client).await, "nothing is missed");
    let sent = client.dispatch(json!({"type": "session/turnCancelled", "session": URI, "turnId": "none"})).await;
    assert!(client.answer_to(sent).await.server_seq > last);
    host.kill_and_restart(Config::default()).await;
    assert!(host.host.status().await.unwrap().server_seq > last + 1_024, "a start takes a position, too");
}

#[tokio::test(start_paused = true)]
async fn refusals_need_no_journal() {
    let host = TestHost::start(Config::default()).await;
    let mut client: V1 = host.client("a").await;
    client.ready_session(URI).await;
    let written = host.journal.bytes.lock().unwrap().len();
    host.journal.full.store(true, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..100 {
        let sent = client.dispatch(json!({"type": "session/turnCancelled", "session": URI, "turnId": "none"})).await;
        assert!(client.answer_to(sent).await.rejection_reason.is_some());
    }
    assert_eq!(host.journal.bytes.lock().unwrap().len(), written);
}
