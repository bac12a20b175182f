//! Damaged and missing logs come back from the journal, or are reported.

use grove_fs::SessionFs;
use grove_host::Config;
use grove_storage::verify_session;
use grove_testkit::ahp;
use serde_json::{Value, json};

use super::{FILE, LOG, URI, file, killed_after_three_turns, let_events_go, settle, turns};
use crate::harness::{TestHost, until};

#[derive(Clone, Copy, Debug)]
enum DamageKind {
    Delete,
    Empty,
    TearLastLine,
    LoseHalf,
    /// In its middle, so that a line cannot be read.
    FlipBit,
}

async fn harm(host: &TestHost, what: DamageKind) {
    harm_log(host, LOG, what).await;
}

async fn harm_log(host: &TestHost, log: &str, harm: DamageKind) {
    let mut bytes = host.sessions.read_file(log).await.unwrap();
    let length = bytes.len() as u64;
    match harm {
        DamageKind::Delete => host.sessions.rm(log, grove_fs::Removal::One).await.unwrap(),
        DamageKind::Empty => host.sessions.truncate(log, 0).await.unwrap(),
        DamageKind::TearLastLine => host.sessions.truncate(log, length - 9).await.unwrap(),
        DamageKind::LoseHalf => host.sessions.truncate(log, length / 2).await.unwrap(),
        DamageKind::FlipBit => {
            let at = bytes.len() / 2 + bytes[bytes.len() / 2..].iter().position(|byte| *byte == b'{').unwrap();
            bytes[at] ^= 1;
            host.sessions.write_file(log, &bytes).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_log_that_lost_something_come_back_from_the_journal() {
    for what in [DamageKind::Delete, DamageKind::Empty, DamageKind::TearLastLine, DamageKind::LoseHalf] {
        let mut host = killed_after_three_turns().await;
        let before = host.sessions.read_file(LOG).await.unwrap();
        harm(&host, what).await;
        assert_eq!(verify_session(&host.sessions, &"s".into()).await.len(), 1, "{what:?}: check finds it first");
        host.restart(Config::default()).await;
        assert_eq!(host.damage.len(), 1, "{what:?}: {:?}", host.damage);
        assert!(host.damage[0].contains("restored from the journal, none is lost"), "{what:?}: {:?}", host.damage);
        assert_eq!(host.host.damage(), host.damage, "status tells it");
        assert_eq!(turns(&host).await, ["t1", "t2", "t3"], "{what:?}");
        let after = host.sessions.read_file(LOG).await.unwrap();
        let lines = |log: &[u8]| log.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines(&after), lines(&before), "{what:?}: each line is there once");
        assert_eq!(verify_session(&host.sessions, &"s".into()).await, Vec::<String>::new(), "{what:?}");
        host.kill_and_restart(Config::default()).await;
        assert_eq!(turns(&host).await, ["t1", "t2", "t3"], "{what:?}: it is told once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_a_power_cut_left_half_in_the_log_is_there_once_and_whole() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "one"}])).await;
    settle(&host, &mut client, 1).await;
    let known = host.sessions.read_file(FILE).await.unwrap();
    client
        .run_script(URI, "t2", json!([{"say": "two"}, {"tool": {"name": "ls", "output": "x"}}, {"say": "three"}]))
        .await;
    settle(&host, &mut client, 2).await;
    host.kill().await;
    let (all, log) = (client.session(URI).turns.clone(), host.sessions.read_file(LOG).await.unwrap());
    let begins =
        usize::try_from(serde_json::from_slice::<Value>(&known).unwrap()["chat"]["log"]["bytes"].as_u64().unwrap());
    let mut host = host;
    let journal = host.journal.bytes.lock().unwrap().clone();
    for cut in (begins.unwrap()..=log.len()).step_by(41) {
        // As if everything after the last sync had not reached the disk.
        host.sessions.write_file(FILE, &known).await.unwrap();
        host.sessions.write_file(LOG, &log[..cut]).await.unwrap();
        *host.journal.bytes.lock().unwrap() = journal.clone();
        host.restart(Config::default()).await;
        assert_eq!(host.damage, Vec::<String>::new(), "cut at {cut}");
        let mut late = host.client("late").await;
        late.subscribe(URI).await.unwrap();
        assert_eq!(late.session(URI).turns, all, "cut at {cut}");
        // Wakes the session's task, which writes its folder.
        late.dispatch(json!({"type": "session/modelChanged", "session": URI, "model": "scripted"})).await;
        settle(&host, &mut late, 2).await;
        host.kill_and_restart(Config::default()).await;
        let mut late = host.client("later").await;
        late.subscribe(URI).await.unwrap();
        assert_eq!(late.session(URI).turns, all, "cut at {cut}, and written again");
        host.kill().await;
    }
}

#[tokio::test(start_paused = true)]
async fn branches_of_a_deleted_log_come_back_from_the_journal() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for turn in ["t1", "t2"] {
        client.run_script(&chat, turn, json!([{"say": format!("answer {turn}")}])).await;
    }
    client.dispatch(&chat, json!({"type": "chat/truncated", "turnId": "t1"})).await;
    client.until(|client| client.chat(&chat).turns.len() == 1).await;
    client.run_script(&chat, "t3", json!([{"say": "another branch"}])).await;
    let mut looking = host.client("b").await;
    looking.subscribe(URI).await.unwrap();
    settle(&host, &mut looking, 3).await;
    host.kill().await;
    let before = host.sessions.read_file(LOG).await.unwrap();
    harm(&host, DamageKind::Delete).await;
    host.restart(Config::default()).await;
    assert!(host.damage[0].contains("3 turns are restored from the journal, none is lost"), "{:?}", host.damage);
    assert_eq!(turns(&host).await, ["t1", "t3"]);
    let ids = |log: &[u8]| grove_tree::open(log.to_vec(), &mut String::new).unwrap().index().len();
    assert_eq!(ids(&host.sessions.read_file(LOG).await.unwrap()), ids(&before), "the branch that was left as well");
}

#[tokio::test(start_paused = true)]
async fn turns_that_nobody_has_any_more_are_counted_as_lost() {
    for (what, left) in [(DamageKind::Delete, vec![]), (DamageKind::TearLastLine, vec!["t1", "t2"])] {
        let mut host = killed_after_three_turns().await;
        harm(&host, what).await;
        let_events_go(&host);
        host.restart(Config::default()).await;
        let lost = 3 - left.len();
        let words = if lost == 1 { "1 turn is lost".to_owned() } else { format!("{lost} turns are lost") };
        assert!(host.damage.len() == 1 && host.damage[0].contains(&words), "{what:?}: {:?}", host.damage);
        let turns = turns(&host).await;
        assert!(turns.iter().map(String::as_str).take(2).eq(left), "{what:?}: {turns:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn check_finds_a_flipped_bit_wherever_it_is() {
    let host = killed_after_three_turns().await;
    let whole = host.sessions.read_file(LOG).await.unwrap();
    assert_eq!(verify_session(&host.sessions, &"s".into()).await, Vec::<String>::new());
    for at in (0..whole.len()).step_by(7) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        host.sessions.write_file(LOG, &flipped).await.unwrap();
        let found = verify_session(&host.sessions, &"s".into()).await;
        assert!(found.len() == 1 && found[0].contains("session s: its log"), "at {at}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flipped_bit_anywhere_in_a_log_is_undone_from_the_journal() {
    let mut host = killed_after_three_turns().await;
    let whole = host.sessions.read_file(LOG).await.unwrap();
    let journal = host.journal.bytes.lock().unwrap().clone();
    let known = host.sessions.read_file(FILE).await.unwrap();
    for at in (0..whole.len()).step_by(43) {
        let mut flipped = whole.clone();
        flipped[at] ^= 1;
        host.sessions.write_file(LOG, &flipped).await.unwrap();
        host.sessions.write_file(FILE, &known).await.unwrap();
        *host.journal.bytes.lock().unwrap() = journal.clone();
        host.restart(Config::default()).await;
        assert!(host.damage.len() == 1, "at {at}: {:?}", host.damage);
        assert!(
            host.damage[0].contains("it is restored as it was from the journal, none is lost"),
            "{:?}",
            host.damage
        );
        let kept = host.damage[0].rsplit(' ').next().unwrap();
        assert_eq!(host.sessions.read_file(kept).await.unwrap(), flipped, "at {at}: it is kept");
        assert!(host.sessions.read_file(LOG).await.unwrap() == whole, "at {at}: every byte is what it was");
        assert_eq!(turns(&host).await, ["t1", "t2", "t3"], "at {at}");
        host.kill().await;
    }
}

/// Takes the events out of the journal that came before a turn, as if its older segments had gone.
fn let_events_before_go(host: &TestHost, turn: &str) {
    let mut bytes = host.journal.bytes.lock().unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    let starts = |line: &str| line.contains("turnStarted") && line.contains(&format!(r#""turn":"{turn}""#));
    let first = text.lines().position(starts).unwrap();
    let is_event = |line: &str| line[9..].starts_with(r#"{"event""#) || line[9..].starts_with(r#"{"mark""#);
    let left = text.lines().enumerate().filter(|(at, line)| *at >= first || !is_event(line));
    *bytes = left.flat_map(|(_, line)| [line.as_bytes(), b"\n"].concat()).collect();
}

#[tokio::test(start_paused = true)]
async fn turns_in_the_middle_of_a_log_come_back_from_a_journal_that_begins_later() {
    let whole = "grove.turnEnd";
    let mut host = killed_after_three_turns().await;
    let before = host.sessions.read_file(LOG).await.unwrap();
    let text = String::from_utf8(before.clone()).unwrap();
    let second = text.match_indices(whole).nth(1).unwrap().0;
    let mut damaged = text.clone();
    damaged.replace_range(second..second + whole.len(), "grove.turnEne");
    host.sessions.write_file(LOG, damaged.as_bytes()).await.unwrap();
    let_events_before_go(&host, "t2");
    host.restart(Config::default()).await;
    assert!(host.damage[0].contains("it is restored as it was"), "{:?}", host.damage);
    assert_eq!(turns(&host).await, ["t1", "t2", "t3"]);
    assert!(host.sessions.read_file(LOG).await.unwrap() == before);
}

#[tokio::test(start_paused = true)]
async fn damage_that_nobody_can_undo_is_told_and_no_byte_is_changed() {
    let mut host = killed_after_three_turns().await;
    let text = String::from_utf8(host.sessions.read_file(LOG).await.unwrap()).unwrap();
    // The end of the first turn, of which the journal has nothing any more.
    let damaged = text.replacen("grove.turnEnd", "grove.turnEne", 1);
    host.sessions.write_file(LOG, damaged.as_bytes()).await.unwrap();
    let_events_before_go(&host, "t3");
    for _ in 0..2 {
        host.restart(Config::default()).await;
        let damage = host.damage.join(" ");
        assert!(damage.contains("it had 3 turns and has 2, and nobody has what is missing"), "{damage}");
        assert_eq!(host.sessions.read_file(LOG).await.unwrap(), damaged.as_bytes());
        assert_eq!(verify_session(&host.sessions, &"s".into()).await.len(), 1, "check goes on to find it");
        host.kill().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_log_that_another_program_has_rewritten_is_left_as_it_is() {
    let mut host = killed_after_three_turns().await;
    let text = String::from_utf8(host.sessions.read_file(LOG).await.unwrap()).unwrap();
    let rewritten = text.replace("answer t1", "an edited answer t1");
    host.sessions.write_file(LOG, rewritten.as_bytes()).await.unwrap();
    host.restart(Config::default()).await;
    assert_eq!(host.damage, Vec::<String>::new());
    assert_eq!(host.sessions.read_file(LOG).await.unwrap(), rewritten.as_bytes());
}

/// A session with a fork of it as a chat, and another session that is a fork: where each log lies, and what is said there.
async fn with_forks(host: &TestHost) -> Vec<(String, String, Vec<String>)> {
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for turn in ["t1", "t2"] {
        client.run_script(&chat, turn, json!([{"say": format!("answer {turn}")}])).await;
    }
    let further = "ahp-chat:/further";
    let source = json!({"kind": "fork", "chat": chat, "turnId": "t1"});
    client.ask("createChat", json!({"channel": URI, "chat": further, "source": source})).await.unwrap();
    client.subscribe(further).await.unwrap();
    client.run_script(further, "t3", json!([{"say": "answer t3"}])).await;
    let plain = "ahp-chat:/plain";
    client.ask("createChat", json!({"channel": URI, "chat": plain})).await.unwrap();
    client.subscribe(plain).await.unwrap();
    client.run_script(plain, "t5", json!([{"say": "answer t5"}])).await;
    let forked =
        client.ask("x-grove/fork", json!({"channel": URI})).await.unwrap()["session"].as_str().unwrap().to_owned();
    let forked_chat = client.follow(&forked).await;
    client.run_script(&forked_chat, "t4", json!([{"say": "answer t4"}])).await;
    let id = forked.rsplit('/').next().unwrap();
    let logs = [
        (further.to_owned(), "s/chats/further/events.jsonl".to_owned()),
        (plain.to_owned(), "s/chats/plain/events.jsonl".to_owned()),
        (forked_chat, format!("{id}/events.jsonl")),
        (chat, LOG.to_owned()),
    ];
    for (file, turns) in [(FILE.to_owned(), 2), (format!("{id}/session.json"), 3)] {
        until("the sessions' files know their logs", async || {
            let file = host.sessions.read_file(&file).await.unwrap_or_default();
            let file: Value = serde_json::from_slice(&file).unwrap_or_default();
            let chats = file["chats"].as_array().cloned().unwrap_or_default();
            file["chat"]["log"]["turns"] == turns && chats.iter().all(|chat| chat["log"]["turns"].as_u64() > Some(0))
        })
        .await;
    }
    logs.into_iter()
        .map(|(chat, log)| {
            let said = said(&client, &chat);
            (chat, log, said)
        })
        .collect()
}

fn said(client: &ahp::Client, chat: &str) -> Vec<String> {
    client.chat(chat).turns.iter().map(|turn| ahp::markdown(&turn.response_parts)).collect()
}

async fn said_now(host: &TestHost, session: &str, chat: &str) -> Vec<String> {
    let mut client = host.ahp("late").await;
    client.follow(session).await;
    client.subscribe(chat).await.unwrap();
    said(&client, chat)
}

#[tokio::test(start_paused = true)]
async fn logs_of_forks_and_of_further_chats_come_back() {
    for what in
        [DamageKind::Delete, DamageKind::Empty, DamageKind::TearLastLine, DamageKind::LoseHalf, DamageKind::FlipBit]
    {
        let mut host = TestHost::start(Config::default()).await;
        let logs = with_forks(&host).await;
        host.kill().await;
        for (_, log, _) in &logs {
            harm_log(&host, log, what).await;
        }
        host.restart(Config::default()).await;
        assert_eq!(host.damage.len(), logs.len(), "{what:?}: {:?}", host.damage);
        assert!(host.damage.iter().all(|words| words.contains("none is lost")), "{what:?}: {:?}", host.damage);
        for (chat, log, before) in &logs {
            let session = format!("scripted:/{}", log.split('/').next().unwrap());
            assert_eq!(said_now(&host, &session, chat).await, *before, "{what:?}: {log}");
            let session = log.split('/').next().unwrap().into();
            assert_eq!(verify_session(&host.sessions, &session).await, Vec::<String>::new(), "{what:?}");
        }
        host.kill_and_restart(Config::default()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_fork_begins_again_with_what_its_source_has_when_the_journal_is_gone() {
    let mut host = TestHost::start(Config::default()).await;
    let logs = with_forks(&host).await;
    host.kill().await;
    let (chat, log, before) = &logs[2];
    harm_log(&host, log, DamageKind::Delete).await;
    let_events_go(&host);
    host.restart(Config::default()).await;
    assert!(host.damage.len() == 1 && host.damage[0].contains("2 turns are restored"), "{:?}", host.damage);
    assert!(host.damage[0].contains("1 turn is lost"), "{:?}", host.damage);
    let session = format!("scripted:/{}", log.split('/').next().unwrap());
    assert_eq!(said_now(&host, &session, chat).await, before[..2]);
}

#[tokio::test(start_paused = true)]
async fn a_move_of_the_leaf_that_log_and_journal_have_lost_is_made_again() {
    let mut host = TestHost::start(Config::default()).await;
    let mut client = host.ahp("a").await;
    let chat = client.ready_session(URI).await;
    for turn in ["t1", "t2"] {
        client.run_script(&chat, turn, json!([{"say": format!("answer {turn}")}])).await;
    }
    let length = host.sessions.stat(LOG).await.unwrap().size;
    client.dispatch(&chat, json!({"type": "chat/truncated", "turnId": "t1"})).await;
    client.until(|client| client.chat(&chat).turns.len() == 1).await;
    until("the session's file knows the leaf", async || {
        file(&host).await["chat"]["log"]["bytes"].as_u64() > Some(length)
    })
    .await;
    host.kill().await;
    host.sessions.truncate(LOG, length).await.unwrap();
    let_events_go(&host);
    host.restart(Config::default()).await;
    assert!(host.damage.len() == 1 && host.damage[0].contains("none is lost"), "{:?}", host.damage);
    assert_eq!(turns(&host).await, ["t1"], "the conversation goes on where it stood");
    host.kill_and_restart(Config::default()).await;
    // The leaf itself is gone.
    host.kill().await;
    let first = String::from_utf8(host.sessions.read_file(LOG).await.unwrap()).unwrap();
    let keep: usize = first.split_inclusive('\n').take(2).map(str::len).sum();
    host.sessions.truncate(LOG, keep as u64).await.unwrap();
    let_events_go(&host);
    host.restart(Config::default()).await;
    assert!(host.damage[0].contains("at which the conversation stood, is not in it any more"), "{:?}", host.damage);
}
