//! The connections and their subscriptions: snapshots and missed events, then every event from there on.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use grove_core::*;
use grove_storage::Position;
use grove_wire::ahp::uri::{self, Spelling};

use super::{
    Attach, AttachMode, AttachOutcome, Connection, ConnectionId, MissedEvents, PublishedState, ReconnectPosition,
    RememberedClient, ReplayedEvent, ResolvedTarget, Resource, SequencedEvent, Sequencer, Subscribe, SubscribeOutcome,
    Subscriber, SubscriptionTarget, publish,
};
use crate::subscriber::{Dialect, DisconnectReason, Outgoing};
use crate::usage::LimitReached;

impl Sequencer {
    pub(super) fn attach(&mut self, attach: Attach) {
        let shared = self.shared.clone();
        let known = shared.clients().get(&attach.client).map(|client| (client.dialect, client.connection));
        let named = match &attach.how {
            AttachMode::New(_) => 0,
            AttachMode::Returning { seen, .. } => seen.highest(),
        };
        let is_returning = matches!(attach.how, AttachMode::Returning { .. });
        // A number of another journal may be beyond all of this one.
        let last_direct = if Position::of(named) <= Position::of(self.seq()) { named } else { 0 };
        let (dialect, seen) = match attach.how {
            AttachMode::New(dialect) => (dialect, None),
            AttachMode::Returning { seen, unless_known } => match known {
                Some((dialect, _)) => (dialect, Some(seen)),
                None => (unless_known, None),
            },
        };
        if let Some(older) = known.and_then(|(_, connection)| connection) {
            if let Some(connection) = self.connections.get(&older) {
                connection.queue.push(Outgoing::Last(DisconnectReason::TakenOver));
            }
            self.detach(older);
        }
        let name = attach.party.name.clone();
        self.connections.insert(
            attach.connection,
            Connection {
                queue: attach.queue,
                client: attach.client.clone(),
                party: attach.party,
                dialect,
                subscriptions: HashMap::new(),
                spellings: attach.spellings,
                last_direct,
            },
        );
        self.metrics.connections.of(dialect.label()).increment();
        self.metrics.connections_opened.of(dialect.label()).increment();
        self.touches += 1;
        let (connection, touched) = (Some(attach.connection), self.touches);
        let client = RememberedClient { dialect, name, token: attach.token, connection, touched };
        shared.clients_mut().insert(attach.client, client);
        shared.set_connections(self.connections.len());
        self.forget_clients();

        let published = shared.published();
        let mut subscribed = Vec::with_capacity(attach.subscriptions.len());
        for wanted in &attach.subscriptions {
            subscribed.push(matches!(
                self.add_subscription(&published, attach.connection, wanted, Duration::ZERO),
                AddSubscriptionOutcome::Yes
            ));
        }
        let missed = match seen {
            None => MissedEvents::Together(None),
            Some(ReconnectPosition::UpTo(seen)) => {
                let wanted = self.connections.get(&attach.connection).map(|connection| &connection.subscriptions);
                MissedEvents::Together(wanted.and_then(|wanted| {
                    self.missed(&published, seen, |resource| wanted.get(resource).map(|(dialect, _)| *dialect))
                }))
            }
            Some(ReconnectPosition::Each(seen)) => {
                let each = attach.subscriptions.iter().zip(seen).map(|(wanted, seen)| {
                    let resources = published.find(wanted)?.resources();
                    let dialect = dialect.spelled(wanted.spelling());
                    // A client that has seen nothing has no state to add to.
                    if seen == 0 {
                        return None;
                    }
                    self.missed(&published, seen, |resource| resources.contains(resource).then_some(dialect))
                });
                MissedEvents::Each(each.collect())
            }
        };
        if is_returning {
            self.metrics.reconnects.of(missed.label()).increment();
        }
        (attach.reply)((attach.answer)(AttachOutcome { published: &published, subscribed, missed }));
        drop(published);
        if is_returning {
            self.send_terminals(attach.connection);
        }
    }

    /// The events after a sequence number for these resources, if all of them are available.
    fn missed(
        &self,
        published: &PublishedState,
        seen: u64,
        wanted: impl Fn(&Resource) -> Option<Dialect>,
    ) -> Option<Vec<ReplayedEvent>> {
        if Position::of(seen) > Position::of(published.seq) || self.replay.is_skipped(seen) {
            return None;
        }
        let is_wanted = |session: &Session| {
            let chats = session.chats.iter().map(|chat| Resource::Chat(session.id.clone(), chat.id.clone()));
            chats.chain([Resource::Session(session.id.clone())]).any(|resource| wanted(&resource).is_some())
        };
        let entered = self.entered.iter().filter(|(_, at)| seen < **at);
        if entered.filter_map(|(id, _)| published.state.sessions.get(id)).any(is_wanted) {
            return None;
        }
        let events = self.replay.after(seen)?;
        let missed: Vec<_> = events.filter_map(|event| Some((event.clone(), wanted(&event.resource())?))).collect();
        // A session or a chat created meanwhile is not the one that the client knows, if it knows one of that name. A
        // chat's creation is announced on its session's channel.
        let begun = |event: &Arc<SequencedEvent>| match &event.event.change {
            Change::Session(session, SessionEvent::Created(_)) => wanted(&Resource::Session(session.clone()))
                .or_else(|| wanted(&Resource::Chat(session.clone(), Session::MAIN_CHAT.into())))
                .is_some(),
            Change::Session(session, SessionEvent::ChatAdded(row)) => {
                wanted(&Resource::Chat(session.clone(), row.chat.clone())).is_some()
            }
            // Its inherited turns are not in the journal.
            Change::Chat(session, chat, ChatEvent::TurnsInherited { .. }) => {
                wanted(&Resource::Chat(session.clone(), chat.clone())).is_some()
            }
            change => {
                let dialect = publish::needs_v1_snapshot(change).and_then(|chat| wanted(&chat));
                matches!(dialect, Some(Dialect::V1 { .. }))
            }
        };
        if self.replay.after(seen)?.any(begun) { None } else { Some(missed) }
    }

    pub(super) fn subscribe(&mut self, subscribe: Subscribe) {
        // A connection that is being closed gets nothing more.
        if !self.connections.contains_key(&subscribe.connection) {
            return;
        }
        let shared = self.shared.clone();
        let published = shared.published();
        let added = self.add_subscription(&published, subscribe.connection, &subscribe.wanted, subscribe.patience);
        let outcome = match added {
            AddSubscriptionOutcome::Yes => SubscribeOutcome::Yes(&published),
            AddSubscriptionOutcome::Unknown => SubscribeOutcome::Unknown,
            AddSubscriptionOutcome::TooMany(reached) => SubscribeOutcome::TooMany(reached),
        };
        (subscribe.reply)((subscribe.answer)(outcome));
    }

    fn add_subscription(
        &mut self,
        published: &PublishedState,
        id: ConnectionId,
        wanted: &SubscriptionTarget,
        patience: Duration,
    ) -> AddSubscriptionOutcome {
        let Some(found) = published.find(wanted) else { return AddSubscriptionOutcome::Unknown };
        let Some(connection) = self.connections.get_mut(&id) else { return AddSubscriptionOutcome::Unknown };
        match usage(wanted, &found) {
            None => return AddSubscriptionOutcome::Unknown,
            Some(SpellingHint::FromSession(session)) => connection.spellings.note(session, wanted.spelling()),
            Some(SpellingHint::NoHint) => {}
        }
        let dialect = connection.dialect.spelled(wanted.spelling());
        // A session together with its main chat counts once.
        let counts = |resource: &&Resource| match found {
            ResolvedTarget::SessionWithMainChat(_) => !matches!(resource, Resource::Chat(..)),
            ResolvedTarget::Root | ResolvedTarget::Session(_) | ResolvedTarget::Chat(..) => true,
        };
        let presence = self.shared.presence();
        let most = connection.queue.usage().limits().subscriptions;
        let full = connection.subscriptions.keys().filter(counts).count() >= most;
        for resource in found.resources() {
            match connection.subscriptions.get_mut(&resource) {
                // The same resource again, perhaps under another name: from now on events use that name.
                Some((known, _)) => {
                    *known = dialect;
                    let subscribers = self.subscribers.get_mut(&resource).into_iter().flatten();
                    for subscriber in subscribers.filter(|subscriber| subscriber.connection == id) {
                        subscriber.dialect = dialect;
                        subscriber.patience = patience;
                    }
                }
                None if full => return AddSubscriptionOutcome::TooMany(LimitReached::subscriptions(most)),
                None => {
                    let slot = match connection.queue.usage().subscription() {
                        Ok(slot) => slot,
                        Err(reached) => return AddSubscriptionOutcome::TooMany(reached),
                    };
                    connection.subscriptions.insert(resource.clone(), (dialect, slot));
                    self.metrics.subscriptions.increment();
                    if let Some(session) = resource.session() {
                        let Connection { client, party, dialect, .. } = &*connection;
                        presence.enter(session, client, id, party, dialect.name());
                    }
                    let queue = connection.queue.clone();
                    let subscriber = Subscriber { connection: id, queue, dialect, patience };
                    self.subscribers.entry(resource).or_default().push(subscriber);
                }
            }
        }
        AddSubscriptionOutcome::Yes
    }

    pub(super) fn unsubscribe(&mut self, id: ConnectionId, wanted: &SubscriptionTarget) {
        let resources = self.shared.published().find(wanted).map(|found| found.resources());
        for resource in resources.into_iter().flatten() {
            if let Some(connection) = self.connections.get_mut(&id)
                && connection.subscriptions.remove(&resource).is_some()
            {
                self.metrics.subscriptions.decrement();
            }
            self.drop_subscriber(id, &resource);
            self.note_departure(id, &resource);
        }
    }

    /// Detaches a client from a session of which it has no subscription left.
    pub(super) fn note_departure(&self, id: ConnectionId, resource: &Resource) {
        let (Some(connection), Some(session)) = (self.connections.get(&id), resource.session()) else { return };
        if !connection.subscriptions.keys().any(|other| other.session() == Some(session)) {
            self.shared.presence().leave(session, &connection.client, id);
        }
    }

    fn drop_subscriber(&mut self, id: ConnectionId, resource: &Resource) {
        if let Some(subscribers) = self.subscribers.get_mut(resource) {
            subscribers.retain(|subscriber| subscriber.connection != id);
            if subscribers.is_empty() {
                self.subscribers.remove(resource);
            }
        }
    }

    pub(super) fn detach(&mut self, id: ConnectionId) {
        let Some(connection) = self.connections.remove(&id) else { return };
        self.metrics.connections.of(connection.dialect.label()).decrement();
        self.metrics.subscriptions.add(-(connection.subscriptions.len() as i64));
        for resource in connection.subscriptions.keys() {
            self.drop_subscriber(id, resource);
            if let Some(session) = resource.session() {
                self.shared.presence().disconnect(session, &connection.client, id);
            }
        }
        self.shared.set_connections(self.connections.len());
        self.touches += 1;
        if let Some(client) = self.shared.clients_mut().get_mut(&connection.client)
            && client.connection == Some(id)
        {
            client.connection = None;
            client.touched = self.touches;
        }
    }

    /// Bounds the number of remembered clients: the ones longest gone are forgotten.
    ///
    /// A tenth is removed at a time, so that not every new client costs a search.
    fn forget_clients(&mut self) {
        let limit = self.config.limits.known_clients;
        let mut clients = self.shared.clients_mut();
        if clients.len() <= limit {
            return;
        }
        let gone = clients.iter().filter(|(_, client)| client.connection.is_none());
        let mut gone: Vec<_> = gone.map(|(id, client)| (client.touched, id.clone())).collect();
        gone.sort_unstable_by_key(|(touched, _)| *touched);
        let gone: Vec<ClientId> = gone.into_iter().take(limit / 10 + 1).map(|(_, id)| id).collect();
        for id in &gone {
            clients.remove(id);
        }
        self.journal.forget_clients(&gone);
    }
}

enum AddSubscriptionOutcome {
    Yes,
    Unknown,
    TooMany(LimitReached),
}

/// The information in a client's name for a session about its spelling.
enum SpellingHint<'a> {
    /// It names this session, in one of the spellings.
    FromSession(&'a SessionId),
    NoHint,
}

/// The spelling hint of a name; `None` if no events use that name.
///
/// A client would not know what events under another name are about.
fn usage<'a>(wanted: &SubscriptionTarget, found: &ResolvedTarget<'a>) -> Option<SpellingHint<'a>> {
    match (wanted, found) {
        (SubscriptionTarget::Session(name), ResolvedTarget::Session(session)) => {
            uri::SessionUris::of(session).has_session(name).then_some(SpellingHint::FromSession(&session.id))
        }
        (SubscriptionTarget::Chat(name), ResolvedTarget::Chat(session, chat)) => {
            let names = uri::SessionUris::of(session);
            let own = names.chat(&chat.id, name.spelling());
            // A chat with a plain name is spelled the same in every way.
            let usage = match name.spelling() != Spelling::Computed && own == names.chat(&chat.id, Spelling::Computed) {
                true => SpellingHint::NoHint,
                false => SpellingHint::FromSession(&session.id),
            };
            names.has_chat(&chat.id, name).then_some(usage)
        }
        (_, _) => Some(SpellingHint::NoHint),
    }
}
