//! One list of the sessions of all providers, updated by their events.
//!
//! It subscribes to every provider and applies the pending events on each read. So it is never older than the
//! providers' events, and each event costs as much as it changes. A provider is listed completely twice: when it is
//! registered, and when its channel overflowed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::TryRecvError;

use super::events::SessionsEvent;
use crate::ids::{SessionId, Uri};
use crate::provider::{ProviderEvent, SessionReplacement, SessionsChange, SessionsProvider};
use crate::registry::RegisteredProvider;
use crate::session::Session;

#[derive(Debug, Default)]
pub(super) struct Aggregate {
    known: Arc<Vec<RegisteredProvider>>,
    /// In the order of the registry.
    feeds: Vec<ProviderFeed>,
    /// Several providers may have a session under the same URI.
    by_resource: HashMap<Uri, Vec<SessionId>>,
    next_place: u64,
}

/// A provider, its events, and its rows.
#[derive(Debug)]
struct ProviderFeed {
    number: u64,
    provider: Arc<dyn SessionsProvider>,
    events: broadcast::Receiver<ProviderEvent>,
    /// By arrival. A session that replaces another takes its number.
    rows: BTreeMap<u64, Session>,
    places: HashMap<SessionId, u64>,
}

/// The result of catching up.
#[derive(Debug, Default)]
pub(super) struct AggregateUpdate {
    /// The events to pass on.
    pub(super) events: Vec<SessionsEvent>,
    /// Sessions that may be gone without having been listed: a draft, or one that replaced another and was removed
    /// before anybody read the list.
    pub(super) dropped: Vec<SessionId>,
}

impl Aggregate {
    /// Applies everything that happened since the last call.
    pub(super) fn catch_up(&mut self, entries: &Arc<Vec<RegisteredProvider>>) -> AggregateUpdate {
        let mut update = AggregateUpdate::default();
        if !Arc::ptr_eq(entries, &self.known) {
            self.follow(entries, &mut update);
        }
        for feed in 0..self.feeds.len() {
            self.drain(feed, &mut update);
        }
        update
    }

    /// All sessions, provider by provider.
    pub(super) fn sessions(&self) -> Vec<Session> {
        self.feeds.iter().flat_map(|feed| feed.rows.values()).cloned().collect()
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<&Session> {
        let feed = self.feeds.iter().find(|feed| feed.provider.id().as_str() == id.provider())?;
        feed.rows.get(feed.places.get(id)?)
    }

    /// The session at a URI: of several, that of the first provider.
    pub(super) fn at(&self, resource: &Uri) -> Option<&Session> {
        let ids = self.by_resource.get(resource)?;
        let rank = |id: &&SessionId| self.feeds.iter().position(|feed| feed.provider.id().as_str() == id.provider());
        ids.iter().min_by_key(rank).and_then(|id| self.get(id))
    }

    /// The session that a chat belongs to. Chats are not indexed: they change with the state of their session.
    pub(super) fn of_chat(&self, chat: &Uri) -> Option<&Session> {
        self.feeds.iter().flat_map(|feed| feed.rows.values()).find(|session| session.state().chat(chat).is_some())
    }

    fn follow(&mut self, entries: &Arc<Vec<RegisteredProvider>>, update: &mut AggregateUpdate) {
        self.known = entries.clone();
        let mut old: HashMap<u64, ProviderFeed> = self.feeds.drain(..).map(|feed| (feed.number, feed)).collect();
        let mut new = Vec::new();
        for entry in entries.iter() {
            self.feeds.push(old.remove(&entry.number).unwrap_or_else(|| {
                new.push(entry.number);
                ProviderFeed::new(entry)
            }));
        }
        let mut change = SessionsChange::default();
        // In the order of their numbers, so that the same changes are always reported in the same way.
        let gone: BTreeMap<u64, ProviderFeed> = old.into_iter().collect();
        for session in gone.into_values().flat_map(|feed| feed.rows.into_values()) {
            self.forget_resource(&session);
            change.removed.push(session);
        }
        for number in new {
            if let Some(feed) = self.feeds.iter().position(|feed| feed.number == number) {
                self.relist(feed, &mut change);
            }
        }
        tell(change, update);
        update.events.push(SessionsEvent::SessionTypes);
    }

    fn drain(&mut self, feed: usize, update: &mut AggregateUpdate) {
        loop {
            match self.feeds[feed].events.try_recv() {
                Ok(ProviderEvent::Sessions(change)) => self.change(feed, &change, update),
                Ok(ProviderEvent::SessionReplacement(replaced)) => self.replace(feed, replaced, update),
                Ok(ProviderEvent::SessionTypes) => update.events.push(SessionsEvent::SessionTypes),
                Ok(ProviderEvent::Availability) => {
                    update.events.push(SessionsEvent::Availability(self.feeds[feed].provider.id().clone()));
                }
                Err(TryRecvError::Lagged(_)) => self.recover(feed, update),
                Err(TryRecvError::Empty | TryRecvError::Closed) => return,
            }
        }
    }

    /// Recovers from an overflow of the provider's channel. The provider changes its list before it sends events, so
    /// its list already has the changes; only facts that are not in the list are taken from the remaining events.
    fn recover(&mut self, feed: usize, update: &mut AggregateUpdate) {
        loop {
            match self.feeds[feed].events.try_recv() {
                Ok(ProviderEvent::SessionReplacement(replaced)) => {
                    update.dropped.push(replaced.to.id().clone());
                    update.events.push(SessionsEvent::SessionReplacement(replaced));
                }
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => break,
            }
        }
        let mut change = SessionsChange::default();
        self.relist(feed, &mut change);
        tell(change, update);
        update.events.push(SessionsEvent::SessionTypes);
        update.events.push(SessionsEvent::Availability(self.feeds[feed].provider.id().clone()));
    }

    /// Replaces the rows by the provider's list, and collects the changes.
    fn relist(&mut self, feed: usize, change: &mut SessionsChange) {
        let listed = self.feeds[feed].provider.sessions();
        let ids: HashSet<&SessionId> = listed.iter().map(Session::id).collect();
        let rows = self.feeds[feed].rows.values().map(Session::id);
        let gone: Vec<SessionId> = rows.filter(|id| !ids.contains(id)).cloned().collect();
        for id in gone {
            change.removed.extend(self.remove(feed, &id));
        }
        for session in listed {
            match self.feeds[feed].row(session.id()) {
                Some(row) if *row == session && !row.changed_since_look() => {}
                Some(_) => change.changed.extend(self.put(feed, session)),
                None => change.added.extend(self.put(feed, session)),
            }
        }
    }

    fn change(&mut self, feed: usize, from: &SessionsChange, update: &mut AggregateUpdate) {
        let mut change = SessionsChange::default();
        for session in &from.removed {
            match self.remove(feed, session.id()) {
                Some(removed) => change.removed.push(removed),
                None => update.dropped.push(session.id().clone()),
            }
        }
        for session in &from.added {
            let known = self.feeds[feed].row(session.id()).is_some();
            let put = self.put(feed, session.clone());
            if known { &mut change.changed } else { &mut change.added }.extend(put);
        }
        let mut unheard = false;
        for session in &from.changed {
            if self.feeds[feed].row(session.id()).is_some() {
                change.changed.extend(self.put(feed, session.clone()));
            } else {
                unheard = true;
            }
        }
        if unheard {
            // A change of an unannounced session: it is either new or gone, and the provider's list knows which.
            self.relist(feed, &mut change);
        }
        tell(change, update);
    }

    fn replace(&mut self, feed: usize, replaced: SessionReplacement, update: &mut AggregateUpdate) {
        let (from, to) = (replaced.from.id().clone(), replaced.to.clone());
        let mut change = SessionsChange::default();
        let known = self.feeds[feed].row(to.id()).is_some();
        let place = self.feeds[feed].places.get(&from).copied();
        if from != *to.id() {
            change.removed.extend(self.remove(feed, &from));
        }
        let taken = place.is_some();
        if let (Some(place), false) = (place, known) {
            self.feeds[feed].places.insert(to.id().clone(), place);
        }
        let put = self.put(feed, to);
        if taken || known { &mut change.changed } else { &mut change.added }.extend(put);
        update.events.push(SessionsEvent::SessionReplacement(replaced));
        tell(change, update);
    }

    /// Inserts or replaces a row. Returns the session, unless its id belongs to another provider.
    fn put(&mut self, feed: usize, mut session: Session) -> Option<Session> {
        let provider = self.feeds[feed].provider.id();
        if session.id().provider() != provider.as_str() {
            tracing::warn!(%provider, session = %session.id(), "a provider listed a session of another provider");
            self.feeds[feed].places.remove(session.id());
            return None;
        }
        session.look();
        let place = *self.feeds[feed].places.entry(session.id().clone()).or_insert_with(|| {
            self.next_place += 1;
            self.next_place
        });
        let before = self.feeds[feed].rows.insert(place, session.clone());
        match before {
            Some(before) if before.resource() == session.resource() => {}
            before => {
                if let Some(before) = before {
                    self.forget_resource(&before);
                }
                self.by_resource.entry(session.resource().clone()).or_default().push(session.id().clone());
            }
        }
        Some(session)
    }

    fn remove(&mut self, feed: usize, id: &SessionId) -> Option<Session> {
        let place = self.feeds[feed].places.remove(id)?;
        let session = self.feeds[feed].rows.remove(&place)?;
        self.forget_resource(&session);
        Some(session)
    }

    fn forget_resource(&mut self, session: &Session) {
        if let Some(ids) = self.by_resource.get_mut(session.resource()) {
            ids.retain(|id| id != session.id());
            if ids.is_empty() {
                self.by_resource.remove(session.resource());
            }
        }
    }
}

impl ProviderFeed {
    /// Subscribes first, so that nothing is lost between the list and the events.
    fn new(entry: &RegisteredProvider) -> Self {
        let provider = entry.provider.clone();
        let events = provider.subscribe();
        Self { number: entry.number, provider, events, rows: BTreeMap::new(), places: HashMap::new() }
    }

    fn row(&self, id: &SessionId) -> Option<&Session> {
        self.rows.get(self.places.get(id)?)
    }
}

fn tell(change: SessionsChange, update: &mut AggregateUpdate) {
    if !change.is_empty() {
        update.events.push(SessionsEvent::Sessions(Arc::new(change)));
    }
}
