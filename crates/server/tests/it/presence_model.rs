//! Presence after random operations: the list of each session is that of a simple model, and watchers know it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use grove_host::Config;
use grove_host::presence::{NOTICE_DELAY, RETURN_GRACE};
use grove_testkit::{Client, ahp};
use grove_wire::x_grove::presence::PRESENCE_CHANGED;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::harness::TestHost;

/// Every other one speaks version 1.
const CLIENTS: usize = 4;
const SESSIONS: usize = 2;

#[derive(Clone, Debug)]
enum Step {
    Subscribe {
        client: usize,
        session: usize,
    },
    /// Subscribes to the session's chat, which attaches to the session as well. Version 1 has no chats.
    SubscribeToChat {
        client: usize,
        session: usize,
    },
    Unsubscribe {
        client: usize,
        session: usize,
    },
    UnsubscribeFromChat {
        client: usize,
        session: usize,
    },
    /// Asks to be told of changes, or not any longer.
    Watch {
        client: usize,
        session: usize,
        watch: bool,
    },
    Cut {
        client: usize,
    },
    /// Reconnects, also while the earlier connection is open.
    Return {
        client: usize,
    },
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let client = 0..CLIENTS;
    let session = 0..SESSIONS;
    let both = || (client.clone(), session.clone());
    prop_oneof![
        4 => both().prop_map(|(client, session)| Step::Subscribe { client, session }),
        2 => both().prop_map(|(client, session)| Step::SubscribeToChat { client, session }),
        3 => both().prop_map(|(client, session)| Step::Unsubscribe { client, session }),
        1 => both().prop_map(|(client, session)| Step::UnsubscribeFromChat { client, session }),
        2 => (both(), any::<bool>()).prop_map(|((client, session), watch)| Step::Watch { client, session, watch }),
        3 => client.clone().prop_map(|client| Step::Cut { client }),
        3 => client.clone().prop_map(|client| Step::Return { client }),
        2 => (0..9_000u64).prop_map(|ms| Step::Wait { ms }),
    ]
}

fn uri(session: usize) -> String {
    format!("scripted:/s{session}")
}

/// A client of either protocol.
enum Connection {
    V1(Box<Client>),
    Ahp(Box<ahp::Client>),
}

impl Connection {
    async fn subscribe(&mut self, channel: &str) {
        match self {
            Connection::V1(client) => drop(client.subscribe(channel).await.unwrap()),
            Connection::Ahp(client) => drop(client.subscribe(channel).await.unwrap()),
        }
    }

    async fn unsubscribe(&mut self, channel: &str) {
        match self {
            Connection::V1(client) => {
                client.sessions.remove(channel);
                let params = json!({"resource": channel});
                client.send(json!({"jsonrpc": "2.0", "method": "unsubscribe", "params": params}).to_string()).await;
                client.call::<()>("ping", json!({})).await.unwrap();
            }
            Connection::Ahp(client) => {
                client.unsubscribe(channel).await;
                client.ask("ping", json!({})).await.unwrap();
            }
        }
    }

    async fn cut(&mut self) {
        match self {
            Connection::V1(client) => client.cut().await,
            Connection::Ahp(client) => client.cut().await,
        }
    }

    async fn bring_back(&mut self, host: &TestHost) {
        match self {
            Connection::V1(client) => drop(host.bring_back(client).await),
            Connection::Ahp(client) => drop(host.bring_back_ahp(client).await),
        }
    }
}

/// A client, and what the model knows of it.
struct ModelClient {
    id: String,
    connection: Connection,
    /// The time at which the connection was cut, if it is not open.
    cut_at: Option<Instant>,
    /// The subscribed channels of each session.
    channels: BTreeMap<usize, BTreeSet<String>>,
    /// The sessions that it watches, with the list that it knew when it began.
    watches: BTreeMap<usize, Value>,
}

struct Model {
    host: TestHost,
    observer: ahp::Client,
    clients: Vec<ModelClient>,
    chats: Vec<String>,
}

impl Model {
    async fn start() -> Self {
        let host = TestHost::start(Config::default()).await;
        let mut observer = host.ahp("observer").await;
        let mut chats = Vec::new();
        for session in 0..SESSIONS {
            chats.push(observer.ready_session(&uri(session)).await);
            observer.unsubscribe(&chats[session]).await;
            observer.unsubscribe(&uri(session)).await;
        }
        let mut clients = Vec::new();
        for number in 0..CLIENTS {
            let id = format!("client-{number}");
            let connection = match number % 2 {
                0 => Connection::V1(Box::new(host.client(&id).await)),
                _ => Connection::Ahp(Box::new(host.ahp(&id).await)),
            };
            let (channels, watches) = (BTreeMap::new(), BTreeMap::new());
            clients.push(ModelClient { id, connection, cut_at: None, channels, watches });
        }
        Self { host, observer, clients, chats }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Subscribe { client, session } => self.subscribe(client, session, uri(session)).await,
            Step::SubscribeToChat { client, session } => {
                if matches!(self.clients[client].connection, Connection::Ahp(_)) {
                    self.subscribe(client, session, self.chats[session].clone()).await;
                }
            }
            Step::Unsubscribe { client, session } => self.unsubscribe(client, session, &uri(session)).await,
            Step::UnsubscribeFromChat { client, session } => {
                self.unsubscribe(client, session, &self.chats[session].clone()).await;
            }
            Step::Watch { client, session, watch } => {
                let client = &mut self.clients[client];
                // The test client of version 1 knows no notifications of Grove's extensions.
                let Connection::Ahp(connection) = &mut client.connection else { return };
                if client.cut_at.is_none() && client.channels.contains_key(&session) {
                    let params = json!({"channel": uri(session), "watch": watch});
                    let list = connection.ask("x-grove/presence", params).await.unwrap();
                    // Earlier notifications are about an earlier watch.
                    connection.notifications.clear();
                    match watch {
                        true => drop(client.watches.insert(session, list)),
                        false => drop(client.watches.remove(&session)),
                    }
                }
            }
            Step::Cut { client } => {
                let client = &mut self.clients[client];
                if client.cut_at.is_none() {
                    client.connection.cut().await;
                    client.cut_at = Some(Instant::now());
                    client.watches.clear();
                }
            }
            Step::Return { client } => {
                let client = &mut self.clients[client];
                client.connection.bring_back(&self.host).await;
                client.cut_at = None;
                client.watches.clear();
            }
            Step::Wait { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
    }

    async fn subscribe(&mut self, client: usize, session: usize, channel: String) {
        let client = &mut self.clients[client];
        if client.cut_at.is_none() {
            client.connection.subscribe(&channel).await;
            client.channels.entry(session).or_default().insert(channel);
        }
    }

    async fn unsubscribe(&mut self, client: usize, session: usize, channel: &str) {
        let client = &mut self.clients[client];
        let Some(channels) = client.channels.get_mut(&session).filter(|_| client.cut_at.is_none()) else { return };
        if channels.remove(channel) {
            client.connection.unsubscribe(channel).await;
        }
        if channels.is_empty() {
            client.channels.remove(&session);
            client.watches.remove(&session);
        }
    }

    /// Compares the list of a session with the model.
    async fn check(&mut self, session: usize) -> Result<Value, TestCaseError> {
        let list = self.observer.ask("x-grove/presence", json!({"channel": uri(session)})).await.unwrap();
        let rows = list["clients"].as_array().unwrap();
        let listed: Vec<_> =
            rows.iter().map(|row| (row["since"].as_u64(), row["clientId"].as_str().unwrap())).collect();
        prop_assert!(listed.is_sorted(), "those who came first are at the front: {list}");
        for client in &self.clients {
            let count = listed.iter().filter(|(_, id)| *id == client.id).count();
            let attached = client.channels.contains_key(&session);
            // The grace is counted in looks, a notice delay each.
            let (least, most) = match client.cut_at.map(|cut| cut.elapsed()) {
                None => (1, 1),
                Some(gone) if gone > RETURN_GRACE + NOTICE_DELAY => (0, 0),
                Some(gone) if gone >= RETURN_GRACE - NOTICE_DELAY => (0, 1),
                Some(_) => (1, 1),
            };
            let expected = if attached { least..=most } else { 0..=0 };
            prop_assert!(expected.contains(&count), "{} is {count} times in {list}", client.id);
        }
        prop_assert_eq!(&list["more"], 0);
        Ok(list)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_list_is_that_of_a_model_after_any_operations(steps in vec(step(), 1..60)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut model = Model::start().await;
            for step in steps {
                model.take(step).await;
                // The host notices a broken connection, and applies what it was told.
                tokio::time::sleep(Duration::from_millis(20)).await;
                for session in 0..SESSIONS {
                    model.check(session).await?;
                }
            }
            tokio::time::sleep(RETURN_GRACE + 3 * NOTICE_DELAY).await;
            for session in 0..SESSIONS {
                let list = model.check(session).await?;
                for client in &mut model.clients {
                    let (Some(before), Connection::Ahp(connection)) =
                        (client.watches.get(&session), &mut client.connection)
                    else {
                        continue;
                    };
                    // An answer comes after every notification that was sent before it.
                    connection.ask("x-grove/presence", json!({"channel": uri(session)})).await.unwrap();
                    let news = connection.told(PRESENCE_CHANGED);
                    let known = news.into_iter().rfind(|news| news["channel"] == uri(session)).unwrap_or(before);
                    prop_assert_eq!(&known["clients"], &list["clients"], "{} knows another list", client.id);
                }
            }
            Ok(())
        })?;
    }
}
