//! Several hosts from one command line: one list, commands for each, and moving sessions between them.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};

use grove_wire::ahp::Method;
use serde_json::{Value, json};

use crate::ahp_support::CHAT;
use crate::run::script;
use crate::support::*;

/// The output of a command that must succeed.
fn told(place: &TestHome, args: &[&str]) -> String {
    let ran = place.run(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran.stdout
}

/// Adds a host to the list of a place.
fn know(place: &TestHome, name: &str, host: &Host) {
    told(place, &["hosts", "add", name, &format!("unix:{}", host.place.data().join("host.sock").display())]);
}

/// The sessions of the list, as `host/id`, with the row of each.
fn rows(place: &TestHome, args: &[&str]) -> BTreeMap<String, Value> {
    let list: Value = serde_json::from_str(&told(place, &[&["ls", "--json"], args].concat())).unwrap();
    let sessions = list["sessions"].as_array().unwrap().iter();
    let name = |row: &Value| {
        let id = row["resource"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        format!("{}/{id}", row["host"].as_str().unwrap())
    };
    sessions.map(|row| (name(row), row.clone())).collect()
}

fn names(place: &TestHome, args: &[&str]) -> Vec<String> {
    rows(place, args).into_keys().collect()
}

/// Waits until a session's row shows a pending request.
fn until_asked(place: &TestHome, session: &str) {
    let deadline = Deadline::new("nobody is asked");
    while rows(place, &[])[session]["status"] != "waiting" {
        deadline.check();
    }
}

/// A command that runs beside the test.
fn beside(place: &TestHome, args: &[&str]) -> Child {
    let mut command = place.grove(args);
    command.arg("--data-dir").arg(place.data()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

async fn with_session(args: &[&str]) -> Host {
    let host = TestHome::new().serve(args);
    let mut client = host.client_with_session("maker").await;
    client.run_script(S, "t1", json!([{"say": "one"}])).await;
    host
}

/// Every file of a session except a host's private ones.
fn files_of(place: &TestHome, id: &str) -> BTreeMap<String, Vec<u8>> {
    fn look(folder: &Path, below: &str, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let name = format!("{below}{}", entry.file_name().to_str().unwrap());
            match entry.file_type().unwrap().is_dir() {
                true => look(&entry.path(), &format!("{name}/"), found),
                false if name == "session.json" || name.ends_with("events.idx") || name.starts_with("inuse.") => {}
                false => match fs::read(entry.path()) {
                    Ok(bytes) => drop(found.insert(name, bytes)),
                    // The host was writing it under another name.
                    Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound, "{name}: {error}"),
                },
            }
        }
    }
    let mut found = BTreeMap::new();
    look(&place.data().join("session-state").join(id), "", &mut found);
    found
}

/// Checks that a session has the same files at both places, byte for byte.
fn assert_same(one: &TestHome, other: &TestHome) {
    let (one, other) = (files_of(one, "s"), files_of(other, "s"));
    let names: std::collections::BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    let differ: Vec<_> = names.into_iter().filter(|name| one.get(*name) != other.get(*name)).collect();
    let text = |files: &BTreeMap<String, Vec<u8>>| {
        let bytes = differ.first().and_then(|name| files.get(*name)).cloned().unwrap_or_default();
        String::from_utf8_lossy(&bytes).chars().take(600).collect::<String>()
    };
    assert!(differ.is_empty(), "{differ:?}: {}\n{}", text(&one), text(&other));
}

#[tokio::test]
async fn sessions_of_three_hosts_are_one_list_and_a_permission_of_a_far_one_is_given_from_here() {
    let (near, lab, dev) = (Host::start(), with_session(&[]).await, with_session(&[]).await);
    let place = &near.place;
    assert!(!told(place, &["ls", "--all"]).contains("HOST"), "one host needs no column");
    know(place, "lab", &lab);
    know(place, "dev", &dev);
    told(place, &["run", "--yes", "--host", "local", &script(&json!([{"say": "here"}]))]);
    let all = names(place, &[]);
    assert_eq!(all.len(), 3);
    assert!(all.contains(&"lab/s".to_owned()) && all.contains(&"dev/s".to_owned()), "{all:?}");
    assert!(told(place, &["ls"]).lines().next().unwrap().contains("HOST"));
    assert_eq!(names(place, &["--host", "lab"]), ["lab/s"]);

    let ran = place.run(&["show", "s"]);
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("use one of dev/s, lab/s"), "{}", ran.stderr);
    assert!(told(place, &["show", "lab/s"]).contains("one"));
    assert_eq!(place.run(&["show", "lab/s", "--host", "dev"]).code, Some(1));
    assert_eq!(place.run(&["ls", "--host", "nobody"]).code, Some(8));

    let asks = script(&json!([{"tool": {"name": "make", "output": "made", "permission": "shell"}}, {"say": "two"}]));
    told(place, &["send", "s", &asks, "--host", "lab"]);
    until_asked(place, "lab/s");
    assert!(told(place, &["approve", "lab/s"]).starts_with("approved"));
    let deadline = Deadline::new("the turn does not end");
    while !told(place, &["show", "lab/s"]).contains("two") {
        deadline.check();
    }
    assert!(!told(place, &["show", "dev/s"]).contains("two"), "the other one is another session");
    let run = told(place, &["run", "--yes", "--host", "dev", &script(&json!([{"say": "over there"}]))]);
    assert!(run.contains("over there"));
    told(place, &["rm", "--yes", "lab/s"]);
    assert!(told(place, &["show", "s"]).contains("one"), "the id alone is enough now");
}

#[tokio::test]
async fn a_host_that_is_away_is_named_delays_nothing_and_shows_what_it_had() {
    let (near, lab) = (Host::start(), with_session(&[]).await);
    let place = &near.place;
    know(place, "lab", &lab);
    assert_eq!(names(place, &[]), ["lab/s"]);
    // A host that accepts connections and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let token = place.write("token", "0123456789abcdef0123456789abcdef");
    let address = format!("ws://{}", mute.local_addr().unwrap());
    told(place, &["hosts", "add", "mute", &address, "--token-file", token.to_str().unwrap()]);
    lab.kill();
    // It ends, although one of them never answers.
    let ran = place.run(&["ls"]);
    assert!(ran.stdout.contains("(cached)"), "{}", ran.stdout);
    assert!(ran.stderr.contains("mute is unreachable") && ran.stderr.contains("lab is unreachable"), "{}", ran.stderr);
    let row = &rows(place, &[])["lab/s"];
    assert_eq!(row["cached"], true);
    let ran = place.run(&["show", "lab/s"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    told(place, &["hosts", "rm", "lab"]);
    assert_eq!(names(place, &[]), Vec::<String>::new(), "nothing is left of one that is forgotten");
}

#[tokio::test]
async fn a_session_moves_there_and_back_with_all_that_it_has() {
    let near = with_session(&["--compact-keep", "5"]).await;
    let lab = Host::start();
    let place = &near.place;
    know(place, "lab", &lab);
    let plan = place.write("plan.txt", "first the tests");
    told(place, &["fork", "s"]);
    told(place, &["plan", "s", "--set", plan.to_str().unwrap()]);
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
    let file = place.write("bytes.bin", &bytes[..1_500_000]);
    told(place, &["files", "s", "put", file.to_str().unwrap(), "deep/bytes.bin"]);
    told(place, &["files", "s", "put", place.write("none", "").to_str().unwrap(), "empty"]);
    told(place, &["files", "s", "--research", "put", plan.to_str().unwrap(), "r.md"]);
    told(
        place,
        &["send", "--wait", "--yes", "s", &script(&json!([{"say": "two and a few more words than are kept"}]))],
    );
    told(place, &["compact", "s"]);
    let before = files_of(place, "s");
    assert!(before.keys().any(|name| name.starts_with("checkpoints/")) && before.contains_key("files/deep/bytes.bin"));

    let ran = place.run(&["move", "s", "lab", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let moved: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&moved["host"], &moved["from"], &moved["session"]), (&json!("lab"), &json!("local"), &json!(S)));
    assert!(ran.stderr.contains("a fork of it stays at local"), "{}", ran.stderr);
    assert_same(place, &lab.place);
    let arrived = files_of(&lab.place, "s");
    for name in ["events.jsonl", "plan.md", "files/deep/bytes.bin", "files/empty", "research/r.md"] {
        assert!(arrived.contains_key(name), "{name}");
    }
    assert!(!names(place, &[]).contains(&"local/s".to_owned()) && names(place, &[]).contains(&"lab/s".to_owned()));
    assert!(names(place, &["--all", "--source", "grove"]).contains(&"local/s".to_owned()), "it is archived");

    assert_eq!(told(place, &["plan", "s"]), "first the tests", "the one that goes on is meant");
    let old = place.run(&["show", "local/s"]);
    assert!(old.stderr.contains("moved to lab: use lab/s"), "{}", old.stderr);
    let attached = place.run(&["send", "local/s", "x"]);
    assert!(attached.code == Some(1) && attached.stderr.contains("grove send lab/s"), "{}", attached.stderr);
    assert_eq!(place.run(&["move", "s", "lab"]).code, Some(0), "it is there already");

    told(place, &["send", "--wait", "--yes", "s", &script(&json!([{"say": "said over there"}]))]);
    told(place, &["checkpoints", "local/s"]);
    told(place, &["move", "s", "local"]);
    assert_same(place, &lab.place);
    assert!(told(place, &["show", "local/s"]).contains("said over there"));
    assert!(place.run(&["show", "lab/s"]).stderr.contains("moved to local: use local/s"));
    told(place, &["send", "--wait", "--yes", "s", &script(&json!([{"say": "and here again"}]))]);
    let ran = place.run(&["move", "s", "nobody"]);
    assert_eq!(ran.code, Some(8));
}

#[tokio::test]
async fn after_a_move_there_and_back_the_id_means_the_session_that_can_be_reached() {
    let (near, lab) = (with_session(&[]).await, Host::start());
    let place = &near.place;
    know(place, "lab", &lab);
    told(place, &["rename", "s", "there and back"]);
    told(place, &["fork", "s"]);
    told(place, &["move", "s", "lab"]);
    // A client lists while the host is reachable, so that its list is cached.
    assert!(names(place, &[]).contains(&"lab/s".to_owned()));
    told(place, &["move", "s", "local"]);
    let id = rows(place, &[])["local/s"]["id"].as_str().unwrap().to_owned();
    lab.kill();
    for said in [id.as_str(), "s", "scripted:/s"] {
        assert!(told(place, &["show", said]).contains("one"), "{said}");
    }
}

#[tokio::test]
async fn what_was_allowed_at_one_host_is_not_allowed_at_another_and_its_folder_is_asked_for_again() {
    let (near, lab) = (Host::start(), Host::start());
    let place = &near.place;
    know(place, "lab", &lab);
    let folder = place.path("work");
    fs::create_dir_all(&folder).unwrap();
    let steps = script(&json!([{"say": "one"}]));
    let ran = place.run(&["run", "--json", "--yes", "--cwd", folder.to_str().unwrap(), &steps]);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let id = last["session"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    // As after an answer "always", and with a client that allowed everything.
    told(place, &["stop"]);
    let place = near.place.clone();
    let file = place.data().join(format!("session-state/{id}/session.json"));
    let mut state: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    state["details"]["permissions"] = json!({"allowAll": true});
    state["details"]["remembered"] = json!([{"kind": "shell", "about": "rm -rf /",
        "option": {"id": "a", "label": "Always", "allows": true, "lasting": true}}]);
    fs::write(&file, serde_json::to_vec(&state).unwrap()).unwrap();
    let near = place.serve(&[]);
    let place = &near.place;

    let ran = place.run(&["move", &id, "lab"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(folder.to_str().unwrap()) && ran.stderr.contains("--cwd"), "{}", ran.stderr);
    let arrived = fs::read_to_string(lab.place.data().join(format!("session-state/{id}/session.json"))).unwrap();
    for left in ["allowAll", "rm -rf", folder.to_str().unwrap()] {
        assert!(!arrived.contains(left), "{left}: {arrived}");
    }
    let here = fs::read_to_string(&file).unwrap();
    assert!(here.contains("allowAll"), "the old one stays as it was: {here}");
    // Back again, into a given folder.
    let ran = place.run(&["move", &format!("lab/{id}"), "local", "--cwd", folder.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let back: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(back["workingDirectories"][0].as_str().unwrap().ends_with("/work"), "{back}");
    assert!(back["details"].get("permissions").is_none() && back["details"].get("remembered").is_none(), "{back}");
}

#[tokio::test]
async fn a_session_that_arrived_without_a_folder_is_given_one_by_cd() {
    let (near, lab) = (with_session(&[]).await, Host::start());
    let place = &near.place;
    know(place, "lab", &lab);
    told(place, &["move", "s", "lab"]);
    assert_eq!(rows(place, &[])["lab/s"]["cwd"], Value::Null);
    let (folder, file) = (lab.place.path("work"), lab.place.write("file", ""));
    fs::create_dir_all(&folder).unwrap();
    let none = folder.join("none");
    let wrong = [
        ("lab/s", "work", "is relative: name a folder at another host by its whole path"),
        ("lab/s", none.to_str().unwrap(), "it does not exist"),
        ("lab/s", file.to_str().unwrap(), "is not a folder"),
    ];
    for (session, folder, words) in wrong {
        let ran = place.run(&["cd", session, folder]);
        assert!(ran.code == Some(1) && ran.stderr.contains(words), "{folder}: {ran:?}");
    }
    assert_eq!(place.run(&["cd", "lab/nobody", folder.to_str().unwrap()]).code, Some(8));
    assert_eq!(rows(place, &[])["lab/s"]["cwd"], Value::Null);

    let ran = place.run(&["cd", "lab/s", folder.to_str().unwrap(), "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let set: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(set, json!({"session": S, "cwd": folder}));
    assert_eq!(rows(place, &[])["lab/s"]["cwd"], json!(folder));
    // The folder of a session of this machine may be relative. Version 1 serves it, too.
    let inner = folder.join("inner");
    fs::create_dir(&inner).unwrap();
    let mut cd = lab.place.grove(&["cd", "s", "inner", "--protocol", "v1", "--data-dir"]);
    assert!(cd.arg(lab.place.data()).current_dir(&folder).status().unwrap().success());
    assert_eq!(rows(place, &[])["lab/s"]["cwd"], json!(inner));

    told(place, &["send", "s", &script(&json!([{"tool": {"name": "make", "output": "ok", "permission": "shell"}}]))]);
    until_asked(place, "lab/s");
    let ran = place.run(&["cd", "lab/s", folder.to_str().unwrap()]);
    assert!(ran.code == Some(1) && ran.stderr.contains("still in progress"), "{ran:?}");
    // It is there after a restart.
    let lab = lab.kill().serve(&[]);
    assert_eq!(rows(&lab.place, &[])["local/s"]["cwd"], json!(inner));
}

#[tokio::test]
async fn a_session_stays_while_a_turn_runs_and_where_another_one_has_its_id() {
    let (near, lab) = (with_session(&[]).await, with_session(&[]).await);
    let place = &near.place;
    know(place, "lab", &lab);
    let ran = place.run(&["move", "local/s", "lab"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("lab has a session s already") && ran.stderr.contains("grove rm lab/s"),
        "{}",
        ran.stderr
    );
    told(place, &["rm", "--yes", "lab/s"]);
    told(place, &["send", "s", &script(&json!([{"tool": {"name": "make", "output": "ok", "permission": "shell"}}]))]);
    until_asked(place, "local/s");
    let ran = place.run(&["move", "s", "lab"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("a turn is running"), "{}", ran.stderr);
    assert_eq!(names(place, &[]), ["local/s"]);
    place.write("home/.config/grove/grove.toml", format!("[stores.archive]\nfolder = {:?}\n", place.path("archive")));
    let ran = place.run(&["move", "s", "archive"]);
    assert!(ran.code == Some(1) && ran.stderr.contains("grove migrate"), "{}", ran.stderr);
}

/// Starts moving a session that is large enough to be interrupted.
fn caught_moving(place: &TestHome, to: &TestHome) -> Child {
    let big = place.data().join("session-state/s/files");
    fs::create_dir_all(&big).unwrap();
    fs::write(big.join("big"), vec![7; 64 << 20]).unwrap();
    let child = beside(place, &["move", "s", "lab"]);
    let deadline = Deadline::new("nothing arrives");
    while !to.data().join("session-state/s~import/files").exists() {
        deadline.check();
    }
    child
}

#[tokio::test]
async fn killing_the_host_that_a_session_goes_to_loses_nothing() {
    let (near, lab) = (with_session(&[]).await, Host::start());
    let place = near.place.clone();
    know(&place, "lab", &lab);
    let child = caught_moving(&place, &lab.place);
    let far = lab.kill();
    assert_ne!(child.wait_with_output().unwrap().status.code(), Some(0));
    let lab = far.serve(&[]);
    assert_eq!(names(&place, &[]), ["local/s"]);
    told(&place, &["send", "--wait", "--yes", "s", &script(&json!([{"say": "still here"}]))]);
    told(&place, &["move", "s", "lab"]);
    assert_same(&lab.place, &place);
    assert_eq!(names(&place, &[]), ["lab/s"]);
}

#[tokio::test]
async fn killing_the_host_that_a_session_leaves_loses_nothing() {
    let (near, lab) = (with_session(&[]).await, Host::start());
    let place = near.place.clone();
    know(&place, "lab", &lab);
    let child = caught_moving(&place, &lab.place);
    near.kill();
    assert_ne!(child.wait_with_output().unwrap().status.code(), Some(0));
    let near = place.serve(&[]);
    assert_eq!(names(&place, &[]), ["local/s"]);
    told(&place, &["move", "s", "lab"]);
    assert_same(&lab.place, &near.place);
    assert!(told(&place, &["show", "s"]).contains("one"));
}

#[tokio::test]
async fn a_host_that_goes_away_in_the_middle_of_a_turn_comes_back_with_it() {
    let (near, lab) = (Host::start(), with_session(&[]).await);
    let place = &near.place;
    know(place, "lab", &lab);
    let steps = json!([{"tool": {"name": "make", "output": "ok", "permission": "shell"}}, {"say": "the end"}]);
    let child = beside(place, &["send", "--wait", "lab/s", &script(&steps)]);
    until_asked(place, "lab/s");
    let far = lab.kill();
    assert_eq!(rows(place, &[])["lab/s"]["cached"], true);
    let _lab = far.serve(&[]);
    until_asked(place, "lab/s");
    assert!(rows(place, &[])["lab/s"].get("cached").is_none());
    told(place, &["approve", "s"]);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert_eq!((ended.status.code(), said.matches("the end").count()), (Some(0), 1), "{said}");
}

const SIDE: &str = "ahp-chat://side/c2NyaXB0ZWQ6L3M";
const THIRD: &str = "ahp-chat:/third";

#[tokio::test]
async fn a_session_with_several_chats_moves_with_all_of_them_and_each_goes_on() {
    let (near, lab) = (Host::start(), Host::start());
    let place = &near.place;
    know(place, "lab", &lab);
    let mut client = near.ahp_with_session("maker").await;
    let chats = [CHAT, SIDE, THIRD];
    for (chat, words) in chats.into_iter().zip(["in the main one", "beside it", "in the third"]) {
        if chat != CHAT {
            client.get(Method::CreateChat, json!({"channel": S, "chat": chat})).await;
            client.subscribe(chat).await.unwrap();
        }
        client.run_script(chat, &format!("{words}-1"), json!([{"say": words}])).await;
        client.run_script(chat, &format!("{words}-2"), json!([{"say": "and more"}])).await;
    }
    // A branch in another chat than the main one.
    let tree = client.ask("x-grove/tree", json!({"channel": SIDE})).await.unwrap();
    let first =
        tree["rows"].as_array().unwrap().iter().filter(|row| row["role"] == "user").nth(1).unwrap()["id"].clone();
    client.ask("x-grove/navigate", json!({"channel": SIDE, "entry": first})).await.unwrap();
    client.run_script(SIDE, "other", json!([{"say": "another way"}])).await;
    let plan = place.write("plan.txt", "first the tests");
    told(place, &["plan", "s", "--set", plan.to_str().unwrap()]);
    told(place, &["files", "s", "put", plan.to_str().unwrap(), "deep/plan.txt"]);
    let trees = async |client: &mut grove_testkit::ahp::Client| {
        let mut trees = Vec::new();
        for chat in chats {
            trees.push(
                client.ask("x-grove/tree", json!({"channel": chat, "filter": "all"})).await.unwrap()["rows"].take(),
            );
        }
        trees
    };
    let before = trees(&mut client).await;

    told(place, &["move", "s", "lab"]);
    assert_same(place, &lab.place);
    let moved = files_of(&lab.place, "s");
    assert_eq!(moved.keys().filter(|name| name.ends_with("events.jsonl")).count(), 3, "{:?}", moved.keys());
    assert!(moved.contains_key("plan.md") && moved.contains_key("files/deep/plan.txt"));
    let mut there = lab.ahp("there").await;
    there.follow(S).await;
    assert_eq!(there.session(S).chats.iter().map(|chat| chat.resource.as_str()).collect::<Vec<_>>(), chats);
    assert_eq!(trees(&mut there).await, before);
    for chat in chats {
        there.subscribe(chat).await.unwrap();
        there.run_script(chat, &format!("after {chat}"), json!([{"say": "it goes on"}])).await;
    }
    there.must_agree_on_all().await;
}

#[tokio::test]
async fn where_a_session_went_is_said_by_what_the_host_is_called_here_or_by_its_address() {
    let (near, lab) = (with_session(&[]).await, Host::start());
    let (place, other) = (&near.place, TestHome::new());
    know(place, "lab", &lab);
    let address = format!("unix:{}", lab.place.data().join("host.sock").display());
    told(place, &["move", "s", "lab"]);
    let mut client = near.ahp("reader").await;
    client.follow(S).await;
    let moved = &client.session(S).meta.as_ref().unwrap()["movedTo"];
    assert_eq!((&moved["host"], &moved["address"]), (&json!("lab"), &json!(address)));
    let mut there = lab.ahp("reader").await;
    there.follow(S).await;
    let from = &there.session(S).meta.as_ref().unwrap()["movedFrom"];
    let folder = fs::canonicalize(place.data()).unwrap();
    assert!(from["address"].as_str().unwrap().ends_with(folder.to_str().unwrap()), "{from}");
    assert_eq!(from["host"], "local");

    // Another machine uses the name `lab` for another host.
    told(&other, &["hosts", "add", "first", &format!("unix:{}", place.data().join("host.sock").display())]);
    told(&other, &["hosts", "add", "lab", "unix:/nowhere/host.sock"]);
    let said = other.run(&["show", "first/s"]).stderr;
    assert!(said.contains(&format!("moved to lab at {address}, which has no name here")), "{said}");
    told(&other, &["hosts", "add", "second", &address]);
    let said = other.run(&["show", "first/s"]).stderr;
    assert!(said.contains("moved to second: use second/s"), "{said}");
    let said = other.run(&["send", "first/s", "x"]).stderr;
    assert!(said.contains("grove send second/s"), "{said}");
}

#[tokio::test]
async fn many_who_list_at_once_leave_a_whole_list_for_when_the_host_is_away() {
    let (near, lab) = (Host::start(), with_session(&[]).await);
    let place = &near.place;
    know(place, "lab", &lab);
    for _ in 0..3 {
        let all: Vec<Child> = (0..4).map(|_| beside(place, &["ls", "--json"])).collect();
        for child in all {
            assert!(child.wait_with_output().unwrap().status.success());
        }
        let kept = fs::read(place.data().join("hosts-seen/lab.json")).unwrap();
        let kept: Value = serde_json::from_slice(&kept).expect("it is whole");
        assert_eq!(kept["list"]["sessions"][0]["resource"], S);
    }
    lab.kill();
    assert_eq!(rows(place, &[])["lab/s"]["cached"], true);
}

/// A host behind SSH that lists no sessions, and logs its requests.
const PLAIN_HOST: &str = r#"#!/bin/sh
while read -r line; do
    id=${line#*\"id\":}
    id=${id%%,*}
    echo "$line" >> ASKED
    case "$line" in
    *'"initialize"'*) result='"result":{"protocolVersion":"1.0.0","serverSeq":0,"snapshots":[]}' ;;
    *'"listSessions"'*) result='"result":{"items":[]}' ;;
    *) result='"error":{"code":-32601,"message":"unheard of"}' ;;
    esac
    echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$result}"
done
"#;

#[test]
fn a_host_that_is_no_grove_is_not_asked_for_what_only_grove_has() {
    let place = TestHome::new();
    let asked = place.path("asked");
    let ssh = place.write("ssh", PLAIN_HOST.replace("ASKED", asked.to_str().unwrap()));
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    told(&place, &["hosts", "add", "plain", "ssh://plain"]);
    place.write("x.jsonl", "{}\n");
    let run = |args: &[&str]| {
        let mut command = place.grove(args);
        CommandResult::from(command.arg("--data-dir").arg(place.data()).env("GROVE_SSH", &ssh).output().unwrap())
    };
    let ran = run(&["ls", "--disposed", "--host", "plain"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("the host does not offer x-grove/disposed"), "{}", ran.stderr);
    assert_eq!(run(&["show", "plain/x"]).code, Some(8));
    assert_ne!(run(&["import", "x.jsonl", "--host", "plain"]).code, Some(0));
    let asked = fs::read_to_string(asked).unwrap();
    assert!(asked.contains("initialize") && !asked.contains("x-grove/"), "{asked}");
}
