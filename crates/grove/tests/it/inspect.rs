//! `grove inspect` and `grove check`: a log is read and never changed.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{CommandResult, TestHome};

const HEADER: &str =
    r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/home/me/project"}"#;

fn message(id: &str, parent: Option<&str>, message: Value) -> String {
    json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:06.000Z", "message": message})
        .to_string()
}

fn user(id: &str, parent: Option<&str>) -> String {
    message(id, parent, json!({"role": "user", "content": id}))
}

fn log(lines: &[String]) -> String {
    format!("{HEADER}\n{}\n", lines.join("\n"))
}

/// A command on a file, run to its end; the file must not change.
fn run_on(place: &TestHome, path: &Path, args: &[&str]) -> CommandResult {
    let before = std::fs::read(path).unwrap();
    let ran = CommandResult::from(place.grove(args).arg(path).output().unwrap());
    assert_eq!(std::fs::read(path).unwrap(), before, "{args:?} changed the log");
    ran
}

fn inspected(place: &TestHome, path: &Path, args: &[&str]) -> Value {
    let ran = run_on(place, path, &[&["inspect", "--json"], args].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    serde_json::from_str(&ran.stdout).unwrap()
}

fn sample(place: &TestHome) -> std::path::PathBuf {
    let label = json!({"type": "label", "id": "l", "parentId": "b", "targetId": "a", "label": "start"}).to_string();
    let note = json!({"type": "custom_message", "id": "n", "parentId": "a", "customType": "t", "content": "note", "display": true})
        .to_string();
    let own = json!({"type": "custom", "customType": "grove.turn", "data": {}, "id": "g", "parentId": "n"}).to_string();
    place.write("log.jsonl", log(&[user("a", None), user("b", Some("a")), label, note, own]))
}

#[test]
fn inspect_prints_the_tree_and_the_context() {
    let place = TestHome::new();
    let path = sample(&place);
    let seen = inspected(&place, &path, &[]);
    let mut keys: Vec<&String> = seen.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["branch", "children", "context", "damage", "entries", "header", "labels", "leafId", "roots"]);
    assert_eq!(seen["header"]["id"], "s1");
    assert_eq!(seen["leafId"], "n");
    assert_eq!(seen["entries"], json!(["a", "b", "l", "n", "g"]));
    assert_eq!(seen["roots"], json!(["a"]));
    assert_eq!(seen["children"], json!({"a": ["b", "n"], "b": ["l"]}));
    assert_eq!(seen["branch"], json!(["a", "n"]));
    assert_eq!(seen["labels"], json!({"a": "start"}));
    assert_eq!(seen["damage"], json!([]));
    let context = &seen["context"];
    assert_eq!(context["messages"][1], json!({"role": "user", "content": "note", "timestamp": null}));
    assert_eq!(context["thinkingLevel"], "off");
    assert_eq!(context["model"], Value::Null);
    assert_eq!((&context["mode"], &context["injectedRules"]), (&json!("none"), &json!([])));

    let words = run_on(&place, &path, &["inspect"]);
    for word in ["session    s1", "entries    5 (1 roots)", "label      a: start", "  n  custom_message"] {
        assert!(words.stdout.contains(word), "{}", words.stdout);
    }
}

#[test]
fn a_log_of_somebody_else_cannot_steer_the_terminal_nor_forge_a_line() {
    let place = TestHome::new();
    let forged = "x\u{1b}[31m\u{9b}2J\u{202e}\nsession    forged";
    let label = json!({"type": "label", "id": "l", "parentId": "a", "targetId": "a", "label": forged}).to_string();
    let path = place.write("log.jsonl", log(&[user("a", None), label]));
    let words = run_on(&place, &path, &["inspect"]).stdout;
    assert!(words.contains("label      a: x[31m2J session forged\n"), "{words:?}");
    assert!(!words.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{words:?}");
    let text = run_on(&place, &path, &["inspect", "--json"]).stdout;
    assert!(!text.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{text:?}");
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["labels"]["a"], forged);
}

#[test]
fn inspect_builds_the_context_by_the_chosen_rules() {
    let place = TestHome::new();
    let path = sample(&place);
    for (rules, role, mode) in
        [("pi", "custom", json!(null)), ("omp", "custom", json!("none")), ("grove", "user", json!("none"))]
    {
        let context = &inspected(&place, &path, &["--rules", rules])["context"];
        assert_eq!((&context["messages"][1]["role"], &context["mode"]), (&json!(role), &mode), "{rules}");
    }
    let ran = run_on(&place, &path, &["inspect", "--rules", "none"]);
    assert_eq!(ran.code, Some(2));
}

#[test]
fn inspect_shows_lone_surrogates_and_unknown_fields_as_they_stand() {
    let place = TestHome::new();
    let line = r#"{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"\ud83c","odd":1.50}}"#;
    let path = place.write("log.jsonl", log(&[line.to_owned()]));
    let ran = run_on(&place, &path, &["inspect", "--json"]);
    assert!(ran.stdout.contains(r#""messages":[{"role":"user","content":"\ud83c","odd":1.50}]"#), "{}", ran.stdout);
}

#[test]
fn an_old_log_is_shown_as_version_3_and_left_as_it_is() {
    let place = TestHome::new();
    let text = "{\"type\":\"session\",\"id\":\"old\"}\n{\"type\":\"message\",\"message\":{\"role\":\"user\",\"content\":\"hi\"}}\n";
    let path = place.write("old.jsonl", text);
    let seen = inspected(&place, &path, &[]);
    assert_eq!(seen["header"]["version"], 3);
    assert_eq!(seen["entries"].as_array().unwrap().len(), 1);
    let checked = run_on(&place, &path, &["check"]);
    assert_eq!((checked.code, checked.stdout.as_str()), (Some(0), "nothing is wrong: 1 entries\n"));
}

#[test]
fn what_is_no_log_or_too_new_is_refused_with_a_reason() {
    let place = TestHome::new();
    let newer = HEADER.replace("\"version\":3", "\"version\":4");
    for (text, reason) in [
        ("Dear diary,\n".to_owned(), "the file is not a session log and is left unchanged"),
        (user("a", None) + "\n", "line 1 is not a session header"),
        (newer + "\n", "version 4, and this Grove knows versions 1 to 3: use a newer Grove"),
    ] {
        let path = place.write("file", text);
        for command in ["inspect", "check"] {
            let ran = run_on(&place, &path, &[command]);
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
            assert!(ran.stderr.contains(reason), "{}", ran.stderr);
        }
    }
    let ran = place.run(&["inspect", "nobody"]);
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("nobody is not a file, and there is no session \"nobody\""), "{}", ran.stderr);
    assert_eq!(place.run(&["check", "../../etc/nothing"]).code, Some(8));
}

#[test]
fn a_sessions_id_means_its_log() {
    let place = TestHome::new();
    place.write("data/session-state/0199-a/events.jsonl", log(&[user("a", None)]));
    let ran = place.run(&["inspect", "0199-a", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["entries"], json!(["a"]));
    assert_eq!(place.run(&["check", "0199-a"]).code, Some(0));
}

#[test]
fn check_says_what_is_wrong_and_ends_with_5() {
    let place = TestHome::new();
    let lines = [user("a", None), "junk".to_owned(), user("b", Some("gone"))];
    let path = place.write("log.jsonl", log(&lines) + "{\"type\":\"mess");
    let ran = run_on(&place, &path, &["check"]);
    assert_eq!(ran.code, Some(5));
    let expected = "line 3: it is not JSON (at its byte 0): it is skipped\n\
                    line 4: entry b has the parent gone, which is not in the file: it is a root\n\
                    line 5: the last line was cut off after 13 bytes\n";
    assert_eq!(ran.stdout, expected);
    assert!(ran.stderr.ends_with("log.jsonl: 3 things are wrong\n"), "{}", ran.stderr);

    let seen = inspected(&place, &path, &[]);
    let kinds: Vec<&Value> = seen["damage"].as_array().unwrap().iter().map(|damage| &damage["kind"]).collect();
    assert_eq!(kinds, ["badLine", "orphan", "tornTail"]);
    let as_json = run_on(&place, &path, &["check", "--json"]);
    let as_json: Value = serde_json::from_str(&as_json.stdout).unwrap();
    assert_eq!((&as_json["entries"], &as_json["repaired"]), (&json!(2), &Value::Null));
    assert_eq!(as_json["damage"], seen["damage"]);
}

#[test]
fn repair_mends_a_copy_beside_the_log() {
    let place = TestHome::new();
    let path = place.write("log.jsonl", log(&[user("a", None), "junk".to_owned(), user("b", Some("a"))]) + "{\"ty");
    let ran = run_on(&place, &path, &["check", "--repair"]);
    assert_eq!(ran.code, Some(5), "the log itself is as damaged as before");
    let copy = place.path("log.repaired.jsonl");
    assert!(ran.stdout.ends_with(&format!("a repaired copy is in {}\n", copy.display())), "{}", ran.stdout);
    assert_eq!(std::fs::read_to_string(&copy).unwrap(), log(&[user("a", None), user("b", Some("a"))]));
    assert_eq!(run_on(&place, &copy, &["check"]).code, Some(0));

    let again = run_on(&place, &path, &["check", "--repair"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("exists already: move it away first"), "{}", again.stderr);
    let sound = place.write("sound.jsonl", log(&[user("a", None)]));
    assert_eq!(run_on(&place, &sound, &["check", "--repair"]).code, Some(0));
    assert!(!place.path("sound.repaired.jsonl").exists());
}
