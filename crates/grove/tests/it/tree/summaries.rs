//! `grove goto --summarize`, `merge` and `compact`

use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::*;

/// Instructions that make this the scripted agent's summary.
fn summary(text: &str) -> String {
    script(&json!([{"say": text}]))
}

/// Instructions of a summary that never ends.
fn hangs() -> String {
    script(&json!([{"hang": true}]))
}

/// The row of an entry.
fn row(place: &TestHome, id: &Value) -> Value {
    rows(place, &["--filter", "all"]).into_iter().find(|row| row["id"] == *id).unwrap()
}

/// Lets the agent of [`S`] say more than a compaction keeps: 20,000 tokens, with its prompts.
fn say_much(place: &TestHome) {
    assert_eq!(place.run(&["send", "--wait", "s", &says(&"word ".repeat(10_000))]).code, Some(0));
}

#[tokio::test]
async fn what_is_left_is_summarized_where_one_goes_to() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let one = entry(place, "assistant", "one");
    let gone = goto(place, &[&prefix(place, &one), "--summarize", "--instructions", &summary("a dead\nend")]);
    let leaf = rows(place, &["--filter", "all"]).into_iter().find(|row| row["leaf"] == true).unwrap();
    let id = leaf["id"].as_str().unwrap();
    assert_eq!(gone, format!("now at {one} (assistant: one)\nsummarized in {id}: a dead end\n"));
    assert_eq!((&leaf["kind"], &leaf["parent"]), (&json!("branch_summary"), &json!(one)));
    assert_eq!(said(place), ["one"]);

    for protocol in ["ahp", "v1"] {
        goto(place, &[&entry(place, "assistant", "two")]);
        let more = ["--summarize", "--label", protocol, "--json", "--protocol", protocol];
        let gone = asked(place, &[&["goto", "s", one.as_str()], &more[..]].concat());
        assert_eq!((&gone["session"], &gone["moved"]), (&json!(S), &json!(true)));
        let made = row(place, &gone["summaryEntry"]);
        let text = made["text"].as_str().unwrap();
        assert!(text.contains("two") && !text.contains("one"), "of the branch that is left alone: {text}");
        assert_eq!(row(place, &json!(one))["label"], protocol);
    }
    let only = ["--summarize", "--replace-instructions", "--instructions", &summary("nothing else")];
    let gone = goto(place, &[&["root"], &only[..]].concat());
    assert!(gone.starts_with("now before the first entry\nsummarized in ") && gone.ends_with(": nothing else\n"));
}

#[tokio::test]
async fn where_nothing_is_left_there_is_no_summary() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let two = entry(place, "assistant", "two");
    goto(place, &[&entry(place, "assistant", "one")]);
    let gone = goto(place, &[&two, "--summarize"]);
    assert_eq!(gone, format!("now at {two} (assistant: two)\nthere was nothing to summarize\n"));
    assert!(rows(place, &["--filter", "all"]).iter().all(|row| row["kind"] != "branch_summary"));
    for args in [&["--instructions", "x"][..], &["--summarize", "--replace-instructions"]] {
        assert_eq!(place.run(&[&["goto", "s", &two], args].concat()).code, Some(2), "{args:?}");
    }
}

#[tokio::test]
async fn a_message_is_taken_back_and_what_followed_it_summarized() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let gone = goto(place, &[&entry(place, "user", "two"), "--summarize", "--instructions", &summary("in vain")]);
    let lines: Vec<&str> = gone.lines().collect();
    assert_eq!(lines[0], format!("now at {} (assistant: one)", entry(place, "assistant", "one")));
    assert!(lines[1].ends_with(": in vain"), "{gone}");
    assert_eq!(sent_again(place, lines[2]), "two\n");
    assert_eq!(said(place), ["one", "two"]);
}

#[tokio::test]
async fn ctrl_c_gives_a_summary_up_and_nothing_has_changed() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    say_much(place);
    say_much(place);
    let one = entry(place, "assistant", "one");
    goto(place, &[&one]);
    say_much(place);
    say_much(place);
    let two = entry(place, "assistant", "two");
    let before = rows(place, &["--filter", "all"]);
    let hangs = hangs();
    for (args, shown) in [
        (&["goto", "s", &one, "--summarize"][..], "summarizing the abandoned branch (Ctrl-C discards it)"),
        (&["merge", "s", &two], "summarizing the other branch (Ctrl-C discards it)"),
        (&["compact", "s"], "compacting the conversation (Ctrl-C discards it)"),
    ] {
        for protocol in ["ahp", "v1"] {
            let more = ["--instructions", &hangs, "--protocol", protocol];
            let mut terminal = Terminal::run(place, &[args, &more[..]].concat());
            terminal.until(shown);
            terminal.interrupt();
            terminal.until("discarded: nothing has changed");
            assert_eq!(terminal.exit(), Some(130), "{args:?}: {}", terminal.screen());
            assert_eq!(rows(place, &["--filter", "all"]), before, "{args:?}");
        }
    }
    let ran = place.run(&["goto", "s", &one, "--summarize", "--instructions", &summary("x")]);
    assert_eq!(ran.code, Some(0), "the next one is made: {}", ran.stderr);
}

#[tokio::test]
async fn a_summary_that_is_given_up_prints_nothing_for_programs_and_holds_up_others_until_then() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let one = entry(place, "assistant", "one");
    let mut watcher = watcher(&host).await;
    let mut command = place.grove(&["goto", "s", &one, "--summarize", "--instructions", &hangs(), "--json"]);
    command.arg("--data-dir").arg(place.data()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().unwrap();
    watcher.until(|state| state.chat()?.activity.is_some().then_some(())).await.unwrap();
    let busy = place.run(&["goto", "s", &one]);
    assert_eq!((busy.code, busy.stdout.as_str()), (Some(1), ""));
    assert!(busy.stderr.contains("a summary is being made"), "{}", busy.stderr);
    kill_process(Pid::from_raw(child.id().try_into().unwrap()).unwrap(), Signal::INT).unwrap();
    let ran = CommandResult::from(child.wait_with_output().unwrap());
    let expected = (Some(130), "", "discarded: nothing has changed\n");
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), expected);
    assert_eq!(said(place), ["one", "two"]);
}

/// A subscriber of the main chat of [`S`].
async fn watcher(host: &Host) -> Subscription<Ahp> {
    let client = ahp(host).await;
    let session = client.subscribe(S).await.unwrap();
    let chat = session.read(|state| state.session().unwrap().default_chat.clone().unwrap());
    client.subscribe(&chat).await.unwrap()
}

#[tokio::test]
async fn a_summary_that_fails_says_why_and_changes_nothing() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let before = rows(place, &["--filter", "all"]);
    let fails = script(&json!([{"fail": "the model is tired"}]));
    let ran = place.run(&["goto", "s", "root", "--summarize", "--instructions", &fails]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("the model is tired"), "{}", ran.stderr);
    assert_eq!(rows(place, &["--filter", "all"]), before);
}

#[tokio::test]
async fn what_came_of_another_branch_is_brought_here() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let (one, two) = (entry(place, "assistant", "one"), entry(place, "assistant", "two"));
    goto(place, &[&one]);
    say(place, "three");
    assert_eq!(place.run(&["label", "s", &two, "other"]).code, Some(0));
    let ran = place.run(&["merge", "s", "other", "--instructions", &summary("two\nlines")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let leaf = rows(place, &["--filter", "all"]).into_iter().find(|row| row["leaf"] == true).unwrap();
    assert_eq!(leaf["kind"], "branch_summary");
    let id = leaf["id"].as_str().unwrap();
    assert_eq!(ran.stdout, format!("merged {two} into {id}:\ntwo\nlines\n"));
    assert_eq!(said(place), ["one", "three"], "nobody is moved");

    for protocol in ["ahp", "v1"] {
        let merged = asked(place, &["merge", "s", &prefix(place, &two), "--json", "--protocol", protocol]);
        let text = merged["summary"].as_str().unwrap();
        assert!(text.contains("two") && !text.contains("three"), "{text}");
        let id = &merged["summaryEntry"];
        assert_eq!(merged, json!({"session": S, "summaryEntry": id, "summary": text, "leaf": id}));
        assert_eq!(row(place, id)["leaf"], true);
    }
    let known = place.run(&["merge", "s", &one]);
    assert_eq!((known.code, known.stdout.as_str()), (Some(1), ""));
    assert!(known.stderr.contains("on this branch already"), "{}", known.stderr);
}

#[tokio::test]
async fn a_summary_takes_the_place_of_what_is_older() {
    let host = host(&["one"]).await;
    let place = &host.place;
    let short = place.run(&["compact", "s"]);
    assert_eq!((short.code, short.stdout.as_str()), (Some(1), ""));
    assert!(short.stderr.contains("nothing to compact"), "{}", short.stderr);

    say_much(place);
    say_much(place);
    let ran = place.run(&["compact", "s", "--instructions", &summary("much,\nin short")]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let (first, rest) = ran.stdout.split_once('\n').unwrap();
    assert_eq!(rest, "much,\nin short\n");
    let tokens = first.strip_prefix("compacted about ").unwrap().split_once(" tokens: ").unwrap().0;
    assert!(tokens.parse::<u64>().unwrap() > 40_000, "{first}");
    let leaf = rows(place, &["--filter", "all"]).into_iter().find(|row| row["leaf"] == true).unwrap();
    assert_eq!(leaf["kind"], "compaction");
    assert!(first.contains(leaf["id"].as_str().unwrap()), "{first}");
    assert_eq!(said(place).len(), 3, "people still see everything");

    for protocol in ["ahp", "v1"] {
        say_much(place);
        say_much(place);
        let compacted = asked(place, &["compact", "s", "--json", "--protocol", protocol]);
        assert_eq!(compacted["session"], S);
        assert!(compacted["tokensBefore"].as_u64().unwrap() > 40_000, "{compacted}");
        assert!(compacted["summary"].is_string() && compacted["firstKeptEntry"].is_string(), "{compacted}");
        assert_eq!(row(place, &compacted["compactionEntry"])["kind"], "compaction");
    }
}
