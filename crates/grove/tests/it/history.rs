//! Sessions of other tools: `grove history scan`, `grove ls --all`, `grove doctor`, and the same on the wire.

use std::time::{Duration, Instant};

use grove_wire::ahp;
use serde_json::{Value, json};

use crate::ahp_support::on_root;
use crate::support::{ClientExt, CommandResult, TestHome};

const STORE: &str = "home/.config/Code/User/workspaceStorage/0123456789abcdef0123456789abcdef";
const CHAT: &str = "vs-code:/vs-code.chat";

fn json_of(ran: &CommandResult) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn put_chat(place: &TestHome, said: &[&str]) {
    let requests = said.iter().enumerate().map(|(at, said)| {
        json!({"requestId": format!("r{at}"), "message": {"text": said}, "response": [{"value": "Yes."}],
            "timestamp": 1_767_225_600_000_u64 + at as u64, "modelId": "copilot/gpt-5",
            "modelState": {"value": if *said == "second" { 2 } else { 1 }}})
    });
    let chat = json!({"version": 3, "sessionId": "chat", "customTitle": "Fix the gate", "creationDate": 1_767_225_600_000_u64,
        "requests": requests.collect::<Vec<_>>()});
    place.write(&format!("{STORE}/chatSessions/chat.json"), chat.to_string());
}

/// A home with a session of VS Code and one of the Copilot CLI.
fn lived_in() -> TestHome {
    let place = TestHome::new();
    place.write(&format!("{STORE}/workspace.json"), r#"{"folder":"file:///work/site"}"#);
    put_chat(&place, &["first", "second", "third"]);
    let start = json!({"id": "e0", "type": "session.start", "timestamp": "2026-02-01T00:00:00Z", "parentId": null,
        "data": {"sessionId": "cli", "version": 1, "context": {"cwd": "/work/site", "repository": "acme/site"}}});
    let said = json!({"id": "e1", "type": "user.message", "timestamp": "2026-02-01T00:00:01Z", "parentId": "e0",
        "data": {"content": "hello"}});
    place.write("home/.copilot/session-state/cli/events.jsonl", format!("{start}\n{said}\n"));
    place
}

fn ids(listed: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let sessions = listed["sessions"].as_array().unwrap().iter();
    sessions.map(|session| (text(&session["source"]), text(&session["sourceId"]))).collect()
}

fn pair(source: &str, id: &str) -> (String, String) {
    (source.to_owned(), id.to_owned())
}

#[test]
fn a_scan_says_how_many_sessions_there_are_and_reads_nothing_twice() {
    let place = lived_in();
    let _host = place.serve(&[]);
    let first = json_of(&place.run(&["history", "scan", "--json"]));
    assert_eq!((&first["sessions"], &first["problems"]), (&json!(2), &json!([])), "{first}");
    let again = json_of(&place.run(&["history", "scan", "--json"]));
    assert_eq!((&again["sessions"], &again["read"]), (&json!(2), &json!(0)), "{again}");
    let words = place.run(&["history", "scan"]);
    assert!(words.stdout.starts_with("2 sessions, 0 read in "), "{words:?}");
}

#[test]
fn all_sessions_are_listed_with_whose_they_are() {
    let place = lived_in();
    let _host = place.serve(&[]);
    assert_eq!(
        json_of(&place.run(&["ls", "--json"])),
        json!({"sessions": []}),
        "history is shown where it is asked for"
    );
    let all = json_of(&place.run(&["ls", "--all", "--json"]));
    assert_eq!(ids(&all), [pair("copilot-cli", "cli"), pair("vs-code", "chat")]);
    let chat = &all["sessions"][1];
    assert_eq!(
        (&chat["title"], &chat["turns"], &chat["models"]),
        (&json!("Fix the gate"), &json!(3), &json!(["gpt-5"]))
    );
    assert_eq!(chat["turnsCompleted"], 2, "one of them was cancelled");
    assert_eq!((&chat["resource"], &chat["workingDirectory"]), (&json!(CHAT), &json!("/work/site")));
    let only = |args: &[&str]| ids(&json_of(&place.run(&[&["ls", "--all", "--json"], args].concat())));
    assert_eq!(only(&["--source", "vs-code"]), [pair("vs-code", "chat")]);
    assert_eq!(only(&["--repo", "site"]), [pair("copilot-cli", "cli")]);
    assert_eq!(only(&["--since", "2026-01-15"]), [pair("copilot-cli", "cli")]);
    assert_eq!(only(&["--source", "grove"]), []);
    let ran = place.run(&["run", "--json", "script:[{\"say\":\"Hi.\"}]"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(only(&["--source", "grove"]).len(), 1);
    assert_eq!(only(&[]).len(), 3);
    let shown = place.run(&["ls", "--all"]);
    assert!(shown.stdout.contains("Fix the gate") && shown.stdout.contains("history"), "{shown:?}");
    let shown = place.run(&["ls", "--source", "vs-code"]);
    assert!(shown.code == Some(0) && shown.stdout.contains("history"), "whose sessions are wanted is said: {shown:?}");
    assert_eq!(place.run(&["ls", "--all", "--since", "soon"]).code, Some(2));
}

#[test]
fn the_doctor_tells_what_is_damaged_orphaned_or_unknown_and_fails() {
    let place = lived_in();
    let _host = place.serve(&[]);
    let well = place.run(&["doctor"]);
    assert_eq!((well.code, well.stdout.lines().last()), (Some(0), Some("nothing is wrong")), "{well:?}");
    let torn = place.write("home/.copilot/session-state/torn/events.jsonl", "{\"type\":\"user.mess");
    place.write("home/.copilot/session-state/cli/rewind/stray.jsonl", "{}");
    let stray = place.write("home/.copilot/session-state/folder/inside/stray.jsonl", "{}");
    let ran = place.run(&["doctor", "--json"]);
    assert_eq!(ran.code, Some(5), "{ran:?}");
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&told["files"], &told["shown"]), (&json!(5), &json!(3)), "{told}");
    assert_eq!(told["damaged"][0]["path"], json!(torn));
    assert_eq!(told["unknown"].as_array().unwrap().len(), 1, "{told}");
    assert_eq!(told["unknown"][0]["path"], json!(stray));
    let words = place.run(&["doctor"]);
    assert_eq!(words.code, Some(5));
    assert!(words.stdout.contains(&format!("damaged  copilot-cli  {}", torn.display())), "{words:?}");
}

#[test]
fn history_that_is_switched_off_is_not_looked_for() {
    let place = lived_in();
    let config = place.write("off.toml", "[history]\nenabled = false\n");
    let config = config.to_str().unwrap();
    let _host = place.serve(&["--config", config]);
    assert_eq!(json_of(&place.run(&["ls", "--all", "--json", "--config", config])), json!({"sessions": []}));
    assert_eq!(place.run(&["doctor", "--config", config]).code, Some(0));
    let wrong = place.write("wrong.toml", "[history]\nkeep = 1\n");
    let ran = place.run(&["ls", "--config", wrong.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("[history] keep must be true or false"), "{ran:?}");
}

#[test]
fn further_homes_are_looked_into() {
    let place = lived_in();
    std::fs::rename(place.home().join(".copilot"), place.path("moved")).unwrap();
    std::fs::create_dir(place.path("old")).unwrap();
    std::fs::rename(place.path("moved"), place.path("old/.copilot")).unwrap();
    let text = format!("[history]\nroots = ['{}']\n", place.path("old").display());
    let config = place.write("more.toml", text);
    let config = config.to_str().unwrap();
    let _host = place.serve(&["--config", config]);
    assert_eq!(ids(&json_of(&place.run(&["ls", "--all", "--json", "--config", config]))).len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn version_1_lists_history_where_its_filter_asks_and_opens_it_to_be_read() {
    let place = lived_in();
    let host = place.serve(&[]);
    json_of(&place.run(&["history", "scan", "--json"]));
    let mut client = host.client("c").await;
    assert_eq!(client.get("listSessions", json!({})).await, json!({"sessions": []}));
    let listed = client.get("listSessions", json!({"filter": {"history": true}})).await;
    let uris: Vec<_> =
        listed["sessions"].as_array().unwrap().iter().map(|row| row["resource"].as_str().unwrap()).collect();
    assert_eq!(uris, ["copilot-cli:/copilot-cli.cli", CHAT]);
    let opened = client.get("subscribe", json!({"resource": CHAT})).await;
    let turns = opened["state"]["turns"].as_array().unwrap();
    assert_eq!((turns.len(), &turns[2]["userMessage"]["text"]), (3, &json!("third")), "{opened}");
    let older = client.get("fetchTurns", json!({"session": CHAT, "before": "r2", "limit": 1})).await;
    assert_eq!((&older["turns"][0]["id"], &older["hasMore"]), (&json!("r1"), &json!(true)), "{older}");
    let seq = client.start_turn(CHAT, "t", "go on").await;
    let echo = client.answer_to(seq).await;
    assert!(echo.rejection_reason.as_deref().is_some_and(|reason| reason.contains("continue it first")), "{echo:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_released_protocol_lists_history_by_page_and_marked() {
    let place = lived_in();
    let host = place.serve(&[]);
    json_of(&place.run(&["history", "scan", "--json"]));
    let mut client = host.ahp("c").await;
    let whole = client.get(ahp::Method::ListSessions, on_root(json!({}))).await;
    assert_eq!(whole["items"], json!([]));
    let mut marks = Vec::new();
    let mut cursor = None;
    loop {
        let mut params = on_root(json!({"limit": 1}));
        if let Some(cursor) = cursor {
            params["cursor"] = cursor;
        }
        let page = client.get(ahp::Method::ListSessions, params).await;
        marks.extend(page["items"].as_array().unwrap().iter().map(|row| row["_meta"]["history"]["sourceId"].clone()));
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(marks, ["cli", "chat"]);
    let session = client.get(ahp::Method::Subscribe, json!({"channel": "ahp-session:/vs-code.chat"})).await;
    assert_eq!(session["snapshot"]["state"]["title"], "Fix the gate", "{session}");
    let channel = "ahp-chat:/vs-code.chat";
    let chat = client.get(ahp::Method::Subscribe, json!({"channel": channel, "view": {"turns": 2}})).await;
    let state = &chat["snapshot"]["state"];
    assert_eq!(state["turns"].as_array().map(Vec::len), Some(2), "{chat}");
    assert_eq!(state["turnsNextCursor"], "r1", "{chat}");
    let start =
        json!({"type": "chat/turnStarted", "turnId": "t", "message": {"text": "go on", "origin": {"kind": "user"}}});
    let seq = client.dispatch(channel, start).await;
    let echo = client.answer_to(seq).await;
    assert!(echo.rejection_reason.as_deref().is_some_and(|reason| reason.contains("continue it first")), "{echo:?}");
}

#[test]
fn what_a_tool_writes_while_a_host_runs_is_seen_without_a_scan() {
    let place = lived_in();
    let host = place.serve(&[]);
    json_of(&place.run(&["history", "scan", "--json"]));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let mut client = host.client("c").await;
        put_chat(&place, &["first", "second", "third", "fourth"]);
        let begun = Instant::now();
        loop {
            let listed = client.get("x-grove/history/list", json!({"source": "vs-code"})).await;
            if listed["sessions"][0]["turns"] == 4 {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(30), "{listed}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
}
