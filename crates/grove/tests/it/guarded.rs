//! The data folder: locked for one host, private, and checked for missing parts.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use grove_testkit::ConnectionEnd;
use serde_json::{Value, json};

use crate::hosts::certificate;
use crate::support::*;

/// A user that is not the one who runs the tests.
const OTHER_USER: u32 = 54_321;

/// Gives a file to another user. Only root can: other users check nothing here, and say so.
#[allow(clippy::print_stderr, reason = "the person who runs the tests should know")]
fn give_away(path: &Path) -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        chown(path, Some(OTHER_USER), None).unwrap();
    } else {
        eprintln!("not checked: only root can give {} to another user", path.display());
    }
    is_root
}

fn take_back(path: &Path) {
    chown(path, Some(rustix::process::geteuid().as_raw()), None).unwrap();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn deleting_the_lock_file_lets_no_second_host_in() {
    let host = Host::start();
    fs::remove_file(host.place.data().join("lock")).unwrap();
    let second = host.place.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(second.code, Some(4), "{second:?}");
    assert!(second.stderr.contains("is in use by another host"), "{second:?}");
    let place = host.stop();
    let next = place.serve(&[]);
    assert_eq!(next.place.run(&["status"]).code, Some(0));
}

#[test]
fn a_configuration_file_that_is_named_must_be_there() {
    let place = TestHome::new();
    for args in [&["config", "show"][..], &["serve"], &["ls"]] {
        let ran = place.run(&[args, &["--config", "missing.toml"]].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("missing.toml does not exist"), "{ran:?}");
    }
    let new = place.path("new.toml");
    let new = new.to_str().unwrap();
    let ran = place.run(&["agents", "add", "mine", "--config", new, "--", "/bin/true"]);
    assert_eq!(ran.code, Some(0), "a command that writes the file may make it: {ran:?}");
    assert_eq!(place.run(&["config", "show", "--config", new]).code, Some(0));
}

#[test]
fn a_data_folder_that_others_may_write_to_is_refused() {
    let place = TestHome::new();
    fs::create_dir(place.data()).unwrap();
    set_mode(&place.data(), 0o777);
    let ran = place.run(&["serve"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("chmod go-w"), "{ran:?}");
    assert!(!place.data().join("token").exists(), "nothing is written there");
    set_mode(&place.data(), 0o700);
    fs::create_dir(place.data().join("session-state")).unwrap();
    set_mode(&place.data().join("session-state"), 0o770);
    assert!(place.run(&["serve"]).stderr.contains("session-state"));
    set_mode(&place.data().join("session-state"), 0o700);
    assert_eq!(place.serve(&[]).place.run(&["status"]).code, Some(0));
}

#[test]
fn what_belongs_to_another_user_in_the_data_folder_is_refused() {
    let place = TestHome::new();
    fs::create_dir(place.data()).unwrap();
    set_mode(&place.data(), 0o700);
    if !give_away(&place.data()) {
        return;
    }
    // Commands that look for a host there would trust the address and the token that they find.
    for args in [&["serve"][..], &["status"], &["ls"], &["run", "hello"]] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(1), "{args:?}: {ran:?}");
        assert!(ran.stderr.contains("belongs to another user (uid 54321)"), "{args:?}: {ran:?}");
    }
    assert_eq!(fs::read_dir(place.data()).unwrap().count(), 0, "nothing is written there");
    take_back(&place.data());
    place.serve(&[]).stop();
    for name in ["journal", "token"] {
        let path = place.data().join(name);
        give_away(&path);
        let ran = place.run(&["serve"]);
        assert_eq!(ran.code, Some(1), "{name}: {ran:?}");
        assert!(ran.stderr.contains(name) && ran.stderr.contains("belongs to another user"), "{name}: {ran:?}");
        take_back(&path);
    }
    assert_eq!(place.serve(&[]).place.run(&["status"]).code, Some(0));
}

#[test]
fn a_tls_key_that_others_may_write_to_or_that_belongs_to_another_is_refused() {
    let place = TestHome::new();
    let (cert, key, _) = certificate(&place, "localhost");
    let args = ["--tls-cert", cert.to_str().unwrap(), "--tls-key", key.to_str().unwrap()];
    let refused = |words: &str| {
        let ran = place.run(&[&["serve"][..], &args].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains(key.to_str().unwrap()) && ran.stderr.contains(words), "{ran:?}");
        assert!(!place.data().join("host.json").exists(), "no host is announced");
    };
    for mode in [0o602, 0o666] {
        set_mode(&key, mode);
        refused("other users may write to");
    }
    set_mode(&key, 0o600);
    if give_away(&key) {
        refused("belongs to another user");
        take_back(&key);
    }
    // One that others may read is used, and a person is told.
    set_mode(&key, 0o644);
    let log = place.serve(&args).stop_and_read_log();
    assert!(log.contains("every user of this machine may read the TLS key"), "{log}");
    set_mode(&key, 0o600);
    let log = place.serve(&args).stop_and_read_log();
    assert!(!log.contains("may read the TLS key"), "{log}");
}

#[test]
fn a_token_that_is_a_link_is_refused_and_one_that_others_could_read_is_told() {
    let place = TestHome::new();
    let planted = place.write("planted", "");
    fs::create_dir(place.data()).unwrap();
    set_mode(&place.data(), 0o700);
    symlink(&planted, place.data().join("token")).unwrap();
    let ran = place.run(&["serve"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("is a symbolic link"), "{ran:?}");
    assert_eq!(fs::read_to_string(&planted).unwrap(), "", "nothing went through it");
    fs::remove_file(place.data().join("token")).unwrap();
    // A planted link in place of the file that is renamed later.
    symlink(&planted, place.data().join("token.new")).unwrap();
    let host = place.serve(&[]);
    assert_eq!(fs::read_to_string(&planted).unwrap(), "", "nothing went through it");
    let place = host.stop();
    set_mode(&place.data().join("token"), 0o644);
    let log = place.serve(&[]).stop_and_read_log();
    assert!(log.contains("other users could read the token"), "{log}");
    assert_eq!(fs::metadata(place.data().join("token")).unwrap().permissions().mode() & 0o777, 0o600);
    set_mode(&place.data().join("token"), 0o666);
    assert!(place.run(&["serve"]).stderr.contains("other users may write to"));
}

#[test]
fn a_configuration_file_that_everybody_may_write_to_is_refused() {
    let place = TestHome::new();
    let config = place.write("my.toml", "idle-exit = 0");
    set_mode(&config, 0o646);
    let ran = place.run(&["config", "show", "--config", config.to_str().unwrap()]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("other users may write to"), "{ran:?}");
}

#[tokio::test]
async fn prompts_are_refused_when_the_data_folder_was_removed() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t1", json!([{"say": "x"}])).await;
    remove(&host.place.data()).await;
    let refused = client.script(S, "t2", json!([{"say": "y"}])).await;
    let reason = client.answer_to(refused).await.rejection_reason.expect("nothing may be confirmed");
    assert!(reason.contains("was removed or replaced while the host runs"), "{reason}");
}

/// Removes a folder into which the host may write something meanwhile.
async fn remove(folder: &Path) {
    let deadline = Deadline::new("the folder cannot be removed");
    while fs::remove_dir_all(folder).is_err() && folder.exists() {
        deadline.check();
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_host_whose_data_folder_or_journal_was_deleted_tells_its_clients_and_ends() {
    for deleted in ["", "journal"] {
        let mut host = Host::start();
        let mut client = host.client_with_session("a").await;
        client.run_script(S, "t1", json!([{"say": "x"}])).await;
        // A turn that cannot end: nothing of it can be stored any more.
        client.script(S, "t2", json!([{"sleepMs": 600_000}])).await;
        remove(&host.place.data().join(deleted)).await;
        let ended = client.until_end().await;
        let expected =
            ConnectionEnd::Closed { code: 1001, reason: "the host stops: its data folder was deleted".into() };
        assert_eq!(ended, expected);
        assert_eq!(host.exit().code(), Some(1));
        assert_eq!(
            host.place.data().exists(),
            !deleted.is_empty(),
            "nothing is written in the place of a deleted folder"
        );
        let log = fs::read_to_string(host.place.path("stderr")).unwrap();
        assert!(log.contains("was deleted while the host runs, and nothing can be stored any more"), "{log}");
        // The next one begins with what is left.
        let next = host.place.serve(&[]);
        assert_eq!(next.place.run(&["status"]).code, Some(0));
    }
}

#[tokio::test]
async fn a_host_whose_data_folder_was_moved_waits_for_it() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let away = host.place.path("away");
    fs::rename(host.place.data(), &away).unwrap();
    let refused = client.script(S, "t1", json!([{"say": "y"}])).await;
    let reason = client.answer_to(refused).await.rejection_reason.expect("nothing may be confirmed");
    assert!(reason.contains("was removed or replaced while the host runs"), "{reason}");
    // A host that is started now is independent of it.
    let other = host.place.serve_command(&[]);
    let other = host.place.start(other);
    assert_ne!(other.pid(), host.pid());
    let still = client.script(S, "t2", json!([{"say": "y"}])).await;
    assert!(client.answer_to(still).await.rejection_reason.is_some());
    other.stop();
    remove(&host.place.data()).await;
    fs::rename(&away, host.place.data()).unwrap();
    client.run_script(S, "t3", json!([{"say": "back"}])).await;
    assert_eq!(host.place.run(&["status"]).code, Some(0));
}

#[tokio::test]
async fn status_and_log_say_that_the_journal_is_gone() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    let (journal, away) = (host.place.data().join("journal"), host.place.path("away"));
    fs::rename(&journal, &away).unwrap();
    let status = host.place.run(&["status"]);
    assert!(status.stdout.contains("PROBLEM") && status.stdout.contains("was removed or replaced"), "{status:?}");
    let status: Value = serde_json::from_str(&host.place.run(&["status", "--json"]).stdout).unwrap();
    assert!(status["storageProblem"].is_string(), "{status}");
    let refused = client.script(S, "t1", json!([{"say": "y"}])).await;
    assert!(client.answer_to(refused).await.rejection_reason.is_some());
    fs::rename(&away, &journal).unwrap();
    client.run_script(S, "t2", json!([{"say": "back"}])).await;
    let status: Value = serde_json::from_str(&host.place.run(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["storageProblem"], Value::Null);
    assert!(host.stop_and_read_log().contains("was removed or replaced"));
}

#[tokio::test]
async fn check_and_status_tell_what_was_restored_and_what_is_lost() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    for turn in ["t1", "t2"] {
        client.run_script(S, turn, json!([{"say": turn}])).await;
    }
    let place = host.stop();
    assert_eq!(place.run(&["check"]).code, Some(0));
    let log = place.data().join("session-state/s/events.jsonl");
    // A flipped bit that loses a turn: the type of its end is unknown.
    let whole = fs::read(&log).unwrap();
    let text = String::from_utf8(whole.clone()).unwrap();
    fs::write(&log, text.replacen("grove.turnEnd", "grove.turnEne", 1)).unwrap();
    for args in [&["check", "s"][..], &["check"]] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(5), "{ran:?}");
        assert!(ran.stdout.contains("it had 2 turns and has 1 turn"), "{ran:?}");
    }
    // The log is missing, and the journal still has it.
    fs::remove_file(&log).unwrap();
    assert!(place.run(&["check"]).stdout.contains("is missing, with 2 turns"));
    let host = place.serve(&[]);
    let status = host.place.run(&["status"]).stdout;
    assert!(status.contains("2 turns are restored from the journal, none is lost"), "{status}");
    assert_eq!(host.snapshot(S).await.turns.len(), 2);
    let log_of_host = host.stop_and_read_log();
    assert!(log_of_host.contains("2 turns are restored"), "{log_of_host}");
    // Log and journal are missing.
    fs::remove_file(&log).unwrap();
    fs::remove_dir_all(place.data().join("journal")).unwrap();
    let host = place.serve(&[]);
    let status: Value = serde_json::from_str(&host.place.run(&["status", "--json"]).stdout).unwrap();
    let damage = status["damage"].to_string();
    assert!(damage.contains("2 turns are lost") && damage.contains("newest segment"), "{damage}");
    let place = host.stop();
    let ran = place.run(&["check", "--json"]);
    assert_eq!(ran.code, Some(5));
    let checked: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(checked["foundBefore"].to_string().contains("2 turns are lost"), "it is still known: {checked}");
    fs::remove_file(place.data().join("damage.jsonl")).unwrap();
    assert_eq!(place.run(&["check"]).code, Some(0));
}

#[test]
fn check_expects_no_end_records_of_turns_that_another_program_wrote() {
    let place = TestHome::new();
    let message = |id: &str, parent: Option<&str>, role: &str| {
        json!({"type": "message", "id": id, "parentId": parent, "timestamp": "2026-01-02T03:04:05.000Z",
            "message": {"role": role, "content": [{"type": "text", "text": id}]}})
    };
    let lines = [
        json!({"type": "session", "version": 3, "id": "elsewhere", "timestamp": "2026-01-02T03:04:05.000Z", "cwd": "/"}),
        message("u1", None, "user"),
        message("a1", Some("u1"), "assistant"),
        message("u2", Some("a1"), "user"),
        message("a2", Some("u2"), "assistant"),
    ];
    let log: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let file = place.write("elsewhere.jsonl", &log);
    let host = place.serve(&[]);
    let imported = host.place.run(&["import", "--new-id", "--json", file.to_str().unwrap()]);
    let imported: Value = serde_json::from_str(&imported.stdout).unwrap();
    let id = imported["session"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let moved = host.place.run(&["goto", &id, "a1"]);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    let checked = host.place.run(&["check", &id]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
}
