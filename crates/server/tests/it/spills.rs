//! Large data: results for agents, and messages of users.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession, Prompt, TurnSink};
use grove_core::{AgentInfo, TurnId};
use grove_fs::temp_files::TempFilePolicy;
use grove_fs::{LocalFs, Removal, SessionFs};
use grove_host::{Config, Limits};
use grove_testkit::ahp::{Client, markdown, message, turn_started};
use grove_wire::ahp::{ToolCallState, TurnState};
use grove_wire::v1;
use serde_json::{Value, json};

use crate::harness::{StoreHost, TestHost};

const URI: &str = "scripted:/s";
const CHAT: &str = "ahp-chat://default/c2NyaXB0ZWQ6L3M";
const LIMIT: usize = 1_000;

fn config() -> Config {
    Config { limits: Limits { spill_bytes: LIMIT, ..Limits::default() }, ..Config::default() }
}

fn kept() -> Config {
    Config { temp_files: TempFilePolicy::Kept, ..config() }
}

/// So many characters that tell their position.
fn long(bytes: usize) -> String {
    (0..).flat_map(|number: usize| format!("{number},").into_bytes()).take(bytes).map(char::from).collect()
}

/// Runs a turn in which a client gives a result; returns the agent's text about it.
async fn result_of(client: &mut Client, turn: &str, text: &str, more: &[Value]) -> String {
    let tools = json!([{"name": "look"}]);
    let active = json!({"clientId": "owner", "tools": tools});
    client.dispatch(URI, json!({"type": "session/activeClientSet", "activeClient": active})).await;
    let mut steps = vec![json!({"clientTool": {"name": "look"}})];
    steps.extend_from_slice(more);
    client.script(CHAT, turn, json!(steps)).await;
    client.call_that(CHAT, |call| matches!(call, ToolCallState::Running(_))).await;
    let result = json!({"success": true, "pastTenseMessage": "Looked", "content": [{"type": "text", "text": text}]});
    let call = format!("{turn}-call-0");
    let action = json!({"type": "chat/toolCallComplete", "turnId": turn, "toolCallId": call, "result": result});
    client.dispatch(CHAT, action).await;
    if more.is_empty() {
        return markdown(&client.turn_end(CHAT, turn).await.response_parts);
    }
    client.until(|client| markdown(&client.active(CHAT).response_parts).contains("gave")).await;
    markdown(&client.active(CHAT).response_parts)
}

/// The path in a notice.
fn named(notice: &str) -> PathBuf {
    let (_, rest) = notice.split_once("All of it is in ").unwrap_or_else(|| panic!("{notice}"));
    rest.split_once(';').unwrap().0.into()
}

async fn until_gone(path: &Path) {
    for _ in 0..500 {
        if !path.exists() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{} is still there", path.display());
}

#[tokio::test(start_paused = true)]
async fn an_agent_is_told_where_a_large_result_is_and_clients_keep_all_of_it() {
    let mut host = TestHost::start(config()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    assert_eq!(result_of(&mut owner, "small", &long(LIMIT), &[]).await, format!("look gave: {}\n", long(LIMIT)));

    let text = long(100_000);
    let said = result_of(&mut owner, "large", &text, &[]).await;
    assert!(said.starts_with("look gave: The output is too large to show (100000 bytes)."), "{said}");
    assert!(said.contains("grep") && said.contains("It begins:\n0,1,2,3,") && said.len() < 2 * LIMIT, "{said}");
    let path = named(&said);
    assert!(path.starts_with("/session-s"), "{path:?}");
    let temp = host.sessions.tmpdir().unwrap();
    assert_eq!(temp.read_text(path.to_str().unwrap().trim_start_matches('/')).await.unwrap(), text);

    let has_all = |client: &Client| {
        let turns = serde_json::to_string(&client.chat(CHAT).turns).unwrap();
        assert!(turns.contains(&text));
    };
    has_all(&owner);
    owner.must_agree_on_all().await;
    host.kill_and_restart(config()).await;
    let mut other = host.ahp("other").await;
    other.follow(URI).await;
    has_all(&other);
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_too_large_is_a_file_for_everybody_and_after_a_restart() {
    let mut host = TestHost::start(config()).await;
    let (mut owner, mut old) = (host.ahp("owner").await, host.client("old").await);
    owner.ready_session(URI).await;
    old.subscribe(URI).await.unwrap();
    let text = format!("script:[{{\"say\":\"{}\"}}]", long(5_000));
    owner.start_turn(CHAT, "t", &text).await;
    let turn = owner.turn_end(CHAT, "t").await;
    // The agent was told of the file, and found all of it there.
    assert_eq!((turn.state, markdown(&turn.response_parts)), (TurnState::Complete, long(5_000)));

    let check = |message: &Value| {
        let shown = message["text"].as_str().unwrap();
        assert!(shown.starts_with(&text[..2_048]) && !shown.contains(&text[..2_049]), "{shown}");
        assert!(shown.contains(&format!("of {} bytes", text.len())), "{shown}");
        let attached = message["attachments"].as_array().unwrap().clone();
        assert_eq!(attached.len(), 1);
        attached[0].clone()
    };
    let attached = check(&serde_json::to_value(&turn.message).unwrap());
    let place = attached["uri"].as_str().unwrap().strip_prefix("file:///").unwrap().to_owned();
    assert!(place.starts_with("s/files/paste-") && place.ends_with(".txt"), "{place}");
    assert_eq!(attached["label"], json!(place.rsplit('/').next().unwrap()));
    assert_eq!(host.sessions.read_text(&place).await.unwrap(), text);
    let seen = old.turn_end(URI, "t").await;
    assert_eq!(check(&serde_json::to_value(&seen.user_message).unwrap())["path"], json!(format!("/{place}")));
    owner.must_agree_on_all().await;

    // The log has no more than that.
    owner.barrier().await;
    let log = host.sessions.read_text("s/events.jsonl").await.unwrap();
    assert!(log.contains(&place) && !log.contains(&text[..2_100].replace('"', "\\\"")));
    host.kill_and_restart(config()).await;
    let mut other = host.ahp("other").await;
    other.follow(URI).await;
    assert_eq!(other.chat(CHAT).turns[0].message, turn.message);
    assert_eq!(host.sessions.read_text(&place).await.unwrap(), text);
}

#[tokio::test(start_paused = true)]
async fn version_1_puts_its_large_messages_aside_as_well() {
    let mut host = TestHost::start(config()).await;
    let mut client = host.client("old").await;
    client.ready_session(URI).await;
    let image = format!("data:image/png;base64,{}", STANDARD.encode(long(3_000)));
    let attachments = json!([
        {"type": "file", "path": "/small.txt", "displayName": "small"},
        {"type": "file", "path": image, "displayName": "shot"},
    ]);
    let text = format!("script:[{{\"say\":\"{}\"}}]", long(2_000));
    let user_message = json!({"text": text, "attachments": attachments});
    client
        .dispatch(json!({"type": "session/turnStarted", "session": URI, "turnId": "t", "userMessage": user_message}))
        .await;
    let turn = client.turn_end(URI, "t").await;
    assert_eq!(turn.state, v1::TurnState::Complete);
    assert!(turn.user_message.text.len() > LIMIT && turn.user_message.text.contains("All of it is in the file"));
    let attached = turn.user_message.attachments.clone().unwrap();
    let paths: Vec<_> = attached.iter().map(|one| one.path.trim_start_matches('/').to_owned()).collect();
    assert_eq!((paths.len(), paths[0].as_str()), (3, "small.txt"));
    assert!(paths[1].ends_with(".png") && paths[2].ends_with(".txt"), "{paths:?}");
    assert_eq!(host.sessions.read_text(&paths[1]).await.unwrap(), long(3_000));
    assert_eq!(host.sessions.read_text(&paths[2]).await.unwrap(), text);
    client.must_agree(URI).await;
    host.kill_and_restart(config()).await;
    let mut other = host.client("other").await;
    other.subscribe(URI).await.unwrap();
    assert_eq!(other.session(URI).turns[0].user_message, turn.user_message);
}

#[tokio::test(start_paused = true)]
async fn what_a_message_carries_is_a_file_where_it_is_too_large() {
    let host = TestHost::start(config()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    let embedded = |label: &str, kind: &str, bytes: &str| json!({"type": "embeddedResource", "label": label, "contentType": kind, "data": STANDARD.encode(bytes)});
    let mut action = turn_started("t", "script:[]");
    action["message"]["attachments"] =
        json!([embedded("small", "image/png", "x"), embedded("shot", "image/png", &long(2_000))]);
    owner.dispatch(CHAT, action).await;
    let turn = owner.turn_end(CHAT, "t").await;
    let attached = serde_json::to_value(&turn.message.attachments).unwrap();
    assert_eq!((attached[0].clone(), &turn.message.text), (embedded("small", "image/png", "x"), &"script:[]".into()));
    assert_eq!((&attached[1]["type"], &attached[1]["contentType"]), (&json!("resource"), &json!("image/png")));
    assert_eq!((&attached[1]["label"], &attached[1]["sizeHint"]), (&json!("shot"), &json!(2_000)));
    let place = attached[1]["uri"].as_str().unwrap().strip_prefix("file:///").unwrap();
    assert_eq!(host.sessions.read_text(place).await.unwrap(), long(2_000));

    let mut broken = turn_started("u", "script:[]");
    let data = "!".repeat(2_000);
    let attachment = json!({"type": "embeddedResource", "label": "odd", "contentType": "image/png", "data": data});
    broken["message"]["attachments"] = json!([attachment]);
    let reason = owner.rejected(CHAT, broken).await;
    assert!(reason.contains("odd") && reason.contains("base64"), "{reason}");
}

/// An agent that names the pictures that it sees.
struct Onlooker;

#[async_trait]
impl Agent for Onlooker {
    fn info(&self) -> AgentInfo {
        let (display_name, description) = (String::new(), String::new());
        AgentInfo { id: "scripted".into(), display_name, description, models: Vec::new() }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl AgentSession for Onlooker {
    async fn prompt(&self, prompt: Prompt, turn: TurnSink) -> Result<(), AgentError> {
        let extra = prompt.message.extra.unwrap_or_default();
        let seen = extra["attachments"][0]["data"].as_str().and_then(|data| STANDARD.decode(data).ok());
        turn.text(String::from_utf8(seen.unwrap_or_default()).unwrap()).await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

#[tokio::test(start_paused = true)]
async fn an_agent_sees_a_picture_that_is_too_large_for_the_conversation() {
    let host = TestHost::with_agents(config(), vec![Arc::new(Onlooker)]).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    for (turn, kind, seen) in [("t", "image/png", long(2_000)), ("u", "text/plain", String::new())] {
        let mut action = turn_started(turn, "look");
        let data = STANDARD.encode(long(2_000));
        let attachment = json!({"type": "embeddedResource", "label": "it", "contentType": kind, "data": data});
        action["message"]["attachments"] = json!([attachment]);
        owner.dispatch(CHAT, action).await;
        let ended = owner.turn_end(CHAT, turn).await;
        assert_eq!(markdown(&ended.response_parts), seen, "{kind}");
        assert!(!serde_json::to_string(&ended.message).unwrap().contains(&data), "nobody else is given it");
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_messages_are_put_aside_when_they_come() {
    let host = TestHost::start(config()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    owner.script(CHAT, "t", json!([{"ask": "go on?"}])).await;
    owner.until(|owner| owner.chat(CHAT).active_turn.is_some()).await;
    let waits = |kind: &str, id: &str, text: String| json!({"type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message(&text)});
    let script = |word: &str| format!("script:[{{\"say\":\"{word} {}\"}}]", long(2_000));
    owner.dispatch(CHAT, waits("steering", "s", script("steered"))).await;
    owner.dispatch(CHAT, waits("queued", "q", script("queued"))).await;
    owner.until(|owner| owner.chat(CHAT).queued_messages.as_ref().is_some_and(|all| !all.is_empty())).await;
    let queued = owner.chat(CHAT).queued_messages.as_ref().unwrap()[0].message.clone();
    assert!(queued.text.contains("All of it is in the file") && queued.attachments.is_some());
    let files = host.sessions.readdir("s/files").await.unwrap();
    assert_eq!(files.len(), 2, "{files:?}");
    owner.must_agree_on_all().await;
    owner.dispatch(CHAT, json!({"type": "chat/turnCancelled", "turnId": "t", "duration": 1})).await;
    owner.until(|owner| owner.chat(CHAT).turns.len() == 2).await;
    let turn = owner.chat(CHAT).turns[1].clone();
    assert_eq!((turn.message, markdown(&turn.response_parts)), (queued, format!("queued {}", long(2_000))));
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_refused_leaves_no_file() {
    let host = TestHost::start(config()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    owner.run_script(CHAT, "t", json!([])).await;
    let files = async || host.sessions.readdir("s/files").await.unwrap_or_default();
    // The turn exists already,
    owner.rejected(CHAT, turn_started("t", &long(2_000))).await;
    assert_eq!(files().await, Vec::<String>::new());
    // or it cannot be written.
    host.journal.full.store(true, Ordering::SeqCst);
    owner.rejected(CHAT, turn_started("u", &long(2_000))).await;
    assert_eq!(files().await, Vec::<String>::new());
    host.journal.full.store(false, Ordering::SeqCst);
    owner.start_turn(CHAT, "u", &format!("script:[]{}", " ".repeat(2_000))).await;
    assert_eq!(owner.turn_end(CHAT, "u").await.state, TurnState::Complete);
    assert_eq!(files().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_cannot_take_a_large_message_refuses_it_and_takes_small_ones() {
    let host = TestHost::start(config()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    if host.sessions.exists("s/files").await.unwrap() {
        host.sessions.rm("s/files", Removal::Everything).await.unwrap();
    }
    host.sessions.write_text("s/files", "in the way").await.unwrap();
    let reason = owner.rejected(CHAT, turn_started("t", &long(2_000))).await;
    assert!(reason.contains("too large for the conversation") && reason.contains("cannot be kept"), "{reason}");
    assert!(owner.chat(CHAT).active_turn.is_none());
    assert_eq!(owner.run_script(CHAT, "t", json!([{"say": "x"}])).await.state, TurnState::Complete);
}

#[tokio::test]
async fn temporary_files_go_with_their_session_and_with_the_host() {
    let folder = tempfile::tempdir().unwrap();
    let host = StoreHost::start(config(), Arc::new(LocalFs::new(folder.path()))).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    let file = named(&result_of(&mut owner, "t", &long(5_000), &[]).await);
    assert!(file.starts_with(std::env::temp_dir()));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), long(5_000));
    host.host.dispose_session(&URI.into()).await.unwrap();
    until_gone(file.parent().unwrap()).await;

    owner.ready_session(URI).await;
    let file = named(&result_of(&mut owner, "u", &long(5_000), &[]).await);
    assert!(file.is_file());
    host.host.stop().await;
    assert!(!file.parent().unwrap().exists());
}

#[tokio::test]
async fn what_a_killed_host_left_goes_at_the_next_start_unless_it_is_still_needed() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Arc::new(LocalFs::new(folder.path()));
    let host = StoreHost::start(config(), store()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    let file = named(&result_of(&mut owner, "t", &long(5_000), &[json!({"ask": "go on?"})]).await);
    owner.until(|owner| owner.session(URI).input_needed.is_some()).await;

    // The turn continues, and the agent may read it.
    let host = host.kill_and_restart(config(), store()).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), long(5_000));
    let mut owner = host.ahp("owner").await;
    owner.follow(URI).await;
    let turn = json!({"type": "chat/turnCancelled", "turnId": "t", "duration": 1});
    owner.dispatch(CHAT, turn).await;
    owner.turn_end(CHAT, "t").await;

    let host = host.kill_and_restart(config(), store()).await;
    assert!(!file.parent().unwrap().parent().unwrap().exists());
    host.host.stop().await;
}

#[tokio::test]
async fn temporary_files_that_are_to_be_kept_stay_whatever_comes() {
    let folder = tempfile::tempdir().unwrap();
    let store = || Arc::new(LocalFs::new(folder.path()));
    let host = StoreHost::start(kept(), store()).await;
    let mut owner = host.ahp("owner").await;
    owner.ready_session(URI).await;
    let file = named(&result_of(&mut owner, "t", &long(5_000), &[]).await);
    host.host.dispose_session(&URI.into()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    let host = host.kill_and_restart(config(), store()).await;
    host.host.stop().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), long(5_000));
    std::fs::remove_dir_all(file.parent().unwrap().parent().unwrap()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_messages_of_a_fork_name_its_own_files_wherever_the_host_is_killed() {
    for steps in [0, 1, 2, 99] {
        let mut host = TestHost::start(config()).await;
        let mut client = host.ahp("owner").await;
        client.ready_session(URI).await;
        let text = format!("script:[{{\"say\":\"{}\"}}]", long(5_000));
        let picture = json!({"type": "embeddedResource", "label": "shot.png", "contentType": "image/png",
            "data": STANDARD.encode(long(3_000))});
        let message = json!({"text": text, "origin": {"kind": "user"}, "attachments": [picture]});
        let started = json!({"type": "chat/turnStarted", "turnId": "t", "message": message, "startedAt": "2026-01-01T00:00:00.000Z"});
        client.dispatch(CHAT, started).await;
        let source = client.turn_end(CHAT, "t").await;
        // Text that is not exactly such a path stays, and so does the agent's text.
        let others = "/s/files/paste-1.txt.bak /s/files/notes.md /s1/files/paste-1.txt";
        client.run_script(CHAT, "u", json!([{"say": format!("/s/files/paste-1.txt {others}")}])).await;
        host.gate.close_behind(steps);
        let forked = client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap();
        let forked = forked["session"].as_str().unwrap().to_owned();
        let id = forked.rsplit('/').next().unwrap().to_owned();
        let renamed = |turn: &grove_wire::ahp::Turn| {
            serde_json::to_string(&turn.message).unwrap().replace("/s/files/paste-", &format!("/{id}/files/paste-"))
        };
        let expected = renamed(&source);
        assert_eq!(expected.matches(&format!("/{id}/files/paste-")).count(), 3, "{expected}");
        let chat = client.follow(&forked).await;
        let shown = |client: &Client| serde_json::to_string(&client.chat(&chat).turns[0].message).unwrap();
        assert_eq!(shown(&client), expected);
        for again in 0..2 {
            host.kill_and_restart(config()).await;
            let mut late = host.ahp(&format!("late {again}")).await;
            late.follow(&forked).await;
            assert_eq!(shown(&late), expected, "{steps}");
            let second = &late.chat(&chat).turns[1];
            assert!(second.message.text.contains(&format!("\"/{id}/files/paste-1.txt {others}\"")));
            assert_eq!(markdown(&second.response_parts), format!("/s/files/paste-1.txt {others}"));
            let log = late.ask("x-grove/entries", json!({"channel": forked})).await.unwrap().to_string();
            assert_eq!(log.matches("/s/files/paste-").count(), 3, "another name, and what the agent said: {log}");
            late.must_agree(&chat).await;
        }
        for name in host.sessions.readdir(&format!("{id}/files")).await.unwrap() {
            let (mine, theirs) = (format!("{id}/files/{name}"), format!("s/files/{name}"));
            assert_eq!(host.sessions.read_file(&mine).await.unwrap(), host.sessions.read_file(&theirs).await.unwrap());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_message_is_refused_with_the_code_of_a_small_one() {
    let host = TestHost::start(config()).await;
    let mut client = host.ahp("a").await;
    client.ready_session(URI).await;
    for (chat, text) in [("ahp-chat:/small", "go".to_owned()), ("ahp-chat:/large", long(2 * LIMIT))] {
        let message = json!({"text": text, "origin": {"kind": "user"}, "model": {"id": "no-such-model"}});
        let params = json!({"channel": URI, "chat": chat, "initialMessage": message});
        let refused = client.ask("createChat", params).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{refused:?}");
        assert!(refused.message.contains("has no model no-such-model"), "{refused:?}");
    }
}
