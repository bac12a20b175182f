//! A turn outlives the host: whatever ends the host, no part of the turn is lost or duplicated.
//!
//! `GROVE_SEED` repeats a run.

use grove_testkit::acp::AgentBehavior;
use grove_testkit::ahp::{ReconnectOutcome, markdown};
use grove_wire::ahp::TurnState;
use serde_json::json;

use super::*;

/// The number of kills in one turn.
const KILLS: u64 = 10;

/// A small generator, so that a failing run can be repeated from its printed seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_through_which_the_host_is_killed_again_and_again_is_complete_and_exact() {
    let seed = std::env::var("GROVE_SEED").ok().map_or(u64::from(std::process::id()), |text| text.parse().unwrap());
    eprintln!("GROVE_SEED={seed} repeats this run");
    let mut dice = Dice(seed);
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    let mut old = stage.host().client("v1").await;
    old.subscribe(SESSION).await.unwrap();
    // It ends on request, however long the kills take.
    let steps = json!([
        {"stream": {"count": 400, "per_second": 100}},
        {"tool": {"id": "quiet", "title": "ls", "output": "x y"}},
        {"stream": {"count": 400, "per_second": 100}},
        {"tool": {"id": "asks", "title": "touch x", "output": "made it", "ask": true}},
        {"say": "\nthe end"},
    ]);
    start(&mut client, &chat, "t", &steps).await;
    for kill in 1..=KILLS {
        let pause = Duration::from_millis(dice.below(1_000));
        let (reads, also_reads) = (
            tokio::spawn(async move {
                client.until_end().await;
                client
            }),
            tokio::spawn(async move {
                old.until_end().await;
                old
            }),
        );
        tokio::time::sleep(pause).await;
        stage.kill_and_restart();
        (client, old) = (reads.await.unwrap(), also_reads.await.unwrap());
        let returned = stage.host().ahp_reconnect(&mut client).await;
        assert_eq!(returned, ReconnectOutcome::Replay { missing: vec![] }, "kill {kill}: what was missed is replayed");
        assert!(stage.host().reconnect(&mut old).await, "kill {kill}");
        client.must_agree_on_all().await;
        old.must_agree(SESSION).await;
    }
    let call = asked(&mut client, &chat).await;
    answer(&mut client, &chat, "t", &call, "allow_once").await;
    let ended = client.turn_end(&chat, "t").await;
    assert_eq!(ended.state, TurnState::Complete, "{:?}", ended.response_parts.last());
    let calls = calls(&ended);
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert!(calls.iter().all(|call| call["status"] == "completed"), "{calls:?}");
    assert_eq!(parts(&ended, "markdown").len(), 3);

    // The agent's own record of its output is the reference.
    let text = markdown(&ended.response_parts);
    let history = said(&mut client, &chat, "u", json!(["echo_history", "complaints"])).await;
    let known: String =
        history.split("agent: ").skip(1).map(|part| part.split("\ncomplaints: ").next().unwrap()).collect();
    // Text between its calls is on separate lines there.
    let plain = |text: &str| text.replace('\n', "");
    assert_eq!(plain(&text), plain(&known));
    let numbers: Vec<u64> = text.split(';').filter_map(|piece| piece.split_once(':')?.0.trim().parse().ok()).collect();
    let wanted: Vec<u64> = (1..=400).chain(1..=400).collect();
    assert_eq!(numbers, wanted);
    assert!(history.ends_with("complaints: none\n"), "{}", after(&history, "complaints"));
    old.turn_end(SESSION, "t").await;
    client.must_agree_on_all().await;
    assert_eq!(stage.seen_anew(&chat, "t").await, ended);
}

#[tokio::test]
async fn an_answer_that_a_client_saw_accepted_reaches_the_agent_whatever_becomes_of_the_host() {
    let mut stage = Stage::new(AgentBehavior::default());
    let (mut client, chat) = stage.begin().await;
    for (turn, before) in [("t1", true), ("t2", true), ("t3", false)] {
        let tool = json!({"id": turn, "title": turn, "output": "made it", "ask": true});
        start(&mut client, &chat, turn, &json!([{"tool": tool}, "complaints"])).await;
        let mut call = asked(&mut client, &chat).await;
        // The host is killed while the question is pending, or as soon as it is answered.
        if before {
            stage.kill_and_restart();
            stage.host().ahp_reconnect(&mut client).await;
            call = asked(&mut client, &chat).await;
        }
        answer(&mut client, &chat, turn, &call, "allow_once").await;
        if !before {
            stage.kill_and_restart();
            stage.host().ahp_reconnect(&mut client).await;
        }
        let ended = client.turn_end(&chat, turn).await;
        assert_eq!(ended.state, TurnState::Complete, "{turn}");
        let told = markdown(&ended.response_parts);
        // The next host cannot know whether the agent got an answer that was given just before the end: it sends the
        // answer again, and agents ignore an unexpected one.
        let twice = !before && after(&told, "complaints: ").starts_with("an answer to ") && !told.contains("; ");
        assert!(twice || told == "complaints: none\n", "{turn}: {told}");
        let call = &calls(&ended)[0];
        assert_eq!((&call["status"], &call["confirmed"]), (&json!("completed"), &json!("user-action")), "{turn}");
        client.must_agree_on_all().await;
    }
}
