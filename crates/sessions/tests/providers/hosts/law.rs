//! Whatever hosts and connections do, the list is exactly what the hosts have: nothing twice, nothing lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use grove_client::{Ahp, Client};
use grove_sessions::management::{Management, SessionsEvent};
use grove_sessions::providers::hosts::HostProvider;
use grove_sessions::{
    InMemoryState, Registration, Registry, Session, SessionId, SessionsProvider, Subscription, SubscriptionItem,
};
use grove_wire::ahp::{Action, SessionAction, SessionTitleChanged};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::harness::*;

/// A list that is updated by events alone. It fails if a session is added twice or removed without having been added.
pub(super) struct EventListener {
    rows: BTreeMap<SessionId, Session>,
    events: Subscription<SessionsEvent>,
}

impl EventListener {
    pub(super) fn new(management: &Management) -> Self {
        let (sessions, events) = management.subscribe();
        Self { rows: sessions.into_iter().map(|session| (session.id().clone(), session)).collect(), events }
    }

    /// Applies the pending events. `true` if it had to list again.
    pub(super) fn take_in(&mut self, management: &Management) -> bool {
        let mut was_reset = false;
        while let Some(notice) = self.events.try_next() {
            match notice {
                SubscriptionItem::Event(SessionsEvent::Sessions(change)) => {
                    for session in &change.removed {
                        assert!(self.rows.remove(session.id()).is_some(), "{session:?} was removed and not there");
                    }
                    for session in &change.added {
                        let before = self.rows.insert(session.id().clone(), session.clone());
                        assert!(before.is_none(), "{session:?} was added and there already");
                    }
                    for session in &change.changed {
                        self.rows.insert(session.id().clone(), session.clone());
                    }
                }
                SubscriptionItem::Event(_) => {}
                SubscriptionItem::Reset => (*self, was_reset) = (Self::new(management), true),
            }
        }
        was_reset
    }

    /// Asserts that its list equals the management's.
    pub(super) fn must_agree(&mut self, management: &Management) {
        let listed = management.sessions();
        self.take_in(management);
        let by_id: BTreeMap<_, _> = listed.iter().map(|session| (session.id().clone(), session.clone())).collect();
        assert_eq!(by_id.len(), listed.len(), "a session is listed twice");
        assert_eq!(self.rows, by_id);
    }
}

#[derive(Clone, Debug)]
enum HostStep {
    Create,
    Dispose(usize),
    Rename(usize),
    /// Creates a draft here and sends it.
    Send,
    Delete(usize),
    /// Breaks every connection, which can be made again at once.
    Cut,
    /// Makes the host unreachable until further notice.
    Shut,
    Open,
    Look,
}

fn step() -> impl Strategy<Value = HostStep> {
    prop_oneof![
        5 => Just(HostStep::Create),
        2 => (0_usize..8).prop_map(HostStep::Dispose),
        2 => (0_usize..8).prop_map(HostStep::Rename),
        2 => Just(HostStep::Send),
        1 => (0_usize..8).prop_map(HostStep::Delete),
        2 => Just(HostStep::Cut),
        1 => Just(HostStep::Shut),
        2 => Just(HostStep::Open),
        2 => Just(HostStep::Look),
    ]
}

/// A host, a client of it that is never disconnected, and its provider in a management.
struct HostWorld {
    host: TestHost,
    inside: Client<Ahp>,
    provider: Arc<HostProvider>,
    management: Management,
    listener: EventListener,
    _registered: Registration,
    /// The host's sessions.
    there: Vec<String>,
    made: usize,
}

impl HostWorld {
    async fn new() -> Self {
        let host = TestHost::start().await;
        let inside = host.inside().await;
        let provider = host.there("box").await;
        let registry = Registry::new();
        let registered = registry.register(provider.clone()).unwrap();
        let (management, driver) = Management::new(registry, Arc::new(InMemoryState::default())).unwrap();
        tokio::spawn(driver.run());
        let listener = EventListener::new(&management);
        Self { host, inside, provider, management, listener, _registered: registered, there: Vec::new(), made: 0 }
    }

    fn some(&self, row: usize) -> Option<String> {
        self.there.get(row % self.there.len().max(1)).cloned()
    }

    async fn run(&mut self, step: &HostStep) {
        match *step {
            HostStep::Create => {
                self.made += 1;
                let name = format!("scripted:/{}", self.made);
                create(&self.inside, &name, "/srv/app").await;
                self.there.push(name);
            }
            HostStep::Dispose(row) => {
                if let Some(name) = self.some(row) {
                    dispose(&self.inside, &name).await;
                    self.there.retain(|there| *there != name);
                }
            }
            HostStep::Rename(row) => {
                self.made += 1;
                if let Some(name) = self.some(row) {
                    rename(&self.inside, &name, &format!("title {}", self.made)).await;
                }
            }
            HostStep::Send => self.send().await,
            HostStep::Delete(row) => {
                let sessions = self.provider.sessions();
                let Some(session) = sessions.get(row % sessions.len().max(1)) else { return };
                // Unreachable, or already deleted: the host knows.
                self.provider.delete_session(session.id()).await.ok();
                self.ask().await;
            }
            HostStep::Cut => {
                let was_shut = self.host.is_shut();
                self.host.shut();
                if !was_shut {
                    self.host.open();
                }
            }
            HostStep::Shut => self.host.shut(),
            HostStep::Open => self.host.open(),
            HostStep::Look => {
                self.listener.must_agree(&self.management);
                self.provider_agrees();
            }
        }
    }

    /// Reachable or not, it is sent once or not at all.
    async fn send(&mut self) {
        let folder = grove_sessions::session::SessionWorkspace::new("file:///srv/app", "app");
        let Ok(draft) = self.provider.create_new_session(&folder).await else { return };
        let sent = self.provider.send_and_create_chat(draft.id(), script(json!([{"say": "hi"}]))).await;
        if sent.is_err() {
            self.provider.delete_new_session(draft.id()).await.unwrap();
        }
        self.ask().await;
    }

    /// Asks the host for its sessions.
    async fn ask(&mut self) {
        self.inside.sessions().refresh().await.unwrap();
        self.there = self.inside.sessions().read(|list| list.iter().map(|row| row.resource.clone()).collect());
    }

    /// At any moment the management lists what the provider does.
    fn provider_agrees(&self) {
        let ids = |all: Vec<Session>| -> BTreeSet<SessionId> { all.iter().map(|it| it.id().clone()).collect() };
        let (before, listed, after) =
            (ids(self.provider.sessions()), ids(self.management.sessions()), ids(self.provider.sessions()));
        // Changes in between may be in either.
        assert!(before != after || listed == after, "{listed:?} is listed, and the provider has {after:?}");
    }

    /// Once the host is reachable and quiet, everybody agrees with it.
    async fn settle(&mut self) {
        self.host.open();
        self.ask().await;
        let mut there = self.there.clone();
        there.sort_unstable();
        let wanted: Vec<&str> = there.iter().map(String::as_str).collect();
        until_listed(&self.provider, &wanted).await;
        self.listener.must_agree(&self.management);
        for name in wanted {
            let title = self.inside.sessions().read(|list| list.get(name).map(|row| row.title.clone())).unwrap();
            let row = session(&self.provider, name).await;
            until("the title", || title.is_empty() || *row.title() == *title).await;
        }
    }
}

async fn rename(client: &Client<Ahp>, session: &str, title: &str) {
    let title = title.to_owned();
    let session = client.subscribe(session).await.unwrap();
    session.dispatch(Action::Session(SessionAction::TitleChanged(SessionTitleChanged { title }))).unwrap().await;
}

#[test]
fn the_list_is_what_a_host_has_however_often_it_is_cut_off() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let config = ProptestConfig { cases: 16, max_shrink_iters: 50, ..ProptestConfig::default() };
    let law = |steps: Vec<HostStep>| {
        runtime.block_on(async {
            let mut world = HostWorld::new().await;
            for step in &steps {
                world.run(step).await;
            }
            world.settle().await;
        });
        Ok(())
    };
    TestRunner::new(config).run(&prop::collection::vec(step(), 1..25), law).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_did_not_listen_to_all_that_a_host_told_lists_anew_and_has_lost_nothing() {
    let host = TestHost::start().await;
    let client = host.client().await;
    create(&client, "scripted:/0", "/srv/app").await;
    let provider = host.here().await;
    let registry = Registry::new();
    let _registered = registry.register(provider.clone()).unwrap();
    // Without a driver nothing is applied before the next read.
    let (management, _driver) = Management::new(registry, Arc::new(InMemoryState::default())).unwrap();
    let mut listener = EventListener::new(&management);
    let row = session(&provider, "scripted:/0").await;
    let titles = client.subscribe("scripted:/0").await.unwrap();
    let mut shown = row.observe(|state| state.title());
    let mut events = provider.subscribe();
    for number in 0..1_100 {
        let title = format!("title {number}");
        let change = SessionTitleChanged { title: title.clone() };
        titles.dispatch(Action::Session(SessionAction::TitleChanged(change))).unwrap().await;
        while *shown.get() != *title {
            soon("the title", shown.changed()).await.unwrap();
        }
    }
    create(&client, "scripted:/1", "/srv/app").await;
    until_listed(&provider, &["scripted:/0", "scripted:/1"]).await;
    use tokio::sync::broadcast::error::TryRecvError;
    assert!(matches!(events.try_recv(), Err(TryRecvError::Lagged(_))), "more was told than is kept");
    listener.must_agree(&management);
    assert_eq!(management.sessions().len(), 2);
    assert_eq!(&*row.title(), "title 1099");
}
