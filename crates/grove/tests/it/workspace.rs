//! `grove plan`, `files` and `checkpoints`

use serde_json::{Value, json};

use crate::run::script;
use crate::sessions::asked;
use crate::support::*;

async fn host() -> Host {
    let host = Host::start();
    drop(host.client_with_session("maker").await);
    host
}

fn done(place: &TestHome, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}: {}", ran.stdout);
    ran.stdout
}

/// Runs a command with these variables.
fn run_with(place: &TestHome, args: &[&str], variables: &[(&str, &str)]) -> CommandResult {
    let mut command = place.grove(args);
    command.arg("--data-dir").arg(place.data()).env("PATH", "/usr/bin:/bin").envs(variables.iter().copied());
    CommandResult::from(command.output().unwrap())
}

#[tokio::test]
async fn a_plan_is_printed_set_edited_and_deleted() {
    let host = host().await;
    let place = &host.place;
    let ran = place.run(&["plan", "s"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(8), ""));
    assert!(ran.stderr.contains("s has no plan"), "{}", ran.stderr);
    assert_eq!(asked(place, &["plan", "s", "--json"]), json!({"session": S, "text": null}));
    let file = place.home().join("plan.md");
    std::fs::write(&file, "# All\nof it").unwrap();
    assert_eq!(done(place, &["plan", "s", "--set", file.to_str().unwrap()]), "saved the plan\n");
    for protocol in ["ahp", "v1"] {
        assert_eq!(done(place, &["plan", "s", "--protocol", protocol]), "# All\nof it", "byte for byte");
    }
    let edited = run_with(place, &["plan", "s", "--edit"], &[("EDITOR", "sed -i s/All/More/")]);
    assert_eq!((edited.code, edited.stdout.as_str()), (Some(0), "saved the plan\n"), "{}", edited.stderr);
    assert_eq!(done(place, &["plan", "s"]), "# More\nof it");
    let edited = run_with(place, &["plan", "s", "--edit"], &[("VISUAL", "true"), ("EDITOR", "false")]);
    assert_eq!((edited.code, edited.stdout.as_str()), (Some(0), "the plan has not changed\n"), "{}", edited.stderr);
    let edited = run_with(place, &["plan", "s", "--edit"], &[("EDITOR", "false")]);
    assert_eq!(edited.code, Some(1));
    assert!(edited.stderr.contains("the plan has not changed"), "{}", edited.stderr);
    assert_eq!(asked(place, &["plan", "s", "--delete", "--json"]), json!({"session": S, "changed": true}));
    assert_eq!(done(place, &["plan", "s", "--delete"]), "there was no plan\n");
    assert_eq!(place.run(&["plan", "nobody"]).code, Some(8));
}

#[tokio::test]
async fn files_are_put_listed_printed_and_removed() {
    let host = host().await;
    let place = &host.place;
    let empty = place.run(&["files", "s"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
    assert_eq!(empty.stderr, "no files: `grove files s put FILE` adds one\n");
    let file = place.home().join("b.bin");
    let bytes = [0u8, 159, 255, 10];
    std::fs::write(&file, bytes).unwrap();
    let file = file.to_str().unwrap();
    assert_eq!(done(place, &["files", "s", "put", file]), "b.bin has 4 bytes\n");
    assert_eq!(done(place, &["files", "s", "put", file, "a/c.bin", "--research"]), "a/c.bin has 4 bytes\n");
    let listed = done(place, &["files", "s", "ls"]);
    assert!(listed.starts_with("NAME   BYTES  AGE\nb.bin  4      "), "{listed}");
    for protocol in ["ahp", "v1"] {
        let listed = asked(place, &["files", "s", "--protocol", protocol, "--research", "--json"]);
        assert_eq!((&listed["files"][0]["name"], &listed["more"]), (&json!("a/c.bin"), &json!(false)));
    }
    let got = asked(place, &["files", "s", "get", "b.bin", "--json"]);
    assert_eq!(got, json!({"session": S, "name": "b.bin", "data": "AJ//Cg==", "encoding": "base64"}));
    let stored = place.data().join("session-state/s/files/b.bin");
    assert_eq!(std::fs::read(stored).unwrap(), bytes);
    let refused = place.run(&["files", "s", "put", file, "../x"]);
    assert_eq!((refused.code, refused.stderr.contains("cannot be the name")), (Some(1), true), "{}", refused.stderr);
    assert_eq!(done(place, &["files", "s", "rm", "b.bin"]), "deleted b.bin\n");
    assert_eq!(place.run(&["files", "s", "rm", "b.bin"]).code, Some(8));
    assert_eq!(place.run(&["files", "s", "get", "b.bin"]).code, Some(8));
}

#[tokio::test]
async fn checkpoints_are_listed_and_printed_and_the_todo_list_is_that_of_the_database() {
    let host = TestHome::new().serve(&["--compact-keep", "5"]);
    let mut client = host.client_with_session("maker").await;
    let place = &host.place;
    let empty = place.run(&["checkpoints", "s"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
    assert!(empty.stderr.starts_with("no checkpoints in s: "), "{}", empty.stderr);
    for text in ["one", "two"] {
        done(place, &["send", "--wait", "s", &script(&json!([{"say": text}]))]);
    }
    let compacted = asked(place, &["compact", "s", "--json"]);
    let listed = asked(place, &["checkpoints", "s", "--json"]);
    assert_eq!(listed["checkpoints"].as_array().unwrap().len(), 1, "{listed}");
    assert!(done(place, &["checkpoints", "s"]).starts_with("NUMBER  TITLE"));
    assert_eq!(done(place, &["checkpoints", "s", "1"]), compacted["summary"].as_str().unwrap());
    assert_eq!(place.run(&["checkpoints", "s", "2"]).code, Some(8));
    let todos: Value = client.call("x-grove/workspace/todos", json!({"session": S})).await.unwrap();
    assert_eq!(todos, json!({"todos": []}));
    let manifest: Value = client.call("x-grove/workspace/manifest", json!({"session": S})).await.unwrap();
    assert_eq!(manifest["path"], json!(place.data().join("session-state/s")));
}
