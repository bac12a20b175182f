//! Further chats of a session on the command line, and the marks of sessions.

use serde_json::{Value, json};

use crate::run::{BackgroundCommand, script};
use crate::support::*;

fn json_of(ran: &CommandResult) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// A session with a main chat and one more, and the names of both.
fn two_chats(place: &TestHome) -> (String, String) {
    let ran = place.run(&["run", &script(&json!([{"say": "in the main chat"}]))]);
    let id = ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let new = json_of(&place.run(&[
        "chats",
        &id,
        "new",
        "--json",
        "--title",
        "Review",
        &script(&json!([{"say": "in the review"}])),
    ]));
    let chat = new["chat"].as_str().unwrap().to_owned();
    assert_eq!(place.run(&["wait", &id, "--chat", &chat]).code, Some(0));
    (id, chat)
}

#[test]
fn a_chat_is_created_listed_used_and_deleted() {
    let host = Host::start();
    let place = &host.place;
    let (id, chat) = two_chats(place);
    let listed = json_of(&place.run(&["chats", &id, "--json"]));
    let chats = listed["chats"].as_array().unwrap();
    assert_eq!(chats.len(), 2, "{listed}");
    assert_eq!((&chats[0]["isMain"], &chats[0]["chat"]), (&json!(true), &json!("main")), "{listed}");
    assert_eq!(
        (&chats[1]["chat"], &chats[1]["title"], &chats[1]["status"]),
        (&json!(chat), &json!("Review"), &json!("idle"))
    );

    for name in [chat.as_str(), &chat[..8], "review", chats[1]["uri"].as_str().unwrap()] {
        let ran = place.run(&["show", &id, "--chat", name]);
        assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
        assert!(ran.stdout.contains("in the review") && !ran.stdout.contains("in the main chat"), "{}", ran.stdout);
        assert!(ran.stdout.starts_with("Review\n"), "{}", ran.stdout);
    }
    let sent = place.run(&["send", &id, "--chat", "Review", "--wait", &script(&json!([{"say": "again"}]))]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "again\n"), "{}", sent.stderr);
    let main = place.run(&["show", &id, "--chat", "main"]);
    assert!(main.stdout.contains("in the main chat") && !main.stdout.contains("again"), "{}", main.stdout);

    let unknown = place.run(&["show", &id, "--chat", "nothing"]);
    assert_eq!(unknown.code, Some(8));
    assert!(unknown.stderr.contains("no chat \"nothing\"") && unknown.stderr.contains(&chat), "{}", unknown.stderr);
    assert_eq!(place.run(&["show", &id, "--chat", "Review", "--protocol", "v1"]).code, Some(1));

    let refused = place.run(&["chats", &id, "rm", "Review"]);
    assert_eq!(refused.code, Some(1), "nobody can be asked: {refused:?}");
    let deleted = json_of(&place.run(&["chats", &id, "rm", "Review", "--yes", "--json"]));
    assert_eq!(deleted["deleted"], chats[1]["uri"]);
    assert_eq!(json_of(&place.run(&["chats", &id, "--json"]))["chats"].as_array().unwrap().len(), 1);
    let kept = place.run(&["chats", &id, "rm", "main", "--yes"]);
    assert_eq!(kept.code, Some(1), "the main chat stays: {kept:?}");
}

#[test]
fn commands_on_the_main_chat_name_the_others() {
    let host = Host::start();
    let place = &host.place;
    let (id, chat) = two_chats(place);
    let words = format!("1 more chat in this session: {chat} (Review) (--chat NAME)");
    let out = place.path("out").display().to_string();
    for args in [&["show", &id][..], &["export", &id, "--format", "markdown", "--out", &out]] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains(&words), "{args:?}: {}", ran.stderr);
        assert_eq!(place.run(&["show", &id, "--chat", "Review"]).stderr, "", "who names one knows");
    }
    let mut attached = BackgroundCommand::start(place, &["attach", &id]);
    attached.until(&words);
    let mut attached = BackgroundCommand::start(place, &["attach", &id, "--chat", "Review"]);
    attached.until("session");
    assert_eq!(
        place.run(&["send", &id, "--chat", "Review", &script(&json!([{"reason": "only here\n"}]))]).code,
        Some(0)
    );
    attached.until("only here");
}

#[test]
fn a_chat_is_exported_into_a_file_of_its_own() {
    let host = Host::start();
    let place = &host.place;
    let (id, chat) = two_chats(place);
    let out = place.path("out").display().to_string();
    for format in ["markdown", "html", "json", "jsonl"] {
        let export = |more: &[&str]| {
            let ran = place.run(&[&["export", &id, "--format", format, "--out", &out], more].concat());
            assert_eq!(ran.code, Some(0), "{ran:?}");
            std::fs::read_to_string(ran.stdout.trim()).unwrap()
        };
        let (main, side) = (export(&[]), export(&["--chat", &chat]));
        assert!(main.contains("in the main chat") && !main.contains("in the review"), "{format}: {main}");
        assert!(side.contains("in the review") && !side.contains("in the main chat"), "{format}: {side}");
    }
    let refused = place.run(&["export", &id, "--format", "copilot-cli", "--chat", &chat, "--out", &out]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("only the main chat"), "{}", refused.stderr);
}

#[test]
fn a_session_is_archived_and_marked_as_read_and_both_can_be_undone() {
    let host = Host::start();
    let place = &host.place;
    let ran = place.run(&["run", &script(&json!([{"say": "x"}]))]);
    let id = ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let listed = |args: &[&str]| {
        let list = json_of(&place.run(&[&["ls", "--json"], args].concat()));
        list["sessions"].as_array().unwrap().len()
    };
    let archived = place.run(&["archive", &id[..8]]);
    assert_eq!((archived.code, archived.stdout), (Some(0), format!("archived {id}\n")));
    assert_eq!((listed(&[]), listed(&["--all"])), (0, 1));
    assert_eq!(json_of(&place.run(&["archive", "--undo", "--json", &id]))["archived"], false);
    assert_eq!(listed(&[]), 1);
    for (args, is_read) in [(&["read", &id, "--json"][..], true), (&["read", "--undo", &id, "--json"], false)] {
        assert_eq!(json_of(&place.run(args))["read"], is_read);
    }
    for command in ["archive", "read"] {
        assert_eq!(place.run(&[command, "nowhere"]).code, Some(8));
        assert_eq!(place.run(&[command, &id, "--protocol", "v1"]).code, Some(1));
    }
}
