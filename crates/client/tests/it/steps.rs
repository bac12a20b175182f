//! Random steps of clients of one session, in either dialect.

use std::time::Duration;

use grove_client::{DispatchHandle, DispatchOutcome};
use grove_host::Config;
use proptest::prelude::*;
use serde_json::json;

use crate::harness::{TestHost, soon};

/// The number of clients.
pub(crate) const CLIENTS: usize = 2;

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Start {
        client: usize,
        script: usize,
    },
    Cancel {
        client: usize,
    },
    Answer {
        client: usize,
        approved: bool,
    },
    /// Sets a value to a new one, or to one that a host may ignore.
    Set {
        client: usize,
        plain: bool,
    },
    Pass {
        ms: u64,
    },
    Up(bool),
    Down(bool),
    Cut,
    Restart,
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let client = || 0..CLIENTS;
    prop_oneof![
        4 => (client(), 0..4usize).prop_map(|(client, script)| Step::Start { client, script }),
        2 => client().prop_map(|client| Step::Cancel { client }),
        2 => (client(), any::<bool>()).prop_map(|(client, approved)| Step::Answer { client, approved }),
        2 => (client(), any::<bool>()).prop_map(|(client, plain)| Step::Set { client, plain }),
        5 => (0..300u64).prop_map(|ms| Step::Pass { ms }),
        1 => any::<bool>().prop_map(Step::Up),
        1 => any::<bool>().prop_map(Step::Down),
        2 => Just(Step::Cut),
        1 => Just(Step::Restart),
    ]
}

impl Step {
    /// The client of the step; `None` if it affects all.
    pub(crate) fn client(&self) -> Option<usize> {
        match self {
            Step::Start { client, .. }
            | Step::Cancel { client }
            | Step::Answer { client, .. }
            | Step::Set { client, .. } => Some(*client),
            Step::Pass { .. } | Step::Up(_) | Step::Down(_) | Step::Cut | Step::Restart => None,
        }
    }

    /// Applies a step that is not a client's.
    pub(crate) async fn befall(&self, host: &mut TestHost, config: &dyn Fn() -> Config) {
        match self {
            Step::Pass { ms } => tokio::time::sleep(Duration::from_millis(*ms)).await,
            Step::Up(pass) => host.front.let_up(*pass),
            Step::Down(pass) => host.front.let_down(*pass),
            Step::Cut => host.front.cut(),
            Step::Restart => host.kill_and_restart(config()).await,
            Step::Start { .. } | Step::Cancel { .. } | Step::Answer { .. } | Step::Set { .. } => {}
        }
    }
}

/// Lets everything pass again, and waits for the outcome of every sent action.
pub(crate) async fn settle(host: &TestHost, sent: Vec<DispatchHandle>) {
    host.front.let_up(true);
    host.front.let_down(true);
    // Time to detect lost actions.
    tokio::time::sleep(Duration::from_secs(5)).await;
    for sent in sent {
        let _: DispatchOutcome = soon("an outcome", sent.into_future()).await;
    }
}

/// The script of the agent.
pub(crate) fn steps(script: usize) -> serde_json::Value {
    match script {
        0 => json!([{"say": "some words in pieces", "chunks": 10, "delayMs": 7}]),
        1 => json!([{"tool": {"name": "sh", "output": "x", "permission": "shell"}}, {"say": "after", "chunks": 2}]),
        2 => json!([{"reason": "hm"}, {"title": "A title"}, {"fail": "no"}]),
        _ => json!([{"say": "for ever"}, {"hang": true}]),
    }
}
