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

#[test]
fn an_agent_writes_a_file_with_unsaved_changes_through_the_editor_and_else_through_the_host() {
    let stage = Stage::new(AgentBehavior::default());
    let mut editor = Editor::start(&stage.place, &["--agent", "mine"]);
    let session = editor.new_session();
    let path = stage.place.home().canonicalize().unwrap().join("open.txt");
    std::fs::write(&path, "saved").unwrap();
    let steps = json!([{"write": {"path": path, "content": "of the agent"}}, "complaints"]);
    let begin = |editor: &mut Editor| {
        let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&steps));
        (prompt, editor.until(|message| message["method"] == "fs/read_text_file"))
    };
    let end = |editor: &mut Editor, prompt| {
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
        assert!(editor.text("agent_message_chunk").ends_with("write: done\ncomplaints: none\n"));
        std::fs::read_to_string(&path).unwrap()
    };

    // The editor has unsaved changes: it writes, here with an end of line that it adds.
    let (prompt, asked) = begin(&mut editor);
    editor.reply(&asked, &json!({"content": "not saved yet"}));
    let written = editor.until(|message| message["method"] == "fs/write_text_file");
    assert_eq!(written["params"], json!({"sessionId": session, "path": path, "content": "of the agent"}));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "saved", "the host does not write beside the editor");
    std::fs::write(&path, "of the agent\n").unwrap();
    editor.reply(&written, &json!({}));
    assert_eq!(end(&mut editor, prompt), "of the agent\n");

    // It shows what is on disk, or refuses to write: the host writes.
    std::fs::write(&path, "saved").unwrap();
    let (prompt, asked) = begin(&mut editor);
    editor.reply(&asked, &json!({"content": "saved"}));
    assert_eq!(end(&mut editor, prompt), "of the agent");
    std::fs::write(&path, "saved").unwrap();
    let (prompt, asked) = begin(&mut editor);
    editor.reply(&asked, &json!({"content": "not saved yet"}));
    let written = editor.until(|message| message["method"] == "fs/write_text_file");
    editor.refuse(&written);
    assert_eq!(end(&mut editor, prompt), "of the agent");
}

#[test]
fn a_protected_file_is_asked_about_before_the_editor_writes_it() {
    let stage = Stage::new(AgentBehavior::default());
    let mut editor = Editor::start(&stage.place, &["--agent", "mine"]);
    let session = editor.new_session();
    let path = stage.place.home().canonicalize().unwrap().join(".git/hooks/pre-commit");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, "saved").unwrap();
    let steps = json!([{"write": {"path": path, "content": "of the agent"}}]);
    for (kind, content) in [("reject_once", "saved"), ("allow_once", "of the agent")] {
        let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&steps));
        let asked = editor.until(|message| message.get("id").is_some() && message.get("method").is_some());
        assert_eq!(asked["method"], "session/request_permission", "nothing is read or written before it: {asked}");
        editor.choose(&asked, kind);
        if kind == "allow_once" {
            let read = editor.until(|message| message["method"] == "fs/read_text_file");
            editor.reply(&read, &json!({"content": "not saved yet"}));
            let write = editor.until(|message| message["method"] == "fs/write_text_file");
            std::fs::write(&path, "of the agent").unwrap();
            editor.reply(&write, &json!({}));
        }
        editor.answer(prompt);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), content);
    }
}

#[test]
fn the_output_of_a_command_is_shown_while_it_runs_in_a_terminal_of_the_editor_or_as_text() {
    let stage = Stage::new(AgentBehavior::default());
    for has_terminals in [true, false] {
        let mut editor = Editor::spawn(&stage.place, &["--agent", "mine"]);
        editor.initialize(json!({"terminal": true, "_meta": {"terminal_output": has_terminals}}));
        let session = editor.new_session();
        let go = stage.place.path(&format!("go-{has_terminals}"));
        let command = format!("echo one; while [ ! -e '{}' ]; do sleep 0.05; done; echo two", go.display());
        let create = json!({"command": "/bin/sh", "args": ["-c", command]});
        let steps = json!([
            {"tool_call": {"toolCallId": "c", "title": "sh", "kind": "execute", "status": "in_progress"}},
            {"terminal": {"create": create, "call": "c"}},
        ]);
        let prompt = editor.prompt(&session, &grove_testkit::acp::prompt(&steps));
        let shows = |message: &Value, text: &str| {
            let update = &message["params"]["update"];
            let data = if has_terminals { &update["_meta"]["terminal_output"]["data"] } else { &update["content"] };
            data.to_string().contains(text)
        };
        editor.until(|message| shows(message, "one"));
        std::fs::write(&go, "").unwrap();
        assert_eq!(editor.answer(prompt)["result"]["stopReason"], "end_turn");
        let updates = editor.received.iter().map(|message| &message["params"]["update"]);
        let of_call: Vec<&Value> = updates.filter(|update| update["toolCallId"].is_string()).collect();
        let output: String =
            of_call.iter().filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str()).collect();
        let exits = of_call.iter().filter(|update| update["_meta"]["terminal_exit"].is_object()).count();
        let call = of_call[0]["toolCallId"].clone();
        if has_terminals {
            assert_eq!((output.as_str(), exits), ("one\ntwo\n", 1), "{of_call:#?}");
            assert_eq!(of_call[0]["content"], json!([{"type": "terminal", "terminalId": call}]));
            let info = &of_call[0]["_meta"]["terminal_info"];
            assert_eq!((&info["terminal_id"], info["cwd"].is_string()), (&call, true));
            assert!(of_call[1..].iter().all(|update| update.get("content").is_none()), "the terminal stays");
        } else {
            assert_eq!((output.as_str(), exits), ("", 0));
            let last = of_call.iter().rev().find(|update| update["content"][0].is_object()).unwrap();
            assert_eq!(last["content"][0]["content"]["text"], "one\ntwo\n", "{last}");
        }
        assert!(!editor.received.iter().any(|message| message["method"] == "terminal/create"), "the host runs it");

        // Loading the session shows the same.
        let mut later = Editor::spawn(&stage.place, &[]);
        later.initialize(json!({"_meta": {"terminal_output": has_terminals}}));
        later.call("session/load", json!({"sessionId": session, "cwd": "/", "mcpServers": []}));
        let updates = later.received.iter().map(|message| &message["params"]["update"]);
        let shown: String = updates.filter_map(|update| update["_meta"]["terminal_output"]["data"].as_str()).collect();
        assert_eq!(shown, if has_terminals { "one\ntwo\n" } else { "" });
    }
}
