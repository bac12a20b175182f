//! Laws 1 and 5: whatever clients do, in whatever order, and wherever their connections are cut, everyone converges;
//! and numbers grow strictly (which the client checks at every action).

use grove_host::{Config, Limits};
use grove_testkit::Client;
use grove_wire::v1::Lifecycle;
use proptest::prelude::*;
use serde_json::json;

use crate::harness::TestHost;

const CLIENTS: usize = 3;
const SESSIONS: usize = 2;

/// Something that a client does.
#[derive(Clone, Debug)]
enum Step {
    Start {
        client: usize,
        session: usize,
        script: usize,
    },
    Cancel {
        client: usize,
        session: usize,
    },
    Answer {
        client: usize,
        session: usize,
        approved: bool,
    },
    ChangeModel {
        client: usize,
        session: usize,
        known: bool,
    },
    /// Reads nothing for a while; the host goes on.
    Pass {
        ms: u64,
    },
    /// The connection breaks, and what was under way is lost.
    Cut {
        client: usize,
    },
    /// The client comes back, cut or not.
    Return {
        client: usize,
    },
    /// The client compares itself with the host.
    Check {
        client: usize,
        session: usize,
    },
    /// The host is killed and started again.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    let session = 0..SESSIONS;
    prop_oneof![
        4 => (client.clone(), session.clone(), 0..scripts().len())
            .prop_map(|(client, session, script)| Step::Start { client, session, script }),
        1 => (client.clone(), session.clone()).prop_map(|(client, session)| Step::Cancel { client, session }),
        3 => (client.clone(), session.clone(), any::<bool>())
            .prop_map(|(client, session, approved)| Step::Answer { client, session, approved }),
        1 => (client.clone(), session.clone(), any::<bool>())
            .prop_map(|(client, session, known)| Step::ChangeModel { client, session, known }),
        4 => (0..40u64).prop_map(|ms| Step::Pass { ms }),
        2 => client.clone().prop_map(|client| Step::Cut { client }),
        3 => client.clone().prop_map(|client| Step::Return { client }),
        3 => (client, session).prop_map(|(client, session)| Step::Check { client, session }),
    ]
}

/// Steps among which the host is killed now and then.
fn step_or_kill() -> impl Strategy<Value = Step> {
    prop_oneof![12 => step(), 1 => Just(Step::Restart)]
}

/// What turns are made of: all end by themselves or wait for a person.
fn scripts() -> Vec<serde_json::Value> {
    vec![
        json!([{"say": "one two three four five", "chunks": 9, "delayMs": 3}]),
        json!([{"reason": "hm"}, {"say": "abc", "chunks": 3}, {"tool": {"name": "ls", "input": "ls", "output": "x"}},
            {"say": "done", "chunks": 2, "delayMs": 5}, {"usage": {"inputTokens": 1, "outputTokens": 2}}]),
        json!([{"tool": {"name": "sh", "input": "rm", "output": "gone", "permission": "shell"}}, {"say": "after"}]),
        json!([{"say": "a"}, {"part": {"mimeType": "text/plain", "text": "whole"}}, {"title": "named"}, {"say": "b"}]),
        json!([{"tool": {"name": "cat", "output": "0123456789", "repeat": 10_000}}, {"fail": "on purpose"}]),
        json!([{"ask": "really?"}]),
        json!([{"sleepMs": 15}, {"tool": {"name": "w", "input": "f", "permission": "write", "success": false}}]),
    ]
}

fn uri(session: usize) -> String {
    format!("scripted:/s{session}")
}

struct World {
    config: Config,
    host: TestHost,
    clients: Vec<(Client, bool)>,
    turns: usize,
}

impl World {
    async fn new(limits: Limits) -> Self {
        let config = Config { limits, ..Config::default() };
        let host = TestHost::start(config.clone()).await;
        let mut clients = Vec::new();
        for n in 0..CLIENTS {
            let mut client = host.client(&format!("client-{n}")).await;
            for session in 0..SESSIONS {
                if n == 0 {
                    client.create_session(&uri(session)).await.unwrap();
                }
                client.subscribe(&uri(session)).await.unwrap();
            }
            clients.push((client, true));
        }
        Self { config, host, clients, turns: 0 }
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Start { client, session, script } => {
                self.turns += 1;
                let turn = format!("turn-{}", self.turns);
                if let Some(client) = self.connected(client) {
                    client.script(&uri(session), &turn, scripts()[script].clone()).await;
                }
            }
            Step::Cancel { client, session } => {
                let Some(client) = self.connected(client) else { return };
                // What this client takes for the active turn; it may be over.
                let active = client.session(&uri(session)).active_turn.as_ref().map(|turn| turn.id.clone());
                let turn = active.unwrap_or_else(|| "none".to_owned());
                let action = json!({"type": "session/turnCancelled", "session": uri(session), "turnId": turn});
                client.dispatch(action).await;
            }
            Step::Answer { client, session, approved } => {
                let Some(client) = self.connected(client) else { return };
                let Some(active) = client.session(&uri(session)).active_turn.clone() else { return };
                let request = active.pending_permissions.keys().next().cloned().unwrap_or_else(|| "none".to_owned());
                client
                    .dispatch(json!({"type": "session/permissionResolved", "session": uri(session),
                        "turnId": active.id, "requestId": request, "approved": approved}))
                    .await;
            }
            Step::ChangeModel { client, session, known } => {
                let Some(client) = self.connected(client) else { return };
                let model = if known { "scripted" } else { "unheard-of" };
                client.dispatch(json!({"type": "session/modelChanged", "session": uri(session), "model": model})).await;
            }
            Step::Pass { ms } => tokio::time::sleep(std::time::Duration::from_millis(ms)).await,
            Step::Cut { client } => {
                self.clients[client].0.cut().await;
                self.clients[client].1 = false;
            }
            Step::Return { client } => self.bring_back(client).await,
            Step::Restart => {
                self.host.kill_and_restart(self.config.clone()).await;
                for (client, connected) in &mut self.clients {
                    client.cut().await;
                    *connected = false;
                }
            }
            Step::Check { client, session } => {
                if let Some(client) = self.connected(client) {
                    client.must_agree(&uri(session)).await;
                }
            }
        }
    }

    fn connected(&mut self, client: usize) -> Option<&mut Client> {
        let (client, connected) = &mut self.clients[client];
        connected.then_some(client)
    }

    async fn bring_back(&mut self, client: usize) {
        let (client, connected) = &mut self.clients[client];
        self.host.bring_back(client).await;
        *connected = true;
    }

    /// Everybody is back, nothing runs any more, and all agree with the host and with one another.
    async fn finish(mut self) {
        for client in 0..CLIENTS {
            self.bring_back(client).await;
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        for session in 0..SESSIONS {
            let uri = uri(session);
            let (first, _) = &mut self.clients[0];
            first.must_agree(&uri).await;
            if let Some(waiting) = first.session(&uri).active_turn.clone() {
                first.dispatch(json!({"type": "session/turnCancelled", "session": uri, "turnId": waiting.id})).await;
                first.turn_end(&uri, &waiting.id).await;
            }
            assert_eq!(first.session(&uri).lifecycle, Lifecycle::Ready);
            for (client, _) in &mut self.clients {
                client.must_agree(&uri).await;
            }
        }
    }
}

fn run(limits: Limits, steps: Vec<Step>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut world = World::new(limits).await;
        for step in steps {
            world.step(step).await;
        }
        world.finish().await;
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, max_shrink_iters: 400, failure_persistence: None, ..ProptestConfig::default() })]

    /// Law 1 with every gap inside the replay.
    #[test]
    fn clients_converge_by_replay(steps in prop::collection::vec(step(), 1..60)) {
        run(Limits::default(), steps);
    }

    /// Law 1 where gaps are often larger than the replay, and snapshots hold two turns.
    #[test]
    fn clients_converge_by_snapshots(steps in prop::collection::vec(step(), 1..60)) {
        run(Limits { replay_actions: 20, snapshot_turns: 2, ..Limits::default() }, steps);
    }

    /// Laws 1, 4 and 5 where the host is killed at any moment: what a client saw is there, numbers do not go back, and
    /// everyone converges.
    #[test]
    fn clients_converge_through_kills_of_the_host(steps in prop::collection::vec(step_or_kill(), 1..60)) {
        run(Limits::default(), steps);
    }

    /// The same where the journal keeps hardly anything, and sessions come back from their folders.
    #[test]
    fn clients_converge_through_kills_with_a_short_journal(steps in prop::collection::vec(step_or_kill(), 1..60)) {
        run(Limits { replay_actions: 5, ..Limits::default() }, steps);
    }

    /// Law 1 where queues are so short that deltas are merged and connections dropped.
    #[test]
    fn clients_converge_through_crowded_queues(steps in prop::collection::vec(step(), 1..60)) {
        run(Limits { queue_messages: 256, ..Limits::default() }, steps);
    }
}
