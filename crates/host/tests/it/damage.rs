//! Logs, files and journals that are less than they were: what can be restored is, and the rest is told.

use std::sync::Arc;

use grove_fs::SessionFs;
use grove_host::{Config, FileJournal, Journal, Limits, Sync, verify_all, verify_session};
use grove_testkit::ahp::Returned;
use grove_testkit::{Client, ahp};
use grove_wire::v1::TurnState;
use serde_json::{Value, json};

use crate::harness::TestHost;

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

/// Takes every event out of the journal, as if its segments had gone.
fn let_events_go(host: &TestHost) {
    let mut bytes = host.journal.bytes.lock().unwrap();
    let is_event = |line: &&[u8]| {
        let record: Value = serde_json::from_slice(&line[9..]).unwrap();
        record["event"].is_object() || record["mark"].is_object()
    };
    *bytes = bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| !is_event(line)).flatten().copied().collect();
}

#[derive(Clone, Copy, Debug)]
enum Harm {
    Delete,
    Empty,
    TearLastLine,
    LoseHalf,
}

async fn harm(host: &TestHost, harm: Harm) {
    let length = host.sessions.stat(LOG).await.unwrap().size;
    match harm {
        Harm::Delete => host.sessions.rm(LOG, grove_fs::Removal::One).await.unwrap(),
        Harm::Empty => host.sessions.truncate(LOG, 0).await.unwrap(),
        Harm::TearLastLine => host.sessions.truncate(LOG, length - 9).await.unwrap(),
        Harm::LoseHalf => host.sessions.truncate(LOG, length / 2).await.unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn turns_of_a_log_that_lost_something_come_back_from_the_journal() {
    for what in [Harm::Delete, Harm::Empty, Harm::TearLastLine, Harm::LoseHalf] {
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
        // As if what came behind the last sync had not reached the disk.
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
    harm(&host, Harm::Delete).await;
    host.restart(Config::default()).await;
    assert!(host.damage[0].contains("3 turns are restored from the journal, none is lost"), "{:?}", host.damage);
    assert_eq!(turns(&host).await, ["t1", "t3"]);
    let ids = |log: &[u8]| grove_tree::open(log.to_vec(), &mut String::new).unwrap().index().len();
    assert_eq!(ids(&host.sessions.read_file(LOG).await.unwrap()), ids(&before), "the branch that was left as well");
}

#[tokio::test(start_paused = true)]
async fn turns_that_nobody_has_any_more_are_counted_as_lost() {
    for (what, left) in [(Harm::Delete, vec![]), (Harm::TearLastLine, vec!["t1", "t2"])] {
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
    assert!(host.damage.len() == 1 && host.damage[0].contains("made again from its log"), "{:?}", host.damage);
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
        assert!(host.damage.len() == 1 && host.damage[0].contains("which no host gives"), "{:?}", host.damage);
        let status = host.host.status().await.unwrap();
        assert!(status.server_seq > seen && status.server_seq < 1 << 53, "{number}: {}", status.server_seq);
        assert_eq!(turns(&host).await, ["t1", "t2", "t3"]);
        let mut client = host.client("a").await;
        client.subscribe(URI).await.unwrap();
        client.run_script(URI, "t4", json!([{"say": "on"}])).await;
        client.must_agree(URI).await;
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
        assert!(!matches!(returned, Returned::Replay { .. }), "{returned:?}");
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
        journal.append(event(seq), Sync::Now, seq).await.unwrap();
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
    // Whole lines are gone from the end of the newest segment.
    let newest = segments(&folder).pop().unwrap();
    let bytes = std::fs::read(&newest).unwrap();
    let keep = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    std::fs::write(&newest, &bytes[..keep]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("what was written behind is lost"), "{damage:?}");
    // From the end of an older one.
    written(&folder, 20..23).await;
    let older = segments(&folder).into_iter().find(|path| std::fs::metadata(path).unwrap().len() > 100).unwrap();
    let bytes = std::fs::read(&older).unwrap();
    let keep = bytes.split_inclusive(|byte| *byte == b'\n').take(2).map(<[u8]>::len).sum::<usize>();
    std::fs::write(&older, &bytes[..keep]).unwrap();
    let damage = found(&folder).await;
    assert!(damage.len() == 1 && damage[0].contains("what was written behind is lost"), "{damage:?}");
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
    journal.append(event(1), Sync::Now, 1).await.unwrap();
    std::fs::rename(&folder, &away).unwrap();
    let error = journal.append(event(2), Sync::Now, 2).await.unwrap_err().to_string();
    assert!(error.contains("was removed or replaced while the host runs"), "{error}");
    // Another host's journal in its place is not ours.
    written(&folder, 1..2).await;
    assert!(journal.append(event(2), Sync::Later, 2).await.is_err());
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::rename(&away, &folder).unwrap();
    journal.append(event(3), Sync::Now, 3).await.unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(journal.append(event(4), Sync::Now, 4).await.is_err());
}
