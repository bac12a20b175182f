//! A journal that is gone, restored from a backup, or has impossible numbers and times.

use grove_fs::SessionFs;
use grove_host::Config;
use grove_storage::verify_session;
use grove_testkit::Client;
use grove_testkit::ahp::{self, ReconnectOutcome};
use grove_wire::v1::TurnState;
use serde_json::json;

use super::{FILE, LOG, URI, file, killed_after_three_turns, let_events_go, line, settle, turns};
use crate::harness::TestHost;

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

/// The milliseconds since 1970.
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_millis() as u64
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
    // Numbers follow the clock, which a fast test runs ahead of: no backup is restored so soon.
    while now() <= client.seen / 1_024 {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
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
    for _ in 0..3 {
        let before = now();
        host.kill_and_restart(Config::default()).await;
        let number = host.host.status().await.unwrap().server_seq;
        assert!(number >= before * 1_024 && number < (now() + 1_000) * 1_024, "{number}");
    }
    let jumps = String::from_utf8(host.journal.bytes.lock().unwrap().clone()).unwrap();
    assert_eq!(jumps.matches(r#"{"jump":{"from":"#).count(), 4, "{jumps}");
}
