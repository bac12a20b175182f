//! Many agents at once: a small version of `bench/agents`, which counts instead of measuring.

use grove_testkit::acp::AgentBehavior;
use grove_testkit::ahp::markdown;
use grove_wire::ahp::TurnState;
use serde_json::json;

use super::*;

const AGENTS: usize = 5;
const PER_SECOND: u64 = 50;
const SECONDS: u64 = 2;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_agents_at_once_nothing_is_lost_or_reordered() {
    let stage = Stage::new(AgentBehavior::default());
    let mut client = stage.host().ahp("a").await;
    let mut other = stage.host().ahp("b").await;
    let mut chats = Vec::new();
    for number in 0..AGENTS {
        let uri = format!("mine:/s{number}");
        let chat = stage.session(&mut client, &uri).await;
        assert_eq!(other.follow(&uri).await, chat);
        // Started before the count begins.
        said(&mut client, &chat, "ready", json!([{"say": "ready"}])).await;
        chats.push(chat);
    }
    let count = PER_SECOND * SECONDS;
    let steps = json!([{"stream": {"count": count, "per_second": PER_SECOND}}]);
    for chat in &chats {
        start(&mut client, chat, "t", &steps).await;
    }
    let see = async |client: &mut Client| {
        let mut texts = Vec::new();
        for chat in &chats {
            let ended = client.turn_end(chat, "t").await;
            assert_eq!(ended.state, TurnState::Complete, "{chat}");
            texts.push(markdown(&ended.response_parts));
        }
        client.must_agree_on_all().await;
        texts
    };
    let (mine, theirs) = tokio::join!(see(&mut client), see(&mut other));
    assert_eq!(mine, theirs);
    for (chat, text) in chats.iter().zip(&mine) {
        let numbers: Vec<u64> =
            text.split_terminator(';').map(|piece| piece.split_once(':').unwrap().0.parse().unwrap()).collect();
        assert_eq!(numbers, (1..=count).collect::<Vec<_>>(), "{chat}");
    }
}
