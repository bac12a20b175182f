//! Starting, idling and stopping.

use std::time::Duration;

use grove_testkit::{Client, ConnectionEnd};
use grove_wire::v1::TurnState;
use rustix::process::Signal;
use serde_json::json;

use crate::support::*;

#[test]
fn a_host_listens_after_less_than_200_ms_of_processor_time() {
    let host = Host::start();
    drop(host.tcp());
    // Time of other programs of the machine does not count.
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", host.pid())).unwrap();
    let after_name = stat.rsplit_once(')').unwrap().1;
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum();
    // The system counts in hundredths of a second.
    let took = Duration::from_millis(ticks * 10);
    assert!(took < Duration::from_millis(200), "{took:?}");
}

#[tokio::test]
async fn an_idle_host_takes_less_than_25_mib() {
    let host = Host::start();
    // An unoptimized program has many file-backed pages, which do not count.
    let key = if cfg!(debug_assertions) { "RssAnon" } else { "VmRSS" };
    let before = host.memory(key);
    assert!(before < 25 << 20, "{} KiB", before >> 10);
    // After a little work, too.
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([{"say": "x"}])).await;
    drop(client);
    let after = host.memory(key);
    assert!(after < 25 << 20, "{} KiB", after >> 10);
}

#[tokio::test]
async fn sigterm_and_sigint_end_the_host_with_0_and_tell_clients_1001() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut host = Host::start();
        let mut client = host.client_with_session("a").await;
        let mut other = host.client("b").await;
        host.signal(signal);
        for client in [&mut client, &mut other] {
            let ended = client.until_end().await;
            assert!(matches!(ended, ConnectionEnd::Closed { code: 1001, .. }), "{ended:?}");
        }
        assert_eq!(host.exit().code(), Some(0));
        assert!(!host.place.data().join("host.json").exists());
    }
}

#[tokio::test]
async fn a_host_that_stops_does_not_wait_for_those_who_say_nothing() {
    let mut host = Host::start();
    let _silent = host.tcp();
    let _never_initialized = host.connect("a").await;
    host.signal(Signal::TERM);
    assert_eq!(host.exit().code(), Some(0));
}

/// The end of the turn as the client saw it, and the end of the connection.
async fn watch_the_end(client: &mut Client, turn: &str) -> (TurnState, Option<String>, ConnectionEnd) {
    let turn = client.turn_end(S, turn).await;
    (turn.state, turn.error.map(|error| error.error_type), client.until_end().await)
}

#[tokio::test]
async fn a_turn_that_hangs_gets_5_seconds_and_ends_in_error() {
    let mut host = Host::start();
    let mut client = host.client_with_session("a").await;
    let mut other = host.subscriber("b").await;
    // A turn that waits for a person would not end: the next host continues it.
    client.script(S, "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    client.ready_session("scripted:/idle").await;
    host.signal(Signal::TERM);

    // No new turn or session starts meanwhile.
    until_stopping(&mut client).await;
    let deadline = Deadline::new("turns are still started");
    let reason = loop {
        let seq = client.dispatch(turn_started("scripted:/idle", &format!("t{}", client.seen), &json!([]))).await;
        // Sessions may learn of it at different moments.
        if let Some(reason) = client.answer_to(seq).await.rejection_reason {
            break reason;
        }
        client.until(|client| client.session("scripted:/idle").active_turn.is_none()).await;
        deadline.check();
    };
    assert!(reason.contains("stopping"), "{reason}");
    let refused = client.refused("createSession", json!({"session": "scripted:/new"})).await;
    assert_eq!(refused.code, -32603);

    for client in [&mut client, &mut other] {
        let (state, error, ended) = watch_the_end(client, "t").await;
        assert_eq!((state, error.as_deref()), (TurnState::Error, Some("hostStopped")));
        assert!(matches!(ended, ConnectionEnd::Closed { code: 1001, .. }), "{ended:?}");
        assert_eq!(client.kinds().last().map(String::as_str), Some("session/error"));
    }
    assert_eq!(host.exit().code(), Some(0));
}

#[tokio::test]
async fn a_turn_that_ends_within_the_grace_completes() {
    let mut host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"say": "x"}, {"sleepMs": 1_000}, {"say": "y"}])).await;
    client.streamed(S, "x").await;
    host.signal(Signal::TERM);
    let (state, error, ended) = watch_the_end(&mut client, "t").await;
    assert_eq!((state, error), (TurnState::Complete, None));
    assert!(matches!(ended, ConnectionEnd::Closed { code: 1001, .. }), "{ended:?}");
    assert_eq!(host.exit().code(), Some(0));
}

#[tokio::test]
async fn a_turn_can_be_cancelled_within_the_grace() {
    let mut host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    host.signal(Signal::TERM);
    client.cancel(S, "t").await;
    let (state, _, ended) = watch_the_end(&mut client, "t").await;
    assert_eq!(state, TurnState::Cancelled);
    assert!(matches!(ended, ConnectionEnd::Closed { code: 1001, .. }), "{ended:?}");
    assert_eq!(host.exit().code(), Some(0));
}

#[tokio::test]
async fn a_second_sigint_ends_the_host_at_once() {
    let mut host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.script(S, "t", json!([{"say": "x"}, {"hang": true}])).await;
    client.streamed(S, "x").await;
    host.signal(Signal::INT);
    // Two signals close together are one: the second waits until the first was handled.
    until_stopping(&mut client).await;
    host.signal(Signal::INT);
    assert_eq!(host.exit().code(), Some(0));
    // It did not wait for the turn: the turn was not ended, and the log says so.
    let log = std::fs::read_to_string(host.place.path("stderr")).unwrap();
    assert!(log.contains("stopped at once"), "{log}");
}

/// Waits until the host is stopping: then it creates no more sessions.
async fn until_stopping(client: &mut Client) {
    let deadline = Deadline::new("the host goes on");
    for n in 0.. {
        if client.create_session(&format!("scripted:/stopping-{n}")).await.is_err() {
            return;
        }
        deadline.check();
    }
}

#[tokio::test]
async fn a_host_that_was_killed_leaves_nothing_that_hinders_the_next() {
    let host = Host::start();
    host.client_with_session("a").await;
    let (pid, token) = (host.pid(), host.token.clone());
    let place = host.kill();
    assert!(place.data().join("host.json").exists(), "it could not tidy up");
    let status = place.run(&["status"]);
    assert_eq!((status.code, status.stdout.as_str()), (Some(3), ""));
    assert!(status.stderr.contains("no host is running"), "{}", status.stderr);
    assert_eq!(place.run(&["stop"]).code, Some(3));

    let host = place.serve(&[]);
    assert_eq!(host.token, token);
    let status = place.run(&["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(status["pid"], host.pid());
    assert_ne!(host.pid(), pid);
    host.client("a").await.settle().await;
}

#[test]
fn a_second_host_on_the_same_data_folder_exits_with_4() {
    let host = Host::start();
    for _ in 0..3 {
        let ran = CommandResult::from(host.place.serve_command(&[]).output().unwrap());
        let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((ran.code, said["error"]["code"].as_str()), (Some(4), Some("inUse")));
        let expected = format!("is in use by another host (process {})", host.pid());
        assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    }
    assert_eq!(host.place.run(&["status"]).code, Some(0), "the first is not disturbed");
    let elsewhere = TestHome::new().serve(&[]);
    assert_ne!(elsewhere.address, host.address);
}

#[test]
fn of_hosts_that_start_at_once_on_one_folder_exactly_one_runs() {
    let place = TestHome::new();
    let start = || {
        let mut command = place.serve_command(&[]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut children: Vec<_> = (0..6).map(|_| start()).collect();
    let deadline = Deadline::new("more than one host runs");
    while children.iter_mut().filter_map(|child| child.try_wait().unwrap()).count() < 5 {
        deadline.check();
    }
    let codes: Vec<_> =
        children.iter_mut().map(|child| child.try_wait().unwrap().map(|status| status.code())).collect();
    for child in &mut children {
        child.kill().ok();
        child.wait().ok();
    }
    assert_eq!(codes.iter().filter(|code| code.is_none()).count(), 1, "{codes:?}");
    assert!(codes.iter().flatten().all(|code| *code == Some(4)), "{codes:?}");
}

#[test]
fn an_address_that_is_taken_is_an_error_that_names_it() {
    let host = Host::start();
    let place = TestHome::new();
    let mut command = place.grove(&["serve", "--json", "--listen", &host.address]);
    let ran = CommandResult::from(command.arg("--data-dir").arg(place.data()).output().unwrap());
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(&host.address), "{}", ran.stderr);
}

#[tokio::test]
async fn connections_are_counted_as_they_come_and_go() {
    let host = Host::start();
    let first = host.client("a").await;
    let mut second = host.client("b").await;
    assert_eq!(host.connections(), 2);
    drop(first);
    host.until_connections(1);
    second.send_raw(tokio_tungstenite::tungstenite::Message::Close(None)).await;
    second.until_end().await;
    host.until_connections(0);
}

#[tokio::test]
async fn a_host_can_listen_on_the_other_loopback() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        // A machine without IPv6 has no such address.
        return;
    }
    let place = TestHome::new();
    let mut command = place.grove(&["serve", "--listen", "[::1]:0", "--json"]);
    command.arg("--data-dir").arg(place.data());
    let host = place.start(command);
    assert!(host.ws.starts_with("ws://[::1]:"), "{}", host.ws);
    host.client_with_session("a").await;
    assert_eq!(place.run(&["status"]).code, Some(0));
}

#[test]
fn the_address_of_a_host_that_is_gone_leads_to_no_other() {
    let host = Host::start();
    let other = Host::start();
    let file = host.place.data().join("host.json");
    let left = std::fs::read_to_string(&file).unwrap();
    let place = host.kill();
    // As if the other had got the port and the process id of the dead one.
    let mut left: serde_json::Value = serde_json::from_str(&left).unwrap();
    left["http"] = json!(format!("http://{}", other.address));
    left["ws"] = json!(other.ws);
    left["pid"] = json!(other.pid());
    std::fs::write(&file, left.to_string()).unwrap();
    for command in ["status", "stop"] {
        assert_eq!(place.run(&[command]).code, Some(3), "{command}");
    }
    assert_eq!(other.place.run(&["status"]).code, Some(0), "it runs on");
}

#[test]
fn a_data_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let place = TestHome::new();
    let file = place.write("a-file", "");
    let mut command = place.grove(&["serve", "--json"]);
    let ran = CommandResult::from(command.arg("--data-dir").arg(file.join("data")).output().unwrap());
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((ran.code, said["error"]["code"].as_str()), (Some(1), Some("failed")));
    let folder = file.join("data");
    assert!(said["error"]["message"].as_str().unwrap().contains(folder.to_str().unwrap()), "{said}");
    assert!(ran.stderr.contains(folder.to_str().unwrap()), "{}", ran.stderr);
}

#[test]
fn a_host_may_open_as_many_files_as_the_system_allows_it_to_use() {
    let place = TestHome::new();
    let mut serve = std::process::Command::new("sh");
    let asked = place.serve_command(&[]);
    serve.args(["-c", "ulimit -S -n 200; exec \"$@\"", "sh"]).arg(asked.get_program()).args(asked.get_args());
    serve.env_clear().env("HOME", place.home()).current_dir(place.path("home"));
    let host = place.start(serve);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", host.pid())).unwrap();
    let files = limits.lines().find_map(|line| line.strip_prefix("Max open files")).unwrap();
    let mut numbers = files.split_whitespace().map(|number| number.parse::<u64>().unwrap_or(u64::MAX));
    let (soft, hard) = (numbers.next().unwrap(), numbers.next().unwrap());
    assert_eq!(soft, hard.min(65_536));
}

#[tokio::test]
async fn a_host_whose_socket_was_removed_is_found_through_loopback() {
    let host = Host::start();
    let mut client = host.client_with_session("a").await;
    client.run_script(S, "t", json!([{"say": "x"}])).await;
    let socket = host.place.data().join("host.sock");
    std::fs::remove_file(&socket).unwrap();
    for command in [&["status"][..], &["ls"], &["show", "s"]] {
        let ran = host.place.run(command);
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
    }
    // The old port of a dead host is not used, since it may belong to another program.
    let place = host.kill();
    let endpoint = place.data().join("host.json");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut said: serde_json::Value = serde_json::from_slice(&std::fs::read(&endpoint).unwrap()).unwrap();
    said["http"] = format!("http://{}", listener.local_addr().unwrap()).into();
    std::fs::write(&endpoint, said.to_string()).unwrap();
    assert_eq!(place.run(&["status"]).code, Some(3));
    listener.set_nonblocking(true).unwrap();
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
