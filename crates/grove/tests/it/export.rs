//! `grove export` in the formats for people and other programs.

use serde_json::{Value, json};

use crate::show::stores;
use crate::support::{CommandResult, TestHome};

const CLI: &str = "0b5d6a3e";
const CHAT: &str = "b881ccf7";

fn text_of(ran: &CommandResult) -> &str {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    &ran.stdout
}

fn json_of(ran: &CommandResult) -> Value {
    serde_json::from_str(text_of(ran)).unwrap()
}

fn begin(place: &TestHome) -> String {
    let tool = json!({"name": "bash", "input": "{\"command\":\"ls\"}", "output": "<b>a.txt</b>"});
    let script = format!("script:{}", json!([{"say": "I **look**."}, {"tool": tool}, {"say": "<i>One</i>."}]));
    let ran = place.run(&["run", "--yes", &script]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned()
}

fn shown(place: &TestHome, session: &str) -> Value {
    let mut turns = json_of(&place.run(&["show", session, "--json"]))["turns"].take();
    // The ids of turns belong to their log.
    for turn in turns.as_array_mut().unwrap() {
        turn["id"] = Value::Null;
    }
    turns
}

#[test]
fn a_session_of_the_host_is_written_in_every_form() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let id = begin(&place);
    let out = place.path("out");
    let written = |format: &str| {
        let args = ["export", &id, "--format", format, "--out", out.to_str().unwrap(), "--json"];
        let told = json_of(&place.run(&args));
        assert_eq!((&told["id"], &told["turns"], &told["format"]), (&json!(id), &json!(1), &json!(format)));
        let again = place.run(&args);
        assert!(again.code == Some(1) && again.stderr.contains("--force replaces it"), "{again:?}");
        let path = told["path"].as_str().unwrap().to_owned();
        (std::fs::read_to_string(&path).unwrap(), path)
    };
    let (markdown, path) = written("markdown");
    assert!(path.ends_with(&format!("{id}.md")) && markdown.contains("\nI **look**.\n"), "{markdown}");
    let (html, _) = written("html");
    assert!(html.contains("I <strong>look</strong>.") && html.contains("&lt;b&gt;a.txt&lt;/b&gt;"), "{html}");
    assert!(!html.contains("<b>") && !html.contains("<i>"), "{html}");
    let (json, _) = written("json");
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["session"]["sourceId"], json!(id));
    let (chat, path) = written("copilot-chat");
    let chat: Value = serde_json::from_str(&chat).unwrap();
    assert_eq!((&chat["version"], &chat["sessionId"]), (&json!(3), &json!(id)));
    let again = json_of(&place.run(&["show", &path, "--json"]));
    assert_eq!(again["turns"][0]["parts"][1]["toolCall"]["output"]["text"], "<b>a.txt</b>");

    // A log can be imported again, whatever its name.
    for format in ["jsonl", "pi"] {
        let (log, path) = written(format);
        let header: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
        assert_eq!((&header["type"], &header["id"]), (&json!("session"), &json!(id)));
        assert_eq!(path.ends_with(&format!("Z_{id}.jsonl")), format == "pi", "{path}");
        assert_eq!(shown(&place, &path), shown(&place, &id));
        let taken = json_of(&place.run(&["import", "--new-id", "--json", &path]));
        assert_eq!(taken["warnings"], json!([]));
        assert_eq!(shown(&place, taken["session"].as_str().unwrap()), shown(&place, &id));
    }
    let left = std::fs::read_dir(&out).unwrap().filter(|file| {
        let name = file.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with('.')
    });
    assert_eq!(left.count(), 0, "nothing is left beside them");
    host.stop();
}

#[test]
fn another_tools_session_is_written_without_being_taken_in() {
    let place = TestHome::new();
    stores(&place);
    for session in [CLI, CHAT] {
        for format in ["markdown", "html", "json", "jsonl", "pi", "copilot-chat"] {
            let ran = place.run(&["export", session, "--format", format, "--out", "-", "--no-start"]);
            assert!(text_of(&ran).contains(if session == CLI { "good day" } else { "fish" }), "{ran:?}");
        }
        let ran = place.run(&["export", session, "--format", "copilot-cli", "--no-start"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("grove import"), "{ran:?}");
    }
    let ran = place.run(&["export", CLI, "--format", "json", "--out", "-", "--json"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("--out -"), "{ran:?}");
    assert!(!place.data().exists(), "nothing was started");
}
