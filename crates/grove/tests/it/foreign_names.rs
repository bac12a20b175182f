//! Names of other tools' sessions: a printed name works in the next command, and each session is listed once.

use grove_testkit::acp::agent_program;
use serde_json::{Value, json};

use crate::show::stores;
use crate::support::{CommandResult, TestHome};

const CLAUDE: &str = "7d1a2f50-1111-4222-8333-944445555666";

fn text_of(ran: &CommandResult) -> &str {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    &ran.stdout
}

/// A session of Claude Code in which a prompt was rephrased.
fn branched(place: &TestHome) -> std::path::PathBuf {
    let line = |kind: &str, id: &str, parent: Option<&str>, content: &str| {
        json!({"type": kind, "uuid": id, "parentUuid": parent, "sessionId": CLAUDE, "cwd": "/w", "isSidechain": false,
            "timestamp": "2026-01-02T03:04:05.000Z", "message": {"id": id, "role": kind, "model": "m", "content": [{"type": "text", "text": content}]}})
    };
    let lines = [
        line("user", "u1", None, "first question"),
        line("assistant", "a1", Some("u1"), "first answer"),
        line("user", "u2", Some("a1"), "abandoned question"),
        line("assistant", "a2", Some("u2"), "abandoned answer"),
        line("user", "u3", Some("a1"), "better question"),
        line("assistant", "a3", Some("u3"), "better answer"),
    ];
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    place.write(&format!("home/.claude/projects/-w/{CLAUDE}.jsonl"), log)
}

#[test]
fn abandoned_branches_are_counted_and_shown_where_they_are_asked_for() {
    let place = TestHome::new();
    let file = branched(&place);
    let file = file.to_str().unwrap();
    let ran = place.run(&["show", file, "--no-start"]);
    let text = text_of(&ran);
    assert!(text.contains("better answer") && !text.contains("abandoned question"), "{text}");
    assert!(text.contains("1 on abandoned branches") && text.contains("[2]") && !text.contains("[3]"), "{text}");
    let ran = place.run(&["show", file, "--branches", "--no-start"]);
    assert!(text_of(&ran).contains("abandoned question") && ran.stdout.contains("[3]"), "{ran:?}");
    assert_eq!(place.run(&["show", file, "--turn", "3", "--no-start"]).code, Some(8));
    for format in ["markdown", "html", "json", "copilot-chat"] {
        let ran = place.run(&["export", file, "--format", format, "--out", "-", "--no-start"]);
        assert!(text_of(&ran).contains("better answer") && !ran.stdout.contains("abandoned question"), "{format}");
    }
    let ran = place.run(&["export", file, "--format", "jsonl", "--out", "-", "--no-start"]);
    assert!(text_of(&ran).contains("abandoned question"), "a log has all branches");
}

#[test]
fn an_imported_session_goes_on_with_its_own_agent_is_listed_once_and_found_by_its_uri() {
    let place = TestHome::new();
    place.write("home/.config/grove/grove.toml", format!("[agents.claude]\ncommand = [{:?}]\n", agent_program()));
    let file = branched(&place);
    let _host = place.serve(&[]);
    let uri = format!("claude:/{CLAUDE}");
    let show = |name: &str| -> Value { serde_json::from_str(text_of(&place.run(&["show", name, "--json"]))).unwrap() };
    assert_eq!(show(&uri)["session"]["source"], "claude", "a history, as long as there is nothing else");
    assert_eq!(text_of(&place.run(&["ls", "--all"])).lines().count(), 2);
    let imported = place.run(&["import", "--json", file.to_str().unwrap()]);
    let imported: Value = serde_json::from_str(text_of(&imported)).unwrap();
    assert_eq!(imported["session"], json!(uri), "Claude's agent goes on with it");
    let listed = place.run(&["ls", "--all"]);
    assert_eq!(text_of(&listed).lines().count(), 2, "{listed:?}");
    assert!(
        listed.stdout.lines().nth(1).unwrap().contains("claude") && !listed.stdout.contains("history"),
        "{listed:?}"
    );
    assert_eq!(show(&uri)["session"]["source"], "grove", "the host's own comes first");
    assert_eq!(show(&format!("claude:/claude.{CLAUDE}"))["session"]["source"], "claude");
    assert_eq!(show(&format!("claude:{CLAUDE}"))["session"]["source"], "claude");
}

#[test]
fn a_session_that_was_imported_under_a_new_id_takes_the_place_of_its_history() {
    let place = TestHome::new();
    let file = branched(&place);
    let host = place.serve(&[]);
    assert_eq!(text_of(&place.run(&["ls", "--all"])).lines().count(), 2, "a head and the history");
    let imported = place.run(&["import", "--new-id", "--json", file.to_str().unwrap()]);
    let imported: Value = serde_json::from_str(text_of(&imported)).unwrap();
    let id = imported["session"].as_str().unwrap().rsplit('/').next().unwrap();
    assert_ne!(id, CLAUDE);
    let listed = || -> Value { serde_json::from_str(text_of(&place.run(&["ls", "--all", "--json"]))).unwrap() };
    let rows = listed();
    assert_eq!(rows["sessions"].as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows["sessions"][0]["id"], id);
    assert_eq!(rows["sessions"][0]["_meta"]["importedFrom"], json!({"source": "claude", "sourceId": CLAUDE}));
    // A later host knows it from the session's folder, also once the session is in memory.
    drop(host);
    let _host = place.serve(&[]);
    text_of(&place.run(&["rename", id, "mine"]));
    let rows = listed();
    assert_eq!(rows["sessions"].as_array().unwrap().len(), 1, "{rows}");
    assert_eq!(rows["sessions"][0]["title"], "mine");
    // Without the copy the history is back.
    text_of(&place.run(&["rm", "--yes", id]));
    let rows = listed();
    assert_eq!(rows["sessions"][0]["sourceId"], CLAUDE, "{rows}");
}

#[test]
fn ids_that_a_filtered_list_prints_name_one_session() {
    let place = TestHome::new();
    stores(&place);
    // Other sessions of the same tool that the filter excludes, and one whose id begins alike.
    for id in ["b881ccf7-2aa1-4851-b4bb-91e2cbc0fd1e", "c881ccf7-2aa1-4851-b4bb-91e2cbc0fd1e"] {
        let chat = json!({"version": 3, "sessionId": id, "creationDate": 1, "lastMessageDate": 2,
            "requests": [{"requestId": "r", "message": {"text": id}, "response": [], "timestamp": 1}]});
        let folder = "home/.config/Code/User/workspaceStorage/0123456789abcdee";
        place.write(&format!("{folder}/chatSessions/{id}.json"), chat.to_string());
    }
    let _host = place.serve(&[]);
    let listed = place.run(&["ls", "--all", "--source", "vs-code", "--since", "2000-01-01"]);
    let rows: Vec<&str> = text_of(&listed).lines().skip(1).collect();
    assert_eq!(rows.len(), 1, "{listed:?}");
    let id = rows[0].split_whitespace().next().unwrap();
    let shown = place.run(&["show", id, "--json"]);
    let shown: Value = serde_json::from_str(text_of(&shown)).unwrap();
    assert_eq!(shown["session"]["sourceId"], "b881ccf7-2aa1-4851-b4bb-91e2cbc0fd1d", "{id}");
}

#[test]
fn a_session_that_is_named_by_its_file_keeps_its_folder_whatever_its_form() {
    let place = TestHome::new();
    stores(&place);
    let folder = "home/.config/Code/User/workspaceStorage/0123456789abcdef/chatSessions";
    let request = json!({"requestId": "r1", "message": {"text": "Hello"}, "response": [{"value": "Hi."}]});
    let chat = json!({"version": 3, "sessionId": "marked", "requests": [request]});
    let marked = place.write(&format!("{folder}/marked.json"), format!("\u{feff}{chat}"));
    let bare = place.write("bare.jsonl", "{\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":\"Hello\"}}\n");
    let ran = place.run(&["show", marked.to_str().unwrap(), "--no-start"]);
    assert!(text_of(&ran).contains("Folder   /work/app\n"), "{ran:?}");
    let ran = place.run(&["show", bare.to_str().unwrap(), "--no-start"]);
    assert!(text_of(&ran).contains("Source   claude\n"), "{ran:?}");
    let _host = place.serve(&[]);
    // A file does not decide where an agent works: the user names the folder again.
    let home = place.home();
    let ran = place.run(&["import", "--json", "--cwd", home.to_str().unwrap(), marked.to_str().unwrap()]);
    let imported: Value = serde_json::from_str(text_of(&ran)).unwrap();
    let shown = place.run(&["show", imported["session"].as_str().unwrap(), "--json"]);
    let shown: Value = serde_json::from_str(text_of(&shown)).unwrap();
    assert!(shown["session"]["workspace"]["folders"][0].to_string().contains(home.to_str().unwrap()), "{shown}");
}
