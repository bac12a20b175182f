//! What can happen to clients of one session, in either dialect.

use proptest::prelude::*;
use serde_json::json;

/// How many clients there are.
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
    /// Sets something to what it is not, or to what a host may pass over.
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

/// What the agent is told to do.
pub(crate) fn steps(script: usize) -> serde_json::Value {
    match script {
        0 => json!([{"say": "some words in pieces", "chunks": 10, "delayMs": 7}]),
        1 => json!([{"tool": {"name": "sh", "output": "x", "permission": "shell"}}, {"say": "after", "chunks": 2}]),
        2 => json!([{"reason": "hm"}, {"title": "A title"}, {"fail": "no"}]),
        _ => json!([{"say": "for ever"}, {"hang": true}]),
    }
}
