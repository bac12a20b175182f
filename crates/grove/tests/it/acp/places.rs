//! Files and terminals that agents use through the host.

use grove_testkit::acp::AgentBehavior;
use grove_testkit::ahp::Client;
use grove_wire::ahp::ROOT;
use serde_json::{Value, json};

use super::*;
use crate::ahp_support::active_client;

#[tokio::test]
async fn commands_of_agents_run_on_terminals_in_the_working_directory() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let (work, outside) = (stage.place.path("work"), stage.place.path("home"));
    // Some agents give a program and its arguments, some a whole line as the program.
    let with_arguments = json!({
        "command": "bash", "args": ["-c", "test -t 1 && pwd; echo $A; exit 3"], "cwd": work,
        "env": [{"name": "A", "value": "b"}], "outputByteLimit": 1000,
    });
    let a_line = json!({"command": "test -t 1 && echo one | tr o O && echo two"});
    let steps = json!([
        {"terminal": {"create": with_arguments}},
        {"terminal": {"create": a_line}},
        {"terminal": {"create": {"command": "echo begun; sleep 600"}, "kill_after_ms": 300}},
        {"terminal": {"create": {"command": "pwd", "cwd": outside}}},
        {"terminal": {"create": {"command": "no-such-program-here"}}},
        "complaints",
    ]);
    let told = said(&mut client, &chat, "t", steps).await;
    assert!(told.contains(&format!("terminal: exit 3: {}\nb\n", work.display())), "{told}");
    assert!(told.contains("terminal: exit 0: One\ntwo\n"), "{told}");
    assert!(told.contains("terminal: signal ") && told.contains(": begun\n"), "{told}");
    assert_eq!(told.matches("terminal: error ").count(), 2, "outside, and what is not there: {told}");
    assert!(told.contains("complaints: none"), "{told}");

    // Processes that an agent leaves running end with its turn, also if it is cancelled.
    for (turn, leave) in [("left", true), ("cancelled", false)] {
        let pid = stage.work(&format!("{turn}.pid"));
        let line = format!("sleep 600 & echo $! > {turn}.new; mv {turn}.new {turn}.pid; wait");
        let leaves = json!({"create": {"command": line}, "kill_after_ms": if leave { 1_500 } else { 600_000 }});
        start(&mut client, &chat, turn, &json!([{"terminal": leaves}])).await;
        let deadline = Deadline::new("the command does not run");
        while !pid.exists() {
            deadline.check();
        }
        let process = std::fs::read_to_string(&pid).unwrap().trim().to_owned();
        assert!(is_alive(&process));
        if !leave {
            cancel(&mut client, &chat, turn).await;
        }
        client.turn_end(&chat, turn).await;
        let deadline = Deadline::new("the command is still there");
        while is_alive(&process) {
            deadline.check();
        }
    }
}

#[tokio::test]
async fn a_call_that_shows_a_terminal_names_it() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let steps = json!([{"tool_call": {
        "toolCallId": "c", "title": "ls", "kind": "execute", "status": "completed",
        "content": [{"type": "terminal", "terminalId": "its-name"}],
    }}]);
    let ended = run(&mut client, &chat, "t", steps).await;
    assert_eq!(calls(&ended)[0]["_meta"]["acp"]["terminals"], json!(["its-name"]));
}

/// The text of the only call of a running turn.
fn live_text(client: &Client, chat: &str) -> String {
    let active = client.chat(chat).active_turn.as_ref();
    let parts = active.map(|turn| turn.response_parts.as_slice()).unwrap_or_default();
    parts
        .iter()
        .map(|part| serde_json::to_value(part).unwrap())
        .map(|part| part["toolCall"]["content"].to_string())
        .collect()
}

#[tokio::test]
async fn the_output_of_a_terminal_is_shown_in_its_call_while_it_runs_and_at_the_end() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let line = "printf '\\033[1mfirst\\033[0m\\n'; while [ ! -e go-on ]; do sleep 0.05; done; echo second";
    let steps = json!([
        {"tool_call": {"toolCallId": "c", "title": "build", "kind": "execute", "rawInput": {"command": "build"}}},
        {"terminal": {"create": {"command": line}, "call": "c"}},
        "complaints",
    ]);
    start(&mut client, &chat, "t", &steps).await;
    client.until(|client| live_text(client, &chat).contains("first")).await;
    assert!(!live_text(&client, &chat).contains("second"));
    std::fs::write(stage.work("go-on"), "").unwrap();
    let ended = client.turn_end(&chat, "t").await;
    let call = calls(&ended)[0].clone();
    assert_eq!(call["content"][0]["text"], "first\nsecond\n", "{call}");
    assert_eq!(call["status"], "completed");
    client.must_agree_on_all().await;
    assert_eq!(stage.seen_anew(&chat, "t").await, ended);
}

#[tokio::test]
async fn a_write_into_git_is_asked_and_done_as_the_person_says() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let hook = stage.work(".git/hooks/pre-commit");
    for (turn, option) in [("no", "reject_once"), ("yes", "allow_once")] {
        let steps = json!([{"write": {"path": hook, "content": "#!/bin/sh\n"}}, "complaints"]);
        start(&mut client, &chat, turn, &steps).await;
        let call = asked(&mut client, &chat).await;
        assert!(!stage.work(".git").exists(), "nothing is written before the answer");
        assert!(call.to_string().contains("hooks and settings run programs"), "{call}");
        answer(&mut client, &chat, turn, &call, option).await;
        let ended = client.turn_end(&chat, turn).await;
        let told = markdown(&ended.response_parts);
        let allowed = option == "allow_once";
        assert_eq!((hook.exists(), told.contains("write: done")), (allowed, allowed), "{told}");
        assert!(told.contains("complaints: none"), "{told}");
        assert_eq!(calls(&ended)[0]["status"], if allowed { "completed" } else { "cancelled" });
    }
    client.must_agree_on_all().await;
}

#[tokio::test]
async fn an_agent_that_knows_a_missing_file_by_its_error_can_create_it() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let told = said(&mut client, &chat, "t", json!([{"read": {"path": stage.work("new/a.txt")}}])).await;
    assert!(told.contains("error -32002 Resource not found: "), "{told}");
}

#[tokio::test]
async fn agents_of_the_workspace_read_and_write_inside_the_working_directories_and_nowhere_else() {
    let stage = Stage::with_table(AgentBehavior::default(), &[], "files = \"workspace\"\n", &[]);
    let (mut client, chat) = stage.begin().await;
    let (inside, outside) = (stage.work("new/a.txt"), stage.place.write("outside.txt", "not yours"));
    let token = stage.place.data().join("token");
    let steps = json!([
        {"write": {"path": inside, "content": "one\ntwo\nthree\n"}},
        {"read": {"path": inside, "line": 2, "limit": 1}},
        {"write": {"path": outside, "content": "mine now"}},
        {"read": {"path": outside}},
        {"read": {"path": token}},
        {"read": {"path": stage.work("../outside.txt")}},
        {"read": {"path": stage.work("none")}},
        "complaints",
    ]);
    let told = said(&mut client, &chat, "t", steps).await;
    let errors: Vec<&str> = told.lines().filter(|line| line.contains("error")).collect();
    assert_eq!((errors.len(), told.matches("write: done").count()), (5, 1), "{told}");
    assert!(told.contains("read: two\n") && told.contains("complaints: none"), "{told}");
    assert!(!told.contains("not yours"), "{told}");
    assert_eq!(std::fs::read_to_string(&inside).unwrap(), "one\ntwo\nthree\n");
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "not yours");
}

/// An editor with one open file: it answers requests for that file until the turn ends.
async fn attend(editor: &mut Client, chat: &str, turn: &str, open: &str, shown: &str) -> Vec<Value> {
    let mut questions = Vec::new();
    while !editor.chat(chat).turns.iter().any(|done| done.id == turn) {
        let text = editor.frame().await.unwrap();
        let message: Value = serde_json::from_str(&text).unwrap();
        if message["method"] != "resourceRead" {
            editor.take(&text);
            continue;
        }
        let mut answer = json!({"jsonrpc": "2.0", "id": message["id"]});
        if message["params"]["uri"] == open {
            answer["result"] = json!({"data": shown, "encoding": "utf-8", "contentType": "text/plain"});
        } else {
            answer["error"] = json!({"code": -32008, "message": "not open"});
        }
        editor.send(answer.to_string()).await;
        questions.push(message["params"].clone());
    }
    questions
}

#[tokio::test]
async fn an_agent_reads_what_an_editor_shows_and_not_what_lies_on_the_disk() {
    let stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let (open, closed) = (stage.work("open.txt"), stage.work("closed.txt"));
    for (path, text) in [(&open, "saved"), (&closed, "from the disk")] {
        std::fs::write(path, text).unwrap();
    }
    let mut editor = stage.host().ahp_connect("editor").await;
    let params = json!({
        "channel": ROOT, "protocolVersions": ["1.0.0"], "clientId": "editor", "_meta": {"documents": true},
    });
    editor.get(Method::Initialize, params).await;
    editor.follow(SESSION).await;
    let steps = json!([{"read": {"path": open}}, {"read": {"path": closed}}, "complaints"]);
    // Only active clients are asked.
    let told = said(&mut client, &chat, "t1", steps.clone()).await;
    assert_eq!(told, "read: saved\nread: from the disk\ncomplaints: none\n");
    let part = json!({"type": "session/activeClientSet", "activeClient": active_client("editor", &[])});
    accepted(&mut editor, SESSION, part).await;
    start(&mut client, &chat, "t2", &steps).await;
    let questions = attend(&mut editor, &chat, "t2", &file_uri(&open), "not saved yet").await;
    let told = markdown(&client.turn_end(&chat, "t2").await.response_parts);
    assert_eq!(told, "read: not saved yet\nread: from the disk\ncomplaints: none\n");
    assert_eq!(questions.len(), 2);
    assert!(questions.iter().all(|asked| asked["channel"] == SESSION), "{questions:?}");
    // An editor that is gone shows nothing.
    editor.cut().await;
    let told = said(&mut client, &chat, "t3", steps).await;
    assert_eq!(told, "read: saved\nread: from the disk\ncomplaints: none\n");
}
