//! Truncated logs, files and journals: everything possible is restored, and the rest is reported.

use std::sync::Arc;

use grove_fs::SessionFs;
use grove_host::{Config, FileJournal, Journal, Limits, SyncMode, verify_all, verify_session};
use grove_testkit::ahp::ReconnectOutcome;
use grove_testkit::{Client, ahp};
use grove_wire::v1::TurnState;
use serde_json::{Value, json};

use crate::harness::{TestHost, until};

const URI: &str = "scripted:/s";
const LOG: &str = "s/events.jsonl";
const FILE: &str = "s/session.json";

/// A host that was killed after three turns, all of them in the session's folder.
async fn killed_after_three_turns() -> TestHost {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    for turn in ["t1", "t2", "t3"] {
        client.run_script(URI, turn, json!([{"say": format!("answer {turn}")}])).await;
    }
    settle(&host, &mut client, 3).await;
    host.kill().await;
    host
}

/// Waits until the session's file says that the log has so many turns.
async fn settle(host: &TestHost, client: &mut Client, turns: u64) {
    for _ in 0..1_000 {
        if file(host).await["chat"]["log"]["turns"] == turns {
            return;
        }
        client.must_agree(URI).await;
    }
    panic!("the session's file does not say that its log has {turns} turns: {}", file(host).await);
}

async fn file(host: &TestHost) -> Value {
    let bytes = host.sessions.read_file(FILE).await.unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

async fn turns(host: &TestHost) -> Vec<String> {
    let mut client = host.client("late").await;
    client.subscribe(URI).await.unwrap();
    client.session(URI).turns.iter().map(|turn| turn.id.clone()).collect()
}

/// Removes every event from the journal, as if its segments were deleted.
fn let_events_go(host: &TestHost) {
    let mut bytes = host.journal.bytes.lock().unwrap();
    let is_event = |line: &&[u8]| {
        let record: Value = serde_json::from_slice(&line[9..]).unwrap();
        record["event"].is_object() || record["mark"].is_object()
    };
    *bytes = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_event(line)).flatten().copied().collect();
}

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

#[tokio::test(start_paused = true)]
async fn a_journal_that_is_gone_is_told_and_the_folders_are_used() {
    let mut host = killed_after_three_turns().await;
    host.journal.bytes.lock().unwrap().clear();
    host.restart(Config::default()).await;
    assert!(host.damage.len() == 1 && host.damage[0].contains("the journal holds none"), "{:?}", host.damage);
    assert_eq!(turns(&host).await, ["t1", "t2", "t3"]);
}

#[tokio::test(start_paused = true)]
async fn a_session_of_which_only_the_log_is_left_is_made_again_from_it() {
    let mut host = killed_after_three_turns().await;
    host.journal.bytes.lock().unwrap().clear();
    host.sessions.rm(FILE, grove_fs::Removal::One).await.unwrap();
    host.restart(Config::default()).await;
    assert!(host.damage.len() == 1 && host.damage[0].contains("rebuilt from its log"), "{:?}", host.damage);
    assert_eq!(turns(&host).await, ["t1", "t2", "t3"]);
    host.kill_and_restart(Config::default()).await;
    let mut client = host.client("a").await;
    client.subscribe(URI).await.unwrap();
    assert_eq!(client.run_script(URI, "t4", json!([{"say": "on"}])).await.state, TurnState::Complete);
}

#[tokio::test(start_paused = true)]
async fn a_number_that_no_host_gives_is_not_believed() {
    for number in [u64::MAX, u64::MAX - 1, 1 << 53, (1 << 53) - 1] {
        let mut host = killed_after_three_turns().await;
        let mut odd = file(&host).await;
        let seen = odd["seq"].as_u64().unwrap();
        odd["seq"] = number.into();
        host.sessions.write_file(FILE, &serde_json::to_vec(&odd).unwrap()).await.unwrap();
        host.restart(Config::default()).await;
        assert!(host.damage.len() == 1 && host.damage[0].contains("impossible sequence number"), "{:?}", host.damage);
        let status = host.host.status().await.unwrap();
        assert!(status.server_seq > seen && status.server_seq < 1 << 53, "{number}: {}", status.server_seq);
        assert_eq!(turns(&host).await, ["t1", "t2", "t3"]);
        let mut client = host.client("a").await;
        client.subscribe(URI).await.unwrap();
        client.run_script(URI, "t4", json!([{"say": "on"}])).await;
        client.must_agree(URI).await;
    }
}

#[tokio::test(start_paused = true)]
async fn times_that_no_clock_shows_are_replaced_and_told() {
    for odd in ["18446744073709551615", "9007199254740993", "18446744073709551616", "-1", "1e300"] {
        let mut host = killed_after_three_turns().await;
        let text = String::from_utf8(host.sessions.read_file(FILE).await.unwrap()).unwrap();
        let is_time = |line: &str| ["createdAt", "modifiedAt", "touchedAt"].iter().any(|name| line.contains(name));
        let lines = text.lines().map(|line| match line.split_once(": ") {
            Some((name, value)) if is_time(name) => {
                format!("{name}: {odd}{}\n", if value.ends_with(',') { "," } else { "" })
            }
            _ => format!("{line}\n"),
        });
        host.sessions.write_file(FILE, lines.collect::<String>().as_bytes()).await.unwrap();
        let found = verify_session(&host.sessions, &"s".into()).await;
        assert!(found.len() == 1 && found[0].contains("times that no clock shows"), "{odd}: {found:?}");
        let_events_go(&host);
        host.restart(Config::default()).await;
        assert!(
            host.damage.iter().any(|words| words.contains("times that no clock shows")),
            "{odd}: {:?}",
            host.damage
        );
        assert_eq!(turns(&host).await, ["t1", "t2", "t3"], "{odd}");
        let mut client = host.client("a").await;
        client.subscribe(URI).await.unwrap();
        client.run_script(URI, "t4", json!([{"say": "on"}])).await;
        client.must_agree(URI).await;
        settle(&host, &mut client, 4).await;
        for time in [&file(&host).await["modifiedAt"], &file(&host).await["createdAt"]] {
            assert!(time.as_u64().unwrap() < 1 << 53, "{odd}: {time}");
        }
    }
}

/// Changes the text of the journal's records that contain something, and their checksums with it.
fn change_records(host: &TestHost, which: &str, change: impl Fn(&str) -> String) {
    let mut bytes = host.journal.bytes.lock().unwrap();
    let text = String::from_utf8(bytes.clone()).unwrap();
    *bytes = text
        .lines()
        .flat_map(
            |whole| if whole.contains(which) { line(&change(&whole[9..])) } else { format!("{whole}\n").into_bytes() },
        )
        .collect();
}

#[tokio::test(start_paused = true)]
async fn a_time_in_the_journal_that_no_clock_shows_is_replaced_and_told() {
    for odd in ["18446744073709551615", "-1"] {
        let mut host = TestHost::start(Config::default()).await;
        let mut client = host.client("a").await;
        client.ready_session(URI).await;
        client.run_script(URI, "t1", json!([{"say": "one"}])).await;
        host.kill().await;
        // As if the folder had not been written yet.
        host.sessions.rm("s", grove_fs::Removal::Everything).await.unwrap();
        change_records(&host, "turnCompleted", |record| {
            let at = record.find(r#""at":"#).unwrap() + 5;
            let end = at + record[at..].find(',').unwrap();
            format!("{}{odd}{}", &record[..at], &record[end..])
        });
        host.restart(Config::default()).await;
        assert!(host.damage.len() == 1 && host.damage[0].contains("1 events with times"), "{odd}: {:?}", host.damage);
        assert_eq!(turns(&host).await, ["t1"], "{odd}");
        let mut client = host.client("b").await;
        client.subscribe(URI).await.unwrap();
        client.run_script(URI, "t2", json!([{"say": "on"}])).await;
        settle(&host, &mut client, 2).await;
        assert!(file(&host).await["modifiedAt"].as_u64().unwrap() < 1 << 53, "{odd}");
    }
}

#[tokio::test]
async fn a_mark_that_no_agent_comes_to_is_not_taken_from_the_journal() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    written(&folder, 1..4).await;
    for odd in ["18446744073709551615", "9007199254740993"] {
        for mark in
            [format!(r#"{{"process":7,"frame":{odd}}}"#), format!(r#"{{"process":7,"frame":3,"open":[{odd}]}}"#)]
        {
            let (mut journal, _) = FileJournal::open(&folder).unwrap();
            let record = line(&format!(r#"{{"mark":{{"session":"s","chat":"main","mark":{mark}}}}}"#));
            journal.append([record, event(9)].concat(), SyncMode::Now, 9).await.unwrap();
            drop(journal);
            let (_, contents) = FileJournal::open(&folder).unwrap();
            let stores = grove_host::Env::in_memory().stores;
            let recovered = grove_host::recover(contents, &stores, &Limits::default()).await.unwrap();
            let damage = recovered.damage.last().unwrap();
            assert!(damage.contains("a frame that no agent comes to"), "{damage:?}");
        }
    }
}

/// Runs a host, keeps a copy of what it has on disk, lets it go on for a turn that the clients see, and starts another
/// host on the copy.
async fn restored_from_backup(client: &mut Client, others: &mut [ahp::Client], mut host: TestHost) -> TestHost {
    client.ready_session(URI).await;
    client.run_script(URI, "t1", json!([{"say": "one"}])).await;
    settle(&host, client, 1).await;
    for other in others.iter_mut() {
        other.follow(URI).await;
    }
    let journal = host.journal.bytes.lock().unwrap().clone();
    let (log, known) = (host.sessions.read_file(LOG).await.unwrap(), host.sessions.read_file(FILE).await.unwrap());
    client.run_script(URI, "t2", json!([{"say": "two", "chunks": 3}])).await;
    for other in others.iter_mut() {
        let chat = other.session(URI).default_chat.clone().unwrap();
        other.turn_end(&chat, "t2").await;
    }
    host.kill().await;
    *host.journal.bytes.lock().unwrap() = journal;
    host.sessions.write_file(LOG, &log).await.unwrap();
    host.sessions.write_file(FILE, &known).await.unwrap();
    host.restart(Config::default()).await;
    assert_eq!(host.damage, Vec::<String>::new());
    host
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_to_a_restored_backup_gets_snapshots() {
    let host = TestHost::start(Config::default()).await;
    let mut client = host.client("v1").await;
    let mut others = [host.ahp_of("0.9.0", "ahp-0.9").await, host.ahp("ahp").await];
    let host = restored_from_backup(&mut client, &mut others, host).await;
    let seen = client.seen;
    assert!(!host.bring_back(&mut client).await, "snapshots, not a replay");
    let ids: Vec<_> = client.session(URI).turns.iter().map(|turn| turn.id.clone()).collect();
    assert_eq!(ids, ["t1"], "the second turn is not in the backup");
    for other in &mut others {
        let returned = host.bring_back_ahp(other).await;
        assert!(!matches!(returned, ReconnectOutcome::Replay { .. }), "{returned:?}");
        other.must_agree_on_all().await;
    }
    client.run_script(URI, "t3", json!([{"say": "three"}])).await;
    assert!(client.envelopes.last().unwrap().server_seq > seen, "numbers never go back");
    client.must_agree(URI).await;
}

#[tokio::test(start_paused = true)]
async fn numbers_of_each_start_follow_the_clock() {
    let mut host = TestHost::start(Config::default()).await;
    let now = || std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64;
    for _ in 0..3 {
        let before = now();
        host.kill_and_restart(Config::default()).await;
        let number = host.host.status().await.unwrap().server_seq;
        assert!(number >= before * 1_024 - 1 && number < (now() + 1_000) * 1_024, "{number}");
    }
    let jumps = String::from_utf8(host.journal.bytes.lock().unwrap().clone()).unwrap();
    assert_eq!(jumps.matches(r#"{"jump":{"from":"#).count(), 4, "{jumps}");
}

/// A line of a journal.
fn line(text: &str) -> Vec<u8> {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes())).into_bytes()
}

fn event(seq: u64) -> Vec<u8> {
    line(&format!(
        r#"{{"event":{{"seq":{seq},"event":{{"at":1,"change":{{"root":{{"activeSessionsChanged":0}}}}}}}}}}"#
    ))
}

async fn written(folder: &std::path::Path, seqs: std::ops::Range<u64>) {
    let (mut journal, _) = FileJournal::open(folder).unwrap();
    for seq in seqs {
        journal.append(event(seq), SyncMode::Now, seq).await.unwrap();
    }
}

/// The newest segments of a journal, oldest first.
fn segments(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

async fn found(folder: &std::path::Path) -> Vec<String> {
    let stores: Vec<Arc<dyn SessionFs>> = Vec::new();
    let checked = verify_all(folder, &stores).await;
    let (_, contents) = FileJournal::open(folder).unwrap();
    let stores = grove_host::Env::in_memory().stores;
    let recovered = grove_host::recover(contents, &stores, &Limits::default()).await.unwrap();
    assert_eq!(checked, recovered.damage, "check finds before a start what the start finds");
    checked
}

#[tokio::test]
async fn a_journal_that_is_cleanly_cut_off_is_noticed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    written(&folder, 1..4).await;
    written(&folder, 4..7).await;
    assert_eq!(found(&folder).await, Vec::<String>::new());
    written(&folder, 7..10).await;
    // Whole lines are missing at the end of the newest segment.
    let newest = segments(&folder).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let keep = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    std::fs::write(&newest, &bytes[..keep]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("the rest is lost"), "{damage:?}");
    // At the end of an older one.
    written(&folder, 20..23).await;
    let older = segments(&folder).into_iter().find(|path| std::fs::metadata(path).unwrap().len() > 100).unwrap();
    let bytes = std::fs::read(&older).unwrap();
    let keep = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    std::fs::write(&older, &bytes[..keep]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("the rest is lost"), "{damage:?}");
}

#[tokio::test]
async fn segments_that_are_missing_are_noticed() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("journal");
    for run in 0..4 {
        written(&folder, run * 10 + 1..run * 10 + 3).await;
    }
    std::fs::remove_file(&segments(&folder)[1]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("are missing"), "{damage:?}");
    written(&folder, 50..53).await;
    std::fs::remove_dir_all(&folder).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("newest segment"), "{damage:?}");
}

#[tokio::test]
async fn nothing_is_confirmed_that_is_on_no_disk_under_a_name() {
    let place = tempfile::tempdir().unwrap();
    let (folder, away) = (place.path().join("journal"), place.path().join("away"));
    let (mut journal, _) = FileJournal::open(&folder).unwrap();
    journal.append(event(1), SyncMode::Now, 1).await.unwrap();
    std::fs::rename(&folder, &away).unwrap();
    let error = journal.append(event(2), SyncMode::Now, 2).await.unwrap_err().to_string();
    assert!(error.contains("was removed or replaced while the host runs"), "{error}");
    // Another host's journal in its place is not ours.
    written(&folder, 1..2).await;
    assert!(journal.append(event(2), SyncMode::Later, 2).await.is_err());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(&away, &folder).unwrap();
    journal.append(event(3), SyncMode::Now, 3).await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(journal.append(event(4), SyncMode::Now, 4).await.is_err());
}
