//! Whatever providers do, the list is exactly what they have: nothing twice, nothing lost.

use std::collections::BTreeMap;
use std::sync::Arc;

use grove_sessions::management::{Management, SessionsEvent};
use grove_sessions::provider::{Announcer, SessionsProvider};
use grove_sessions::{InMemoryState, Registration, Registry, Session, SessionId, Subscription, SubscriptionItem};
use proptest::prelude::*;

use crate::provider::{TestProvider, manage};

const PROVIDERS: usize = 3;

#[derive(Clone, Debug)]
enum ListStep {
    Register(usize),
    Unregister(usize),
    Add(usize),
    Remove(usize, usize),
    Change(usize, usize),
    Replace {
        provider: usize,
        row: usize,
        same_id: bool,
    },
    Types(usize),
    /// More events than the channel holds.
    Lag(usize),
    Open(usize),
    /// Everybody applies the pending events.
    Look,
}

fn step() -> impl Strategy<Value = ListStep> {
    let provider = 0..PROVIDERS;
    let row = 0_usize..6;
    prop_oneof![
        2 => provider.clone().prop_map(ListStep::Register),
        1 => provider.clone().prop_map(ListStep::Unregister),
        6 => provider.clone().prop_map(ListStep::Add),
        3 => (provider.clone(), row.clone()).prop_map(|(provider, row)| ListStep::Remove(provider, row)),
        3 => (provider.clone(), row.clone()).prop_map(|(provider, row)| ListStep::Change(provider, row)),
        3 => (provider.clone(), row.clone(), any::<bool>())
            .prop_map(|(provider, row, same_id)| ListStep::Replace { provider, row, same_id }),
        1 => provider.clone().prop_map(ListStep::Types),
        1 => provider.prop_map(ListStep::Lag),
        2 => row.prop_map(ListStep::Open),
        3 => Just(ListStep::Look),
    ]
}

/// A list that is updated by events alone.
struct EventListener {
    rows: BTreeMap<SessionId, Session>,
    titles: BTreeMap<SessionId, Arc<str>>,
    events: Subscription<SessionsEvent>,
}

impl EventListener {
    fn new(management: &Management) -> Self {
        let (sessions, events) = management.subscribe();
        let mut listener = Self { rows: BTreeMap::new(), titles: BTreeMap::new(), events };
        sessions.into_iter().for_each(|session| listener.put(session));
        listener
    }

    fn put(&mut self, session: Session) {
        self.titles.insert(session.id().clone(), session.title());
        self.rows.insert(session.id().clone(), session);
    }

    fn take_in(&mut self, management: &Management) {
        while let Some(notice) = self.events.try_next() {
            match notice {
                SubscriptionItem::Event(SessionsEvent::Sessions(change)) => {
                    for session in &change.removed {
                        assert!(self.rows.remove(session.id()).is_some(), "{session:?} was removed and not there");
                        self.titles.remove(session.id());
                    }
                    for session in &change.added {
                        assert!(!self.rows.contains_key(session.id()), "{session:?} was added and there already");
                        self.put(session.clone());
                    }
                    change.changed.iter().for_each(|session| self.put(session.clone()));
                }
                SubscriptionItem::Event(_) => {}
                SubscriptionItem::Reset => *self = Self::new(management),
            }
        }
    }
}

struct ProviderWorld {
    providers: Vec<Arc<TestProvider>>,
    handles: Vec<Option<Registration>>,
    management: Management,
    listener: EventListener,
    registry: Registry,
    names: usize,
}

impl ProviderWorld {
    fn new() -> Self {
        let provider = |number: usize| {
            let announcer = Announcer::with_capacity(4);
            let order = -(i32::try_from(number).unwrap() / 2);
            Arc::new(TestProvider { announcer, order, ..TestProvider::new(&format!("p{number}")) })
        };
        let registry = Registry::new();
        let (management, _driver) = Management::new(registry.clone(), Arc::new(InMemoryState::default())).unwrap();
        let listener = EventListener::new(&management);
        let providers = (0..PROVIDERS).map(provider).collect();
        let handles = (0..PROVIDERS).map(|_| None).collect();
        Self { providers, handles, management, listener, registry, names: 0 }
    }

    fn row(&self, provider: usize, row: usize) -> Option<SessionId> {
        let rows = self.providers[provider].sessions();
        Some(rows.get(row % rows.len().max(1))?.id().clone())
    }

    fn name(&mut self) -> String {
        self.names += 1;
        self.names.to_string()
    }

    fn run(&mut self, step: &ListStep) {
        match *step {
            ListStep::Register(provider) => {
                if self.handles[provider].is_none() {
                    let handle = self.registry.register(self.providers[provider].clone()).unwrap();
                    self.handles[provider] = Some(handle);
                }
            }
            ListStep::Unregister(provider) => self.handles[provider] = None,
            ListStep::Add(provider) => {
                let name = self.name();
                self.providers[provider].add(&name);
            }
            ListStep::Remove(provider, row) => {
                if let Some(id) = self.row(provider, row) {
                    self.providers[provider].remove(&id);
                }
            }
            ListStep::Change(provider, row) => {
                let title = self.name();
                if let Some(id) = self.row(provider, row) {
                    self.providers[provider].change(&id, &title);
                }
            }
            ListStep::Replace { provider, row, same_id } => {
                let name = self.name();
                if let Some(id) = self.row(provider, row) {
                    let name = if same_id { id.local() } else { &name };
                    let to = self.providers[provider].make(name, "/work/app");
                    self.providers[provider].replace(&id, &to);
                }
            }
            ListStep::Types(provider) => self.providers[provider].set_types(&["x"]),
            ListStep::Lag(provider) => (0..6).for_each(|_| self.providers[provider].announcer.availability()),
            ListStep::Open(row) => {
                let sessions = self.management.sessions();
                if let Some(session) = sessions.get(row % sessions.len().max(1)) {
                    self.management.open_session(session.resource()).unwrap();
                }
            }
            ListStep::Look => self.check(),
        }
    }

    fn check(&mut self) {
        let registered = self.registry.providers();
        let mut expected: Vec<Session> = registered.iter().flat_map(|provider| provider.sessions()).collect();
        let mut listed = self.management.sessions();
        for session in &expected {
            assert_eq!(self.management.session(session.resource()).as_ref(), Some(session));
        }
        if let Some(active) = self.management.active_session() {
            assert!(listed.contains(active.session()), "what is looked at is listed");
        }
        let by_id = |session: &Session| session.id().clone();
        expected.sort_by_key(by_id);
        listed.sort_by_key(by_id);
        assert_eq!(listed, expected);
        self.listener.take_in(&self.management);
        assert_eq!(self.listener.rows.values().cloned().collect::<Vec<_>>(), expected);
        for session in &expected {
            assert_eq!(self.listener.titles[session.id()], session.title(), "a change was not told");
        }
    }
}

proptest! {
    #[test]
    fn the_list_is_what_providers_have(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = ProviderWorld::new();
        for step in &steps {
            world.run(step);
        }
        world.check();
    }
}

/// The same with everything at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_list_is_what_providers_have_after_they_all_spoke_at_once() {
    let provider = |number: usize| {
        let announcer = Announcer::with_capacity(8);
        Arc::new(TestProvider { announcer, ..TestProvider::new(&format!("p{number}")) })
    };
    let providers: Vec<_> = (0..PROVIDERS).map(provider).collect();
    let (management, driver, _handles) = manage(providers.clone());
    let running = tokio::spawn(driver.run());
    let mut listener = EventListener::new(&management);
    let speaking = providers.iter().cloned().map(|provider| {
        tokio::task::spawn_blocking(move || {
            let mut ids = Vec::new();
            for number in 0..300 {
                ids.push(provider.add(&number.to_string()).session().id().clone());
                if number % 3 == 0 {
                    provider.remove(&ids[number / 2]);
                }
                if number % 5 == 0 {
                    let to = provider.make(&format!("kept-{number}"), "/work/app");
                    provider.replace(&ids[number], &to);
                }
                provider.change(&ids[number], "changed");
            }
        })
    });
    for task in speaking.collect::<Vec<_>>() {
        while !task.is_finished() {
            listener.take_in(&management);
            management.sessions();
            tokio::task::yield_now().await;
        }
        task.await.unwrap();
    }
    let mut expected: Vec<Session> = providers.iter().flat_map(|provider| provider.sessions()).collect();
    expected.sort_by_key(|session| session.id().clone());
    let mut listed = management.sessions();
    listed.sort_by_key(|session| session.id().clone());
    assert_eq!(listed, expected);
    listener.take_in(&management);
    assert_eq!(listener.rows.into_values().collect::<Vec<_>>(), expected);
    drop(management);
    running.await.unwrap();
}
