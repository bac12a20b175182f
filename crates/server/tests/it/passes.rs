//! Passes through the sequencer, each of which may wait for the disk, and reads, which do not.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_agents::{Agent, AgentError, AgentSession, OpenSession, Prompt, TurnSink};
use grove_core::{AgentInfo, TurnId};
use grove_host::{Config, Host};
use grove_testkit::ahp::turn_started;
use serde_json::{Value, json};

use crate::harness::TestHost;

const URI: &str = "silent:/s";

/// An agent that reports nothing.
pub(crate) struct SilentAgent {
    pub(crate) opens: bool,
}

#[async_trait]
impl Agent for SilentAgent {
    fn info(&self) -> AgentInfo {
        AgentInfo {
            id: "silent".into(),
            display_name: "Silent".to_owned(),
            description: String::new(),
            models: Vec::new(),
        }
    }

    async fn open(&self, _session: OpenSession) -> Result<Arc<dyn AgentSession>, AgentError> {
        match self.opens {
            true => Ok(Arc::new(SilentAgent { opens: true })),
            false => std::future::pending().await,
        }
    }
}

#[async_trait]
impl AgentSession for SilentAgent {
    async fn prompt(&self, _prompt: Prompt, _turn: TurnSink) -> Result<(), AgentError> {
        std::future::pending().await
    }

    async fn cancel(&self, _turn: &TurnId) {}
}

async fn silent_host() -> TestHost {
    TestHost::with_agents(Config::default(), vec![Arc::new(SilentAgent { opens: true })]).await
}

/// The passes so far, once nothing is under way.
async fn settled(host: &Host) -> u64 {
    loop {
        let before = host.sequencer_passes();
        tokio::time::sleep(Duration::from_secs(1)).await;
        if host.sequencer_passes() == before {
            return before;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_passes_the_sequencer_once() {
    let host = silent_host().await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    let before = settled(&host.host).await;
    let sent = client.start_turn(URI, "t1", "hello").await;
    assert!(client.answer_to(sent).await.rejection_reason.is_none());
    assert_eq!(host.host.sequencer_passes() - before, 1);

    let mut other = host.ahp("b").await;
    let chat = other.ready_session("silent:/other").await;
    let before = settled(&host.host).await;
    let sent = other.dispatch(&chat, turn_started("t1", "hello")).await;
    assert!(other.answer_to(sent).await.rejection_reason.is_none());
    assert_eq!(host.host.sequencer_passes() - before, 1);
}

#[tokio::test(start_paused = true)]
async fn reads_do_not_wait_for_the_disk() {
    let host = silent_host().await;
    let mut client = host.client("a").await;
    client.ready_session(URI).await;
    settled(&host.host).await;
    client.settle().await;
    let passes = host.host.sequencer_passes();
    host.journal.writes.close_behind(0);
    let sent = client.start_turn(URI, "t1", "hello").await;
    let reads = async {
        let listed: Value = client.call("listSessions", json!({})).await.unwrap();
        assert_eq!(listed["sessions"][0]["resource"], URI);
        let turns: Value = client.call("fetchTurns", json!({"session": URI})).await.unwrap();
        assert_eq!(turns["turns"], json!([]), "nothing is seen before it is written");
        assert_eq!(host.host.status().await.unwrap().running_turns, 0);
    };
    tokio::time::timeout(Duration::from_secs(60), reads).await.expect("reads wait for the disk");
    assert_eq!(host.host.sequencer_passes() - passes, 1, "the prompt alone");
    host.journal.writes.open();
    assert!(client.answer_to(sent).await.rejection_reason.is_none());
    assert_eq!(host.host.status().await.unwrap().running_turns, 1);
}
