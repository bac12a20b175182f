//! `grove export` and `grove import`.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{CommandResult, Host, TestHome, file_uri};

const ID: &str = "0b5d6a3e-5a4c-4c57-9d55-3c8d4d0f6a11";

fn json_of(ran: &CommandResult) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// A session with two turns, a call, a plan and a file.
fn begin(place: &TestHome) -> String {
    let tool = json!({"name": "bash", "input": "{\"command\":\"ls\"}", "output": "a.txt"});
    let script = format!("script:{}", json!([{"say": "I look."}, {"tool": tool}, {"say": "There is one."}]));
    let ran = place.run(&["run", "--yes", &script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let id = ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let script = format!("script:{}", json!([{"say": "The second."}]));
    assert_eq!(place.run(&["send", "--wait", &id, &script]).code, Some(0));
    let plan = place.write("plan.md", "# Plan\n");
    assert_eq!(place.run(&["plan", &id, "--set", plan.to_str().unwrap()]).code, Some(0));
    let file = place.write("notes.bin", [0_u8, 255, 10]);
    assert_eq!(place.run(&["files", &id, "put", file.to_str().unwrap(), "a/notes.bin"]).code, Some(0));
    id
}

fn rows(place: &TestHome, id: &str) -> Vec<(String, String)> {
    let tree = json_of(&place.run(&["tree", id, "--json"]));
    let rows = tree["rows"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["kind"] == "message");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.map(|row| (text(&row["role"]), text(&row["text"]))).collect()
}

fn events(folder: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.join("events.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_session_is_written_for_the_copilot_cli_and_taken_in_again() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let id = begin(&place);
    let out = place.path("out");
    let args = ["export", &id, "--format", "copilot-cli", "--out", out.to_str().unwrap()];
    let exported = json_of(&place.run(&[args.as_slice(), &["--json"]].concat()));
    assert_eq!(
        (&exported["id"], &exported["turns"], &exported["format"]),
        (&json!(id), &json!(2), &json!("copilot-cli"))
    );
    let folder = out.join(&id);
    assert_eq!(exported["path"], folder.to_str().unwrap());
    let kinds: Vec<String> = events(&folder).iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect();
    let turn = |kinds: &[&str]| {
        let begin = ["user.message", "assistant.turn_start"].iter();
        begin.chain(kinds).chain(&["assistant.turn_end"]).map(ToString::to_string).collect::<Vec<_>>()
    };
    let call = ["assistant.message", "tool.execution_start", "tool.execution_complete", "assistant.message"];
    let expected = [vec!["session.start".to_owned()], turn(&call), turn(&["assistant.message"])].concat();
    assert_eq!(kinds, expected);
    assert_eq!(std::fs::read_to_string(folder.join("plan.md")).unwrap(), "# Plan\n");
    assert_eq!(std::fs::read(folder.join("files/a/notes.bin")).unwrap(), [0, 255, 10]);
    assert!(std::fs::read_to_string(folder.join("workspace.yaml")).unwrap().contains(&format!("id: {id}\n")));
    let left: Vec<_> = std::fs::read_dir(&out).unwrap().collect();
    assert_eq!(left.len(), 1, "nothing is left beside it");

    // An existing file is not changed.
    let again = place.run(&args);
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.stderr.contains("--force replaces it"), "{again:?}");

    // It exists already under its id.
    let twice = place.run(&["import", folder.to_str().unwrap()]);
    assert_eq!(twice.code, Some(1), "{twice:?}");
    assert!(twice.stderr.contains("already"), "{twice:?}");
    let imported = json_of(&place.run(&["import", "--new-id", "--json", folder.to_str().unwrap()]));
    assert_eq!((&imported["turns"], &imported["warnings"]), (&json!(2), &json!([])));
    let back = imported["session"].as_str().unwrap();
    assert_eq!(rows(&place, back), rows(&place, &id));
    // The same for a session folder of a host.
    let own = place.data().join("session-state").join(&id);
    let imported = json_of(&place.run(&["import", "--new-id", "--json", own.to_str().unwrap()]));
    assert_eq!(imported["warnings"], json!([]));
    assert_eq!(rows(&place, imported["session"].as_str().unwrap()), rows(&place, &id));
    let got = place.grove(&["files", back, "get", "a/notes.bin", "--data-dir"]).arg(place.data()).output().unwrap();
    assert_eq!(got.stdout, [0, 255, 10]);
    host.stop();
}

#[test]
fn sessions_are_taken_in_as_far_as_they_can_be_and_it_is_said_what_is_missing() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let event = |kind: &str, data: Value| json!({"type": kind, "data": data, "id": kind, "timestamp": "2026-01-01T00:00:00.000Z", "parentId": null});
    let lines = [
        event("session.start", json!({"sessionId": ID, "version": 1, "producer": "x"})).to_string(),
        event("user.message", json!({"content": "hello"})).to_string(),
        "{\"type\":\"assist".to_owned(),
        event("assistant.message", json!({"messageId": "m", "content": "good day", "toolRequests": []})).to_string(),
        event("assistant.turn_end", json!({"turnId": "0"})).to_string(),
    ];
    place.write(&format!("state/{ID}/events.jsonl"), format!("{}\n", lines.join("\n")));
    let good = place.path(&format!("state/{ID}"));
    let bad = place.write("words.txt", "just words\n");
    let ran = place.run(&["import", bad.to_str().unwrap(), good.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("words.txt: ") && ran.stderr.contains("is no session"), "{ran:?}");
    assert!(ran.stderr.contains("line 3: "), "{ran:?}");
    assert_eq!(ran.stdout, format!("{ID}  1 turn  hello\n"));
    assert_eq!(
        rows(&place, ID),
        [("user".to_owned(), "hello".to_owned()), ("assistant".to_owned(), "good day".to_owned())]
    );

    // It continues, also in another host.
    let script = format!("script:{}", json!([{"say": "More."}]));
    assert_eq!(place.run(&["send", "--wait", ID, &script]).code, Some(0));
    host.stop();
    let host: Host = place.serve(&[]);
    let texts: Vec<String> = rows(&place, ID).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts.len(), 4, "{texts:?}");
    assert!(texts[1] == "good day" && texts[3] == "More.", "{texts:?}");
    host.stop();
}

#[test]
fn a_log_of_pi_is_taken_in_and_goes_on() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let lines = [
        json!({"type": "session", "id": "from-pi", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/"}),
        json!({"type": "message", "timestamp": "2026-01-01T00:00:01.000Z", "message": {"role": "user", "content": "one"}}),
        json!({"type": "message", "timestamp": "2026-01-01T00:00:02.000Z",
            "message": {"role": "assistant", "content": [{"type": "text", "text": "1"}], "stopReason": "stop"}}),
    ];
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let log = place.write("old.jsonl", log);
    // Both protocols support it.
    assert_eq!(place.run(&["import", "--protocol", "v1", log.to_str().unwrap()]).stdout, "from-pi\n");
    let script = format!("script:{}", json!([{"say": "2"}]));
    assert_eq!(place.run(&["send", "--wait", "from-pi", &script]).code, Some(0));
    let texts: Vec<String> = rows(&place, "from-pi").into_iter().map(|(_, text)| text).collect();
    assert_eq!((texts.len(), texts[1].as_str(), texts[3].as_str()), (4, "1", "2"), "{texts:?}");
    host.stop();
}

/// A session of each tool with its own format, in the tool's folder: its name, and the name of the imported one.
fn of_other_tools(place: &TestHome) -> Vec<(String, String)> {
    let lines = |values: &[Value]| values.iter().map(|value| format!("{value}\n")).collect::<String>();
    let claude = |id: &str, parent: Option<&str>, role: &str, text: &str| {
        json!({"type": role, "uuid": id, "parentUuid": parent, "sessionId": "claude-1", "cwd": "/w", "timestamp": "2026-01-01T00:00:00.000Z",
            "message": {"id": format!("m-{id}"), "role": role, "content": [{"type": "text", "text": text}]}})
    };
    // The second question was rephrased.
    let talk = lines(&[
        claude("u1", None, "user", "hello"),
        claude("a1", Some("u1"), "assistant", "good day"),
        claude("u2", Some("a1"), "user", "taken back"),
        claude("a2", Some("u2"), "assistant", "never mind"),
        claude("u3", Some("a1"), "user", "in other words"),
        claude("a3", Some("u3"), "assistant", "I see"),
    ]);
    let log = place.write("home/.claude/projects/-w/claude-1.jsonl", talk);
    let codex = "01a1e039-1686-7a20-b7e3-98dd8870ad1b";
    let item =
        |kind: &str, payload: Value| json!({"timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload});
    let talk = lines(&[
        item("session_meta", json!({"id": codex, "cwd": "/w"})),
        item("event_msg", json!({"type": "user_message", "message": "hello"})),
        item("event_msg", json!({"type": "agent_message", "message": "good day"})),
    ]);
    let rollout = format!("home/.codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-{codex}.jsonl");
    let rollout = place.write(&rollout, talk);
    let messages =
        json!([{"id": "1", "type": "user", "content": "hello"}, {"id": "2", "type": "gemini", "content": "good day"}]);
    let gemini = json!({"sessionId": "gemini-1", "messages": messages});
    let chat = place.write("home/.gemini/tmp/p/chats/session-1.json", gemini.to_string());
    let storage = "home/.local/share/opencode/storage";
    let info = json!({"id": "ses_1", "title": "Greeting", "directory": "/w", "time": {"created": 5, "updated": 50}});
    place.write(&format!("{storage}/session/p/ses_1.json"), info.to_string());
    for (message, role, text) in [("m1", "user", "hello"), ("m2", "assistant", "good day")] {
        place.write(
            &format!("{storage}/message/ses_1/{message}.json"),
            json!({"role": role, "time": {"created": 10}}).to_string(),
        );
        place.write(&format!("{storage}/part/{message}/p.json"), json!({"type": "text", "text": text}).to_string());
    }
    let request = json!({"requestId": "r1", "message": {"text": "hello"}, "response": [{"value": "good day"}], "modelState": {"value": 1}});
    let vs_code = json!({"version": 3, "sessionId": "chat-1", "requests": [request]});
    place.write("home/.config/Code/User/workspaceStorage/h/chatSessions/chat-1.json", vs_code.to_string());
    [
        (log.display().to_string(), "claude-1"),
        (rollout.display().to_string(), codex),
        (chat.display().to_string(), "gemini-1"),
        ("opencode:ses_1".to_owned(), "ses_1"),
        ("vs-code:chat".to_owned(), "chat-1"),
    ]
    .map(|(name, id)| (name, id.to_owned()))
    .to_vec()
}

#[test]
fn sessions_of_every_tool_are_taken_in_by_file_or_name_and_go_on() {
    let place = TestHome::new();
    let named = of_other_tools(&place);
    let host = place.serve(&[]);
    let said = |text: &str| (if text == "good day" { "assistant" } else { "user" }.to_owned(), text.to_owned());
    for (name, id) in &named {
        let imported = json_of(&place.run(&["import", "--json", name]));
        assert_eq!((&imported["path"], &imported["warnings"]), (&json!(name), &json!([])), "{imported}");
        assert!(imported["session"].as_str().unwrap().ends_with(&format!("/{id}")), "{imported}");
        assert_eq!(rows(&place, id)[..2], [said("hello"), said("good day")], "{name}");
        let log = std::fs::read_to_string(place.data().join("session-state").join(id).join("events.jsonl")).unwrap();
        let origin = log.lines().find(|line| line.contains("\"infoType\":\"import\"")).unwrap();
        assert!(origin.contains(&format!("\"sourceId\":\"{id}\"")), "{origin}");
        let again = place.run(&["import", name]);
        assert!(again.code == Some(1) && again.stderr.contains("already"), "{again:?}");
    }
    // The abandoned message is in the tree, but not on the current branch.
    let shown = json_of(&place.run(&["show", "claude-1", "--json"]));
    let asked = |shown: &Value| -> Vec<String> {
        let turns = shown["turns"].as_array().unwrap().iter();
        turns.map(|turn| turn["message"]["text"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(
        (&shown["session"]["source"], asked(&shown)),
        (&json!("grove"), vec!["hello".into(), "in other words".into()])
    );
    assert!(rows(&place, "claude-1").iter().any(|(_, text)| text == "taken back"));
    let script = format!("script:{}", json!([{"say": "More."}]));
    assert_eq!(place.run(&["send", "--wait", "claude-1", &script]).code, Some(0));
    assert_eq!(asked(&json_of(&place.run(&["show", "claude-1", "--json"]))).len(), 3);
    let none = place.run(&["import", "opencode:none"]);
    assert!(none.code == Some(1) && none.stderr.contains("opencode:none"), "{none:?}");
    host.stop();
}

#[test]
fn other_tools_files_are_shown_wherever_they_lie() {
    let place = TestHome::new();
    for (name, id) in of_other_tools(&place) {
        let shown = json_of(&place.run(&["show", &name, "--json", "--no-start"]));
        assert_eq!(
            (&shown["session"]["sourceId"], &shown["turns"][0]["message"]["text"]),
            (&json!(id), &json!("hello")),
            "{name}"
        );
    }
}

/// The working directories of a session in its host's file.
fn folders(place: &TestHome, id: &str) -> Value {
    let file = place.data().join(format!("session-state/{id}/session.json"));
    let file: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    file["workingDirectories"].clone()
}

#[test]
fn the_folder_that_a_file_names_is_used_only_where_a_person_says_so() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let elsewhere = place.path("elsewhere");
    std::fs::create_dir_all(&elsewhere).unwrap();
    let header = json!({"type": "session", "version": 3, "id": "from-a-file", "timestamp": "2026-01-01T00:00:00.000Z",
        "cwd": elsewhere.to_str().unwrap()});
    let said = json!({"type": "message", "id": "aaaa0001", "parentId": null, "timestamp": "2026-01-01T00:00:01.000Z",
        "message": {"role": "user", "content": "hello"}});
    let log = place.write("from-a-file.jsonl", format!("{header}\n{said}\n"));
    let ran = place.run(&["import", log.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains(elsewhere.to_str().unwrap()) && ran.stderr.contains("--cwd"), "{ran:?}");
    assert_eq!(folders(&place, "from-a-file"), json!([]));
    let args = ["import", "--new-id", "--json", "--cwd", elsewhere.to_str().unwrap(), log.to_str().unwrap()];
    let imported = json_of(&place.run(&args));
    let id = imported["session"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    assert_eq!(folders(&place, &id), json!([file_uri(&elsewhere)]));
    // A session of a tool of this machine works in the folder that the tool noted.
    let noted = json!({"type": "user", "uuid": "u1", "parentUuid": null, "sessionId": "noted", "version": "2.1.0",
        "isSidechain": false, "cwd": elsewhere.to_str().unwrap(), "timestamp": "2026-01-02T03:04:05.000Z",
        "message": {"role": "user", "content": "hello"}});
    place.write("home/.claude/projects/-w/noted.jsonl", format!("{noted}\n"));
    let imported = json_of(&place.run(&["import", "--json", "claude:noted"]));
    let id = imported["session"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    assert_eq!(folders(&place, &id), json!([file_uri(&elsewhere)]));
    let refused = place.run(&["import", "--json", "/no/such/file"]);
    assert_eq!(refused.code, Some(1));
    let line: Value = serde_json::from_str(refused.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&line["path"], &line["error"]["code"]), (&json!("/no/such/file"), &json!("failed")), "{line}");
    host.stop();
}

#[test]
fn every_row_of_a_list_for_programs_has_the_same_members_and_errors_are_json() {
    let place = TestHome::new();
    place.write(
        "home/.claude/projects/-w/noted.jsonl",
        format!(
            "{}\n",
            json!({"type": "user", "uuid": "u1",
        "parentUuid": null, "sessionId": "noted", "version": "2.1.0", "isSidechain": false, "cwd": "/w",
        "timestamp": "2026-01-02T03:04:05.000Z", "message": {"role": "user", "content": "hello"}})
        ),
    );
    let host = place.serve(&[]);
    let work = place.path("work");
    std::fs::create_dir_all(&work).unwrap();
    let ran = place.run(&["run", "--yes", "--cwd", work.to_str().unwrap(), "script:[{\"say\":\"hi\"}]"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for protocol in ["ahp", "v1"] {
        let listed = json_of(&place.run(&["ls", "--all", "--json", "--protocol", protocol]));
        let rows = listed["sessions"].as_array().unwrap();
        assert_eq!(rows.len(), 2, "{listed}");
        for row in rows {
            for member in ["id", "title", "host", "source", "sourceId", "agent", "status", "cwd"] {
                assert!(row[member].is_string(), "{protocol} {member}: {row}");
            }
            for date in ["createdAt", "modifiedAt"] {
                assert!(row[date].as_str().is_some_and(|text| text.ends_with('Z')), "{protocol} {date}: {row}");
            }
        }
        let of = |source: &str| rows.iter().find(|row| row["source"] == source).unwrap();
        assert_eq!((&of("grove")["status"], &of("grove")["cwd"]), (&json!("idle"), &json!(work.to_str().unwrap())));
        let claude = of("claude");
        assert_eq!((&claude["status"], &claude["cwd"]), (&json!("history"), &json!("/w")), "{claude}");
        assert_eq!((&claude["sourceId"], &claude["host"]), (&json!("noted"), &json!("local")));
        assert_eq!(claude["modifiedAt"], "2026-01-02T03:04:05.000Z");
    }
    for (args, code, exit) in [
        (&["show", "no-such", "--json"][..], "notFound", 8),
        (&["ls", "--json", "--host", "no-such"], "notFound", 8),
        (&["ls", "--json", "--no-such-flag"], "usage", 2),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(exit), "{ran:?}");
        let said: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(said["error"]["code"], code, "{args:?}: {said}");
        assert!(said["error"]["message"].is_string() && !ran.stderr.is_empty(), "{ran:?}");
    }
    host.stop();
}
