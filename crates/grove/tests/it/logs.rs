//! `grove logs`: the stderr output of agents, with and without a host.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::Stdio;

use grove_agents::acp::shim_folder;
use grove_core::Session;

use crate::support::*;

/// The log of the agent of a session's chat.
fn log(place: &TestHome, session: &str, chat: &str) -> PathBuf {
    let folder = shim_folder(&place.data().join("agents"), &session.into(), &chat.into());
    let folder = folder.strip_prefix(place.path("")).unwrap().to_str().unwrap().to_owned();
    place.path(&format!("{folder}/stderr.log"))
}

/// The folder of a session of an earlier host, with its agent's log.
fn left_behind(place: &TestHome, session: &str, said: &str) {
    place.write(&format!("data/session-state/{session}/session.json"), "{}");
    let path = log(place, session, Session::MAIN_CHAT);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, said).unwrap();
}

#[test]
fn what_an_agent_said_is_printed_without_a_host() {
    let place = TestHome::new();
    left_behind(&place, "abc1", "one\ntwo \x1b[31mred\x1b[0m\x07\nthree\n");
    left_behind(&place, "abd2", "other");
    for session in ["abc1", "abc", "claude:/abc1"] {
        let ran = place.run(&["logs", session]);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
        assert_eq!(ran.stdout, "one\ntwo red\nthree\n", "nothing that steers the terminal");
    }
    assert_eq!(place.run(&["logs", "abc1", "--lines", "1"]).stdout, "three\n");
    assert_eq!(place.run(&["logs", "-n", "2", "abc1"]).stdout, "two red\nthree\n");
    assert_eq!(place.run(&["logs", "abd2"]).stdout, "other\n");
    assert!(!place.data().join("host.json").exists(), "no host was started for it");
}

#[test]
fn older_lines_come_before_newer_ones() {
    let place = TestHome::new();
    left_behind(&place, "s", "new\n");
    let newest = log(&place, "s", Session::MAIN_CHAT);
    fs::write(newest.with_file_name("stderr.old.log"), "old\n").unwrap();
    assert_eq!(place.run(&["logs", "s"]).stdout, "old\nnew\n");
}

#[test]
fn where_there_is_no_log_that_is_said() {
    let place = TestHome::new();
    let ran = place.run(&["logs", "nobody"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(8), ""));
    assert!(ran.stderr.contains("there is no session \"nobody\""), "{}", ran.stderr);
    assert!(!place.data().exists());

    left_behind(&place, "silent", "");
    let ran = place.run(&["logs", "silent"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("has written nothing to stderr"), "{}", ran.stderr);
    let ran = place.run(&["logs", "silent", "--chat", "other"]);
    assert!(ran.stderr.contains("has no log"), "{}", ran.stderr);
    left_behind(&place, "silent2", "");
    let ran = place.run(&["logs", "sil"]);
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("several sessions"), "{}", ran.stderr);
}

#[tokio::test]
async fn a_host_that_runs_knows_its_sessions_before_they_have_a_folder() {
    let host = Host::start();
    host.client_with_session("a").await;
    let ran = host.place.run(&["logs", S]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    assert!(ran.stderr.contains("not a separate program"), "{}", ran.stderr);
    assert_eq!(host.place.run(&["logs", "other"]).code, Some(8));
}

#[test]
fn a_log_can_be_followed() {
    let place = TestHome::new();
    left_behind(&place, "s", "before\nhalf ");
    let mut command = place.grove(&["logs", "--follow", "--data-dir"]);
    let mut child = command.arg(place.data()).arg("s").stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "before");
    let path = log(&place, "s", Session::MAIN_CHAT);
    let mut file = OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(b"whole\nlast").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "half whole");
    file.write_all(b" of it\n").unwrap();
    fs::rename(&path, path.with_file_name("stderr.old.log")).unwrap();
    fs::write(&path, "of the next\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "last of it");
    assert_eq!(lines.next().unwrap().unwrap(), "of the next");
    child.kill().unwrap();
    child.wait().unwrap();
}
