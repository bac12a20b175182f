//! First attempts of users: prompts without quotes, no ids, `@last`, lists of waiting sessions, 80 columns.

use serde_json::{Value, json};

use crate::run::{BackgroundCommand, script};
use crate::support::*;
use crate::terminal::Terminal;

/// Starts a turn with a pending permission request, and returns the session's id.
fn waiting_session(place: &TestHome, command: &str) -> (BackgroundCommand, String) {
    let steps = json!([{"tool": {"name": "sh", "input": command, "output": "gone", "permission": "shell"}}]);
    let mut beside = BackgroundCommand::start(place, &["run", &script(&steps)]);
    let id = beside.until("session ").trim().strip_prefix("session ").unwrap().to_owned();
    beside.until("waiting:");
    (beside, id)
}

fn sessions(place: &TestHome, args: &[&str]) -> Vec<Value> {
    let ran = place.run(&[&["ls", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str::<Value>(&ran.stdout).unwrap()["sessions"].as_array().unwrap().clone()
}

#[test]
fn a_prompt_needs_no_quotes_and_flags_may_stand_anywhere() {
    let host = Host::start();
    let ran = host.place.run(&["run", "fix", "the", "tests", "--yes", "please"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = host.place.run(&["send", "@last", "and", "the", "docs", "--wait", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown = host.place.run(&["show", "@last"]);
    for words in ["› fix the tests please\n", "› and the docs\n"] {
        assert!(shown.stdout.contains(words), "{}", shown.stdout);
    }
}

#[test]
fn an_empty_prompt_is_refused_before_anything_happens() {
    let host = Host::start();
    for empty in ["", "  ", "\n"] {
        let ran = host.place.run(&["run", empty]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{empty:?}");
        assert!(ran.stderr.contains("the prompt is empty"), "{}", ran.stderr);
    }
    assert!(sessions(&host.place, &[]).is_empty(), "no session was created");
    assert_eq!(host.place.run(&["run", "--yes", &script(&json!([]))]).code, Some(0));
    assert_eq!(host.place.run(&["send", "@last", ""]).code, Some(1));
    let ran = host.place.run(&["run", "-"]);
    assert!(ran.stderr.contains("the prompt is empty"), "stdin is empty: {}", ran.stderr);
}

#[tokio::test]
async fn every_dialect_refuses_an_empty_prompt() {
    let host = Host::start();
    let mut old = host.client_with_session("old").await;
    let empty = json!({"type": "session/turnStarted", "session": S, "turnId": "t", "userMessage": {"text": " "}});
    assert!(old.rejected(empty).await.contains("the message is empty"));
    let mut client = host.ahp_subscriber("new").await;
    let message = json!({"text": "", "origin": {"kind": "user"}});
    let started =
        json!({"type": "chat/turnStarted", "turnId": "t", "startedAt": "2026-01-01T00:00:00Z", "message": message});
    let queued = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message});
    for action in [started, queued] {
        let seq = client.dispatch(crate::ahp_support::CHAT, action).await;
        let answer = client.answer_to(seq).await;
        assert!(answer.rejection_reason.unwrap().contains("the message is empty"));
    }
    let new = json!({"channel": S, "chat": "ahp-chat:/new", "initialMessage": message});
    let error = client.refused(grove_wire::ahp::Method::CreateChat, new).await;
    assert!(error.message.contains("the message is empty"), "{error:?}");
    assert_eq!(client.session(S).chats.len(), 1, "no chat was created");
}

#[test]
fn approve_and_deny_need_no_session_where_one_request_waits() {
    let host = Host::start();
    let place = &host.place;
    for command in ["approve", "deny"] {
        let none = place.run(&[command]);
        assert_eq!(none.code, Some(8), "{none:?}");
        assert!(none.stderr.contains("no permission request waits in any session"), "{}", none.stderr);
    }
    let (first, one) = waiting_session(place, "rm one");
    let (second, two) = waiting_session(place, "rm two");
    let several = place.run(&["approve"]);
    assert_eq!(several.code, Some(1), "{several:?}");
    for words in [&one, &two, "rm one", "rm two", "wait in 2 sessions"] {
        assert!(several.stderr.contains(words), "{words}: {}", several.stderr);
    }
    let mut waiting: Vec<String> =
        sessions(place, &["--waiting"]).iter().map(|row| row["resource"].as_str().unwrap().to_owned()).collect();
    waiting.sort();
    let mut expected = [format!("scripted:/{one}"), format!("scripted:/{two}")];
    expected.sort();
    assert_eq!(waiting, expected);
    assert_eq!(place.run(&["deny", &one]).code, Some(0));
    assert_eq!(first.end().0, Some(0));
    let ran = place.run(&["approve"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with("approved: "), "{}", ran.stdout);
    assert_eq!(second.end().0, Some(0));
    let none = place.run(&["ls", "--waiting"]);
    assert_eq!((none.code, none.stdout.as_str()), (Some(0), ""));
    assert!(none.stderr.contains("no session waits"), "{}", none.stderr);
    assert_eq!(place.run(&["approve", "--protocol", "v1"]).code, Some(1));
}

#[test]
fn answer_needs_no_session_where_one_question_waits() {
    let host = Host::start();
    let place = &host.place;
    for args in [&["answer", "because"][..], &["answer", "--decline"]] {
        let none = place.run(args);
        assert_eq!(none.code, Some(8), "{none:?}");
        assert!(none.stderr.contains("no question waits in any session"), "{}", none.stderr);
    }
    assert_eq!(place.run(&["answer"]).code, Some(2));
    // A permission request is no question.
    let (permission, waits) = waiting_session(place, "rm one");
    assert_eq!(place.run(&["answer", "because"]).code, Some(8));
    let asking = |question: &str| {
        let mut beside =
            BackgroundCommand::start(place, &["run", &script(&json!([{"ask": question}, {"say": "thanks"}]))]);
        let id = beside.until("session ").trim().strip_prefix("session ").unwrap().to_owned();
        beside.until("waiting:");
        (beside, id)
    };
    let (first, one) = asking("Why now?");
    let (second, two) = asking("Why here?");
    let several = place.run(&["answer", "because"]);
    assert_eq!(several.code, Some(1), "{several:?}");
    for words in [&one, &two, "Why now?", "Why here?", "questions wait in 2 sessions"] {
        assert!(several.stderr.contains(words), "{words}: {}", several.stderr);
    }
    assert_eq!(place.run(&["answer", &one, "because"]).code, Some(0));
    assert_eq!(first.end().0, Some(0));
    // Who names a session and forgets the answer does not mean its name.
    for name in [two.as_str(), &two[..8], &one, "@last"] {
        let forgotten = place.run(&["answer", name]);
        assert_eq!(forgotten.code, Some(1), "{forgotten:?}");
        assert!(forgotten.stderr.contains("no answer is given"), "{}", forgotten.stderr);
    }
    let ran = place.run(&["answer", "--json", "1"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_eq!(serde_json::from_str::<Value>(&ran.stdout).unwrap()["session"], format!("scripted:/{two}"));
    assert_eq!(second.end().0, Some(0));
    let (third, _) = asking("Why ever?");
    assert_eq!(place.run(&["answer", "--decline"]).code, Some(0));
    assert_eq!(third.end().0, Some(0));
    assert_eq!(place.run(&["deny", &waits]).code, Some(0));
    assert_eq!(permission.end().0, Some(0));
}

#[test]
fn wait_ends_with_the_turn_or_where_an_answer_is_needed() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["wait", "@last"]).code, Some(8), "there is no session");
    assert_eq!(place.run(&["run", &script(&json!([{"say": "x"}]))]).code, Some(0));
    let waited = |args: &[&str]| {
        let ran = place.run(&[&["wait", "--json"], args].concat());
        let said: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
        (ran.code.unwrap(), said["state"].as_str().unwrap().to_owned())
    };
    assert_eq!(waited(&["@last"]), (0, "complete".to_owned()));
    assert_eq!(place.run(&["send", "@last", &script(&json!([{"fail": "no"}]))]).code, Some(0));
    assert_eq!(waited(&["@last"]), (6, "failed".to_owned()));
    assert_eq!(place.run(&["send", "@last", &script(&json!([{"ask": "Why?"}]))]).code, Some(0));
    assert_eq!(waited(&["@last"]), (9, "waiting".to_owned()));
    assert_eq!(place.run(&["answer", "@last", "because"]).code, Some(0));
    assert_eq!(waited(&["@last"]), (0, "complete".to_owned()));
    assert_eq!(place.run(&["send", "@last", &script(&json!([{"hang": true}]))]).code, Some(0));
    assert_eq!(waited(&["@last", "--timeout", "0"]), (124, "timedOut".to_owned()));
    assert_eq!(place.run(&["send", "@last", "--queue", &script(&json!([{"say": "queued"}]))]).code, Some(0));
    let waiting = BackgroundCommand::start(place, &["wait", "@last"]);
    assert_eq!(place.run(&["cancel", "@last"]).code, Some(0));
    assert_eq!(waiting.end().0, Some(0), "what was queued is waited for, too");
}

#[test]
fn the_last_session_is_the_one_used_last() {
    let host = Host::start();
    let place = &host.place;
    let id =
        |ran: &CommandResult| ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    let first = id(&place.run(&["run", &script(&json!([{"title": "First"}]))]));
    let second = id(&place.run(&["run", &script(&json!([{"title": "Second"}]))]));
    for protocol in ["ahp", "v1"] {
        let ran = place.run(&["tree", "@last", "--json", "--protocol", protocol]);
        assert!(ran.stdout.contains(&second), "{protocol}: {ran:?}");
    }
    assert_eq!(place.run(&["send", &first, "--wait", &script(&json!([]))]).code, Some(0));
    assert!(place.run(&["show", "@last"]).stdout.contains("First"));
    assert!(place.run(&["show", "local/@last"]).stdout.contains("First"));
    assert_eq!(place.run(&["archive", "@last"]).code, Some(0));
    assert!(place.run(&["show", "@last"]).stdout.contains("Second"), "archived sessions are not meant");
    host.stop();
}

#[test]
fn inspect_and_check_take_the_beginning_of_an_id_a_uri_and_the_last_session() {
    let place = TestHome::new();
    let host = place.serve(&[]);
    let ran = place.run(&["run", &script(&json!([{"say": "x"}]))]);
    let id = ran.stderr.lines().find_map(|line| line.strip_prefix("session ")).unwrap().to_owned();
    host.stop();
    let uri = format!("scripted:/{id}");
    for name in [id.as_str(), &id[..6], &uri, &format!("ahp-session:/{id}"), "@last"] {
        for command in ["inspect", "check"] {
            let ran = place.run(&[command, name]);
            assert_eq!(ran.code, Some(0), "{command} {name}: {ran:?}");
        }
        assert!(place.run(&["inspect", name]).stdout.contains(&id), "{name}");
    }
    for unknown in ["nobody", "scripted:/nobody", &format!("scripted:/{}", &id[..6])] {
        let ran = place.run(&["check", unknown]);
        assert_eq!(ran.code, Some(8), "{unknown}: {ran:?}");
        assert!(ran.stderr.contains("not a file, and there is no session"), "{}", ran.stderr);
    }
}

#[test]
fn a_model_is_chosen_by_id_or_name_and_one_that_is_not_there_is_refused() {
    let host = Host::start();
    let steps = script(&json!([{"say": "x"}]));
    for model in ["scripted", "Scripted", "scripted/slow-start"] {
        let ran = host.place.run(&["run", "--model", model, "--json", &steps]);
        assert_eq!(ran.code, Some(0), "{model}: {ran:?}");
        let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(last["turn"]["message"]["model"]["id"], model.to_lowercase(), "{last}");
    }
    let ran = host.place.run(&["run", "--model", "huge", &steps]);
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("no model \"huge\"") && ran.stderr.contains("scripted/slow-start"), "{}", ran.stderr);
    let ran = host.place.run(&["run", "--mode", "plan", &steps]);
    assert_eq!(ran.code, Some(8));
    assert!(ran.stderr.contains("no modes"), "{}", ran.stderr);
    let ran = host.place.run(&["run", "--protocol", "v1", "--model", "scripted/fails-to-start", &steps]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("the session did not start"), "{}", ran.stderr);
}

#[test]
fn a_list_fits_the_terminal_whatever_is_written_in_it() {
    let host = Host::start();
    let place = &host.place;
    let wide = "漢字かな交じり文のとても長い題名がここにあります";
    for title in [wide, "a title that is longer than any small terminal could show in one line", "short"] {
        assert_eq!(place.run(&["run", &script(&json!([{"title": title}]))]).code, Some(0));
    }
    for columns in [40, 60, 80] {
        let mut terminal = Terminal::run_in(place, &["ls"], columns);
        assert_eq!(terminal.exit(), Some(0));
        // The oldest one is in the last line.
        terminal.until("漢");
        terminal.until("\n");
        let screen = anstream_strip(&terminal.screen());
        let lines: Vec<&str> = screen.lines().collect();
        assert_eq!(lines.len(), 4, "{screen}");
        for line in &lines {
            let width = columns_of(line);
            assert!(width <= usize::from(columns), "{width} columns of {columns}: {line}");
        }
        // The agents are aligned, also after wide characters.
        let places: Vec<usize> =
            lines[1..].iter().map(|line| columns_of(&line[..line.rfind("scripted").unwrap()])).collect();
        assert!(places.iter().all(|place| *place == places[0]), "{places:?} in {screen}");
    }
    let piped = place.run(&["ls"]);
    assert!(piped.stdout.contains(wide), "a pipe is not cut: {}", piped.stdout);
}

/// The text without colours.
fn anstream_strip(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    plain.replace('\r', "")
}

/// The width of a text: two columns for each non-ASCII character of these tests, except the ellipsis.
fn columns_of(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() || c == '…' { 1 } else { 2 }).sum()
}

#[test]
fn a_spinner_turns_until_the_agent_says_something_and_only_on_a_terminal() {
    let host = Host::start();
    let steps = script(&json!([{"sleepMs": 600}, {"say": "here I am"}]));
    let mut terminal = Terminal::run(&host.place, &["run", &steps]);
    terminal.until("waiting for the agent");
    terminal.until("\r\x1b[K");
    terminal.until("here I am");
    assert_eq!(terminal.exit(), Some(0));
    let ran = host.place.run(&["run", &steps]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "here I am\n"));
    assert!(!ran.stderr.contains("waiting"), "{}", ran.stderr);
}

#[test]
fn show_tells_the_turn_that_runs() {
    let host = Host::start();
    let place = &host.place;
    let steps = json!([{"say": "so far"}, {"tool": {"name": "sh", "input": "make", "permission": "shell"}}]);
    let mut beside = BackgroundCommand::start(place, &["run", &script(&steps)]);
    beside.until("waiting:");
    let ran = place.run(&["show", "@last"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("No messages"), "{}", ran.stdout);
    for words in ["[1]", "› script:", "so far", "make", "running: `grove attach "] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let shown: Value = serde_json::from_str(&place.run(&["show", "@last", "--json"]).stdout).unwrap();
    assert_eq!(
        (&shown["session"]["turns"], &shown["turns"][0]["raw"]["running"]),
        (&json!(1), &json!(true)),
        "{shown}"
    );
    assert_eq!(place.run(&["approve"]).code, Some(0));
    assert_eq!(beside.end().0, Some(0));
    let ran = place.run(&["show", "@last"]);
    assert!(!ran.stdout.contains("running:") && !ran.stdout.contains("[2]"), "{}", ran.stdout);
}

#[test]
fn after_ctrl_c_on_a_question_nobody_is_said_to_have_answered_it() {
    let host = Host::start();
    let steps = json!([{"tool": {"name": "sh", "input": "rm x", "permission": "shell"}}]);
    let mut terminal = Terminal::run(&host.place, &["run", &script(&steps)]);
    terminal.until("rm x");
    terminal.until("[y/n]");
    terminal.interrupt();
    terminal.until("cancelled");
    assert_eq!(terminal.exit(), Some(7));
    assert!(!terminal.screen().contains("answered elsewhere"), "{}", terminal.screen());
}

#[test]
fn filters_of_the_list_need_no_all_and_empty_lists_say_what_to_do() {
    let host = Host::start();
    let place = &host.place;
    let empty = place.run(&["ls"]);
    assert!(empty.stderr.contains("`grove run PROMPT` starts one"), "{}", empty.stderr);
    assert_eq!(place.run(&["run", &script(&json!([{"say": "x"}]))]).code, Some(0));
    let here = place.path("").display().to_string();
    assert_eq!(sessions(place, &["--repo", here.trim_end_matches('/')]).len(), 1);
    assert_eq!(sessions(place, &["--since", "1h"]).len(), 1);
    for args in [&["--repo", "no/such"][..], &["--source", "vs-code"], &["--since", "2999-01-01"]] {
        let ran = place.run(&[&["ls"], args].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""), "{args:?}");
        assert!(ran.stderr.contains("no session matches"), "{args:?}: {}", ran.stderr);
    }
    for (args, words) in [
        (&["files", "@last"][..], "no files: `grove files "),
        (&["checkpoints", "@last"], "no checkpoints"),
        (&["chats", "@last"], "no further chats: `grove chats "),
        (&["hosts"], "there are no other hosts"),
        (&["ls", "--disposed"], "there are no disposed sessions"),
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}");
        assert!(ran.stderr.contains(words), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn an_export_is_replaced_where_that_is_asked_for() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["run", &script(&json!([{"say": "one"}]))]).code, Some(0));
    for format in ["markdown", "copilot-cli"] {
        let out = place.path(format).display().to_string();
        let export =
            |more: &[&str]| place.run(&[&["export", "@last", "--format", format, "--out", &out], more].concat());
        let first = export(&[]);
        assert_eq!(first.code, Some(0), "{first:?}");
        let again = export(&[]);
        assert_eq!(again.code, Some(1));
        assert!(again.stderr.contains("--force replaces it"), "{}", again.stderr);
        assert_eq!(place.run(&["send", "@last", "--wait", &script(&json!([{"say": "and more"}]))]).code, Some(0));
        let forced = export(&["--force"]);
        assert_eq!((forced.code, &forced.stdout), (Some(0), &first.stdout), "{forced:?}");
        let path = std::path::PathBuf::from(forced.stdout.trim());
        let file = if path.is_dir() { path.join("events.jsonl") } else { path };
        assert!(std::fs::read_to_string(file).unwrap().contains("and more"), "{format}");
        let left: Vec<_> = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left.len(), 1, "nothing is left beside it: {left:?}");
    }
}
