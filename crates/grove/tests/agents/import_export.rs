//! Exporting sessions to the real Copilot CLI, and importing them again.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use grove_testkit::ahp::{Client, markdown};
use grove_testkit::model::{FakeModel, MODEL, ReplyStep, RequestPurpose, Script, Turn};
use serde_json::{Value, json};

use crate::peer::Peer;
use crate::support::{Host, TestHome};

const SESSION: &str = "0b5d6a3e-5a4c-4c57-9d55-3c8d4d0f6a11";

/// The CLI with the fake model.
fn copilot(program: &Path, place: &TestHome, model: &FakeModel, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(args)
        .arg("--no-auto-update")
        .env("HOME", place.home())
        .env("COPILOT_HOME", place.home().join(".copilot"))
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", model.url()))
        .env("COPILOT_MODEL", MODEL)
        .env("COPILOT_PROVIDER_API_KEY", "x")
        .env("COPILOT_OFFLINE", "true")
        .env("COPILOT_AUTO_UPDATE", "false")
        .current_dir(place.path("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Resumes a session with a prompt in the CLI.
fn resume(program: &Path, place: &TestHome, model: &FakeModel, prompt: &str) {
    let args = ["--resume", SESSION, "-p", prompt, "--allow-all-tools", "--output-format", "json"];
    let ran = copilot(program, place, model, &args).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}\n{err}");
}

/// The sessions that the CLI lists.
fn listed(program: &Path, place: &TestHome, model: &FakeModel) -> Value {
    let mut command = copilot(program, place, model, &["--acp"]);
    let mut cli = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = cli.stdin.take().unwrap();
    let mut lines = BufReader::new(cli.stdout.take().unwrap()).lines();
    let mut ask = |id: u64, method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(stdin, "{request}").unwrap();
        loop {
            let line: Value = serde_json::from_str(&lines.next().expect("an answer").unwrap()).unwrap();
            if line["id"] == id && line.get("method").is_none() {
                return line;
            }
        }
    };
    ask(1, "initialize", json!({"protocolVersion": 1, "clientCapabilities": {}}));
    let listed = ask(2, "session/list", json!({}));
    cli.kill().unwrap();
    cli.wait().unwrap();
    listed["result"]["sessions"].clone()
}

/// The messages of the model's last request, each with its role: text, calls and results.
fn told(model: &FakeModel) -> Vec<(String, String)> {
    let requests = model.requests();
    let last = requests.iter().rev().find(|request| matches!(request.purpose, RequestPurpose::Turn { .. }));
    let body = &last.expect("the model was asked").body;
    let messages = body["messages"].as_array().unwrap().iter().filter(|message| message["role"] != "system");
    let words = |message: &Value| {
        let text = match &message["content"] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match message.get("tool_calls") {
            Some(calls) => format!("{text}{}", calls[0]["function"]["name"].as_str().unwrap()),
            None => text,
        }
    };
    messages.map(|message| (message["role"].as_str().unwrap().to_owned(), words(message))).collect()
}

fn is_like(told: &[(String, String)], expected: &[(&str, &str)]) {
    let fits = told.len() == expected.len()
        && told.iter().zip(expected).all(|((role, text), (is, says))| role == is && text.contains(says));
    assert!(fits, "{told:#?}");
}

async fn client(host: &Host, name: &str) -> Client {
    let mut client = Client::connect(&host.ws, &host.token, name).await;
    client.initialize(&[]).await;
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_in_the_real_cli_and_comes_back() {
    let Some(program) = Peer::Copilot.program() else { return };
    let place = TestHome::new();
    place.write("work/README.md", "# A folder to work in\n");
    let model = FakeModel::start(Script::new([
        Turn::told("what did I say", [vec![ReplyStep::say("You said a lot.")]]),
        Turn::told("run the command", [vec![ReplyStep::shell("echo was-here")], vec![ReplyStep::say("It has run.")]]),
    ]))
    .await;
    let host = place.serve(&[]);

    // Two turns, one with a call.
    let uri = format!("scripted:/{SESSION}");
    let mut one = client(&host, "one").await;
    let folder = format!("file://{}", place.path("work").display());
    one.ask("createSession", json!({"channel": uri, "workingDirectories": [folder]})).await.unwrap();
    let chat = one.follow(&uri).await;
    let tool = json!({"name": "bash", "input": "{\"command\":\"echo forty-two\"}", "output": "forty-two\n"});
    one.run_script(&chat, "t1", json!([{"reason": "hm"}, {"say": "I look."}, {"tool": tool}, {"say": "It is 42."}]))
        .await;
    one.run_script(&chat, "t2", json!([{"say": "The second answer."}])).await;
    one.ask("x-grove/workspace/setPlan", json!({"channel": uri, "text": "# The plan"})).await.unwrap();

    // Export.
    let state = place.home().join(".copilot/session-state");
    let exported = place.run(&["export", SESSION, "--format", "copilot-cli", "--out", state.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let sessions = listed(&program, &place, &model);
    assert!(sessions.to_string().contains(SESSION), "{sessions}");
    resume(&program, &place, &model, "what did I say");
    is_like(
        &told(&model),
        &[
            ("user", "I look."),
            ("assistant", "I look.bash"),
            ("tool", "forty-two"),
            ("assistant", "It is 42."),
            ("user", "The second answer."),
            ("assistant", "The second answer."),
            ("user", "what did I say"),
        ],
    );
    resume(&program, &place, &model, "run the command");

    // Import.
    let folder = state.join(SESSION);
    let imported = place.run(&["import", "--new-id", "--json", folder.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let imported: Value = serde_json::from_str(&imported.stdout).unwrap();
    assert_eq!((&imported["turns"], &imported["warnings"]), (&json!(4), &json!([])), "{imported}");
    let back = imported["session"].as_str().unwrap();
    let chat = one.follow(back).await;
    let turns = one.chat(&chat).turns.clone();
    let said: Vec<String> = turns.iter().map(|turn| markdown(&turn.response_parts)).collect();
    assert_eq!(said, ["I look.It is 42.", "The second answer.", "You said a lot.", "It has run."]);
    let first = serde_json::to_string(&turns[0].response_parts).unwrap();
    assert!(first.contains("forty-two") && first.contains("hm"), "{first}");
    let last = serde_json::to_string(&turns[3].response_parts).unwrap();
    assert!(last.contains("was-here"), "{last}");
    let plan = one.ask("x-grove/workspace/plan", json!({"channel": back})).await.unwrap();
    assert_eq!(plan["text"], "# The plan");
    host.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_cli_goes_on_from_a_compaction_that_it_is_given_back() {
    let Some(program) = Peer::Copilot.program() else { return };
    let place = TestHome::new();
    place.write("work/README.md", "# A folder to work in\n");
    let model =
        FakeModel::start(Script::new([Turn::told("what did I say", [vec![ReplyStep::say("You said a lot.")]])])).await;
    let host = place.serve(&[]);
    let event = |kind: &str, data: Value| json!({"type": kind, "data": data, "id": kind, "timestamp": "2026-01-01T00:00:00.000Z", "parentId": null});
    let said = |text: &str| json!({"messageId": text, "content": text, "toolRequests": []});
    let lines = [
        event(
            "session.start",
            json!({"sessionId": SESSION, "version": 1, "producer": "copilot-agent",
            "copilotVersion": "1.0.102", "startTime": "2026-01-01T00:00:00.000Z"}),
        ),
        event("user.message", json!({"content": "the word is heliotrope"})),
        event("assistant.message", said("a long story")),
        event("assistant.turn_end", json!({"turnId": "0"})),
        event("session.compaction_complete", json!({"success": true, "summaryContent": "They spoke of marigolds."})),
        event("user.message", json!({"content": "go on"})),
        event("assistant.message", said("as you like")),
        event("assistant.turn_end", json!({"turnId": "0"})),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let source = place.write(&format!("other/{SESSION}/events.jsonl"), lines);
    let imported = place.run(&["import", source.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let state = place.home().join(".copilot/session-state");
    let exported = place.run(&["export", SESSION, "--format", "copilot-cli", "--out", state.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    resume(&program, &place, &model, "what did I say");
    let told = told(&model);
    let all: String = told.iter().map(|(_, text)| text.as_str()).collect();
    assert!(all.contains("They spoke of marigolds.") && all.contains("as you like"), "{told:#?}");
    assert!(!all.contains("a long story"), "what was compacted is not told again: {told:#?}");
    host.stop();
}
