//! Hosts in the background: found or started, and stopped when they are idle.

use std::collections::HashSet;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use grove_wire::v1::TurnState;
use rustix::process::{Pid, Signal, getsid, kill_process};
use serde_json::{Value, json};

use crate::support::*;

fn pid_of(said: &Value) -> Pid {
    Pid::from_raw(said["pid"].as_i64().unwrap().try_into().unwrap()).unwrap()
}

#[test]
fn start_leaves_a_host_behind_and_finds_the_one_that_is_there() {
    let background = Background(TestHome::new());
    let first = background.start(&[]);
    assert_eq!(first["started"], true);
    let second = background.start(&[]);
    assert_eq!((&second["started"], &second["pid"]), (&json!(false), &first["pid"]));
    for key in ["http", "ws"] {
        assert_eq!(first[key], second[key]);
    }
    // Each start gives a code of its own, and never the token.
    let token = std::fs::read_to_string(background.0.data().join("token")).unwrap();
    let pages = [&first, &second].map(|said| said["page"].as_str().unwrap());
    assert!(pages.iter().all(|page| page.contains("/#code=gc") && !page.contains(token.trim())), "{pages:?}");
    assert_ne!(pages[0], pages[1]);
    let ran = background.0.run(&["start"]);
    assert!(ran.stdout.contains("running already"), "{}", ran.stdout);
    let status: Value = serde_json::from_str(&background.0.run(&["status", "--json"]).stdout).unwrap();
    let page = format!("{}/", first["http"].as_str().unwrap());
    assert_eq!((&status["pid"], &status["page"]), (&first["pid"], &json!(page)));
    assert_eq!(background.0.run(&["stop"]).code, Some(0));
    assert_eq!(background.0.run(&["status"]).code, Some(3));
    let ran = background.0.run(&["start"]);
    assert!(ran.stdout.contains("started process"), "{}", ran.stdout);
}

#[test]
fn a_host_in_the_foreground_is_found_as_well() {
    let host = Host::start();
    let ran = host.place.run(&["start", "--json"]);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&said["started"], &said["pid"]), (&json!(false), &json!(host.pid())));
    assert!(!host.place.data().join("host.log").exists());
}

#[test]
fn a_host_in_the_background_holds_nothing_of_whoever_started_it() {
    let background = Background(TestHome::new());
    let place = &background.0;
    // A file that a careless shell leaves open for all children.
    let mut command = Command::new("/bin/sh");
    let script = format!("exec 9>{}; exec \"$0\" \"$@\"", place.path("left-open").display());
    command.args(["-c", &script, env!("CARGO_BIN_EXE_grove"), "start", "--json", "--data-dir"]).arg(place.data());
    command.env_clear().env("HOME", place.home()).env("GROVE_LISTEN", "127.0.0.1:0");
    command.current_dir(place.home()).stdin(Stdio::null());
    // This waits until no process holds its pipes.
    let ran = CommandResult::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let pid = pid_of(&serde_json::from_str(&ran.stdout).unwrap());
    assert_eq!(getsid(Some(pid)).unwrap(), pid, "a session of its own");
    if cfg!(target_os = "linux") {
        let process = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let link = |name: &str| std::fs::read_link(process.join(name)).unwrap();
        assert_eq!(link("fd/0"), PathBuf::from("/dev/null"));
        let log = place.data().join("host.log");
        assert_eq!((link("fd/1"), link("fd/2")), (log.clone(), log));
        assert_eq!(link("cwd"), place.data());
        let open: Vec<_> = std::fs::read_dir(process.join("fd"))
            .unwrap()
            .filter_map(|file| std::fs::read_link(file.unwrap().path()).ok())
            .collect();
        assert!(!open.contains(&place.path("left-open")), "{open:?}");
    }
}

#[tokio::test]
async fn the_log_is_in_the_data_folder_for_its_owner_alone_and_without_the_token() {
    let background = Background(TestHome::new());
    background.start(&[]);
    let mut client = background.client("a").await;
    client.ready_session(S).await;
    client.run_script(S, "t", json!([{"say": "xyzzy"}])).await;
    let log = background.log();
    assert!(log.contains("Grove is running at"), "{log}");
    let token = std::fs::read_to_string(background.0.data().join("token")).unwrap();
    assert!(!log.contains(&token) && !log.contains("xyzzy"), "{log}");
    for file in std::fs::read_dir(background.0.data()).unwrap() {
        let file = file.unwrap();
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if file.path().is_dir() { 0o700 } else { 0o600 }, "{}", file.path().display());
    }
}

#[test]
fn of_many_who_start_a_host_at_once_all_find_the_same() {
    let background = Background(TestHome::new());
    let starters: Vec<_> = (0..6)
        .map(|_| {
            let mut command = background.0.grove(&["start", "--json"]);
            command.arg("--data-dir").arg(background.0.data());
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    let said: Vec<Value> = starters
        .into_iter()
        .map(|starter| {
            let ran = CommandResult::from(starter.wait_with_output().unwrap());
            assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
            serde_json::from_str(&ran.stdout).unwrap()
        })
        .collect();
    let hosts: HashSet<i64> = said.iter().map(|said| said["pid"].as_i64().unwrap()).collect();
    assert_eq!(hosts.len(), 1, "{said:?}");
    assert_eq!(said.iter().filter(|said| said["started"] == true).count(), 1, "{said:?}");
    assert!(!background.log().contains("in use"), "one was started, and no more: {}", background.log());
}

#[test]
fn what_a_killed_host_left_behind_does_not_hinder_the_next() {
    let background = Background(TestHome::new());
    let first = background.start(&[]);
    kill_process(pid_of(&first), Signal::KILL).unwrap();
    background.until_gone();
    assert!(background.0.data().join("host.json").exists(), "it could not tidy up");
    let second = background.start(&[]);
    assert_eq!(second["started"], true);
    assert_ne!(first["pid"], second["pid"]);
}

#[test]
fn a_host_that_cannot_start_is_an_error_with_the_end_of_its_log() {
    let place = TestHome::new();
    place.write("data/token", "short");
    place.write("data/host.log", "of an earlier host\n");
    let ran = place.run(&["start"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    let log = place.data().join("host.log");
    for words in ["could not be started", log.to_str().unwrap(), "data/token contains no token"] {
        assert!(ran.stderr.contains(words), "no {words} in {}", ran.stderr);
    }
    assert!(!ran.stderr.contains("earlier"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("is not ready"), "it did not wait for what cannot come: {}", ran.stderr);
}

#[test]
fn a_log_that_has_grown_large_is_put_aside() {
    let background = Background(TestHome::new());
    let large = vec![b'\n'; (8 << 20) + 1];
    background.0.write("data/host.log", &large);
    background.0.write("data/host.log.old", "older");
    background.start(&[]);
    assert!(background.log().starts_with("Grove is running"), "a new one");
    assert_eq!(background.0.data().join("host.log.old").metadata().unwrap().len(), large.len() as u64);
    assert_eq!(background.0.run(&["stop"]).code, Some(0));
    background.start(&[]);
    assert_eq!(background.log().matches("Grove is running").count(), 2, "a small one is gone on with");
}

#[test]
fn the_settings_and_a_relative_data_folder_reach_the_host() {
    let background = Background(TestHome::new());
    let place = &background.0;
    let config = place.write("here/my.toml", "listen = \"127.0.0.1:0\"\nidle-exit = 0");
    let mut command = place.grove(&["start", "--data-dir", "../data", "--config", "my.toml"]);
    let ran = CommandResult::from(command.current_dir(config.parent().unwrap()).output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(place.run(&["status"]).code, Some(0));
}

#[tokio::test]
async fn a_host_in_the_background_ends_when_nobody_needs_it() {
    let background = Background(TestHome::new());
    background.start(&["--idle-exit", "1"]);
    let mut client = background.client("a").await;
    client.ready_session(S).await;
    // An unused host would exit meanwhile, but this one has a client.
    assert_eq!(TestHome::new().serve(&["--idle-exit", "1"]).exit().code(), Some(0));
    client.settle().await;
    // A turn continues without clients.
    client.script(S, "t", json!([{"sleepMs": 2_000}, {"say": "x"}])).await;
    client.until(|client| client.session(S).active_turn.is_some()).await;
    drop(client);
    background.until_gone();
    assert!(background.log().contains("idle-exit"), "{}", background.log());
    assert!(!background.0.data().join("host.json").exists());

    let again = background.start(&[]);
    assert_eq!(again["started"], true);
    let mut client = background.client("a").await;
    client.subscribe(S).await.unwrap();
    let turns = &client.session(S).turns;
    assert_eq!((turns.len(), turns[0].state), (1, TurnState::Complete), "the turn was not cut off");
}

#[test]
fn a_host_in_the_foreground_stays_unless_a_flag_says_otherwise() {
    let place = TestHome::new();
    let mut command = place.serve_command(&[]);
    command.env("GROVE_IDLE_EXIT", "1");
    let host = place.start(command);
    // Other hosts that started later have exited twice meanwhile.
    for _ in 0..2 {
        assert_eq!(TestHome::new().serve(&["--idle-exit", "1"]).exit().code(), Some(0));
    }
    assert_eq!(host.place.run(&["status"]).code, Some(0));
}
