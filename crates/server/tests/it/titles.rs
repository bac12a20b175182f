//! Titles: normalized wherever they come from, and a log that accepts them without damage.

use grove_fs::SessionFs;
use grove_host::Config;
use grove_testkit::ahp::Client;
use serde_json::{Value, json};

use crate::harness::TestHost;
use crate::tree::{URI, go, rows, said, say};

const LOG: &str = "s/events.jsonl";

async fn log(host: &TestHost) -> String {
    String::from_utf8(host.sessions.read_file(LOG).await.unwrap()).unwrap()
}

async fn rename(client: &mut Client, title: &str) -> Value {
    client.ask("x-grove/rename", json!({"channel": URI, "title": title})).await.unwrap()
}

/// The damage in the log.
async fn damage(host: &TestHost) -> Vec<String> {
    let log = grove_tree::open(log(host).await.into_bytes(), &mut || unreachable!()).unwrap();
    log.index().damage().iter().map(|damage| damage.message.clone()).collect()
}

fn odd_titles() -> [(String, &'static str); 6] {
    [
        ("My session ".into(), "My session"),
        ("  \t".into(), "New session"),
        ("Fix the bug\nand more\n".into(), "Fix the bug and more"),
        (String::new(), "New session"),
        ("a\u{0}\u{1b}[2Jb".into(), "a[2Jb"),
        ("  x".into(), "x"),
    ]
}

#[tokio::test(start_paused = true)]
async fn odd_titles_are_normalised_and_leave_the_log_whole() {
    for (title, expected) in odd_titles() {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.ahp("a").await;
        let chat = client.ready_session(URI).await;
        say(&mut client, &chat, "t1", "one").await;
        say(&mut client, &chat, "t2", "two").await;
        rename(&mut client, "Before").await;
        rename(&mut client, &title).await;
        client.until(|client| client.session(URI).title == expected).await;
        rows(&mut client, json!({})).await;
        let once = log(&host).await;
        for _ in 0..20 {
            rows(&mut client, json!({})).await;
        }
        assert_eq!(log(&host).await, once, "looking at the tree of {title:?} changes nothing");
        let first = rows(&mut client, json!({"filter": "user-only"})).await[0]["id"].clone();
        go(&mut client, first).await;
        client.until(|client| said(client, &chat).is_empty()).await;
        say(&mut client, &chat, "t3", "three").await;
        host.kill_and_restart(Config::default()).await;
        let mut late = host.ahp("late").await;
        late.follow(URI).await;
        assert_eq!(said(&late, &chat), ["three"]);
        assert_eq!(damage(&host).await, Vec::<String>::new(), "{title:?}");
        let expected = if expected == "New session" { "script:[{\"say\":\"three\"}]" } else { expected };
        assert_eq!(late.session(URI).title, expected, "without a title it is called by the first prompt that is shown");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agents_title_is_normalised_too() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    client.run_script(&chat, "t1", json!([{"title": "Fix the bug\n"}, {"say": "one"}])).await;
    assert_eq!(client.session(URI).title, "Fix the bug");
    rows(&mut client, json!({})).await;
    let once = log(&host).await;
    rows(&mut client, json!({})).await;
    assert_eq!(log(&host).await, once);
    host.kill_and_restart(Config::default()).await;
    let mut late = host.ahp("late").await;
    late.follow(URI).await;
    assert_eq!((late.session(URI).title.as_str(), said(&late, &chat)), ("Fix the bug", vec!["one".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn a_session_is_called_by_its_first_prompt_until_somebody_names_it() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    assert_eq!(client.session(URI).title, "New session");
    client.start_turn(&chat, "t1", "\n  Fix the bug  \nin a.rs").await;
    client.until(|client| client.session(URI).title == "Fix the bug").await;
    client.dispatch(&chat, json!({"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})).await;
    client.turn_end(&chat, "t1").await;
    client.run_script(&chat, "t2", json!([{"title": "By the agent"}, {"say": "x"}])).await;
    assert_eq!(client.session(URI).title, "By the agent");
    rename(&mut client, "By me").await;
    host.kill_and_restart(Config::default()).await;
    let mut client = host.ahp("b").await;
    client.follow(URI).await;
    client.run_script(&chat, "t3", json!([{"title": "By the agent again"}, {"say": "x"}])).await;
    assert_eq!(client.session(URI).title, "By me", "an agent never replaces a title that a person gave");
    rename(&mut client, "").await;
    client.until(|client| client.session(URI).title == "New session").await;
    client.run_script(&chat, "t4", json!([{"title": "By the agent at last"}, {"say": "x"}])).await;
    assert_eq!(client.session(URI).title, "By the agent at last");
}

/// A data folder as earlier versions left it, after a title with a blank at its end and some reads of the tree.
#[tokio::test(start_paused = true)]
async fn a_log_that_an_earlier_version_damaged_opens_with_all_its_turns() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    say(&mut client, &chat, "t1", "one").await;
    rename(&mut client, "My session").await;
    say(&mut client, &chat, "t2", "two").await;
    rows(&mut client, json!({})).await;
    let whole = log(&host).await;
    let name = whole.lines().find(|line| line.contains("session_info")).unwrap();
    let id = serde_json::from_str::<Value>(name).unwrap()["id"].as_str().unwrap().to_owned();
    let last = whole.lines().rfind(|line| line.contains(r#""type":"message""#)).unwrap();
    let leaf = serde_json::from_str::<Value>(last).unwrap()["id"].as_str().unwrap().to_owned();
    let again = |parent: &str| json!({"type": "session_info", "id": id, "parentId": parent, "name": "My session "});
    let damaged = format!("{whole}{}\n{}\n{}\n", again(&leaf), again(&id), again(&id));
    host.sessions.write_file(LOG, damaged.as_bytes()).await.unwrap();
    let file = host.sessions.read_text("s/session.json").await.unwrap();
    let file =
        file.replace("\"title\": \"My session\"", "\"title\": \"My session \"").replace("titleSource", "unknown");
    host.sessions.write_file("s/session.json", file.as_bytes()).await.unwrap();
    host.kill_and_restart(Config::default()).await;
    let mut late = host.ahp("late").await;
    late.follow(URI).await;
    assert_eq!(said(&late, &chat), ["one", "two"]);
    assert_eq!(late.session(URI).title, "My session");
    for _ in 0..3 {
        rows(&mut late, json!({})).await;
    }
    assert_eq!(log(&host).await, damaged, "looking adds nothing to it");
    say(&mut late, &chat, "t3", "three").await;
    assert_eq!(said(&late, &chat), ["one", "two", "three"]);
    host.kill_and_restart(Config::default()).await;
    let mut later = host.ahp("later").await;
    later.follow(URI).await;
    assert_eq!(said(&later, &chat), ["one", "two", "three"]);
}
