//! Publishing: a written event changes the state and goes to the subscribers with its number, in one step.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;
use grove_storage::{ActionOrigin, Position};
use grove_wire::ahp::TerminalInfo;
use grove_wire::{ahp, v1};

use super::{
    Connection, ConnectionId, DirectReply, EventListener, JournalScope, Names, Publication, Resource, SequencedEvent,
    Sequencer,
};
use crate::subscriber::{Dialect, DisconnectReason, EventFrames, Outgoing, QueuedNotice};

impl Sequencer {
    /// Publishes events. The first one has this position, the others have the following ones.
    pub(super) fn publish(&mut self, publication: Publication, first: Position) {
        let mut origin = publication.origin;
        for (number, event) in publication.events.into_iter().enumerate() {
            self.publish_one(first.plus(number), event, origin.take(), publication.scope);
        }
        if !publication.finished.is_empty() {
            let sessions = &mut self.shared.published_mut().state.sessions;
            for (session, chat, turn) in publication.finished {
                if let Some(chat) = sessions.get_mut(&session).and_then(|session| session.chat_mut(&chat)) {
                    chat.share(turn);
                }
            }
        }
        if let Some(done) = publication.done {
            // The caller may have stopped waiting.
            done.send(Ok(self.seq())).ok();
        }
    }

    fn publish_one(&mut self, position: Position, event: Event, origin: Option<ActionOrigin>, scope: JournalScope) {
        let seq = position.seq();
        // Only while the event is applied: readers wait no longer than that.
        let mut published = self.shared.published_mut();
        published.seq = seq;
        let removed = match &event.change {
            Change::Session(id, SessionEvent::Removed) => published.state.sessions.get(id).cloned(),
            _ => None,
        };
        // The removal of a chat uses the name that it had.
        let parting = match &event.change {
            Change::Session(id, SessionEvent::ChatRemoved(_)) => published.state.sessions.get(id).map(Names::of),
            _ => None,
        };
        let agent = |id: &SessionId| published.state.sessions.get(id).map(|session| session.agent.clone());
        self.observer.observe(&event, agent);
        apply(&mut published.state, &event);
        let names = names_for(&mut self.names, &event.change, &published.state);
        drop(published);
        let names = parting.map(Arc::new).or(names);
        if let Change::Session(id, SessionEvent::Removed) = &event.change {
            self.entered.remove(id);
        }
        if let (Some(session), JournalScope::AllEvents) = (event.change.session(), scope) {
            self.unpersisted.entry(session.clone()).or_insert(seq);
            self.last_of.insert(session.clone(), seq);
        }
        let news = match &event.change {
            Change::Session(_, change) if change.class().is_announced() => Some(change),
            _ => None,
        };
        // News come after everything published before.
        if news.is_some() {
            self.deliver();
        }
        if let Some(change) = news {
            let published = self.shared.published();
            let session = event.change.session().and_then(|id| published.state.sessions.get(id));
            if let Some(session) = session.or(removed.as_ref()) {
                self.notify(change, session);
            }
        }

        let gone = match &event.change {
            Change::Session(id, SessionEvent::Removed) => removed.as_ref().map(|session| {
                let chats = session.chats.iter().map(|chat| Resource::Chat(id.clone(), chat.id.clone()));
                chats.chain([Resource::Session(id.clone())]).collect::<Vec<_>>()
            }),
            Change::Session(id, SessionEvent::ChatRemoved(chat)) => {
                Some(vec![Resource::Chat(id.clone(), chat.clone())])
            }
            _ => None,
        };
        let sequenced = Arc::new(SequencedEvent::new(seq, event, origin, names));
        let resource = sequenced.resource();
        if self.undelivered.first().is_some_and(|first| first.resource() != resource) {
            self.deliver();
        }
        let resynced = needs_v1_snapshot(&sequenced.event.change);
        self.undelivered.push(sequenced);

        if let Some(chat) = resynced {
            self.deliver();
            self.send_back(&chat);
        }
        if let Some(gone) = gone {
            self.deliver();
            for resource in gone {
                for subscriber in self.subscribers.remove(&resource).unwrap_or_default() {
                    if let Some(connection) = self.connections.get_mut(&subscriber.connection)
                        && connection.subscriptions.remove(&resource).is_some()
                    {
                        self.metrics.subscriptions.decrement();
                        self.note_departure(subscriber.connection, &resource);
                    }
                }
            }
        }
    }

    /// Has those begin again whose dialect cannot say what happened. They hear of no number beyond it, or they would not be
    /// given what they missed.
    fn send_back(&mut self, resource: &Resource) {
        let Resource::Chat(session, _) = resource else { return };
        let subscribers = self.subscribers.get(resource).into_iter().flatten();
        let subscribers = subscribers.filter(|subscriber| matches!(subscriber.dialect, Dialect::V1 { .. }));
        let connections: Vec<_> = subscribers.map(|subscriber| subscriber.connection).collect();
        for id in connections {
            if let Some(connection) = self.connections.get(&id) {
                connection.queue.close_behind_answers(session, DisconnectReason::Moved);
            }
            self.detach(id);
        }
    }

    /// Sends consecutive events of one resource to its subscribers.
    ///
    /// Each subscriber gets one push, whatever the number of events, and each dialect one list of frames.
    pub(super) fn deliver(&mut self) {
        let Some(first) = self.undelivered.first() else { return };
        if let Some(subscribers) = self.subscribers.get(&first.resource()) {
            // Few dialects, many subscribers: a short list is searched faster than a map.
            let mut encoded: Vec<(Dialect, Option<Arc<EventFrames>>)> = Vec::new();
            for subscriber in subscribers {
                let known = encoded.iter().position(|(dialect, _)| *dialect == subscriber.dialect);
                let at = known.unwrap_or_else(|| {
                    let frame = |event: &Arc<SequencedEvent>| {
                        Some((event.clone(), event.frame(subscriber.dialect, &self.config.registry)?))
                    };
                    let frames: Vec<_> = self.undelivered.iter().filter_map(frame).collect();
                    let events = (!frames.is_empty()).then(|| Arc::new(EventFrames::new(subscriber.dialect, frames)));
                    encoded.push((subscriber.dialect, events));
                    encoded.len() - 1
                });
                let events = encoded.get(at).and_then(|(_, events)| events.as_ref());
                if let Some(events) = events {
                    match subscriber.patience.is_zero() {
                        true => subscriber.queue.push(Outgoing::EventFrames(events.clone())),
                        false => subscriber.queue.push_patiently(events, subscriber.patience),
                    }
                }
            }
        }
        let mut delivered = std::mem::take(&mut self.undelivered);
        for event in delivered.drain(..) {
            self.notify_listeners(&event);
            self.replay.push(event);
        }
        // Only to reuse its allocation.
        self.undelivered = delivered;
    }

    /// Sends an event to in-process subscribers. One that has gone or cannot keep up is dropped.
    fn notify_listeners(&mut self, event: &Arc<SequencedEvent>) {
        let tell = |listener: &EventListener| listener.try_send(event.clone()).is_ok();
        if let Some(session) = event.event.change.session()
            && let Some(listeners) = self.listeners.get_mut(session)
        {
            listeners.retain(tell);
            if listeners.is_empty() {
                self.listeners.remove(session);
            }
        }
        if event.event.change.class().is_announced() {
            self.news_listeners.retain(tell);
        }
        // A streamed delta costs one comparison here while nobody listens.
        if !self.attention_listeners.is_empty() && calls_attention(&event.event.change) {
            self.attention_listeners.retain(tell);
        }
    }

    /// Sends the subscribers notifications that are not part of the state.
    pub(super) fn notify(&self, change: &SessionEvent, session: &Session) {
        let mut frames: HashMap<Dialect, Option<Arc<str>>> = HashMap::new();
        for connection in self.connections.values() {
            if connection.dialect.news_need_root() && !connection.subscriptions.contains_key(&Resource::Root) {
                continue;
            }
            let dialect = connection.dialect.spelled(connection.spellings.of(&session.id));
            let frame =
                frames.entry(dialect).or_insert_with(|| dialect.notification(change, session, &self.config.registry));
            if let Some(frame) = frame {
                connection.queue.push(Outgoing::Frame(frame.clone()));
            }
        }
    }

    /// Sets the list of clients' terminals, and tells the subscribers of the root.
    pub(super) fn set_terminals(&mut self, terminals: Vec<TerminalInfo>) {
        self.shared.published_mut().terminals = Some(terminals);
        let subscribes = |connection: &Connection| connection.subscriptions.contains_key(&Resource::Root);
        let told = self.connections.iter().filter(|(_, connection)| subscribes(connection));
        for connection in told.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.send_terminals(connection);
        }
    }

    /// Sends a subscriber of the root the list of clients' terminals, if there were any. The list is not replayed.
    pub(super) fn send_terminals(&mut self, connection: ConnectionId) {
        let is_subscriber = self.connections.get(&connection).is_some_and(|connection| {
            matches!(connection.dialect, Dialect::Ahp { .. }) && connection.subscriptions.contains_key(&Resource::Root)
        });
        let terminals = self.shared.published().terminals.clone().filter(|_| is_subscriber);
        let Some(terminals) = terminals else { return };
        let action = ahp::RootAction::TerminalsChanged(ahp::RootTerminalsChanged { terminals });
        let frame = move |seq| ahp::encode::direct_reply(ahp::ROOT, &action, seq, None, None).map(Arc::from);
        self.send_direct_reply(DirectReply { connection, frame: Box::new(frame), answer: None, permit: None });
    }

    pub(super) fn send_direct_reply(&mut self, direct_reply: DirectReply) {
        // Messages to one connection keep their order.
        let waits = self.exhausted.iter().any(|earlier| earlier.connection == direct_reply.connection);
        let left = if waits { Some(direct_reply) } else { self.try_direct_reply(direct_reply) };
        self.exhausted.extend(left);
    }

    /// Sends a message with the next number of its connection. Gives it back if the current position has none left.
    pub(super) fn try_direct_reply(&mut self, direct_reply: DirectReply) -> Option<DirectReply> {
        if let Some(connection) = self.connections.get_mut(&direct_reply.connection) {
            let published = self.shared.published().seq;
            let seq = published.max(connection.last_direct) + 1;
            if Position::of(seq) > Position::of(published) {
                return Some(direct_reply);
            }
            connection.last_direct = seq;
            if let Some(frame) = (direct_reply.frame)(seq) {
                connection.queue.push(match direct_reply.permit {
                    Some(permit) => Outgoing::QueuedNotice(QueuedNotice::new(frame, permit)),
                    None => Outgoing::Frame(frame),
                });
            }
        }
        if let Some((reply, answer)) = direct_reply.answer {
            reply(answer);
        }
        None
    }
}

/// Says whether a person may have to hear of a change: an agent waits or no longer waits, or a turn begins or ends, or a
/// person has read or removed what there was.
fn calls_attention(change: &Change) -> bool {
    match change {
        Change::Session(_, event) => matches!(
            event,
            SessionEvent::InputNeededSet(_)
                | SessionEvent::InputNeededRemoved { .. }
                | SessionEvent::ReadChanged(_)
                | SessionEvent::ArchivedChanged(_)
                | SessionEvent::ChatRemoved(_)
                | SessionEvent::Removed
        ),
        Change::Chat(_, _, event) => event.class().boundary.is_some(),
        Change::Root(_) => false,
    }
}

/// The names of a change's session. They are rebuilt only when they change.
fn names_for(names: &mut HashMap<SessionId, Arc<Names>>, change: &Change, state: &State) -> Option<Arc<Names>> {
    let id = change.session()?;
    if let Change::Session(_, SessionEvent::Removed) = change {
        return names.remove(id);
    }
    if !change.class().changes_chat_set
        && let Some(names) = names.get(id)
    {
        return Some(names.clone());
    }
    let made = Arc::new(Names::of(state.sessions.get(id)?));
    names.insert(id.clone(), made.clone());
    Some(made)
}

/// The chat whose subscribers of version 1 need a snapshot after a change.
pub(super) fn needs_v1_snapshot(change: &Change) -> Option<Resource> {
    v1::encode::needs_snapshot(change).map(|(session, chat)| Resource::Chat(session.clone(), chat))
}
