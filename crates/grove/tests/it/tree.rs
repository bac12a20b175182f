//! `grove tree`, `goto` and `label`; the submodules test new sessions and summaries.

mod sessions;
mod summaries;

use std::process::Command;

use grove_client::{Ahp, Subscription};
use grove_wire::ahp::{CreateChatParams, Message, SessionLifecycle};
use serde_json::{Value, json};

use crate::run::script;
use crate::sessions::{ahp, asked};
use crate::support::*;
use crate::terminal::Terminal;

/// Another chat than the session's main one.
const SIDE: &str = "ahp-chat:/side";

/// The prompt that makes the agent say this.
fn says(text: &str) -> String {
    script(&json!([{"say": text}]))
}

fn say(place: &TestHome, text: &str) {
    let ran = place.run(&["send", "--wait", "s", &says(text)]);
    assert_eq!((ran.code, ran.stdout.trim_end()), (Some(0), text), "{}", ran.stderr);
}

/// A host with the session [`S`], in which the agent has said these texts.
async fn host(texts: &[&str]) -> Host {
    let host = Host::start();
    drop(host.client_with_session("maker").await);
    texts.iter().for_each(|text| say(&host.place, text));
    host
}

fn rows(place: &TestHome, more: &[&str]) -> Vec<Value> {
    let tree = asked(place, &[&["tree", "s", "--json"], more].concat());
    assert_eq!(tree["session"], S);
    tree["rows"].as_array().unwrap().clone()
}

/// The id of the entry with this text; a user message contains the agent's text.
fn entry(place: &TestHome, role: &str, text: &str) -> String {
    let all = rows(place, &[]);
    let row = all.iter().find(|row| row["role"] == role && row["text"].as_str().unwrap().contains(text));
    row.unwrap_or_else(|| panic!("{role} does not say {text} in {all:?}"))["id"].as_str().unwrap().to_owned()
}

/// A beginning of an id that no other entry has.
fn prefix(place: &TestHome, id: &str) -> String {
    let all = rows(place, &["--filter", "all"]);
    let is_unique =
        |length: &usize| all.iter().filter(|row| row["id"].as_str().unwrap().starts_with(&id[..*length])).count() == 1;
    id[..(1..=id.len()).find(is_unique).unwrap()].to_owned()
}

/// The agent's texts on the current branch.
fn said(place: &TestHome) -> Vec<String> {
    let all = rows(place, &[]);
    let active = all.iter().filter(|row| row["active"] == true && row["role"] == "assistant");
    active.map(|row| row["text"].as_str().unwrap().to_owned()).collect()
}

fn goto(place: &TestHome, args: &[&str]) -> String {
    let ran = place.run(&[&["goto", "s"], args].concat());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{args:?}");
    ran.stdout
}

/// The agent's answer when the printed command is run in a shell.
fn sent_again(place: &TestHome, printed: &str) -> String {
    let again = printed.split_once("to send it again: grove ").unwrap().1;
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().env("HOME", place.home()).env("GROVE_DATA_DIR", place.data()).env("GROVE_LISTEN", "127.0.0.1:0");
    shell.args(["-c", &format!("exec \"$0\" {}", again.replacen("send", "send --wait", 1))]);
    let ran = CommandResult::from(shell.arg(env!("CARGO_BIN_EXE_grove")).output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

/// A second chat of the session [`S`], with a turn that began with this message.
async fn side_chat(host: &Host, message: Message) -> Subscription<Ahp> {
    let client = ahp(host).await;
    let mut session = client.subscribe(S).await.unwrap();
    session.until(|state| (state.session()?.lifecycle == SessionLifecycle::Ready).then_some(())).await.unwrap();
    let create = CreateChatParams {
        channel: S.to_owned(),
        chat: SIDE.to_owned(),
        initial_message: Some(message),
        ..Default::default()
    };
    client.request(create).await.unwrap();
    let mut chat = client.subscribe(SIDE).await.unwrap();
    let done = chat.until(|state| (state.chat()?.turns.len() == 1).then_some(()));
    tokio::time::timeout(grove_testkit::PATIENCE, done).await.expect("the turn does not end").unwrap();
    chat
}

#[tokio::test]
async fn the_active_branch_comes_first_and_the_way_to_the_leaf_is_marked() {
    let host = host(&["one", "two", "three"]).await;
    let place = &host.place;
    goto(place, &[&entry(place, "assistant", "one")]);
    say(place, "four");
    let ran = place.run(&["tree", "s"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let all = rows(place, &[]);
    let line = |at: usize, behind: &str| format!("{} {behind}", all[at]["id"].as_str().unwrap());
    let expected = [
        line(0, &format!("| user: {}", says("one"))),
        line(1, "| assistant: one"),
        line(2, &format!("|   user: {}", says("four"))),
        line(3, "*   assistant: four"),
        line(4, &format!("    user: {}", says("two"))),
        line(5, "    assistant: two"),
        line(6, &format!("    user: {}", says("three"))),
        line(7, "    assistant: three"),
    ];
    assert_eq!(ran.stdout.lines().collect::<Vec<_>>(), expected);
    assert_eq!(rows(place, &["--protocol", "v1"]), all, "in either protocol");
    let missing = place.run(&["tree", "nobody"]);
    assert_eq!((missing.code, missing.stdout.as_str()), (Some(8), ""));
}

#[tokio::test]
async fn one_goes_to_an_entry_by_the_beginning_of_its_id_or_by_its_label() {
    let host = host(&["one", "two", "three"]).await;
    let place = &host.place;
    for protocol in ["ahp", "v1"] {
        let one = entry(place, "assistant", "one");
        let gone = goto(place, &[&prefix(place, &one), "--protocol", protocol]);
        assert_eq!(gone, format!("now at {one} (assistant: one)\n"));
        assert_eq!(said(place), ["one"]);
        assert_eq!(goto(place, &[&one, "--protocol", protocol]), format!("still at {one} (assistant: one)\n"));

        let two = entry(place, "assistant", "two");
        let label = format!("the middle of {protocol}");
        goto(place, &[&two, "--label", &label, "--protocol", protocol]);
        goto(place, &[&entry(place, "assistant", "three"), "--protocol", protocol]);
        assert_eq!(said(place), ["one", "two", "three"]);
        let gone = goto(place, &[&label, "--protocol", protocol]);
        assert_eq!(gone, format!("now at {two} (assistant: two)\n"));
        assert_eq!(said(place), ["one", "two"]);
    }
    let two = entry(place, "assistant", "two");
    let still = asked(place, &["goto", "s", &two, "--label", "here", "--json"]);
    assert_eq!(still["moved"], false);
    let named = rows(place, &["--filter", "all"]);
    assert!(named.iter().any(|row| row["id"] == two && row["label"] == "here"), "who stays names it, too: {named:?}");
}

#[tokio::test]
async fn a_message_that_is_gone_to_is_taken_back_and_ready_to_be_sent_again() {
    let host = host(&["one", "it's `two` $HOME"]).await;
    let place = &host.place;
    let gone = goto(place, &[&entry(place, "user", "two")]);
    let one = entry(place, "assistant", "one");
    let (first, second) = gone.split_once('\n').unwrap();
    assert_eq!(first, format!("now at {one} (assistant: one)"));
    assert_eq!(said(place), ["one"]);

    assert_eq!(sent_again(place, second), "it's `two` $HOME\n");
    assert_eq!(said(place), ["one", "it's `two` $HOME"]);

    let gone = asked(place, &["goto", "s", &entry(place, "user", "one"), "--json"]);
    assert_eq!(gone, json!({"session": S, "moved": true, "leaf": null, "text": says("one")}));
}

#[tokio::test]
async fn root_is_before_the_first_entry() {
    let host = host(&[]).await;
    let place = &host.place;
    let empty = place.run(&["tree", "s"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), ""));
    assert!(empty.stderr.contains("before the first entry"), "{}", empty.stderr);
    assert_eq!(goto(place, &["root"]), "still before the first entry\n");
    say(place, "one");
    assert_eq!(goto(place, &["root"]), "now before the first entry\n");
    assert_eq!(said(place), Vec::<String>::new());
    let tree = place.run(&["tree", "s"]);
    assert_eq!((tree.code, tree.stdout.lines().count()), (Some(0), 2), "nothing is lost: {}", tree.stdout);
    assert!(tree.stderr.contains("before the first entry"), "{}", tree.stderr);
    say(place, "two");
    assert_eq!(said(place), ["two"]);
    let roots = rows(place, &[]).iter().filter(|row| row["parent"].is_null()).count();
    assert_eq!(roots, 2);
}

#[tokio::test]
async fn a_label_names_an_entry_until_it_is_taken_away() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let one = entry(place, "assistant", "one");
    let named = place.run(&["label", "s", &prefix(place, &one), "good"]);
    assert_eq!((named.code, named.stdout), (Some(0), format!("{one} has the label good\n")), "{}", named.stderr);
    let tree = place.run(&["tree", "s"]).stdout;
    assert!(tree.lines().any(|line| line == format!("{one} | assistant [good]: one")), "{tree}");
    assert_eq!(said(place), ["one", "two"], "naming moves nobody");

    let renamed = asked(place, &["label", "s", "good", "better", "--json", "--protocol", "v1"]);
    assert_eq!(renamed, json!({"session": S, "entry": one, "label": "better", "leaf": renamed["leaf"]}));
    assert_eq!(place.run(&["goto", "s", "good"]).code, Some(8), "it is not called so any more");
    let unnamed = place.run(&["label", "s", "better"]);
    assert_eq!((unnamed.code, unnamed.stdout), (Some(0), format!("{one} has no label\n")), "{}", unnamed.stderr);
    assert!(rows(place, &["--filter", "all"]).iter().all(|row| row["label"].is_null()));
}

#[tokio::test]
async fn sessions_and_their_chats_are_renamed_and_keep_their_names() {
    let host = host(&["one"]).await;
    let chat = side_chat(&host, Message { text: says("sideways"), ..Message::default() }).await;
    let client = ahp(&host).await;
    let mut session = client.subscribe(S).await.unwrap();
    let place = &host.place;
    let named = place.run(&["rename", "s", "--chat", "side", "The \x1b[2Jreview"]);
    assert_eq!(
        (named.code, named.stdout),
        (Some(0), format!("{SIDE} is now called The [2Jreview\n")),
        "{}",
        named.stderr
    );
    let told = session.until(|state| (state.session()?.chats[1].title == "The [2Jreview").then_some(()));
    tokio::time::timeout(grove_testkit::PATIENCE, told).await.expect("nobody is told").unwrap();
    let whole = asked(place, &["rename", "s", "The work", "--json", "--protocol", "v1"]);
    assert_eq!(whole, json!({"session": S, "chat": null, "title": "The work"}));
    let again = asked(place, &["rename", "s", "--chat", SIDE, "Review", "--json"]);
    assert_eq!(again, json!({"session": S, "chat": SIDE, "title": "Review"}));
    assert_eq!(place.run(&["rename", "s", "--chat", "no", "x"]).code, Some(8));
    let manifest = client.request_raw::<Value>("x-grove/workspace/manifest", &json!({"channel": S})).await.unwrap();
    assert_eq!((&manifest["name"], &manifest["userNamed"]), (&json!("The work"), &json!(true)));
    drop((chat, session, client));
    let host = host.kill().serve(&[]);
    assert_eq!(names(&host).await, ["The work", "Review"]);
    let host = host.stop().serve(&[]);
    assert_eq!(names(&host).await, ["The work", "Review"]);
    let client = ahp(&host).await;
    let entries = client.request_raw::<Value>("x-grove/entries", &json!({"channel": SIDE})).await.unwrap();
    let entries = entries["entries"].as_array().unwrap().clone();
    assert!(entries.iter().any(|entry| entry["type"] == "session_info" && entry["name"] == "Review"), "{entries:?}");
}

/// The host's titles of the session [`S`] and its second chat.
async fn names(host: &Host) -> [String; 2] {
    let session = ahp(host).await.subscribe(S).await.unwrap();
    session.read(|state| {
        let session = state.session().unwrap();
        [session.title.clone(), session.chats[1].title.clone()]
    })
}

#[tokio::test]
async fn filters_and_words_choose_what_is_shown() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let tool = script(&json!([{"tool": {"name": "sh", "output": "a result"}}, {"say": "three"}]));
    assert_eq!(place.run(&["send", "--wait", "s", &tool]).code, Some(0));
    let one = entry(place, "assistant", "one");
    assert_eq!(place.run(&["label", "s", &one, "good"]).code, Some(0));
    say(place, "four");

    let without_leaf = |args: &[&str]| -> Vec<Value> {
        let all = rows(place, args);
        assert_eq!(all.iter().filter(|row| row["leaf"] == true).count(), 1, "the leaf is always shown");
        all.into_iter().filter(|row| row["leaf"] == false).collect()
    };
    let tools = |rows: &[Value]| rows.iter().filter(|row| row["text"].as_str().unwrap() == "sh a result").count();
    let whole = without_leaf(&[]);
    assert_eq!((rows(place, &["--filter", "default"]).len(), tools(&whole)), (whole.len() + 1, 1), "{whole:?}");
    let no_tools = without_leaf(&["--filter", "no-tools"]);
    assert_eq!((no_tools.len(), tools(&no_tools)), (whole.len() - 1, 0), "{no_tools:?}");
    // The position is the nearest row that the filter shows.
    let user = rows(place, &["--filter", "user-only"]);
    assert!(user.len() == 4 && user.iter().all(|row| row["role"] == "user"), "{user:?}");
    assert_eq!(user.iter().filter(|row| row["leaf"] == true).count(), 1, "{user:?}");
    let labeled = rows(place, &["--filter", "labeled-only"]);
    assert!(labeled.len() == 1 && labeled[0]["id"] == one && labeled[0]["label"] == "good", "{labeled:?}");
    assert!(without_leaf(&["--filter", "all"]).iter().any(|row| row["kind"] == "label"));
    let found = without_leaf(&["--search", "ASSISTANT tw"]);
    assert!(found.len() == 1 && found[0]["text"] == "two", "{found:?}");
    assert_eq!(place.run(&["tree", "s", "--filter", "some"]).code, Some(2));
}

#[tokio::test]
async fn an_entry_that_is_not_there_exits_with_8_and_changes_nothing() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let before = rows(place, &["--filter", "all"]);
    for args in [
        &["goto", "s", "nothing-of-that-name"][..],
        &["goto", "s", ""],
        &["goto", "s", "nothing-of-that-name", "--label", "x", "--json"],
        &["label", "s", "nothing-of-that-name", "x"],
        &["label", "s", "root", "x"],
        &["goto", "nobody", "root"],
        &["goto", "s", "nothing-of-that-name", "--summarize"],
        &["branch", "s", "nothing-of-that-name"],
        &["branch", "s", "root", "--json"],
        &["branch", "nobody", "root"],
        &["fork", "nobody"],
        &["merge", "s", "nothing-of-that-name"],
        &["merge", "nobody", "root"],
        &["compact", "nobody", "--json"],
    ] {
        let ran = place.run(args);
        assert_eq!(ran.code, Some(8), "{args:?}");
        match args.contains(&"--json") {
            true => {
                let said: Value = serde_json::from_str(&ran.stdout).unwrap();
                assert_eq!(said["error"]["code"], "notFound", "{args:?}: {said}");
            }
            false => assert_eq!(ran.stdout, "", "{args:?}"),
        }
        assert!(ran.stderr.contains("there is no") && ran.stderr.contains("`grove "), "{}", ran.stderr);
    }
    assert_eq!(rows(place, &["--filter", "all"]), before);
}

#[tokio::test]
async fn nobody_goes_elsewhere_while_a_turn_runs() {
    let host = host(&["one", "two"]).await;
    let place = &host.place;
    let one = entry(place, "assistant", "one");
    let mut client = host.subscriber("watcher").await;
    client.script(S, "hanging", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    for args in
        [&["goto", "s", &one][..], &["goto", "s", "root", "--summarize"], &["merge", "s", &one], &["compact", "s"]]
    {
        let ran = place.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{args:?}");
        assert!(ran.stderr.contains("a turn is running"), "{}", ran.stderr);
    }
    assert_eq!(place.run(&["label", "s", &one, "x"]).code, Some(0), "naming moves nobody");
    assert_eq!(said(place), ["one", "two"]);
    assert_eq!(place.run(&["cancel", "s"]).code, Some(0));
    client.until(|client| client.session(S).active_turn.is_none()).await;
    assert_eq!(goto(place, &[&one]), format!("now at {one} (assistant: one)\n"));
}

#[tokio::test]
async fn each_chat_has_a_tree_of_its_own() {
    let host = host(&["one"]).await;
    let place = &host.place;
    let mut chat = side_chat(&host, Message { text: says("sideways"), ..Message::default() }).await;

    for name in ["side", SIDE] {
        let tree = rows(place, &["--chat", name]);
        assert_eq!(tree.iter().map(|row| row["text"].as_str().unwrap()).next_back(), Some("sideways"), "{tree:?}");
    }
    assert_eq!(goto(place, &["root", "--chat", "side"]), "now before the first entry\n");
    chat.until(|state| state.chat()?.turns.is_empty().then_some(())).await.unwrap();
    assert_eq!(said(place), ["one"], "the main chat is where it was");
    for wrong in ["", "nowhere", "ahp-chat:"] {
        let ran = place.run(&["tree", "s", "--chat", wrong]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(8), ""), "{}", ran.stderr);
    }
    let ran = place.run(&["tree", "s", "--chat", "side", "--protocol", "v1"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("main chat"), "{}", ran.stderr);
}

#[tokio::test]
async fn on_a_terminal_lines_have_colours_and_are_cut_to_its_width() {
    let host = host(&["a word and another and one more and even more than that"]).await;
    let place = &host.place;
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().env("HOME", place.home()).env("GROVE_DATA_DIR", place.data()).env("TERM", "xterm");
    shell.env("GROVE_LISTEN", "127.0.0.1:0");
    shell.args(["-c", "stty cols 40 && exec \"$0\" tree s", env!("CARGO_BIN_EXE_grove")]);
    let mut terminal = Terminal::start(shell);
    terminal.until("* assistant: a word and");
    terminal.until("…\x1b[0m");
    assert_eq!(terminal.exit(), Some(0), "{}", terminal.screen());
    let screen = terminal.screen();
    let leaf = screen.lines().last().unwrap().trim_end();
    let seen = leaf.strip_prefix("\x1b[32m").unwrap().strip_suffix("\x1b[0m").unwrap();
    assert!((30..=40).contains(&seen.chars().count()), "{screen:?}");
    assert!(!place.run(&["tree", "s"]).stdout.contains(['\x1b', '…']), "what is no terminal gets the whole line");
}

#[tokio::test]
async fn a_tree_of_several_pages_is_shown_whole() {
    let host = host(&[]).await;
    let place = &host.place;
    let tools = 2_100;
    let steps: Vec<Value> =
        (0..tools).map(|at| json!({"tool": {"name": "t", "output": format!("out {at}")}})).collect();
    let ran = place.run(&["send", "--wait", "s", &script(&json!(steps))]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let all = rows(place, &[]);
    let results: Vec<&str> = all.iter().filter_map(|row| row["text"].as_str()?.strip_prefix("t out ")).collect();
    let expected: Vec<String> = (0..tools).map(|at| at.to_string()).collect();
    assert_eq!(results, expected, "each one once, in order");
}
