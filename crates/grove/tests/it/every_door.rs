//! One session through every door: it begins in an editor, and goes on in programs that speak other protocols.

use std::time::{Duration, Instant};

use grove_testkit::{PATIENCE, ahp};
use grove_wire::v1;
use serde_json::{Value, json};

use crate::copilot::Sdk;
use crate::editors::Editor;
use crate::support::*;

const DOORS: [&str; 4] = ["editor", "sdk", "v1", "ahp"];

/// A turn that asks for one permission.
fn script(door: &str) -> String {
    let tool = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    format!("script:{}", json!([{"say": format!("before {door}, ")}, tool, {"say": format!("after {door}")}]))
}

/// The prompts and answers of a session.
fn turns() -> Vec<(String, String)> {
    DOORS.iter().map(|door| (script(door), format!("before {door}, after {door}"))).collect()
}

/// The turns that an editor was told.
fn told(editor: &Editor) -> Vec<(String, String)> {
    let mut turns: Vec<(String, String)> = Vec::new();
    for update in editor.received.iter().map(|message| &message["params"]["update"]) {
        let text = update["content"]["text"].as_str().unwrap_or_default();
        match update["sessionUpdate"].as_str() {
            Some("user_message_chunk") => turns.push((text.to_owned(), String::new())),
            Some("agent_message_chunk") => turns.last_mut().unwrap().1.push_str(text),
            _ => {}
        }
    }
    turns
}

/// The turns in the messages of an SDK.
fn messages(sdk: &mut Sdk, session: &str) -> Vec<(String, String)> {
    let read = sdk.call("session.getMessages", json!({"sessionId": session}));
    let mut turns: Vec<(String, String)> = Vec::new();
    for event in read["result"]["events"].as_array().unwrap_or_else(|| panic!("{read}")) {
        let text = event["data"]["content"].as_str().unwrap_or_default();
        match event["type"].as_str() {
            Some("user.message") => turns.push((text.to_owned(), String::new())),
            Some("assistant.message") => turns.last_mut().unwrap().1.push_str(text),
            _ => {}
        }
    }
    turns
}

fn in_version_1(turn: &v1::Turn) -> (String, String) {
    let text = |part: &v1::ResponsePart| match part {
        v1::ResponsePart::Markdown { content } => content.clone(),
        v1::ResponsePart::ContentRef { .. } => String::new(),
    };
    (turn.user_message.text.clone(), turn.response_parts.iter().map(text).collect())
}

/// Asks an SDK's endpoint until something waits for a permission, and approves it.
async fn approve(sdk: &mut Sdk, session: &str) {
    let since = Instant::now();
    loop {
        let pending = sdk.call("session.permissions.pendingRequests", json!({"sessionId": session}));
        if let Some(request) = pending["result"]["items"].get(0) {
            let answer =
                json!({"sessionId": session, "requestId": request["requestId"], "result": {"kind": "approve-once"}});
            let answered = sdk.call("session.permissions.handlePendingPermissionRequest", answer);
            assert_eq!(answered["result"]["success"], true, "{answered}");
            return;
        }
        assert!(since.elapsed() < PATIENCE, "{pending}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_session_of_an_editor_goes_on_through_every_door_and_is_the_same_in_all() {
    let place = TestHome::new();
    let host = place.start(place.serve_command(&["--copilot-listen", "127.0.0.1:0"]));
    let mut editor = Editor::start(&place, &[]);
    let session = editor.new_session();
    let uri = format!("scripted:/{session}");

    let prompt = editor.prompt(&session, &script("editor"));
    let asked = editor.permission();
    editor.choose(&asked, "allow_once");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");

    let endpoint: Value =
        serde_json::from_str(&std::fs::read_to_string(place.data().join("host.json")).unwrap()).unwrap();
    let mut sdk = Sdk::connect(endpoint["copilot"].as_str().unwrap());
    assert!(sdk.call("connect", json!({ "token": host.token }))["result"].is_object());
    let resumed = sdk.call("session.resume", json!({"sessionId": session, "requestPermission": true}));
    assert_eq!(resumed["result"]["sessionId"], session.as_str(), "{resumed}");
    let sent = sdk.call("session.send", json!({"sessionId": session, "prompt": script("sdk")}));
    assert!(sent["error"].is_null(), "{sent}");
    approve(&mut sdk, &session).await;
    // The editor is asked as well. Its question is withdrawn, and it is told the rest.
    editor.first(|message| message["method"] == "$/cancel_request");
    editor.first(|message| {
        message["params"]["update"]["content"]["text"].as_str().is_some_and(|text| text.ends_with("after sdk"))
    });

    let mut version_1 = host.client("version-1").await;
    version_1.subscribe(&uri).await.unwrap();
    version_1.until(|client| client.session(&uri).turns.len() == 2).await;
    version_1.start_turn(&uri, "of-version-1", &script("v1")).await;
    let request = version_1.asked(&uri).await;
    version_1.approve(&uri, "of-version-1", &request).await;
    version_1.turn_end(&uri, "of-version-1").await;

    let mut page = host.ahp("page").await;
    let chat = page.follow(&uri).await;
    page.start_turn(&chat, "of-ahp", &script("ahp")).await;
    let waits = |call: &grove_wire::ahp::ToolCallState| matches!(call, grove_wire::ahp::ToolCallState::PendingConfirmation(call) if call.confirmation_title.is_some());
    let call = serde_json::to_value(page.call_that(&chat, waits).await).unwrap();
    let confirmed = json!({"type": "chat/toolCallConfirmed", "turnId": "of-ahp", "toolCallId": call["toolCallId"],
        "approved": true, "confirmed": "user-action"});
    page.dispatch(&chat, confirmed).await;
    page.turn_end(&chat, "of-ahp").await;

    // The same turns everywhere, also for an editor that loads the session.
    let of_page: Vec<_> = page
        .chat(&chat)
        .turns
        .iter()
        .map(|turn| (turn.message.text.clone(), ahp::markdown(&turn.response_parts)))
        .collect();
    assert_eq!(of_page, turns());
    version_1.until(|client| client.session(&uri).turns.len() == 4).await;
    assert_eq!(version_1.session(&uri).turns.iter().map(in_version_1).collect::<Vec<_>>(), turns());
    assert_eq!(messages(&mut sdk, &session), turns());
    editor.first(|message| {
        message["params"]["update"]["content"]["text"].as_str().is_some_and(|text| text.ends_with("after ahp"))
    });
    // It shows its own prompt itself.
    let (own, others) = (editor.text("agent_message_chunk"), editor.text("user_message_chunk"));
    assert_eq!(own, turns().iter().map(|(_, answer)| answer.as_str()).collect::<String>());
    assert_eq!(others, DOORS[1..].iter().map(|door| script(door)).collect::<String>());
    let mut later = Editor::start(&place, &[]);
    later.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
    assert_eq!(told(&later), turns());
    let shown = place.run(&["show", &session]).stdout;
    assert!(DOORS.iter().all(|door| shown.contains(&format!("after {door}"))), "{shown}");
}
