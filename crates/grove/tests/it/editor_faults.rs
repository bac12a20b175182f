//! Editors in hard cases: long sessions, several at once, races, large and broken messages.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::editors::Editor;
use crate::support::*;

fn script(steps: &Value) -> String {
    format!("script:{steps}")
}

fn load(editor: &mut Editor, session: &str) -> Value {
    editor.received.clear();
    editor.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}))
}

const PERMISSION: &str = "session/request_permission";

/// A message of a method by its number. Others may come between and before them.
fn nth(editor: &mut Editor, method: &str, number: usize) -> Value {
    loop {
        if let Some(message) = editor.received.iter().filter(|message| message["method"] == *method).nth(number) {
            return message.clone();
        }
        editor.until(|message| message["method"] == *method);
    }
}

/// A session with many turns: one of a real session again and again.
fn long_session(place: &TestHome, turns: usize) -> String {
    let said = place.run(&["run", "--yes", &script(&json!([{"say": "answer"}]))]);
    let id = said.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let out = place.path("out");
    let exported = place.run(&["export", &id, "--format", "copilot-cli", "--out", out.to_str().unwrap()]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    let (folder, file) = (out.join(&id), out.join(&id).join("events.jsonl"));
    let text = std::fs::read_to_string(&file).unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut lines, mut last, mut ids) = (vec![events[0].to_string()], events[0]["id"].clone(), 0);
    let mut next_id = || {
        ids += 1;
        json!(format!("00000000-0000-4000-8000-{ids:012x}"))
    };
    for turn in 0..turns {
        let (prompt, answer) = (next_id(), next_id());
        for event in &events[1..] {
            let mut event = event.clone();
            event["parentId"] = std::mem::replace(&mut last, next_id());
            event["id"] = last.clone();
            let kind = event["type"].as_str().unwrap().to_owned();
            let data = &mut event["data"];
            match kind.as_str() {
                "user.message" => *data = json!({"content": format!("prompt {turn}"), "messageId": prompt}),
                "assistant.message" => {
                    data["content"] = json!(format!("answer {turn}"));
                    data["messageId"] = answer.clone();
                }
                _ => {}
            }
            if data.get("turnId").is_some() {
                data["turnId"] = prompt.clone();
            }
            lines.push(event.to_string());
        }
    }
    std::fs::write(&file, lines.join("\n") + "\n").unwrap();
    let folder = folder.to_str().unwrap();
    let cwd = place.home();
    let args = ["import", folder, "--agent", "scripted", "--new-id", "--cwd", cwd.to_str().unwrap()];
    let imported = place.run(&args);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    imported.stdout.split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_session_of_ten_thousand_turns_is_loaded_with_the_newest_and_goes_on() {
    const TURNS: usize = 10_000;
    let host = Host::start();
    let session = long_session(&host.place, TURNS);
    let mut editor = Editor::start(&host.place, &[]);
    let loaded = load(&mut editor, &session);
    assert!(loaded["result"].is_object(), "{loaded}");
    let updates: Vec<&Value> = editor.received.iter().map(|message| &message["params"]["update"]).collect();
    let prompts = updates.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk").count();
    assert!((2_000..2_500).contains(&prompts), "{prompts}");
    let told = editor.text("agent_message_chunk");
    assert!(told.trim_start().starts_with("Older turns are not shown here"), "{}", &told[..200]);
    assert!(told.ends_with(&format!("answer {}", TURNS - 1)));
    editor.received.clear();
    let prompt = editor.prompt(&session, &script(&json!([{"say": "on"}])));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "on");
}

#[tokio::test]
async fn a_session_that_is_loaded_while_another_client_works_is_told_once() {
    let host = Host::start();
    let mut first = Editor::start(&host.place, &[]);
    let session = first.new_session();
    let uri = format!("scripted:/{session}");
    let mut other = host.client("other").await;
    other.subscribe(&uri).await.unwrap();
    let text: String = (0..400).map(|word| format!("w{word} ")).collect();
    let steps = json!([{"say": text, "chunks": 400, "delayMs": 2}, {"say": "end"}]);
    other.start_turn(&uri, "t", &script(&steps)).await;
    let mut editors: Vec<Editor> = (0..3).map(|_| Editor::start(&host.place, &[])).collect();
    for editor in &mut editors {
        let loaded = load(editor, &session);
        assert!(loaded["result"].is_object(), "{loaded}");
    }
    editors.push(first);
    for editor in &mut editors {
        while !editor.text("agent_message_chunk").ends_with("end") {
            editor.until(|message| message["method"] == "session/update");
        }
        assert_eq!(editor.text("agent_message_chunk"), format!("{text}end"));
        assert_eq!(editor.text("user_message_chunk"), script(&steps));
    }
}

#[test]
fn two_editors_on_one_session_see_the_same_and_one_answer_counts() {
    let host = Host::start();
    let mut first = Editor::start(&host.place, &[]);
    let session = first.new_session();
    let mut second = Editor::start(&host.place, &[]);
    load(&mut second, &session);
    let tool = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    let prompts = (
        first.prompt(&session, &script(&json!([{"say": "one "}, tool]))),
        second.prompt(&session, &script(&json!([{"say": "two "}, tool]))),
    );
    for number in 0..2 {
        // Both are asked, and the answer of one withdraws the question of the other.
        let (asked, also) = (nth(&mut first, PERMISSION, number), nth(&mut second, PERMISSION, number));
        assert_eq!(asked["params"]["toolCall"]["toolCallId"], also["params"]["toolCall"]["toolCallId"]);
        second.choose(&also, "allow_once");
        let withdrawn = nth(&mut first, "$/cancel_request", number);
        assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
        first.choose(&asked, "reject_once");
    }
    for (editor, id) in [(&mut first, prompts.0), (&mut second, prompts.1)] {
        let ended = editor.first(|message| message["id"] == id && message.get("result").is_some());
        assert_eq!(ended["result"]["stopReason"], "end_turn", "{ended}");
    }
    for editor in [&mut first, &mut second] {
        while editor.text("agent_message_chunk").len() < 8 {
            editor.until(|message| message["method"] == "session/update");
        }
        let text = editor.text("agent_message_chunk");
        assert!(["one two ", "two one "].contains(&text.as_str()), "{text}");
    }
}

#[test]
fn a_cancellation_at_any_moment_ends_its_prompt_and_no_other() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let hang = script(&json!([{"say": "begun"}, {"hang": true}]));
    for round in 0..20_u64 {
        let by_request = round % 2 == 1;
        let prompt = editor.prompt(&session, &hang);
        // At first right behind the prompt, later while its turn begins or runs.
        std::thread::sleep(Duration::from_millis(round / 2));
        match by_request {
            true => editor.notify("$/cancel_request", json!({"requestId": prompt})),
            false => editor.notify("session/cancel", json!({"sessionId": session})),
        }
        let ended = editor.answer(prompt);
        assert_eq!(ended["result"]["stopReason"], "cancelled", "round {round}: {ended}");
        // A cancellation of a prompt that has ended changes nothing.
        editor.notify("$/cancel_request", json!({"requestId": prompt}));
        let next = editor.prompt(&session, &script(&json!([{"say": "next"}])));
        assert_eq!(editor.answer(next)["result"]["stopReason"], "end_turn", "round {round}");
    }
    // Of two prompts, the one that waits is cancelled, and the other one runs on.
    let (runs, waits) = (editor.prompt(&session, &hang), editor.prompt(&session, &hang));
    editor.notify("$/cancel_request", json!({"requestId": waits}));
    assert_eq!(editor.answer(waits)["result"]["stopReason"], "cancelled");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(editor.answer(runs)["result"]["stopReason"], "cancelled");
    let answers = editor.received.iter().filter(|message| message.get("method").is_none());
    let ids: Vec<String> = answers.map(|message| message["id"].to_string()).collect();
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), ids.len(), "each request is answered once");
}

#[test]
fn a_question_of_an_editor_that_vanishes_is_asked_in_the_next_one() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let tool = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    editor.prompt(&session, &script(&json!([tool, {"say": "done"}])));
    editor.permission();
    // The process is killed.
    drop(editor);
    let mut next = Editor::start(&host.place, &[]);
    assert!(
        next.call("session/resume", json!({"sessionId": session, "cwd": "/", "mcpServers": []}))["result"].is_object()
    );
    let asked = next.permission();
    next.choose(&asked, "allow_once");
    next.until(|message| message["params"]["update"]["content"]["text"] == "done");
    let waited = host.place.run(&["wait", &session, "--timeout", "20"]);
    assert_eq!(waited.code, Some(0), "{waited:?}");
}

#[test]
fn large_prompts_arrive_whole_and_too_large_ones_are_answered() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let prompt = |editor: &mut Editor, blocks: Value| {
        editor.begin("session/prompt", json!({"sessionId": session, "prompt": blocks}))
    };
    let text = format!("{}{}", script(&json!([{"say": "seen"}])), " ".repeat(2 << 20));
    let image = json!({"type": "image", "data": "aGlo".repeat(1 << 16), "mimeType": "image/png"});
    let sent = prompt(&mut editor, json!([{"type": "text", "text": text}, image]));
    let ended = editor.answer(sent);
    assert_eq!(
        ended["result"]["stopReason"],
        "end_turn",
        "{}",
        ended.to_string().chars().take(300).collect::<String>()
    );
    let mut later = Editor::start(&host.place, &[]);
    load(&mut later, &session);
    // What is too large for a message is a file of the session, which the message names.
    let told = later.text("user_message_chunk");
    assert!(told.starts_with("script:") && told.len() < text.len(), "{} bytes", told.len());
    let chunks = later.received.iter().filter(|message| message["params"]["update"]["content"]["type"] != "text");
    assert!(chunks.filter(|message| message["params"]["update"]["content"].is_object()).count() >= 1);

    // A message beyond the limit is refused under its own id, and costs nothing else.
    let huge = prompt(&mut editor, json!([{"type": "text", "text": "x".repeat(17 << 20)}]));
    assert_eq!(editor.answer(huge)["error"]["code"], -32600);
    let next = prompt(&mut editor, json!([{"type": "text", "text": script(&json!([{"say": "next"}]))}]));
    assert_eq!(editor.answer(next)["result"]["stopReason"], "end_turn");
}

#[test]
fn no_line_on_stdin_ends_the_program_or_its_turn() {
    let host = Host::start();
    let mut editor = Editor::start(&host.place, &[]);
    let session = editor.new_session();
    let tool = json!({"tool": {"name": "shell", "input": "ls", "output": "a.txt", "permission": "shell"}});
    let prompt = editor.prompt(&session, &script(&json!([tool, {"say": "done"}])));
    let asked = editor.permission();
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let methods = [
        "initialize",
        "authenticate",
        "session/new",
        "session/load",
        "session/resume",
        "session/close",
        "session/delete",
        "session/fork",
        "session/list",
        "session/prompt",
        "session/set_mode",
        "session/set_config_option",
        "session/set_title",
        "session/archive",
        "session/unarchive",
        "session/cancel",
        "$/cancel_request",
        "",
    ];
    let params = [json!(null), json!(7), json!([]), json!({"sessionId": 7}), json!({"sessionId": null, "prompt": 1})];
    for method in methods {
        for params in &params {
            // `session/list` needs nothing.
            let answer = editor.call(method, params.clone());
            assert!(
                answer.get("error").is_some() || matches!(method, "initialize" | "session/list"),
                "{method}: {answer}"
            );
            editor.notify(method, params.clone());
        }
    }
    for line in [deep.as_str(), "null", "\"x\"", "{\"id\":1}", "\u{0}", "{\"jsonrpc\":\"1.0\",\"id\":{}}"] {
        editor.send_line(line);
        editor.until(|message| message.get("error").is_some());
    }
    editor.send_bytes(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}\n");
    editor.until(|message| message.get("error").is_some());
    // Answers to questions that nobody asked, and to the open one with nonsense: it stays open for others.
    editor.send(&json!({"jsonrpc": "2.0", "id": 999, "result": {}}));
    editor.send(&json!({"jsonrpc": "2.0", "id": "x", "error": {"code": 1, "message": "no"}}));
    editor.reply(&asked, &json!({"outcome": {"outcome": "selected", "optionId": "none of them"}}));
    let approved = host.place.run(&["approve", &session]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
}
