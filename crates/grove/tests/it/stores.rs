//! Stores: `grove migrate`, `grove fork --to`, `grove run --store`, `--log-dir`, and their configuration.

use std::time::Instant;

use serde_json::{Value, json};

use crate::run::script;
use crate::support::{Host, S, TestHome};

/// A place with a store `archive` beside the data folder.
fn place_with_archive() -> TestHome {
    let place = TestHome::new();
    std::fs::create_dir(place.path("archive")).unwrap();
    configure(&place);
    place
}

fn configure(place: &TestHome) {
    let text = format!("[stores.archive]\nfolder = {:?}\n", place.path("archive"));
    place.write("home/.config/grove/grove.toml", text);
}

/// The output of a command that must succeed.
fn told(place: &TestHome, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

fn asked(place: &TestHome, args: &[&str]) -> Value {
    serde_json::from_str(&told(place, args)).unwrap()
}

fn listed(place: &TestHome) -> Vec<String> {
    let list = asked(place, &["ls", "--all", "--json", "--no-start"]);
    let rows = list["sessions"].as_array().unwrap();
    rows.iter().map(|row| row["resource"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

async fn with_session(place: &TestHome, args: &[&str]) -> Host {
    let host = place.serve(args);
    let mut client = host.client_with_session("maker").await;
    client.run_script(S, "t1", json!([{"say": "one"}])).await;
    host
}

#[tokio::test]
async fn a_session_is_moved_and_forked_to_a_store_of_the_configuration() {
    let place = place_with_archive();
    let shown = told(&place, &["config", "show"]);
    assert!(shown.lines().any(|line| line.starts_with("stores ") && line.contains(r#"["archive"]"#)), "{shown}");
    let host = with_session(&place, &[]).await;
    let (local, archive) = (place.data().join("session-state"), place.path("archive"));

    let fork = asked(&place, &["fork", "s", "--to", "archive", "--json"]);
    let fork = fork["session"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    assert!(told(&place, &["tree", &fork]).contains("one"));
    assert!(archive.join(&fork).join("events.jsonl").is_file() && !local.join(&fork).exists());
    let rows = || asked(&place, &["ls", "--json"])["sessions"].as_array().unwrap().clone();
    let store_of = |id: &str| {
        let row = rows().into_iter().find(|row| row["resource"].as_str().unwrap().ends_with(&format!("/{id}")));
        row.unwrap()["_meta"]["store"].clone()
    };
    assert_eq!((store_of("s"), store_of(&fork)), (json!("local"), json!("archive")));

    for protocol in ["ahp", "v1"] {
        let moved = told(&place, &["migrate", "s", "--to", "archive", "--protocol", protocol]);
        assert!(moved.starts_with("session s is now stored in archive: "), "{moved}");
        assert!(archive.join("s/events.jsonl").is_file() && !local.join("s").exists());
        assert_eq!(store_of("s"), json!("archive"));
        assert_eq!(told(&place, &["migrate", "s", "--to", "archive"]), "session s is already stored in archive\n");
        let back = asked(&place, &["migrate", "s", "--to", "local", "--json"]);
        assert_eq!((&back["session"], &back["store"]), (&json!(S), &json!("local")));
        assert!(local.join("s/events.jsonl").is_file() && !archive.join("s").exists());
    }
    let wrong = place.run(&["migrate", "s", "--to", "nowhere"]);
    assert_eq!(wrong.code, Some(1));
    assert!(wrong.stderr.contains("there are archive, local, memory"), "{}", wrong.stderr);
    told(&place, &["migrate", "s", "--to", "archive"]);
    told(&place, &["send", "--wait", "s", &script(&json!([{"say": "two"}]))]);
    told(&place, &["check", "s"]);

    // It is listed after a restart, but not without the store.
    let place = host.stop();
    let host = place.serve(&[]);
    assert_eq!(listed(&place).len(), 2);
    assert!(told(&place, &["tree", "s"]).contains("two"));
    let place = host.stop();
    std::fs::remove_file(place.path("home/.config/grove/grove.toml")).unwrap();
    let host = place.serve(&[]);
    assert_eq!(listed(&place), [""; 0]);
    let checked = place.run(&["check", "s"]);
    assert_eq!(checked.code, Some(1));
    assert!(checked.stderr.contains("store archive") && checked.stderr.contains("not configured any more"));
    // The error for it explains why; the error for an unknown session does not.
    for command in ["attach", "send", "cancel", "tree", "plan", "checkpoints", "rm"] {
        let text = (command == "send").then_some("hello");
        for (session, reason) in
            [("s", "not configured any more"), ("scripted:/s", "store archive"), ("q", "`grove ls --all`")]
        {
            for protocol in ["ahp", "v1"] {
                let mut args = vec![command, "--protocol", protocol, session];
                args.extend(text);
                let ran = place.run(&args);
                assert_eq!(ran.code, Some(8), "{args:?}: {}", ran.stderr);
                assert!(ran.stderr.contains(reason), "{args:?}: {}", ran.stderr);
            }
        }
    }
    let mut client = host.client("late").await;
    let missing = client.subscribe(S).await.unwrap_err().message;
    assert!(missing.contains("store archive") && missing.contains("not configured any more"), "{missing}");

    // With the store, everything is listed again.
    let place = host.stop();
    configure(&place);
    let _host = place.serve(&[]);
    assert_eq!(listed(&place).len(), 2);
}

#[tokio::test]
async fn a_new_session_lies_where_it_says_else_in_the_folder_for_logs_else_in_the_store_of_new_ones() {
    let place = place_with_archive();
    let hello = script(&json!([{"say": "hello"}]));
    let logs = place.path("logs/of/sessions");
    let host = place.serve(&["--store", "archive", "--log-dir", logs.to_str().unwrap()]);
    let lies_in = |folder: &str| -> usize {
        let entries = std::fs::read_dir(place.path(folder)).map(Iterator::count);
        entries.unwrap_or(0)
    };
    told(&place, &["run", &hello]);
    assert_eq!((lies_in("logs/of/sessions"), lies_in("archive"), lies_in("data/session-state")), (1, 0, 0));
    told(&place, &["run", "--store", "local", &hello]);
    assert_eq!((lies_in("logs/of/sessions"), lies_in("archive"), lies_in("data/session-state")), (1, 0, 1));
    told(&place, &["run", "--store", "memory", &hello]);
    assert_eq!((lies_in("logs/of/sessions"), lies_in("archive"), lies_in("data/session-state")), (1, 0, 1));
    assert_eq!(listed(&place).len(), 3);
    let place = host.stop();
    let host = place.serve(&["--store", "archive"]);
    assert_eq!(listed(&place).len(), 1, "neither sessions in memory nor those in the folder for logs");
    told(&place, &["run", &hello]);
    assert_eq!(std::fs::read_dir(place.path("archive")).unwrap().count(), 1);
    drop(host);
    for (args, words) in [
        (vec!["serve", "--store", "nowhere"], "there are archive, local, memory"),
        (vec!["serve", "--log-dir", place.path("archive").to_str().unwrap()], "two stores, log-dir and archive"),
    ] {
        let ran = place.run(&args);
        assert_ne!(ran.code, Some(0), "{args:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}

#[tokio::test]
async fn a_store_whose_folder_is_missing_costs_its_own_sessions_and_is_said_once() {
    let place = place_with_archive();
    let host = with_session(&place, &[]).await;
    told(&place, &["fork", "s"]);
    told(&place, &["migrate", "s", "--to", "archive"]);
    let place = host.stop();
    std::fs::rename(place.path("archive"), place.path("unmounted")).unwrap();
    let host = place.serve(&[]);
    assert_eq!(listed(&place).len(), 1);
    let log = std::fs::read_to_string(place.path("stderr")).unwrap();
    assert_eq!(log.matches("the store archive cannot be reached").count(), 1, "{log}");
    let refused = place.run(&["run", "--store", "archive", &script(&json!([{"say": "hello"}]))]);
    assert!(refused.code != Some(0) && refused.stderr.contains("cannot be reached"), "{}", refused.stderr);
    assert!(!place.path("archive").exists());
    let place = host.stop();
    std::fs::rename(place.path("unmounted"), place.path("archive")).unwrap();
    let _host = place.serve(&[]);
    assert_eq!(listed(&place).len(), 2);
}

#[tokio::test]
async fn a_session_with_a_link_in_its_folder_stays_where_it_is() {
    let place = place_with_archive();
    let host = with_session(&place, &[]).await;
    told(&place, &["tree", "s"]);
    let folder = place.data().join("session-state/s");
    std::fs::create_dir_all(folder.join("files")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("files/link")).unwrap();
    let refused = place.run(&["migrate", "s", "--to", "archive"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("files/link"), "{}", refused.stderr);
    assert_eq!(std::fs::read_dir(place.path("archive")).unwrap().count(), 0);
    std::fs::remove_file(folder.join("files/link")).unwrap();
    told(&place, &["migrate", "s", "--to", "archive"]);
    drop(host);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_and_kill_9_at_any_moment_leave_one_whole_session() {
    let place = place_with_archive();
    let mut host = place.serve(&[]);
    let mut client = host.client_with_session("a").await;
    // Long enough that some kills happen during the copy.
    let long = "long ".repeat(40_000);
    for number in 0..10 {
        client.run_script(S, &format!("t{number}"), json!([{"say": long}])).await;
    }
    let turns = client.session(S).turns.clone();
    let began = Instant::now();
    client.call::<Value>("x-grove/migrate", json!({"session": S, "store": "archive"})).await.unwrap();
    let whole = began.elapsed();
    for round in 0..12 {
        let to = if place.path("archive/s").exists() { "local" } else { "archive" };
        let moving = client.call::<Value>("x-grove/migrate", json!({"session": S, "store": to}));
        let answered = tokio::time::timeout(whole * round / 10, moving).await;
        host = host.kill().serve(&[]);
        let here = |folder: &str| place.path(folder).exists();
        let lies = (here("data/session-state/s"), here("archive/s"));
        assert!(lies.0 != lies.1, "round {round}: {lies:?}");
        if let Ok(answered) = answered {
            answered.unwrap();
            assert_eq!(lies.1, to == "archive", "round {round}: what was answered holds");
        }
        for folder in ["data/session-state", "archive"] {
            let left = std::fs::read_dir(place.path(folder)).unwrap();
            let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).filter(|name| name != "s").collect();
            assert!(left.is_empty(), "round {round}: {left:?}");
        }
        client = host.subscriber(&format!("client {round}")).await;
        assert_eq!(client.session(S).turns, turns, "round {round}");
    }
    client.run_script(S, "last", json!([{"say": "last"}])).await;
    client.must_agree(S).await;
}
