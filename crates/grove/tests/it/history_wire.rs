//! Sessions of other tools on the wire: opened in every way, with chats of subagents, never changed or announced.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grove_testkit::ahp::{Client as AhpClient, ReconnectOutcome, turn_started};
use grove_wire::ahp::{self, ROOT};
use serde_json::{Value, json};

use crate::ahp_support::on_root;
use crate::support::{ClientExt, Host, TestHome};

const LOG: &str = "home/.claude/projects/-w/s.jsonl";
const V1: &str = "claude:/claude.s";
const SESSION: &str = "ahp-session:/claude.s";
const CHAT: &str = "ahp-chat:/claude.s";
const OUTER: &str = "ahp-chat:/claude.s.sub.a";
const INNER: &str = "ahp-chat:/claude.s.sub.b";

fn line(kind: &str, id: &str, parent: Option<&str>, message: Value) -> Value {
    json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": "s", "cwd": "/w", "version": "2.1.0",
        "isSidechain": false, "timestamp": "2026-01-02T03:04:05.000Z", "message": message})
}

fn user(id: &str, parent: Option<&str>, text: &str) -> Value {
    line("user", id, parent, json!({"role": "user", "content": text}))
}

fn says(id: &str, parent: &str, content: Value) -> Value {
    line("assistant", id, Some(parent), json!({"id": format!("m-{id}"), "model": "claude-x", "content": content}))
}

fn task(call: &str) -> Value {
    json!({"type": "tool_use", "id": call, "name": "Task", "input": {"prompt": "go", "description": "walk"}})
}

/// The result of a subagent's call.
fn result(id: &str, parent: &str, call: &str, agent: &str) -> Value {
    let blocks = json!({"content": [{"type": "tool_result", "tool_use_id": call, "content": "ok"}]});
    let mut result = line("user", id, Some(parent), blocks);
    result["toolUseResult"] = json!({"agentId": agent, "status": "completed"});
    result
}

fn lines(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Three turns; in the first, a subagent was started, which started another one.
fn log() -> String {
    lines(&[
        user("u1", None, "first"),
        says("a1", "u1", json!([task("c1")])),
        result("r1", "a1", "c1", "a"),
        says("a2", "r1", json!("done")),
        user("u2", Some("a2"), "second"),
        says("a3", "u2", json!("two")),
        user("u3", Some("a3"), "third"),
        says("a4", "u3", json!("three")),
    ])
}

fn lived_in() -> TestHome {
    let place = TestHome::new();
    place.write(LOG, log());
    let outer = [
        user("x1", None, "go"),
        says("x2", "x1", json!([task("n1")])),
        result("x3", "x2", "n1", "b"),
        says("x4", "x3", json!("outer")),
    ];
    let inner = [user("y1", None, "go"), says("y2", "y1", json!("inner"))];
    let beside = "home/.claude/projects/-w/s/subagents";
    place.write(&format!("{beside}/agent-a.jsonl"), lines(&outer));
    place.write(&format!("{beside}/agent-b.jsonl"), lines(&inner));
    place
}

/// A host that has scanned everything.
fn scanned(place: &TestHome) -> Host {
    let host = place.serve(&[]);
    let ran = place.run(&["history", "scan", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    host
}

fn said(state: &Value) -> Vec<String> {
    let turns = state["turns"].as_array().unwrap();
    let text = |turn: &Value| turn["message"].get("text").or(turn["userMessage"].get("text")).cloned();
    turns.iter().map(|turn| text(turn).unwrap().as_str().unwrap().to_owned()).collect()
}

async fn opened(client: &mut AhpClient, channel: &str) -> Value {
    client.get(ahp::Method::Subscribe, json!({"channel": channel})).await["snapshot"]["state"].clone()
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(path).unwrap());
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn version_1_opens_history_by_initialize_and_by_reconnect() {
    let place = lived_in();
    let host = scanned(&place);
    let mut client = host.connect("c").await;
    let begun = client.initialize(&["agenthost:/root", V1, "claude:/claude.none"]).await;
    assert_eq!(begun.snapshots.len(), 2, "what is not there is left out");
    let texts = |client: &grove_testkit::Client| {
        let turns = client.session(V1).turns.iter();
        turns.map(|turn| turn.user_message.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(texts(&client), ["first", "second", "third"]);
    client.cut().await;
    assert!(host.reconnect(&mut client).await, "nothing of it was missed");
    assert_eq!(texts(&client), ["first", "second", "third"]);
    // An unknown client gets snapshots.
    client.cut().await;
    client.client_id = "another".into();
    assert!(!host.reconnect(&mut client).await);
    assert_eq!(texts(&client), ["first", "second", "third"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_released_protocol_opens_history_by_initialize_and_by_reconnect() {
    let place = lived_in();
    let host = scanned(&place);
    for version in ["1.0.0", "0.9.0"] {
        let mut client = host.ahp_connect(version).await;
        let asked = [ROOT, SESSION, CHAT, OUTER, "ahp-chat:/claude.none", "ahp-chat:/claude.s.sub.none"];
        let begun = client.initialize_with(&[version], &asked).await.unwrap();
        let resources: Vec<_> = begun.snapshots.iter().map(|snapshot| snapshot.resource.as_str()).collect();
        assert_eq!(resources, [ROOT, SESSION, CHAT, OUTER], "{version}");
        assert_eq!((client.chat(CHAT).turns.len(), client.chat(OUTER).turns.len()), (3, 1));
        assert_eq!(client.session(SESSION).chats.len(), 3);
        client.cut().await;
        let ReconnectOutcome::Replay { missing } = host.ahp_reconnect(&mut client).await else { panic!("{version}") };
        assert_eq!(missing, Vec::<String>::new(), "nothing of it was missed, and it is there");

        let ask = |more: Value| on_root(json!({"clientId": version, "subscriptions": more}));
        let mut ahead = ask(json!([CHAT, "ahp-chat:/claude.none"]));
        ahead["lastSeenServerSeq"] = json!(1_u64 << 40);
        host.ahp_redial(&mut client).await;
        let snapshots = client.get(ahp::Method::Reconnect, ahead).await;
        assert_eq!((&snapshots["type"], snapshots["snapshots"].as_array().unwrap().len()), (&json!("snapshot"), 1));
        assert_eq!(said(&snapshots["snapshots"][0]["state"]), ["first", "second", "third"]);

        let cursor = |channel: &str| json!({"channel": channel, "lastSeenServerSeq": begun.server_seq});
        let each = ask(json!([cursor(CHAT), cursor(OUTER), cursor("ahp-chat:/claude.none")]));
        host.ahp_redial(&mut client).await;
        let each = client.get(ahp::Method::Reconnect, each).await;
        let outcomes: Vec<_> = client.take_outcomes(&each).into_iter().map(|(_, kind)| kind).collect();
        assert_eq!(outcomes, ["snapshot", "snapshot", "missing"], "{version}: {each}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_are_read_only_chats_that_say_which_call_started_them() {
    let place = lived_in();
    let host = scanned(&place);
    let mut client = host.ahp("c").await;
    let page = client.get(ahp::Method::ListSessions, on_root(json!({"limit": 5}))).await;
    assert_eq!(page["items"][0]["chats"][0]["interactivity"], "read-only", "{page}");
    for (session, chats) in [(SESSION, [CHAT, OUTER, INNER].map(str::to_owned)), {
        let computed = |chat: &str| grove_wire::ahp::uri::computed(chat, V1);
        (V1, ["default", "claude.s.sub.a", "claude.s.sub.b"].map(computed))
    }] {
        let state = opened(&mut client, session).await;
        let rows = state["chats"].as_array().unwrap();
        let names: Vec<_> = rows.iter().map(|row| row["resource"].as_str().unwrap()).collect();
        assert_eq!(names, chats);
        assert!(rows.iter().all(|row| row["interactivity"] == "read-only"), "{state}");
        assert_eq!(rows[0].get("origin"), None);
        assert_eq!(rows[1]["origin"], json!({"kind": "tool", "chat": chats[0], "toolCallId": "c1"}));
        assert_eq!(rows[2]["origin"], json!({"kind": "tool", "chat": chats[1], "toolCallId": "n1"}));
        let [main, outer, inner] = [&chats[0], &chats[1], &chats[2]];
        let main = opened(&mut client, main).await;
        assert_eq!((&main["interactivity"], said(&main).len()), (&json!("read-only"), 3));
        let state = opened(&mut client, outer).await;
        assert_eq!((said(&state), &state["origin"]), (vec!["go".to_owned()], &rows[1]["origin"]));
        assert_eq!((&state["resource"], &state["interactivity"]), (&json!(outer), &json!("read-only")));
        let view = json!({"channel": inner, "view": {"turns": 0}});
        let none = client.get(ahp::Method::Subscribe, view).await;
        assert_eq!(
            (said(&none["snapshot"]["state"]).len(), &none["snapshot"]["state"]["turnsNextCursor"]),
            (0, &json!(""))
        );
        client.subscribe_with(json!({"channel": inner, "view": {"turns": 0}})).await.unwrap();
        client.get(ahp::Method::FetchTurns, json!({"channel": inner, "cursor": ""})).await;
        let turns = &client.chat(inner).turns;
        assert!(!turns.is_empty() && client.chat(inner).turns_next_cursor.is_none(), "{turns:?}");
    }
    let missing = client.refused(ahp::Method::Subscribe, json!({"channel": "ahp-chat:/claude.s.sub.none"})).await;
    assert_eq!(missing.code, -32008, "{missing:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_change_history_is_refused_and_changes_nothing() {
    let place = lived_in();
    let host = scanned(&place);
    let before = files(&place.home());
    let mut first = host.client("first").await;
    let mut second = host.ahp("second").await;
    let snapshot = opened(&mut second, CHAT).await;
    let is_told = |reason: &str| assert!(reason.contains("continue it first"), "{reason}");

    let turn = json!({"type": "session/turnStarted", "session": V1, "turnId": "t", "userMessage": {"text": "go on"}});
    is_told(&first.rejected(turn).await);
    is_told(&first.rejected(json!({"type": "session/titleChanged", "session": V1, "title": "mine"})).await);
    for (method, params) in [
        ("disposeSession", json!({"session": V1})),
        ("createSession", json!({"session": "scripted:/claude.s"})),
        ("x-grove/fork", json!({"session": V1})),
        ("x-grove/label", json!({"session": V1, "entry": "u1", "label": "x"})),
        ("x-grove/migrate", json!({"session": V1, "store": "local"})),
    ] {
        is_told(&first.refused(method, params).await.message);
    }

    for channel in [CHAT, OUTER] {
        is_told(&second.rejected(channel, turn_started("t", "go on")).await);
        is_told(&second.rejected(channel, json!({"type": "chat/truncated", "turnId": "u1"})).await);
    }
    is_told(&second.rejected(SESSION, json!({"type": "session/titleChanged", "title": "mine"})).await);
    let fork = json!({"kind": "fork", "chat": CHAT, "turnId": "u1"});
    for (method, params) in [
        ("disposeSession", json!({"channel": SESSION})),
        ("createSession", json!({"channel": SESSION})),
        ("createChat", json!({"channel": SESSION, "chat": "ahp-chat:/new"})),
        ("createChat", json!({"channel": SESSION, "chat": "ahp-chat:/new", "source": fork})),
        ("disposeChat", json!({"channel": OUTER})),
        ("x-grove/fork", json!({"channel": SESSION})),
        ("x-grove/navigate", json!({"channel": CHAT, "entry": null})),
        ("x-grove/workspace/setPlan", json!({"channel": SESSION, "text": "mine"})),
    ] {
        is_told(&second.ask(method, params).await.unwrap_err().message);
    }

    assert_eq!(opened(&mut second, CHAT).await, snapshot);
    assert_eq!(second.get(ahp::Method::ListSessions, on_root(json!({}))).await["items"], json!([]));
    assert_eq!(first.get("listSessions", json!({})).await, json!({"sessions": []}));
    assert_eq!(files(&place.home()), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_has_the_turns_of_the_active_branch_alone() {
    let place = TestHome::new();
    place.write(
        LOG,
        lines(&[
            user("u1", None, "first"),
            says("a1", "u1", json!("one")),
            user("u2", Some("a1"), "abandoned"),
            says("a2", "u2", json!([task("c1")])),
            result("r2", "a2", "c1", "a"),
            user("u3", Some("r2"), "abandoned as well"),
            says("a3", "u3", json!("three")),
            user("u4", Some("a1"), "second"),
            says("a4", "u4", json!("two")),
            user("u5", Some("a4"), "third"),
            says("a5", "u5", json!("three")),
        ]),
    );
    place.write("home/.claude/projects/-w/s/subagents/agent-a.jsonl", lines(&[user("s1", None, "go")]));
    let host = scanned(&place);
    let mut client = host.ahp_connect("c").await;
    client.initialize(&[ROOT]).await;
    assert_eq!(said(&opened(&mut client, CHAT).await), ["first", "second", "third"]);
    // Subagents of abandoned turns have no call that is shown.
    assert_eq!(opened(&mut client, SESSION).await["chats"].as_array().unwrap().len(), 1);
    // Two turns are the newest, and the ones before them are read from the whole file.
    client.subscribe_with(json!({"channel": CHAT, "view": {"turns": 2}})).await.unwrap();
    let cursor = client.chat(CHAT).turns_next_cursor.clone().unwrap();
    client.get(ahp::Method::FetchTurns, json!({"channel": CHAT, "cursor": cursor})).await;
    let turns = client.chat(CHAT).turns.iter().map(|turn| turn.message.text.clone()).collect::<Vec<_>>();
    assert_eq!(turns, ["first", "second", "third"]);
    assert_eq!(client.chat(CHAT).turns_next_cursor, None);

    let mut version_1 = host.client("v1").await;
    version_1.subscribe(V1).await.unwrap();
    assert_eq!(version_1.session(V1).turns.len(), 3);
    let older = version_1.get("fetchTurns", json!({"session": V1, "before": "u4", "limit": 5})).await;
    assert_eq!(said(&older), ["first"]);
    let abandoned = version_1.refused("fetchTurns", json!({"session": V1, "before": "u3"})).await;
    assert_eq!(abandoned.code, -32602, "{abandoned:?}");
}

/// Waits until a list shows so many turns.
async fn listed(client: &mut AhpClient, source_id: &str, turns: u64) {
    let begun = Instant::now();
    loop {
        let page = client.get(ahp::Method::ListSessions, on_root(json!({"limit": 10}))).await;
        let about = |row: &Value| row["_meta"]["history"].clone();
        let found = page["items"].as_array().unwrap().iter().map(about).find(|about| about["sourceId"] == source_id);
        if found.is_some_and(|about| about["turns"] == turns) {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{page}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn history_is_never_announced_and_a_file_that_grows_is_seen_by_whoever_looks_again() {
    let place = lived_in();
    let host = scanned(&place);
    let mut first = host.connect("first").await;
    first.initialize(&["agenthost:/root", V1]).await;
    let mut second = host.ahp_connect("second").await;
    second.initialize(&[ROOT, SESSION, CHAT]).await;
    let mut looker = host.ahp("looker").await;

    let more = [user("u4", Some("a4"), "fourth"), says("a5", "u4", json!("four"))];
    place.write(LOG, log() + &lines(&more));
    place
        .write("home/.claude/projects/-w/new.jsonl", lines(&[user("n1", None, "new"), says("n2", "n1", json!("yes"))]));
    listed(&mut looker, "s", 4).await;
    listed(&mut looker, "new", 1).await;
    assert_eq!(said(&opened(&mut looker, CHAT).await), ["first", "second", "third", "fourth"]);

    first.barrier().await;
    second.barrier().await;
    assert!(first.notifications.is_empty() && first.envelopes.is_empty(), "{:?}", first.notifications);
    assert!(second.notifications.is_empty() && second.envelopes.is_empty(), "{:?}", second.notifications);
    assert_eq!(
        (first.session(V1).turns.len(), second.chat(CHAT).turns.len()),
        (3, 3),
        "who has it open is told nothing"
    );
    let older = first.get("fetchTurns", json!({"session": V1, "before": "u3", "limit": 1})).await;
    assert_eq!(said(&older), ["second"]);
    let gone = first.refused("fetchTurns", json!({"session": V1, "before": "gone"})).await;
    assert_eq!(gone.code, -32602, "what is not there has nothing before it: {gone:?}");
    first.subscribe(V1).await.unwrap();
    second.subscribe(CHAT).await.unwrap();
    assert_eq!((first.session(V1).turns.len(), second.chat(CHAT).turns.len()), (4, 4));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_window_of_turns_is_bounded_and_older_ones_come_page_by_page() {
    const MIB: usize = 1 << 20;
    let place = TestHome::new();
    let long = "word ".repeat(MIB / 10);
    let turn = |number: u32| {
        let (asked, parent) = (format!("u{number}"), number.checked_sub(1).map(|before| format!("a{before}")));
        [user(&asked, parent.as_deref(), "go"), says(&format!("a{number}"), &asked, json!(long))]
    };
    place.write(LOG, lines(&(0..20).flat_map(turn).collect::<Vec<_>>()));
    let host = scanned(&place);
    let mut client = host.ahp_connect("c").await;
    client.initialize(&[CHAT]).await;
    let mut before = client.chat(CHAT).turns.len();
    assert!((8..=16).contains(&before), "8 MiB are in a snapshot: {before}");
    while let Some(cursor) = client.chat(CHAT).turns_next_cursor.clone() {
        client.get(ahp::Method::FetchTurns, json!({"channel": CHAT, "cursor": cursor})).await;
        let now = client.chat(CHAT).turns.len();
        assert!(now > before && now - before <= 16, "{before} and {now}");
        before = now;
    }
    assert_eq!(before, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_without_histories_hold_the_hosts_own_sessions_however_many_histories_there_are() {
    let place = TestHome::new();
    for number in 0..600 {
        // Far in the future, so that each of them precedes the host's own.
        let mut said = user("u1", None, "hello");
        said["timestamp"] = json!("2099-01-02T03:04:05.000Z");
        said["sessionId"] = json!(format!("h{number}"));
        place.write(&format!("home/.claude/projects/-w/h{number}.jsonl"), lines(&[said]));
    }
    let host = scanned(&place);
    let mut client = host.ahp("a").await;
    for id in ["one", "two", "three"] {
        client.ready_session(&format!("scripted:/{id}")).await;
    }
    let page = |meta: Value, cursor: Value| {
        let mut params = json!({"channel": ROOT, "limit": 2, "_meta": meta});
        if !cursor.is_null() {
            params["cursor"] = cursor;
        }
        params
    };
    let all = client.get(ahp::Method::ListSessions, page(json!({}), Value::Null)).await;
    let is_history = |row: &Value| !row["_meta"]["history"].is_null();
    assert!(all["items"].as_array().unwrap().iter().all(is_history), "as before, they come first: {all}");
    let (mut own, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let listed = client.get(ahp::Method::ListSessions, page(json!({"history": false}), cursor)).await;
        let rows = listed["items"].as_array().unwrap();
        assert!(!rows.iter().any(is_history), "{listed}");
        own.extend(rows.iter().map(|row| row["resource"].as_str().unwrap().to_owned()));
        cursor = listed["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    own.sort_unstable();
    assert_eq!(own, ["scripted:/one", "scripted:/three", "scripted:/two"]);
}
