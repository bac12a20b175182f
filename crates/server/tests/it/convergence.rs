//! Laws 1 and 5: everyone converges, whatever clients do, in any order, and wherever their connections break.
//!
//! Sequence numbers grow strictly (which the client checks at every action).

use std::time::Duration;

use grove_host::{Compaction, Config, Limits};
use grove_testkit::{Client, ahp};
use grove_wire::ahp::{ResponsePart, ToolCallState};
use grove_wire::v1::Lifecycle;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::TestHost;

/// Two of version 1, and one of the Agent Host Protocol for each spelling of channels and each of its versions.
const CLIENTS: usize = 4;
const SESSIONS: usize = 2;
/// Sessions are evicted as soon as possible.
const SESSION_IDLE: Duration = Duration::from_millis(5);

/// A step of a client.
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
    /// Version 1 changes the model, to an existing one or not. Others change the title, or try a forbidden change.
    Change {
        client: usize,
        session: usize,
        known: bool,
    },
    /// Queues a message; version 1 has no queue.
    Enqueue {
        client: usize,
        session: usize,
        script: usize,
    },
    /// Reads nothing for a while; the host continues.
    Pass {
        ms: u64,
    },
    /// Breaks the connection; everything in flight is lost.
    Cut {
        client: usize,
    },
    /// Reconnects the client, disconnected or not.
    Return {
        client: usize,
    },
    /// Compares the client with the host.
    Check {
        client: usize,
        session: usize,
    },
    /// Changes the session's tree, at one of its entries.
    Garden {
        session: usize,
        work: TreeStep,
        entry: usize,
    },
    /// Kills the host and starts it again.
    Restart,
    /// Disconnects everybody for so long that idle sessions are evicted.
    Leave,
}

/// A change of a tree.
#[derive(Clone, Copy, Debug)]
enum TreeStep {
    Navigate { summarize: bool },
    Reset,
    Label,
    Compact,
    Merge,
    Branch,
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
            .prop_map(|(client, session, known)| Step::Change { client, session, known }),
        1 => (client.clone(), session.clone(), 0..scripts().len())
            .prop_map(|(client, session, script)| Step::Enqueue { client, session, script }),
        4 => (0..40u64).prop_map(|ms| Step::Pass { ms }),
        2 => client.clone().prop_map(|client| Step::Cut { client }),
        3 => client.clone().prop_map(|client| Step::Return { client }),
        3 => (client, session).prop_map(|(client, session)| Step::Check { client, session }),
    ]
}

/// Steps among which the host is sometimes killed, or left alone.
fn step_or_kill() -> impl Strategy<Value = Step> {
    prop_oneof![12 => step(), 1 => Just(Step::Restart), 1 => Just(Step::Leave)]
}

/// Steps among which sessions' trees are changed at random.
fn step_or_garden() -> impl Strategy<Value = Step> {
    let work = prop_oneof![
        4 => any::<bool>().prop_map(|summarize| TreeStep::Navigate { summarize }),
        1 => Just(TreeStep::Reset),
        2 => Just(TreeStep::Label),
        2 => Just(TreeStep::Compact),
        2 => Just(TreeStep::Merge),
        1 => Just(TreeStep::Branch),
    ];
    let garden = (0..SESSIONS, work, any::<prop::sample::Index>());
    let garden = garden.prop_map(|(session, work, entry)| Step::Garden { session, work, entry: entry.index(64) });
    prop_oneof![12 => step(), 6 => garden, 1 => Just(Step::Restart), 1 => Just(Step::Leave)]
}

/// The scripts of turns: all end by themselves or wait for the user.
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

/// A client of either protocol.
enum Either {
    V1(Client),
    Ahp(ahp::Client, Spelling),
}

#[derive(Clone, Copy)]
enum Spelling {
    Computed,
    Plain,
}

impl Spelling {
    fn session(self, session: usize) -> String {
        match self {
            Spelling::Computed => uri(session),
            Spelling::Plain => format!("ahp-session:/s{session}"),
        }
    }

    fn chat(self, session: usize) -> String {
        match self {
            // The session's URI in base64.
            Spelling::Computed => format!("ahp-chat://default/{}", ["c2NyaXB0ZWQ6L3Mw", "c2NyaXB0ZWQ6L3Mx"][session]),
            Spelling::Plain => format!("ahp-chat:/s{session}"),
        }
    }
}

impl Either {
    async fn new(host: &TestHost, number: usize) -> Self {
        let id = format!("client-{number}");
        match number {
            0 | 1 => Either::V1(host.client(&id).await),
            2 => Either::Ahp(host.ahp(&id).await, Spelling::Computed),
            _ => Either::Ahp(host.ahp_of("0.9.0", &id).await, Spelling::Plain),
        }
    }

    async fn follow(&mut self, session: usize) {
        match self {
            Either::V1(client) => drop(client.subscribe(&uri(session)).await.unwrap()),
            Either::Ahp(client, spelling) => {
                client.subscribe(&spelling.session(session)).await.unwrap();
                client.subscribe(&spelling.chat(session)).await.unwrap();
            }
        }
    }

    async fn start(&mut self, session: usize, turn: &str, script: Value) {
        match self {
            Either::V1(client) => client.script(&uri(session), turn, script).await,
            Either::Ahp(client, spelling) => client.script(&spelling.chat(session), turn, script).await,
        };
    }

    /// The active turn according to this client; it may be over.
    fn active(&self, session: usize) -> Option<String> {
        match self {
            Either::V1(client) => client.session(&uri(session)).active_turn.as_ref().map(|turn| turn.id.clone()),
            Either::Ahp(client, spelling) => {
                client.chat(&spelling.chat(session)).active_turn.as_ref().map(|turn| turn.id.clone())
            }
        }
    }

    async fn cancel(&mut self, session: usize, turn: &str) {
        match self {
            Either::V1(client) => {
                let action = json!({"type": "session/turnCancelled", "session": uri(session), "turnId": turn});
                client.dispatch(action).await
            }
            Either::Ahp(client, spelling) => {
                let action = json!({"type": "chat/turnCancelled", "turnId": turn, "duration": 1});
                client.dispatch(&spelling.chat(session), action).await
            }
        };
    }

    async fn answer(&mut self, session: usize, approved: bool) {
        let Some(turn) = self.active(session) else { return };
        match self {
            Either::V1(client) => {
                let pending = &client.active(&uri(session)).pending_permissions;
                let request = pending.keys().next().cloned().unwrap_or_else(|| "none".to_owned());
                client
                    .dispatch(json!({"type": "session/permissionResolved", "session": uri(session),
                        "turnId": turn, "requestId": request, "approved": approved}))
                    .await
            }
            Either::Ahp(client, spelling) => {
                let chat = spelling.chat(session);
                let waits = |part: &ResponsePart| match part {
                    ResponsePart::ToolCall(part) => match &part.tool_call {
                        ToolCallState::PendingConfirmation(call) => Some(call.base.tool_call_id.clone()),
                        _ => None,
                    },
                    _ => None,
                };
                let call = client.active(&chat).response_parts.iter().find_map(waits);
                let call = call.unwrap_or_else(|| "none".to_owned());
                let action = json!({"type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call,
                    "approved": approved});
                client.dispatch(&chat, action).await
            }
        };
    }

    async fn change(&mut self, session: usize, known: bool) {
        match self {
            Either::V1(client) => {
                let model = if known { "scripted" } else { "unheard-of" };
                client.dispatch(json!({"type": "session/modelChanged", "session": uri(session), "model": model})).await
            }
            Either::Ahp(client, spelling) => {
                let title = json!({"type": "session/titleChanged", "title": format!("by {}", client.client_id)});
                let action = if known { title } else { json!({"type": "session/ready"}) };
                client.dispatch(&spelling.session(session), action).await
            }
        };
    }

    async fn enqueue(&mut self, session: usize, id: &str, script: &Value) {
        if let Either::Ahp(client, spelling) = self {
            let message = ahp::message(&format!("script:{script}"));
            let action = json!({"type": "chat/pendingMessageSet", "kind": "queued", "id": id, "message": message});
            client.dispatch(&spelling.chat(session), action).await;
        }
    }

    async fn cut(&mut self) {
        match self {
            Either::V1(client) => client.cut().await,
            Either::Ahp(client, _) => client.cut().await,
        }
    }

    async fn bring_back(&mut self, host: &TestHost) {
        match self {
            Either::V1(client) => drop(host.bring_back(client).await),
            Either::Ahp(client, _) => drop(host.bring_back_ahp(client).await),
        }
    }

    async fn must_agree(&mut self, session: usize) {
        match self {
            Either::V1(client) => client.must_agree(&uri(session)).await,
            Either::Ahp(client, spelling) => {
                client.must_agree(&spelling.session(session)).await;
                client.must_agree(&spelling.chat(session)).await;
            }
        }
    }
}

struct World {
    config: Config,
    host: TestHost,
    clients: Vec<(Either, bool)>,
    /// The client that changes trees.
    gardener: ahp::Client,
    turns: usize,
}

impl World {
    async fn new(limits: Limits) -> Self {
        // So little is kept that there is something to compact.
        let compaction = Compaction { at_percent: 85, keep_tokens: 5 };
        let limits = Limits { session_idle: SESSION_IDLE, ..limits };
        let config = Config { limits, compaction, ..Config::default() };
        let host = TestHost::start(config.clone()).await;
        let mut clients = Vec::new();
        for n in 0..CLIENTS {
            let mut client = Either::new(&host, n).await;
            for session in 0..SESSIONS {
                if let (0, Either::V1(client)) = (n, &mut client) {
                    client.create_session(&uri(session)).await.unwrap();
                }
                client.follow(session).await;
            }
            clients.push((client, true));
        }
        let gardener = host.ahp("gardener").await;
        Self { config, host, clients, gardener, turns: 0 }
    }

    async fn step(&mut self, step: Step) {
        self.turns += 1;
        let new = format!("turn-{}", self.turns);
        match step {
            Step::Start { client, session, script } => {
                if let Some(client) = self.connected(client) {
                    client.start(session, &new, scripts()[script].clone()).await;
                }
            }
            Step::Enqueue { client, session, script } => {
                if let Some(client) = self.connected(client) {
                    client.enqueue(session, &new, &scripts()[script]).await;
                }
            }
            Step::Cancel { client, session } => {
                let Some(client) = self.connected(client) else { return };
                let turn = client.active(session).unwrap_or_else(|| "none".to_owned());
                client.cancel(session, &turn).await;
            }
            Step::Answer { client, session, approved } => {
                if let Some(client) = self.connected(client) {
                    client.answer(session, approved).await;
                }
            }
            Step::Change { client, session, known } => {
                if let Some(client) = self.connected(client) {
                    client.change(session, known).await;
                }
            }
            Step::Pass { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Cut { client } => {
                self.clients[client].0.cut().await;
                self.clients[client].1 = false;
            }
            Step::Return { client } => self.bring_back(client).await,
            Step::Garden { session, work, entry } => self.garden(session, work, entry).await,
            Step::Restart => {
                self.host.kill_and_restart(self.config.clone()).await;
                self.gardener = self.host.ahp("gardener").await;
                self.cut_all().await;
            }
            Step::Leave => {
                self.cut_all().await;
                tokio::time::sleep(8 * SESSION_IDLE).await;
            }
            Step::Check { client, session } => {
                if let Some(client) = self.connected(client) {
                    client.must_agree(session).await;
                }
            }
        }
    }

    /// Changes a tree, or is refused.
    ///
    /// It loses no message, and clients of version 1 reconnect if the leaf has moved.
    async fn garden(&mut self, session: usize, work: TreeStep, entry: usize) {
        let gardener = &mut self.gardener;
        let channel = uri(session);
        let before = entries(gardener, &channel).await;
        let Some(entry) = before.get(entry % before.len().max(1)).map(|entry| entry["id"].clone()) else { return };
        let (method, params) = match work {
            TreeStep::Navigate { summarize } => ("navigate", json!({"entry": entry, "summarize": summarize})),
            TreeStep::Reset => ("navigate", json!({"entry": null})),
            TreeStep::Label => ("label", json!({"entry": entry, "label": "here"})),
            TreeStep::Compact => ("compact", json!({})),
            TreeStep::Merge => ("merge", json!({"entry": entry})),
            TreeStep::Branch => ("branch", json!({"entry": entry})),
        };
        let mut all = json!({"channel": channel});
        all.as_object_mut().unwrap().extend(params.as_object().unwrap().clone());
        let done = gardener.ask(&format!("x-grove/{method}"), all).await;
        let after = entries(gardener, &channel).await;
        assert_eq!(after[..before.len()], before[..], "a tree only grows");
        if done.is_ok_and(|done| done["moved"] == true) {
            for (client, connected) in &mut self.clients {
                if let Either::V1(client) = client {
                    client.cut().await;
                    *connected = false;
                }
            }
        }
    }

    async fn cut_all(&mut self) {
        for (client, connected) in &mut self.clients {
            client.cut().await;
            *connected = false;
        }
    }

    fn connected(&mut self, client: usize) -> Option<&mut Either> {
        let (client, connected) = &mut self.clients[client];
        connected.then_some(client)
    }

    async fn bring_back(&mut self, client: usize) {
        let (client, connected) = &mut self.clients[client];
        client.bring_back(&self.host).await;
        *connected = true;
    }

    /// Reconnects everybody, waits until nothing runs any more, and compares all with the host and with each other.
    async fn finish(mut self) {
        for client in 0..CLIENTS {
            self.bring_back(client).await;
        }
        for session in 0..SESSIONS {
            // A queued message becomes a turn when another ends.
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
                let (first, _) = &mut self.clients[0];
                first.must_agree(session).await;
                let Some(waiting) = first.active(session) else { break };
                first.cancel(session, &waiting).await;
            }
            for (client, _) in &mut self.clients {
                client.must_agree(session).await;
                assert_eq!(client.active(session), None);
                if let Either::V1(client) = client {
                    assert_eq!(client.session(&uri(session)).lifecycle, Lifecycle::Ready);
                }
            }
        }
    }
}

async fn entries(client: &mut ahp::Client, channel: &str) -> Vec<Value> {
    let all = client.ask("x-grove/entries", json!({"channel": channel, "limit": 1000})).await.unwrap();
    all["entries"].as_array().unwrap().clone()
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

    /// Law 1 with gaps often larger than the replay, and snapshots of two turns.
    #[test]
    fn clients_converge_by_snapshots(steps in prop::collection::vec(step(), 1..60)) {
        run(Limits { replay_actions: 20, snapshot_turns: 2, ..Limits::default() }, steps);
    }

    /// Laws 1, 4 and 5 with the host killed at any moment.
    ///
    /// Published events survive, sequence numbers do not go back, and everyone converges.
    #[test]
    fn clients_converge_through_kills_of_the_host(steps in prop::collection::vec(step_or_kill(), 1..60)) {
        run(Limits::default(), steps);
    }

    /// The same with a journal that keeps hardly anything, and sessions that are restored from their folders.
    #[test]
    fn clients_converge_through_kills_with_a_short_journal(steps in prop::collection::vec(step_or_kill(), 1..60)) {
        run(Limits { replay_actions: 5, ..Limits::default() }, steps);
    }

    /// Laws 1, 3 and 4 with random navigation, labels, summaries and branches.
    ///
    /// The host is sometimes killed.
    #[test]
    fn clients_converge_while_trees_are_changed(steps in prop::collection::vec(step_or_garden(), 1..60)) {
        run(Limits { snapshot_turns: 3, ..Limits::default() }, steps);
    }

    /// Law 1 with queues so short that deltas are merged and connections dropped.
    #[test]
    fn clients_converge_through_crowded_queues(steps in prop::collection::vec(step(), 1..60)) {
        run(Limits { queue_messages: 256, ..Limits::default() }, steps);
    }
}
