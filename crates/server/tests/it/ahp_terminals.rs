//! Terminals in the Agent Host Protocol: who may use them, and how their output reaches clients.

use std::path::Path;
use std::time::Duration;

use grove_core::Scope;
use grove_host::Config;
use grove_host::limits::CONNECTION_TERMINALS;
use grove_testkit::ahp::Client;
use grove_wire::ahp::{ROOT, SnapshotState, TerminalContentPart, TerminalLifecycle, TerminalState};
use grove_work::file_uri;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::harness::{TestHost, until};
use crate::scopes::Scoped;

const T: &str = "ahp-terminal:/t";
const DEADLINE: Duration = Duration::from_secs(60);

/// A host whose terminals run a shell that reads no file of the user.
async fn host() -> TestHost {
    TestHost::start(Config { shell: Some("/bin/sh".to_owned()), ..Config::default() }).await
}

fn create(client: &str, uri: &str, cwd: &Path) -> Value {
    json!({"channel": uri, "claim": {"kind": "client", "clientId": client}, "cwd": file_uri(cwd), "name": "Build"})
}

fn input(data: &str) -> Value {
    json!({"type": "terminal/input", "data": data})
}

fn state<'c>(client: &'c Client, uri: &str) -> &'c TerminalState {
    match &client.states[uri] {
        SnapshotState::Terminal(state) => state,
        other => panic!("{other:?}"),
    }
}

fn text(client: &Client, uri: &str) -> String {
    let parts = state(client, uri).content.iter().map(|part| match part {
        TerminalContentPart::Unclassified(part) => part.value.as_str(),
        other => panic!("{other:?}"),
    });
    parts.collect()
}

async fn shown(client: &mut Client, uri: &str, wanted: &str) {
    let shows = |client: &Client| text(client, uri).contains(wanted);
    if timeout(DEADLINE, client.until(shows)).await.is_err() {
        panic!("{wanted} is not in {}", text(client, uri));
    }
}

/// Checks that a client has the host's state of a terminal, once nothing more is on its way.
async fn agrees(client: &mut Client, uri: &str) {
    timeout(Duration::from_millis(500), client.until(|_| false)).await.ok();
    client.must_agree(uri).await;
}

/// A client with a terminal in a folder of its own.
async fn with_terminal(host: &TestHost, name: &str, folder: &Path) -> Client {
    let mut client = host.ahp(name).await;
    client.ask("createTerminal", create(name, T, folder)).await.unwrap();
    client.subscribe(T).await.unwrap();
    client
}

#[tokio::test]
async fn a_terminal_takes_input_and_a_size_and_shows_output_and_an_exit_code() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    let mut client = with_terminal(&host, "a", place.path()).await;
    client.subscribe(ROOT).await.unwrap();
    client.until(|client| client.root().terminals.as_ref().is_some_and(|all| all.len() == 1)).await;
    assert_eq!((state(&client, T).cols, state(&client, T).is_pty), (Some(80), Some(true)));
    client.dispatch(T, input("echo $((6*7))-there; pwd; stty size\r")).await;
    shown(&mut client, T, "42-there").await;
    shown(&mut client, T, &place.path().canonicalize().unwrap().display().to_string()).await;
    shown(&mut client, T, "24 80").await;
    let resized = client.dispatch(T, json!({"type": "terminal/resized", "cols": 132, "rows": 50})).await;
    assert_eq!(client.answer_to(resized).await.rejection_reason, None);
    client.strict = false;
    let titled = client.dispatch(T, json!({"type": "terminal/titleChanged", "title": "Tests", "later": 1})).await;
    assert_eq!(client.answer_to(titled).await.action["later"], 1, "unknown members come back");
    client.strict = true;
    client.dispatch(T, input("stty size; sleep 1000 & echo started-$!\r")).await;
    shown(&mut client, T, "50 132").await;
    shown(&mut client, T, "started-").await;
    agrees(&mut client, T).await;
    let typed = client.dispatch(T, input("exit 3\r")).await;
    client.answer_to(typed).await;
    let has_ended = |client: &Client| state(client, T).lifecycle == TerminalLifecycle::Exited { exit_code: Some(3) };
    timeout(DEADLINE, client.until(has_ended)).await.unwrap();
    agrees(&mut client, T).await;
    client.must_agree(ROOT).await;
    let row = |client: &Client| client.root().terminals.as_ref().unwrap().first().cloned();
    timeout(DEADLINE, client.until(|client| row(client).unwrap().lifecycle != TerminalLifecycle::Running))
        .await
        .unwrap();
    assert_eq!(row(&client).unwrap().title, "Tests");
    assert!(client.rejected(T, input("x")).await.contains("has ended"));

    client.ask("disposeTerminal", json!({"channel": T})).await.unwrap();
    timeout(DEADLINE, client.until(|client| row(client).is_none())).await.unwrap();
    assert_eq!(client.ask("disposeTerminal", json!({"channel": T})).await.unwrap_err().code, -32008);
    assert_eq!(client.subscribe(T).await.unwrap_err().code, -32008);
}

#[tokio::test]
async fn the_processes_of_a_terminal_end_with_it_and_with_the_host() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    for ends_host in [false, true] {
        let mut client = with_terminal(&host, "a", place.path()).await;
        client.dispatch(T, input("sleep 1001 & echo $! > pid; echo ok-$((1+1))\r")).await;
        shown(&mut client, T, "ok-2").await;
        let pid: u32 = std::fs::read_to_string(place.path().join("pid")).unwrap().trim().parse().unwrap();
        let runs = || Path::new(&format!("/proc/{pid}")).exists();
        assert!(runs());
        match ends_host {
            false => drop(client.ask("disposeTerminal", json!({"channel": T})).await.unwrap()),
            true => host.host.stop().await,
        }
        until("the process ends", async || !runs()).await;
    }
}

#[tokio::test]
async fn only_the_client_that_claims_a_terminal_types_on_it() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    let mut first = with_terminal(&host, "first", place.path()).await;
    first.dispatch(T, input("echo before-$((1+1))\r")).await;
    shown(&mut first, T, "before-2").await;
    let mut second = host.ahp("second").await;
    second.subscribe(T).await.unwrap();
    assert!(text(&second, T).contains("before-2"), "the scrollback is in the snapshot");
    for action in
        [input("x"), json!({"type": "terminal/resized", "cols": 5, "rows": 5}), json!({"type": "terminal/cleared"})]
    {
        assert!(second.rejected(T, action).await.contains("claim it first"));
    }
    let claim = |client: &str| json!({"type": "terminal/claimed", "claim": {"kind": "client", "clientId": client}});
    assert!(second.rejected(T, claim("first")).await.contains("for itself"));
    let claimed = second.dispatch(T, claim("second")).await;
    assert_eq!(second.answer_to(claimed).await.rejection_reason, None);
    second.dispatch(T, input("echo second-$((1+1))\r")).await;
    for client in [&mut first, &mut second] {
        shown(client, T, "second-2").await;
    }
    assert!(first.rejected(T, input("x")).await.contains("claim it first"));
    let typed = second.kinds(T).iter().filter(|kind| **kind == "terminal/input").count();
    assert_eq!((typed, first.kinds(T).contains(&"terminal/input")), (1, true), "keys are echoed to their sender alone");
    let cleared = second.dispatch(T, json!({"type": "terminal/cleared"})).await;
    second.answer_to(cleared).await;
    agrees(&mut first, T).await;
    assert!(!text(&first, T).contains("before-2"));
    for (action, why) in [
        (json!({"type": "terminal/data", "data": "x"}), "do not dispatch"),
        (json!({"type": "terminal/input", "data": "x".repeat(65_537)}), "in parts"),
        (json!({"type": "terminal/resized", "cols": 0, "rows": 5}), "rows and columns"),
        (json!({"type": "terminal/input"}), "data"),
        (json!({"type": "session/titleChanged", "title": "x"}), "does not belong"),
    ] {
        let reason = second.rejected(T, action).await;
        assert!(reason.contains(why), "{reason}");
    }
}

#[tokio::test]
async fn a_client_that_returns_has_the_state_of_its_terminal_and_the_list() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    let mut client = with_terminal(&host, "a", place.path()).await;
    client.subscribe(ROOT).await.unwrap();
    client.dispatch(T, input("sleep 1; echo away-$((1+1))\r")).await;
    client.until(|client| client.root().terminals.is_some()).await;
    client.cut().await;
    let mut other = host.ahp("other").await;
    other.subscribe(T).await.unwrap();
    shown(&mut other, T, "away-2").await;
    host.bring_back_ahp(&mut client).await;
    shown(&mut client, T, "away-2").await;
    agrees(&mut client, T).await;
    other.ask("disposeTerminal", json!({"channel": T})).await.unwrap();
    timeout(DEADLINE, client.until(|client| client.root().terminals.as_ref().is_some_and(Vec::is_empty)))
        .await
        .unwrap();

    // A new connection may ask for it at once.
    other.ask("createTerminal", create("other", T, place.path())).await.unwrap();
    let mut third = host.ahp_over("third", 1 << 16).await;
    third.cut().await;
    let stream = Box::new(host.dial(1 << 16));
    let mut third = Client::over(stream, &TestHost::url(), "third").await;
    let begun = third.initialize(&[T, "ahp-terminal:/none"]).await;
    let given: Vec<_> = begun.snapshots.iter().map(|snapshot| snapshot.resource.as_str()).collect();
    assert_eq!(given, [T]);
    other.dispatch(T, input("echo third-$((1+1))\r")).await;
    shown(&mut third, T, "third-2").await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_slows_down_the_command() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    let mut slow = host.ahp_over("slow", 4 << 10).await;
    slow.ask("createTerminal", create("slow", T, place.path())).await.unwrap();
    slow.subscribe(T).await.unwrap();
    slow.dispatch(T, input("stty -echo; head -c 2000000 /dev/zero | tr '\\0' x; touch done; echo end-$((1+1))\r"))
        .await;
    sleep(Duration::from_secs(2)).await;
    assert!(!place.path().join("done").exists(), "the command waits for its reader");
    timeout(DEADLINE, slow.until(|client| text(client, T).contains("end-2"))).await.unwrap();
    assert!(place.path().join("done").exists());
    let seen = text(&slow, T).bytes().filter(|byte| *byte == b'x').count();
    assert!(seen >= 2_000_000, "{seen}: nothing is lost");
}

#[tokio::test]
async fn a_client_that_does_not_read_at_all_stops_neither_the_command_nor_other_clients() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    let mut stuck = host.ahp_over("stuck", 4 << 10).await;
    stuck.ask("createTerminal", create("stuck", T, place.path())).await.unwrap();
    stuck.subscribe(T).await.unwrap();
    stuck.dispatch(T, input("head -c 8000000 /dev/zero | tr '\\0' x; touch done\r")).await;
    let mut good = host.ahp("good").await;
    good.subscribe(T).await.unwrap();
    let file = place.path().join("done");
    let reads = async {
        while !file.exists() {
            timeout(Duration::from_millis(100), good.until(|_| false)).await.ok();
        }
    };
    timeout(DEADLINE, reads).await.unwrap();
}

#[tokio::test]
async fn terminals_are_bounded_for_each_connection() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    let mut client = host.ahp("a").await;
    let uri = |number: usize| format!("ahp-terminal:/{number}");
    for number in 0..CONNECTION_TERMINALS {
        client.ask("createTerminal", create("a", &uri(number), place.path())).await.unwrap();
    }
    let one_more = create("a", "ahp-terminal:/more", place.path());
    let error = client.ask("createTerminal", one_more.clone()).await.unwrap_err();
    assert!(error.code == -32029 && error.message.contains("dispose of one first"), "{error}");
    assert_eq!(client.ask("createTerminal", create("a", &uri(0), place.path())).await.unwrap_err().code, -32010);
    client.ask("disposeTerminal", json!({"channel": uri(0)})).await.unwrap();
    client.ask("createTerminal", one_more).await.unwrap();
}

#[tokio::test]
async fn a_terminal_needs_its_scope_its_own_claim_and_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let host = host().await;
    with_terminal(&host, "owner", place.path()).await;
    let mut reader = Scoped::ahp(&host, &[Scope::Read, Scope::Prompt]).await;
    reader.must_lack(Scope::Terminal, "createTerminal", create("a", T, place.path())).await;
    reader.must_lack(Scope::Terminal, "disposeTerminal", json!({"channel": T})).await;
    reader.must_lack(Scope::Terminal, "subscribe", json!({"channel": T})).await;
    let reason = reader.dispatch(json!({"channel": T, "clientSeq": 1, "action": input("x")})).await;
    assert!(reason.unwrap().contains("needs the scope `terminal`"));
    let mut client = Scoped::ahp(&host, &[Scope::Read, Scope::Terminal]).await;
    let error = client.ask("createTerminal", create("a", "ahp-terminal:/u", Path::new("/"))).await.unwrap_err();
    assert!(error.to_string().contains("needs the scope `folders`"), "{error}");

    let mut client = host.ahp("b").await;
    for (params, code) in [
        (create("owner", "ahp-terminal:/u", place.path()), -32602),
        (create("b", "ahp-terminal:/u", &place.path().join("none")), -32602),
        (create("b", "scripted:/u", place.path()), -32602),
        (create("b", "ahp-terminal:/../u", place.path()), -32602),
    ] {
        let error = client.ask("createTerminal", params.clone()).await.unwrap_err();
        assert_eq!(error.code, code, "{params}: {error}");
    }
    let mut claims = create("b", "ahp-terminal:/u", place.path());
    claims["claim"] = json!({"kind": "session", "session": "scripted:/none", "chat": "ahp-chat:/none"});
    assert_eq!(client.ask("createTerminal", claims).await.unwrap_err().code, -32008);
}
