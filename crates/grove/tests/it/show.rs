//! `grove show`: sessions of the host, and of other tools.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

use crate::support::{CommandResult, TestHome};

const CLI: &str = "0b5d6a3e-5a4c-4c57-9d55-3c8d4d0f6a11";
const CHAT: &str = "b881ccf7-2aa1-4851-b4bb-91e2cbc0fd1d";
const ALIAS: &str = "5e0c9d0a-0c6b-4f0e-8d3e-2b8f6f1d7a90";

fn text_of(ran: &CommandResult) -> &str {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    &ran.stdout
}

fn json_of(ran: &CommandResult) -> Value {
    serde_json::from_str(text_of(ran)).unwrap()
}

/// A session of the Copilot CLI and one of VS Code, in the tools' folders.
pub(crate) fn stores(place: &TestHome) {
    let event = |kind: &str, data: Value| json!({"type": kind, "data": data, "id": kind, "timestamp": "2026-01-01T00:00:00.000Z", "parentId": null});
    let call = json!({"toolCallId": "c1", "name": "bash", "arguments": {"command": "ls"}});
    let lines = [
        event("session.start", json!({"sessionId": CLI, "version": 1, "producer": "x"})),
        event("user.message", json!({"content": "hello \u{1b}[2Jthere"})),
        event("assistant.message", json!({"messageId": "m", "content": "good day", "toolRequests": [call]})),
        event("tool.execution_start", json!({"toolCallId": "c1", "toolName": "bash", "arguments": {"command": "ls"}})),
        event("tool.execution_complete", json!({"toolCallId": "c1", "success": true, "result": {"content": "a.txt"}})),
        event("assistant.turn_end", json!({"turnId": "0"})),
    ];
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write(&format!("home/.copilot/session-state/{CLI}/events.jsonl"), log);

    let prompt = "<environment_info>\nThe user's current OS is: Linux\nThe user's default shell is: \"fish\".\n</environment_info>\n\
        <repoContext>\nRepository name: app\nOwner: me\nCurrent branch: topic\n</repoContext>\n<new>\nsomething\n</new>";
    let request = json!({"requestId": "r1", "message": {"text": "Which shell?"}, "timestamp": 1_700_000_000_000_u64,
        "response": [{"value": "It is `fish`."}], "modelId": "copilot/gpt-4",
        "result": {"metadata": {"sessionId": ALIAS, "renderedUserMessage": [{"type": 1, "text": prompt}]}}});
    let waiting = json!({"requestId": "r2", "message": {"text": "And now?"}, "response": []});
    let chat =
        json!({"version": 3, "sessionId": CHAT, "responderUsername": "GitHub Copilot", "requests": [request, waiting]});
    let folder = "home/.config/Code/User/workspaceStorage/0123456789abcdef";
    place.write(&format!("{folder}/chatSessions/{CHAT}.json"), chat.to_string());
    place.write(&format!("{folder}/workspace.json"), "{\"folder\":\"file:///work/app\"}");
}

/// Every file below a folder, with its time.
fn everything(folder: &Path) -> Vec<(PathBuf, Vec<u8>, SystemTime)> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => open.push(path),
                false => found.push((
                    path.clone(),
                    std::fs::read(&path).unwrap(),
                    std::fs::metadata(&path).unwrap().modified().unwrap(),
                )),
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_session_of_the_host_is_shown_with_its_calls_and_one_turn_in_full() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let lines: String = (0..40).map(|line| format!("line {line}\n")).collect();
    let tool = json!({"name": "bash", "input": "{\"command\":\"ls\"}", "output": lines});
    let script = format!("script:{}", json!([{"reason": "hm"}, {"say": "I look."}, {"tool": tool}, {"say": "Many."}]));
    let ran = place.run(&["run", "--yes", &script]);
    let id = ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let script = format!("script:{}", json!([{"say": "Half"}, {"fail": "the line went dead"}]));
    place.run(&["send", "--wait", &id, &script]);

    let ran = place.run(&["show", &id[..8]]);
    let text = text_of(&ran);
    assert!(text.contains(&format!("Session  {id}\nSource   grove\n")), "{text}");
    for words in ["[1]", "~ Thought", "I look.", "* bash", "    ls\n", "line 11\n", "--turn 1 shows them", "[2]"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("failed: the line went dead") && !text.contains("line 12\n"), "{text}");
    assert!(!text.contains('\u{1b}'), "no colours where nobody sees them");

    let ran = place.run(&["show", &id, "--turn", "1"]);
    assert!(text_of(&ran).contains("line 39\n") && !ran.stdout.contains("[2]"), "{ran:?}");
    let found = json_of(&place.run(&["show", &id, "--json"]));
    assert_eq!((&found["session"]["source"], &found["session"]["turns"]), (&json!("grove"), &json!(2)));
    assert_eq!(found["turns"][0]["parts"][2]["toolCall"]["input"]["command"]["command"], "ls");
    assert_eq!(found["turns"][1]["outcome"]["failed"]["message"], "the line went dead");
    for (args, code) in [(["show", &id, "--turn", "3"], 8), (["show", &id, "--turn", "0"], 2)] {
        assert_eq!(place.run(&args).code, Some(code), "{args:?}");
    }
    let none = place.run(&["show", "nothing-like-it"]);
    assert!(none.code == Some(8) && none.stderr.contains("no session"), "{none:?}");
    host.stop();
}

#[test]
fn show_and_status_say_where_everything_is_allowed() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let script = format!("script:{}", json!([{"say": "Hello."}]));
    let run = || {
        let ran = place.run(&["run", "--yes", &script]);
        ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned()
    };
    let (allowing, asking) = (run(), run());
    let status = || json_of(&place.run(&["status", "--json"]));
    assert_eq!((&status()["allowAllCount"], &status()["allowAllSessions"]), (&json!(0), &json!([])));
    assert!(!text_of(&place.run(&["status"])).contains("everything"));
    host.stop();
    // As a client of the Copilot SDK that allowed everything.
    let file = place.data().join(format!("session-state/{allowing}/session.json"));
    let mut state: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    state["details"]["permissions"] = json!({"allowAll": true});
    std::fs::write(&file, state.to_string()).unwrap();

    let host = place.serve(&[]);
    assert_eq!((&status()["allowAllCount"], &status()["allowAllSessions"]), (&json!(1), &json!([allowing])));
    let line = format!("1 session allows everything without asking: {allowing}");
    assert!(text_of(&place.run(&["status"])).contains(&line));
    for (id, allows) in [(&allowing, true), (&asking, false)] {
        assert_eq!(text_of(&place.run(&["show", id])).contains("Allows   everything"), allows);
        assert_eq!(json_of(&place.run(&["show", id, "--json"]))["session"]["allowAll"], allows);
    }
    // It is in memory by now.
    assert_eq!(status()["allowAllCount"], 1);
    text_of(&place.run(&["permissions", &allowing, "--revoke"]));
    assert_eq!(status()["allowAllCount"], 0);
    assert_eq!(json_of(&place.run(&["show", &allowing, "--json"]))["session"]["allowAll"], false);
    host.stop();
}

#[test]
fn another_tools_session_is_meant_by_id_source_alias_or_file_and_never_changed() {
    let place = TestHome::new();
    stores(&place);
    let before = everything(&place.home());
    let chat_file = format!("home/.config/Code/User/workspaceStorage/0123456789abcdef/chatSessions/{CHAT}.json");
    let cli_folder = format!("./home/.copilot/session-state/{CLI}");
    for (names, source, id) in [
        (["b881", "vs-code:b88", ALIAS, &chat_file], "vs-code", CHAT),
        (["0b5d6a3e", CLI, &format!("copilot-cli:{CLI}"), &cli_folder], "copilot-cli", CLI),
    ] {
        for name in names {
            let found = json_of(&place.run(&["show", name, "--json", "--no-start"]));
            let session = &found["session"];
            assert_eq!((&session["source"], &session["sourceId"]), (&json!(source), &json!(id)), "{name}");
        }
    }
    for (name, code) in [("copilot-cli:b881", 8), ("vs-code:none", 8), ("nothing", 3), ("./home", 1), ("none.json", 1)]
    {
        let ran = place.run(&["show", name, "--no-start"]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
    assert_eq!(everything(&place.home()), before);
    assert!(!place.data().exists(), "nothing was started");
}

#[test]
fn the_catalog_knows_a_session_by_each_of_its_names_and_stores_are_asked_only_where_it_does_not() {
    let place = TestHome::new();
    stores(&place);
    let host = place.serve(&[]);
    json_of(&place.run(&["history", "scan", "--json"]));
    host.stop();
    let asked = "searching every tool's store";
    let catalogued = format!("vs-code.{CHAT}");
    for name in [CHAT, "b881", ALIAS, &catalogued, "vs-code.b88", &format!("vs-code:/{catalogued}"), "vs-code:b88"] {
        let ran = place.run(&["show", name, "--json", "--no-start"]);
        assert_eq!(json_of(&ran)["session"]["sourceId"], CHAT, "{name}");
        assert!(!ran.stderr.contains(asked), "{name}: {ran:?}");
    }
    let several = place.run(&["show", "vs-code:", "--no-start"]);
    assert_eq!(several.code, Some(8), "{several:?}");
    // The catalog has no newer sessions, and does not show deleted ones.
    let later = "5c1f7d9a-0000-4000-8000-000000000001";
    let folder = place.home().join(".copilot/session-state");
    std::fs::rename(folder.join(CLI), folder.join(later)).unwrap();
    let ran = place.run(&["export", later, "--format", "markdown", "--out", "-", "--no-start"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains(&format!("the catalog has no \"{later}\": {asked}")), "{ran:?}");
    std::fs::write(place.data().join("history.db"), "no database").unwrap();
    // A leftover write-ahead log would replace the file.
    for beside in ["history.db-wal", "history.db-shm"] {
        std::fs::remove_file(place.data().join(beside)).ok();
    }
    let ran = place.run(&["show", "b881", "--no-start"]);
    assert!(ran.code == Some(0) && ran.stderr.contains("there is no catalog yet"), "{ran:?}");
}

#[test]
fn what_a_session_says_cannot_steer_the_terminal_and_its_states_are_told() {
    let place = TestHome::new();
    stores(&place);
    let ran = place.run(&["show", CLI, "--no-start"]);
    assert!(text_of(&ran).contains("› hello [2Jthere\n"), "{ran:?}");
    assert!(ran.stdout.contains("* bash (shell)\n  input:\n    ls\n  output:\n    a.txt\n"), "{ran:?}");
    let ran = place.run(&["show", CHAT, "--turn", "2", "--no-start"]);
    assert!(text_of(&ran).contains("interrupted"), "{ran:?}");
    assert!(!ran.stdout.contains("Which shell?"), "{ran:?}");
}

#[test]
fn the_context_shows_the_blocks_of_prompts_and_what_they_say_of_the_workspace() {
    let place = TestHome::new();
    stores(&place);
    let ran = place.run(&["show", CHAT, "--context", "--no-start"]);
    let text = text_of(&ran);
    for words in
        ["/work/app\n", "Repository  me/app\n", "Branch      topic\n", "System      Linux\n", "Shell       fish\n"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(text.contains("[1]\nenvironment_info\n    The user's current OS is: Linux\n"), "{text}");
    assert!(text.contains("new\n    something\n") && !text.contains("Which shell?"), "{text}");
    let found = json_of(&place.run(&["show", CHAT, "--context", "--json", "--turn", "1", "--no-start"]));
    assert_eq!((&found["workspace"]["shell"], &found["turns"][0]["turn"]), (&json!("fish"), &json!(1)));
    assert_eq!(found["turns"][0]["blocks"][2], json!({"name": "new", "text": "something"}));
}
