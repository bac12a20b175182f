//! An ACP agent behind the host, and an ACP editor in front of it.

use super::*;
use crate::editors::Editor;

#[test]
fn a_prompt_of_an_editor_goes_on_through_restarts_of_the_host() {
    let mut stage = Stage::new(AgentBehavior::default());
    let mut editor = Editor::start(&stage.place, &["--agent", "mine"]);
    let session = editor.new_session();
    let (first, second) = (stage.work("first"), stage.work("second"));
    let steps = json!([
        {"say": "one "}, {"await_file": first}, {"say": "two "},
        {"tool": {"id": "asks", "title": "touch x", "output": "made it", "ask": true}},
        {"await_file": second}, {"say": "three"},
    ]);
    let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&steps));
    editor.until(|message| message["params"]["update"]["content"]["text"] == "one ");
    stage.kill_and_restart();
    std::fs::write(&first, "").unwrap();
    let asked = editor.permission();
    editor.choose(&asked, "allow_once");
    editor.until(|message| message["params"]["update"]["status"] == "completed");
    stage.restart();
    std::fs::write(&second, "").unwrap();
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "one two three", "nothing is lost, and nothing told twice");
}

#[test]
fn the_agent_is_an_option_until_the_first_prompt() {
    let stage = Stage::new(AgentBehavior::default());
    let mut editor = Editor::start(&stage.place, &[]);
    let session = editor.new_session();
    let set = |editor: &mut Editor, agent: &str| {
        let params = json!({"sessionId": session, "configId": "grove.agent", "value": agent});
        editor.call("session/set_config_option", params)
    };
    let changed = set(&mut editor, "mine");
    let options = changed["result"]["configOptions"].as_array().unwrap_or_else(|| panic!("{changed}"));
    let agent = options.iter().find(|option| option["id"] == "grove.agent").unwrap();
    assert_eq!(agent["currentValue"], "mine");
    let prompt = editor.prompt(&session, "hello");
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk").trim(), "You said: hello");
    assert_eq!(set(&mut editor, "scripted")["error"]["code"], -32602, "too late");
    let listed: Value = serde_json::from_str(&stage.place.run(&["ls", "--json"]).stdout).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "no session is left behind: {listed}");
    assert_eq!(listed["sessions"][0]["id"], session);
}

#[test]
fn a_change_of_a_file_is_a_diff_and_modes_plans_and_commands_are_told() {
    let behavior = AgentBehavior::default();
    let stage = Stage::new(behavior);
    let mut editor = Editor::start(&stage.place, &["--agent", "mine"]);
    let session = editor.new_session();
    let content = json!([{"type": "diff", "path": "/p/a.rs", "oldText": "old\n", "newText": "new\n"}]);
    let steps = json!([
        {"commands": [{"name": "test", "description": "runs the tests"}]},
        {"plan": [{"content": "write it", "priority": "high", "status": "in_progress"}]},
        {"tool_call": {"toolCallId": "c", "title": "Edit a.rs", "kind": "edit", "status": "pending",
            "locations": [{"path": "/p/a.rs", "line": 3}]}},
        {"tool_update": {"toolCallId": "c", "status": "completed", "content": content}},
        {"usage": {"used": 10, "size": 1000}},
        {"say": "done"},
    ]);
    let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&steps));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    let updates = || editor.received.iter().map(|message| &message["params"]["update"]);
    let of = |kind: &str| updates().filter(move |update| update["sessionUpdate"] == *kind).collect::<Vec<_>>();
    assert_eq!(of("plan")[0]["entries"][0]["status"], "in_progress");
    assert_eq!(of("available_commands_update").last().unwrap()["availableCommands"][0]["name"], "test");
    assert_eq!(of("usage_update")[0]["size"], 1000);
    let diffs: Vec<&Value> = updates().filter(|update| update["content"][0]["type"] == "diff").collect();
    assert_eq!(
        (&diffs[0]["content"][0]["oldText"], &diffs[0]["content"][0]["newText"]),
        (&json!("old\n"), &json!("new\n"))
    );
    assert!(updates().any(|update| update["locations"][0]["line"] == 3));
}

#[test]
fn an_agent_reads_the_unsaved_file_of_the_editor() {
    let stage = Stage::new(AgentBehavior::default());
    let mut editor = Editor::start(&stage.place, &["--agent", "mine"]);
    let session = editor.new_session();
    let path = stage.place.home().join("open.txt");
    std::fs::write(&path, "saved").unwrap();
    let steps = json!([{"read": {"path": path}}, "complaints"]);
    let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&steps));
    let asked = editor.until(|message| message["method"] == "fs/read_text_file");
    assert_eq!(asked["params"], json!({"sessionId": session, "path": path}));
    editor.reply(&asked, &json!({"content": "not saved yet"}));
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(editor.text("agent_message_chunk"), "read: not saved yet\ncomplaints: none\n");
    // A file that the editor does not give is read from the disk.
    let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&json!([{"read": {"path": path}}])));
    let asked = editor.until(|message| message["method"] == "fs/read_text_file");
    editor.refuse(&asked);
    assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
    assert!(editor.text("agent_message_chunk").ends_with("read: saved\n"));
}
