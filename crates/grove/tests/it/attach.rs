//! `grove attach`

use serde_json::{Value, json};

use crate::run::{BackgroundCommand, script};
use crate::support::*;
use crate::terminal::Terminal;

#[tokio::test]
async fn it_shows_the_last_turns_and_takes_prompts() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.call::<serde_json::Value>("x-grove/rename", json!({"session": S, "title": "Attached"})).await.unwrap();
    for protocol in ["ahp", "v1"] {
        for turn in ["one", "two", "three", "four"] {
            let (id, answer) = (format!("{turn} {protocol}"), format!("answer {turn} {protocol}"));
            client.run_script(S, &id, json!([{ "say": answer }])).await;
        }
        let mut terminal = Terminal::run(&host.place, &["attach", "s", "--protocol", protocol]);
        terminal.until("Attached");
        terminal.until("Ctrl-D leaves");
        terminal.until("older turns are not shown");
        terminal.until(&format!("answer four {protocol}"));
        assert!(!terminal.screen().contains("answer one"));
        let before = client.session(S).turns.len();
        terminal.enter(&script(&json!([{"say": "mine"}])));
        terminal.until_line("mine");
        client.until(|client| client.session(S).turns.len() > before).await;
        // Turns of other clients are shown, too, with their prompts.
        let turn = format!("of another, {protocol}");
        client.run_script(S, &turn, json!([{"say": "theirs"}])).await;
        terminal.until("script:");
        terminal.until_line("theirs");
        terminal.end_input();
        assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
    }
}

#[test]
fn questions_are_answered_in_place_and_prompts_wait_while_a_turn_runs() {
    let host = Host::start();
    let place = &host.place;
    let first = place.run(&["run", &script(&json!([{"say": "x"}]))]);
    assert_eq!(first.code, Some(0));
    let list: Value = serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    let uri = list["sessions"][0]["resource"].as_str().unwrap().to_owned();
    let id = uri.split('/').next_back().unwrap();
    let mut terminal = Terminal::run(place, &["attach", &id[..6]]);
    terminal.until("Ctrl-D leaves");
    let asks = json!([{"ask": {"message": "Before we begin", "questions": [
        {"id": "colour", "title": "Colour", "message": "Which one?", "required": true,
            "kind": {"one": {"options": [
                {"id": "r", "label": "Red", "description": null, "recommended": false},
                {"id": "b", "label": "Blue", "description": "like the sky", "recommended": true}], "freeform": false}}},
        {"id": "sure", "title": null, "message": "Sure?", "required": true, "kind": {"yesOrNo": {"default": null}}}]}},
        {"tool": {"name": "sh", "permission": "shell", "output": "out"}}, {"say": "all asked"}]);
    terminal.enter(&script(&asks));
    terminal.until("Before we begin");
    terminal.until("Which one?");
    terminal.until("Blue (recommended) – like the sky");
    terminal.enter("3");
    terminal.until("not one of the options");
    terminal.enter("2");
    terminal.until("Sure?");
    terminal.enter("yes");
    terminal.until("answered");
    // Another client answers.
    terminal.until("[y/n]");
    assert_eq!(place.run(&["approve", &uri]).code, Some(0));
    terminal.until("answered elsewhere");
    terminal.until("all asked");

    terminal.enter(&script(&json!([{"reason": "working"}, {"hang": true}])));
    terminal.until("\x1b[2mworking");
    terminal.enter(&script(&json!([{"say": "at last"}])));
    terminal.until("queued:");
    terminal.interrupt();
    terminal.until("cancelling");
    terminal.until("cancelled");
    terminal.until_line("at last");
    // Nothing runs: it leaves.
    terminal.interrupt();
    assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
}

#[test]
fn a_paste_is_one_prompt_that_can_be_edited_and_the_input_line_stays_below_the_stream() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["run", &script(&json!([{"say": "x"}]))]).code, Some(0));
    let mut terminal = Terminal::run_in(place, &["attach", "@last"], 80);
    terminal.until("Ctrl-D leaves");
    terminal.until("\x1b[?2004h");
    terminal.until("›");
    // Three lines, pasted: nothing is sent before Enter is pressed.
    terminal.press("\x1b[200~one\r\ntwo\rthree\x1b[201~");
    terminal.until("three");
    let turns = || {
        let shown: Value = serde_json::from_str(&place.run(&["show", "@last", "--json"]).stdout).unwrap();
        let texts = shown["turns"].as_array().unwrap().iter().map(|turn| turn["message"]["text"].clone());
        texts.collect::<Vec<Value>>()
    };
    assert_eq!(turns().len(), 1);
    // Left, a character, and the end of the line: the text is edited where the cursor is.
    terminal.press("\x1b[D\x1b[D!\x05?");
    terminal.until("thr!ee?");
    terminal.press("\r");
    terminal.until("[y/n]");
    assert_eq!(turns().len(), 2, "one paste is one prompt");
    assert_eq!(turns()[1], "one\ntwo\nthr!ee?");
    terminal.press("n\r");
    terminal.until("denied");
    assert_eq!(place.run(&["wait", "@last"]).code, Some(0));
    // A text that is being written survives the agent's output, and is below it.
    terminal.press("half a tho");
    terminal.until("half a tho");
    assert_eq!(place.run(&["send", "@last", &script(&json!([{"say": "one\ntwo"}]))]).code, Some(0));
    terminal.until_line("one");
    terminal.until_line("two");
    terminal.until("half a tho");
    // Ctrl-C clears it, and a second one leaves.
    terminal.press("\x03");
    terminal.until("›");
    terminal.press("\x03");
    assert_eq!(terminal.exit(), Some(0));
    assert!(terminal.screen().contains("\x1b[?2004l"), "the terminal is as before: {:?}", terminal.screen());
}

#[test]
fn ctrl_c_as_a_key_cancels_the_turn_and_earlier_prompts_are_recalled() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["run", &script(&json!([{"say": "x"}]))]).code, Some(0));
    let mut terminal = Terminal::run_in(place, &["attach", "@last"], 120);
    terminal.until("›");
    let hang = script(&json!([{"hang": true}]));
    terminal.enter(&hang);
    terminal.until("waiting for the agent");
    terminal.press("\x03");
    terminal.until("cancelling");
    terminal.until("cancelled");
    terminal.press("\x1b[A");
    terminal.until("hang");
    terminal.press("\x15\x04");
    assert_eq!(terminal.exit(), Some(0));
}

#[test]
fn two_command_lines_on_one_session_see_the_same() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["run", &script(&json!([{"title": "Shared"}]))]).code, Some(0));
    let list: Value = serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    let uri = list["sessions"][0]["resource"].as_str().unwrap().to_owned();
    let mut first = Terminal::run(place, &["attach", &uri]);
    let mut second = Terminal::run(place, &["attach", &uri]);
    first.until("Shared");
    for terminal in [&mut first, &mut second] {
        terminal.until("Ctrl-D leaves");
        // The one that came later finds the other one, which is told of it.
        terminal.until("owner (Grove's command line)");
    }
    first.enter(&script(&json!([{"say": "spoken once"}, {"tool": {"name": "sh", "permission": "shell"}}])));
    for terminal in [&mut first, &mut second] {
        terminal.until_line("spoken once");
        terminal.until("[y/n]");
    }
    second.enter("n");
    for terminal in [&mut first, &mut second] {
        terminal.until("denied by owner (Grove's command line)");
    }
    first.end_input();
    assert_eq!(first.exit(), Some(0));
    second.until("owner (Grove's command line) has left");
    second.end_input();
    assert_eq!(second.exit(), Some(0));
}

#[test]
fn json_is_the_envelopes_and_a_session_that_goes_ends_it() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["run", &script(&json!([]))]).code, Some(0));
    let list: Value = serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    let uri = list["sessions"][0]["resource"].as_str().unwrap().to_owned();
    let attached = BackgroundCommand::start(place, &["attach", "--json", &uri]);
    host.until_connections(1);
    // It is connected, but may not be subscribed yet: its output starts then.
    let mut shown = BackgroundCommand::start(place, &["attach", &uri]);
    shown.until("session");
    assert_eq!(place.run(&["send", "--wait", &uri, &script(&json!([{"reason": "aha\n"}]))]).code, Some(0));
    shown.until("aha");
    assert_eq!(place.run(&["rm", "--yes", &uri]).code, Some(0));
    shown.until("was removed");
    assert_eq!(shown.end().0, Some(0));
    let (code, stdout) = attached.end();
    assert_eq!(code, Some(0));
    let kinds: Vec<String> = stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"]["type"].as_str().unwrap().to_owned())
        .collect();
    assert!(kinds.contains(&"chat/turnComplete".to_owned()), "{kinds:?}");
}

#[test]
fn a_session_that_is_not_there_is_an_error_with_its_own_code() {
    let host = Host::start();
    for protocol in ["ahp", "v1"] {
        for command in [&["attach"][..], &["cancel"], &["approve"], &["deny"], &["rm", "--yes"]] {
            let ran = host.place.run(&[command, &["nowhere", "--protocol", protocol]].concat());
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(8), ""), "{command:?}");
            assert!(ran.stderr.contains("\"nowhere\"") && ran.stderr.contains("grove ls"), "{}", ran.stderr);
        }
    }
}

#[test]
fn a_host_that_comes_back_is_found_again() {
    let host = Host::start();
    let place = host.place.clone();
    assert_eq!(place.run(&["run", &script(&json!([{"title": "Lasting"}]))]).code, Some(0));
    let list: Value = serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    let uri = list["sessions"][0]["resource"].as_str().unwrap().to_owned();
    let mut attached = BackgroundCommand::start(&place, &["attach", &uri]);
    attached.until("Lasting");
    let address = host.address.clone();
    host.kill();
    attached.until("the connection was lost");
    let host = place.serve(&["--listen", &address]);
    attached.until("connected again");
    assert_eq!(place.run(&["send", &uri, &script(&json!([{"reason": "here again\n"}]))]).code, Some(0));
    attached.until("here again");
    drop(host);
}

#[test]
fn envelopes_that_nobody_reads_end_it() {
    let host = Host::start();
    let place = &host.place;
    assert_eq!(place.run(&["run", &script(&json!([]))]).code, Some(0));
    let list: Value = serde_json::from_str(&place.run(&["ls", "--json"]).stdout).unwrap();
    let uri = list["sessions"][0]["resource"].as_str().unwrap().to_owned();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.grove(&["attach", "--json", &uri]);
    let mut child = command.arg("--data-dir").arg(place.data()).stdout(writer).spawn().unwrap();
    let deadline = Deadline::new("it goes on");
    while child.try_wait().unwrap().is_none() {
        place.run(&["send", "--wait", &uri, &script(&json!([]))]);
        deadline.check();
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
