//! Forked chats, side chats, and forks of sessions with several chats.

use std::sync::Arc;

use async_trait::async_trait;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession, Prompt, TurnSink};
use grove_core::{AgentInfo, TurnId};
use grove_fs::SessionFs;
use grove_host::Config;
use grove_testkit::ahp::{Client, markdown};
use serde_json::{Value, json};

use super::{NEW, URI, fork, id_of, said, say, source};
use crate::harness::{TestHost, until};

#[tokio::test(start_paused = true)]
async fn a_chat_begins_with_what_another_has_up_to_a_turn() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for (turn, text) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        say(&mut client, &chat, turn, text).await;
    }
    host.gate.close_behind(0);
    client.ask("createChat", source("fork", &chat, "t2")).await.unwrap();
    client.subscribe(NEW).await.unwrap();
    assert_eq!(said(&client, NEW), ["one", "two"]);
    let origin = json!({"kind": "fork", "chat": "ahp-chat:/s", "turnId": "t2"});
    assert_eq!(serde_json::to_value(&client.chat(NEW).origin).unwrap(), origin);
    say(&mut client, NEW, "t4", "four").await;
    assert_eq!(said(&client, NEW), ["one", "two", "four"]);
    assert_eq!(said(&client, &chat), ["one", "two", "three"]);
    host.kill_and_restart(Config::default()).await;
    for again in 0..2 {
        let mut late = host.ahp(&format!("late {again}")).await;
        late.follow(URI).await;
        late.subscribe(NEW).await.unwrap();
        assert_eq!(said(&late, NEW), ["one", "two", "four"]);
        assert_eq!(serde_json::to_value(&late.chat(NEW).origin).unwrap(), origin);
        let rows = late.ask("x-grove/tree", json!({"channel": NEW})).await.unwrap()["rows"].to_string();
        assert!(rows.contains("four") && !rows.contains("three"), "{rows}");
        late.must_agree(NEW).await;
        late.must_agree(URI).await;
        host.kill_and_restart(Config::default()).await;
    }
    let log = String::from_utf8(host.sessions.read_file("s/chats/other/events.jsonl").await.unwrap()).unwrap();
    assert!(log.lines().next().unwrap().contains(r#""parentSession":"s/events.jsonl""#), "{log}");
}

#[tokio::test(start_paused = true)]
async fn a_side_chat_knows_what_it_is_about_and_shows_only_its_own() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    say(&mut client, &chat, "t2", "two").await;
    let mut about = source("sideChat", &chat, "t1");
    about["source"]["selection"] = json!({"text": "on", "responsePartId": "p"});
    client.ask("createChat", about.clone()).await.unwrap();
    client.subscribe(NEW).await.unwrap();
    let origin = serde_json::to_value(&client.chat(NEW).origin).unwrap();
    about["source"]["chat"] = "ahp-chat:/s".into();
    assert_eq!(origin, about["source"]);
    assert!(said(&client, NEW).is_empty());
    say(&mut client, NEW, "t3", "three").await;
    assert_eq!(said(&client, NEW), ["three"]);
    for again in 0..2 {
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp(&format!("late {again}")).await;
        late.follow(URI).await;
        late.subscribe(NEW).await.unwrap();
        assert_eq!(said(&late, NEW), ["three"]);
        assert_eq!(serde_json::to_value(&late.chat(NEW).origin).unwrap(), origin);
        let rows = late.ask("x-grove/tree", json!({"channel": NEW})).await.unwrap()["rows"].to_string();
        assert!(rows.contains("one") && rows.contains("three") && !rows.contains("two"), "{rows}");
        late.must_agree(NEW).await;
    }
    let mut late = host.ahp("last").await;
    late.subscribe(NEW).await.unwrap();
    // It starts after the inherited entries.
    late.dispatch(NEW, json!({"type": "chat/truncated"})).await;
    late.until(|client| said(client, NEW).is_empty()).await;
    say(&mut late, NEW, "t4", "four").await;
    let rows = late.ask("x-grove/tree", json!({"channel": NEW})).await.unwrap();
    assert_eq!(rows["rows"].as_array().unwrap().iter().filter(|row| row["parent"].is_null()).count(), 1, "{rows}");
}

/// An agent that repeats the earlier conversation that it was told.
struct HistoryEchoAgent;

#[async_trait]
impl Agent for HistoryEchoAgent {
    fn info(&self) -> AgentInfo {
        AgentInfo { id: "scripted".into(), display_name: String::new(), description: String::new(), models: Vec::new() }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl AgentSession for HistoryEchoAgent {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        let story = prompt.memory.retell(64 << 10).await?.unwrap_or_default();
        let known: Vec<&str> = story.split("User:\n").skip(1).filter_map(|told| told.lines().next()).collect();
        turn.text(known.join(" ")).await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

#[tokio::test(start_paused = true)]
async fn the_agents_of_a_fork_and_of_a_side_chat_know_what_was_said_before() {
    let mut host = TestHost::with_agents(Config::default(), vec![Arc::new(HistoryEchoAgent)]).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for turn in ["one", "two", "three"] {
        client.start_turn(&chat, turn, turn).await;
        client.turn_end(&chat, turn).await;
    }
    let mut side = source("sideChat", &chat, "two");
    side["chat"] = "ahp-chat:/side".into();
    client.ask("createChat", side).await.unwrap();
    client.ask("createChat", source("fork", &chat, "two")).await.unwrap();
    for (number, restarted) in [false, true].into_iter().enumerate() {
        if restarted {
            host.kill_and_restart(Config::default()).await;
            client = host.ahp("b").await;
        }
        for chat in [NEW, "ahp-chat:/side"] {
            client.subscribe(chat).await.unwrap();
            let turn = format!("{}{number}", id_of(chat));
            client.start_turn(chat, &turn, &turn).await;
            let answer = markdown(&client.turn_end(chat, &turn).await.response_parts);
            let own = if restarted { format!(" {}0", id_of(chat)) } else { String::new() };
            assert_eq!(answer, format!("one two{own}"), "{chat}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_chat_that_cannot_begin_so_is_refused_with_the_reason() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let other = client.ready_session("scripted:/o").await;
    say(&mut client, &other, "t1", "one").await;
    for (kind, chat, turn, reason) in [
        ("fork", chat.as_str(), "t1", "no turn t1"),
        ("sideChat", &chat, "t1", "no turn t1"),
        ("fork", &other, "t1", "another session"),
        ("fork", "ahp-chat:/nobody", "t1", "nobody"),
        ("copy", &chat, "t1", "`fork`"),
    ] {
        let refused = client.ask("createChat", source(kind, chat, turn)).await.unwrap_err();
        assert!(refused.message.contains(reason), "{refused:?}");
    }
    say(&mut client, &chat, "t1", "one").await;
    client.script(&chat, "t2", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    let refused = client.ask("createChat", source("fork", &chat, "t2")).await.unwrap_err();
    assert!(refused.message.contains("wait for its end"), "{refused:?}");
    client.ask("createChat", source("fork", &chat, "t1")).await.unwrap();
    client.subscribe(NEW).await.unwrap();
    assert_eq!(said(&client, NEW), ["one"], "a running turn is not in the way of what was before it");
    let refused = client.ask("createChat", source("fork", &chat, "t1")).await.unwrap_err();
    assert!(refused.message.contains("is a chat of the session scripted:/s already"), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn a_chat_of_a_name_that_was_there_before_does_not_find_the_log_of_that_one() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    client.ask("createChat", json!({"channel": URI, "chat": NEW})).await.unwrap();
    client.subscribe(NEW).await.unwrap();
    say(&mut client, NEW, "t2", "old").await;
    for (turn, begins) in [("t3", source("fork", &chat, "t1")), ("t4", json!({"channel": URI, "chat": NEW}))] {
        client.ask("disposeChat", json!({"channel": NEW})).await.unwrap();
        client.ask("createChat", begins.clone()).await.unwrap();
        client.subscribe(NEW).await.unwrap();
        say(&mut client, NEW, turn, "new").await;
        let rows = client.ask("x-grove/tree", json!({"channel": NEW})).await.unwrap()["rows"].to_string();
        assert!(rows.contains("new") && !rows.contains("old"), "{rows}");
    }
    host.kill_and_restart(Config::default()).await;
    let mut late = host.ahp("late").await;
    late.follow(URI).await;
    late.subscribe(NEW).await.unwrap();
    assert_eq!(said(&late, NEW), ["new"]);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_truncates_moves_the_leaf_and_nothing_is_lost() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    let mut other = host.ahp("b").await;
    other.follow(URI).await;
    for (turn, text) in [("t1", "one"), ("t2", "two"), ("t3", "three")] {
        say(&mut client, &chat, turn, text).await;
    }
    let total = |tree: Value| tree["total"].as_u64().unwrap();
    let truncated = |turn: &str| json!({"type": "chat/truncated", "turnId": turn});
    client.dispatch(&chat, truncated("t1")).await;
    client.until(|client| said(client, &chat) == ["one"]).await;
    say(&mut client, &chat, "t4", "four").await;
    assert_eq!(said(&client, &chat), ["one", "four"]);
    assert_eq!(total(client.ask("x-grove/tree", json!({"channel": URI})).await.unwrap()), 8);

    // The newest turn is the current position; a turn that is not on the path to the leaf is unknown.
    client.dispatch(&chat, truncated("t4")).await;
    client.must_agree(&chat).await;
    let refused = client.rejected(&chat, truncated("t3")).await;
    assert!(refused.contains("no turn t3"), "{refused}");
    client.script(&chat, "t5", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    let refused = client.rejected(&chat, truncated("t1")).await;
    assert!(refused.contains("t5 is still in progress"), "{refused}");
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t5", "duration": 1})).await;
    client.until(|client| client.chat(&chat).active_turn.is_none()).await;
    // Before the first turn, and after a message without an answer.
    client.dispatch(&chat, json!({"type": "chat/truncated"})).await;
    client.until(|client| said(client, &chat).is_empty()).await;
    client.script(&chat, "t6", json!([{"hang": true}])).await;
    client.until(|client| client.chat(&chat).active_turn.is_some()).await;
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t6", "duration": 1})).await;
    client.until(|client| client.chat(&chat).active_turn.is_none()).await;
    say(&mut client, &chat, "t7", "seven").await;
    client.dispatch(&chat, truncated("t6")).await;
    client.until(|client| said(client, &chat) == [""]).await;
    host.kill_and_restart(Config::default()).await;
    for client in [&mut client, &mut other] {
        host.bring_back_ahp(client).await;
        assert_eq!(said(client, &chat), [""]);
        client.must_agree(&chat).await;
        client.must_agree(URI).await;
    }
}

/// A session with a second chat, a fork of the first, and a side chat about it.
async fn with_chats(client: &mut Client) -> String {
    let chat = client.ready_session(URI).await;
    say(client, &chat, "t1", "one").await;
    client.run_script(&chat, "t2", json!([{"part": {"mimeType": "image/png", "base64": "/wAB"}}])).await;
    let create = |id: &str, source: Value| {
        let mut params = json!({"channel": URI, "chat": format!("ahp-chat:/{id}")});
        if !source.is_null() {
            params["source"] = source;
        }
        params
    };
    let about = json!({"kind": "sideChat", "chat": chat, "turnId": "t1", "selection": {"text": "on"}});
    for (id, source) in [
        ("plain", Value::Null),
        ("empty", Value::Null),
        ("forked", json!({"kind": "fork", "chat": chat, "turnId": "t1"})),
        ("side", about),
    ] {
        client.ask("createChat", create(id, source)).await.unwrap();
        let other = format!("ahp-chat:/{id}");
        client.subscribe(&other).await.unwrap();
        if id != "empty" {
            say(client, &other, &format!("{id}-1"), &format!("in {id}")).await;
        }
        // Readers wait until it is copied.
        client.ask("x-grove/tree", json!({"channel": other})).await.unwrap();
    }
    chat
}

/// The text of every chat of a session, in order.
async fn said_everywhere(client: &mut Client, uri: &str) -> Vec<Vec<String>> {
    client.follow(uri).await;
    let chats: Vec<String> = client.session(uri).chats.iter().map(|chat| chat.resource.clone()).collect();
    let mut all = Vec::new();
    for chat in chats {
        client.subscribe(&chat).await.unwrap();
        all.push(said(client, &chat));
    }
    all
}

#[tokio::test(start_paused = true)]
async fn a_whole_fork_takes_all_chats_along_wherever_the_host_is_killed() {
    let expected = [vec!["one", ""], vec!["in plain"], vec![], vec!["one", "in forked"], vec!["in side"]];
    for steps in 0..12 {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        let chat = with_chats(&mut client).await;
        host.gate.close_behind(steps);
        let forked = fork(&mut client, URI).await;
        assert_eq!(said_everywhere(&mut client, &forked).await, expected, "before the copy");
        client.must_agree(&forked).await;
        // Neither gets events of the other.
        say(&mut client, &chat, "t3", "later").await;
        say(&mut client, "ahp-chat:/plain", "t4", "later").await;
        if steps % 2 == 0 {
            host.kill_and_restart(Config::default()).await;
        } else {
            host.gate.open();
        }
        let mut late = host.ahp("late").await;
        assert_eq!(said_everywhere(&mut late, &forked).await, expected, "{steps}");
        let chats: Vec<String> = late.session(&forked).chats.iter().map(|chat| chat.resource.clone()).collect();
        for (number, chat) in chats.iter().enumerate() {
            say(&mut late, chat, &format!("f{number}"), "in the fork").await;
            let rows = late.ask("x-grove/tree", json!({"channel": chat})).await.unwrap()["rows"].to_string();
            assert!(rows.contains("in the fork") && !rows.contains("later"), "{rows}");
            // The side chat's log has the conversation that it is about.
            assert_eq!(rows.contains("one"), [0, 3, 4].contains(&number), "{rows}");
            late.must_agree(chat).await;
        }
        late.must_agree(&forked).await;
        let folder = id_of(&forked);
        until("the session is written", async || {
            host.sessions.exists(&format!("{folder}/session.json")).await.unwrap()
        })
        .await;
        let copied = host.sessions.readdir(&format!("{folder}/chats")).await.unwrap();
        assert_eq!(copied.len(), 4);
        for chat in &copied {
            let log = host.sessions.read_text(&format!("{folder}/chats/{chat}/events.jsonl")).await.unwrap();
            let header: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
            assert_eq!(header["id"], folder, "{log}");
            assert!(!log.contains("grove.info"), "the main chat's log tells where the session comes from: {log}");
        }
        // The folder alone gives the same, and its source has not changed.
        host.kill_and_restart(Config::default()).await;
        let mut last = host.ahp("last").await;
        let mut all = expected.clone();
        all.iter_mut().for_each(|chat| chat.push("in the fork"));
        assert_eq!(said_everywhere(&mut last, &forked).await, all, "{steps}");
        let mut source = expected.clone();
        [0, 1].into_iter().for_each(|at| source[at].push("later"));
        assert_eq!(said_everywhere(&mut last, URI).await, source, "{steps}");
        assert_eq!(last.session(URI).chats.len(), 5);
    }
}

#[tokio::test(start_paused = true)]
async fn with_a_part_of_a_session_no_other_chats_go() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = with_chats(&mut client).await;
    say(&mut client, &chat, "t3", "three").await;
    let tree = client.ask("x-grove/tree", json!({"channel": URI, "filter": "user-only"})).await.unwrap();
    let three = tree["rows"].as_array().unwrap().iter().find(|row| row["text"].as_str().unwrap().contains("three"));
    let entry = three.unwrap()["id"].clone();
    let branched = client.ask("x-grove/branch", json!({"channel": URI, "entry": entry})).await.unwrap();
    assert_eq!(said_everywhere(&mut client, branched["session"].as_str().unwrap()).await, [["one", ""]]);
    // A session that is forked from one chat has only that chat.
    let forked = fork(&mut client, "ahp-chat:/forked").await;
    assert_eq!(said_everywhere(&mut client, &forked).await, [["one", "in forked"]]);
    // A fork of a fork has all of that one.
    let first = fork(&mut client, URI).await;
    let second = fork(&mut client, &first).await;
    assert_eq!(said_everywhere(&mut client, &second).await, said_everywhere(&mut client, URI).await);
}
