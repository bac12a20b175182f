//! `grove branch` and `fork`

use grove_wire::ahp::{Message, MessageAttachment};
use serde_json::json;

use super::*;

/// The listed sessions by id, with their titles.
fn listed(place: &TestHome) -> Vec<(String, String)> {
    let list = asked(place, &["ls", "--json"]);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let id = |row: &Value| text(&row["resource"]).rsplit('/').next().unwrap().to_owned();
    list["sessions"].as_array().unwrap().iter().map(|row| (id(row), text(&row["title"]))).collect()
}

/// The agent's texts in a session.
fn said_in(place: &TestHome, session: &str) -> Vec<String> {
    let tree = asked(place, &["tree", session, "--json"]);
    let rows = tree["rows"].as_array().unwrap().iter().filter(|row| row["role"] == "assistant");
    rows.map(|row| row["text"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_branch_is_a_session_with_what_was_said_before_a_message() {
    let host = host(&["one", "it's `two` $HOME", "three"]).await;
    let place = &host.place;
    let two = entry(place, "user", "two");
    let ran = place.run(&["branch", "s", &prefix(place, &two)]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (first, again) = ran.stdout.split_once('\n').unwrap();
    let id = first.strip_prefix("created session ").unwrap();
    assert_eq!(said_in(place, id), ["one"]);
    assert_eq!(sent_again(place, again), "it's `two` $HOME\n");
    assert_eq!(said_in(place, id), ["one", "it's `two` $HOME"]);

    assert_eq!(place.run(&["label", "s", &two, "the middle"]).code, Some(0));
    for protocol in ["ahp", "v1"] {
        let made = asked(place, &["branch", "s", "the middle", "--json", "--protocol", protocol]);
        let uri = made["session"].as_str().unwrap();
        assert_eq!(made, json!({"session": uri, "text": says("it's `two` $HOME"), "attachments": []}));
        assert_eq!(said_in(place, uri), ["one"]);
    }
    assert_eq!(said(place), ["one", "it's `two` $HOME", "three"], "the old one stays as it is");
    let all = listed(place);
    assert!(all.len() == 4 && all.iter().any(|(listed, _)| listed == id), "{all:?}");
}

#[tokio::test]
async fn only_from_a_message_of_the_user_does_a_session_branch_off() {
    let host = host(&["one"]).await;
    let place = &host.place;
    let ran = place.run(&["branch", "s", &entry(place, "assistant", "one")]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("is not a user message"), "{}", ran.stderr);
    assert_eq!(listed(place).len(), 1);
}

#[tokio::test]
async fn a_fork_has_everything_and_goes_its_own_way() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    goto(place, &[&entry(place, "assistant", "one"), "--label", "here"]);
    let ran = place.run(&["fork", "s"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let id = ran.stdout.trim_end().strip_prefix("forked into session ").unwrap();
    let tree = |session: &str| -> Vec<[Value; 3]> {
        let all = asked(place, &["tree", session, "--filter", "all", "--json"])["rows"].take();
        // Its title is in there, too.
        let rows = all.as_array().unwrap().iter().filter(|row| row["kind"] != "session_info");
        rows.map(|row| ["id", "label", "active"].map(|key| row[key].clone())).collect()
    };
    assert_eq!(tree(id), tree("s"), "with its branches, its labels and the place that one is at");
    let sent = place.run(&["send", "--wait", id, &says("three")]);
    assert_eq!((sent.code, sent.stdout.as_str()), (Some(0), "three\n"), "{}", sent.stderr);
    assert_eq!(said_in(place, id), ["one", "three", "two"]);
    assert_eq!(said(place), ["one"], "the old one stays as it is");

    for protocol in ["ahp", "v1"] {
        let title = format!("the other way of {protocol}");
        let made = asked(place, &["fork", "s", "--title", &title, "--json", "--protocol", protocol]);
        let uri = made["session"].as_str().unwrap();
        assert_eq!(made, json!({ "session": uri }));
        assert_eq!(said_in(place, uri), ["one", "two"]);
        let all = listed(place);
        assert!(all.iter().any(|(id, listed)| uri.ends_with(id) && *listed == title), "{all:?}");
    }
    let all = listed(place);
    assert!(all.len() == 4 && all.iter().any(|(listed, title)| listed == id && title.ends_with("(fork)")), "{all:?}");
}

#[tokio::test]
async fn what_came_with_a_message_is_told_where_it_is_taken_back() {
    let host = host(&["one"]).await;
    let place = &host.place;
    let label = "notes.txt";
    let attachment: MessageAttachment = serde_json::from_value(json!({"type": "simple", "label": label})).unwrap();
    let attachments = Some(vec![attachment]);
    let _chat = side_chat(&host, Message { text: says("sideways"), attachments, ..Message::default() }).await;
    let all = rows(place, &["--chat", "side"]);
    let message = all[0]["id"].as_str().unwrap();

    let ran = place.run(&["branch", "s", message, "--chat", "side"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert_eq!(ran.stdout.lines().last(), Some("without its attachments: notes.txt"));
    let made = asked(place, &["branch", "s", message, "--chat", "side", "--json"]);
    assert_eq!((&made["text"], &made["attachments"][0]["label"]), (&json!(says("sideways")), &json!(label)));

    let gone = asked(place, &["goto", "s", message, "--chat", "side", "--json"]);
    assert_eq!(gone["attachments"], made["attachments"]);
}
