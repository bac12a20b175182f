//! Publishing: an event gets its number, changes the state and goes to those who hear of it, in one step.

use std::collections::HashMap;
use std::sync::Arc;

use grove_core::*;

use super::{Origin, Publication, Refusal, Sequenced, Sequencer};
use crate::connection::{Events, Outgoing};
use crate::dialect::Dialect;

impl Sequencer {
    pub(super) fn publish(&mut self, publication: Publication) {
        let mut origin = publication.origin;
        for event in publication.events {
            self.publish_one(event, origin.take());
        }
        for (session, chat, turn) in publication.finished {
            if let Some(chat) = self.published.state.sessions.get_mut(&session).and_then(|s| s.chat_mut(&chat)) {
                chat.share(turn);
            }
        }
        if let Some(done) = publication.done {
            // Whoever waited may have gone meanwhile.
            done.send(Ok(self.published.seq)).ok();
        }
    }

    pub(super) fn publish_one(&mut self, event: Event, origin: Option<Origin>) {
        self.published.seq += 1;
        let removed = match &event.change {
            Change::Session(id, SessionEvent::Removed) => self.published.state.sessions.get(id).cloned(),
            _ => None,
        };
        apply(&mut self.published.state, &event);
        if let Some(session) = event.change.session() {
            self.unpersisted.entry(session.clone()).or_insert(self.published.seq);
            self.last_of.insert(session.clone(), self.published.seq);
        }
        let news = match &event.change {
            Change::Session(_, change) if is_news(change) => Some(change),
            _ => None,
        };
        // News have their place behind what was published before.
        if news.is_some() {
            self.deliver();
        }
        let session = event.change.session().and_then(|id| self.published.state.sessions.get(id));
        let uri = session.map(|session| session.uri.clone());
        if let (Some(change), Some(session)) = (news, session.or(removed.as_ref())) {
            self.notify(change, session);
        }

        let sequenced = Arc::new(Sequenced::new(self.published.seq, event, origin, uri));
        let resource = sequenced.resource();
        if self.undelivered.first().is_some_and(|first| first.resource() != resource) {
            self.deliver();
        }
        self.undelivered.push(sequenced);

        if removed.is_some() {
            self.deliver();
            for subscriber in self.subscribers.remove(&resource).unwrap_or_default() {
                if let Some(connection) = self.connections.get_mut(&subscriber.connection) {
                    connection.subscriptions.remove(&resource);
                }
            }
        }
    }

    /// Hands what was published in a row of one resource to those who hear of it: one push a subscriber, whatever the
    /// number of events, and one list of frames a dialect.
    pub(super) fn deliver(&mut self) {
        let Some(first) = self.undelivered.first() else { return };
        if let Some(subscribers) = self.subscribers.get(&first.resource()) {
            let mut told: HashMap<Dialect, Option<Arc<Events>>> = HashMap::new();
            for subscriber in subscribers {
                let events = told.entry(subscriber.dialect).or_insert_with(|| {
                    let frame = |event: &Arc<Sequenced>| {
                        Some((event.clone(), event.frame(subscriber.dialect, &self.config.registry)?))
                    };
                    let frames: Vec<_> = self.undelivered.iter().filter_map(frame).collect();
                    (!frames.is_empty()).then(|| Arc::new(Events::new(subscriber.dialect, frames)))
                });
                if let Some(events) = events {
                    subscriber.queue.push(Outgoing::Events(events.clone()));
                }
            }
        }
        for event in self.undelivered.drain(..) {
            self.replay.push(event);
        }
    }

    /// Tells every connection what is news rather than state.
    pub(super) fn notify(&self, change: &SessionEvent, session: &Session) {
        let mut frames: HashMap<Dialect, Option<Arc<str>>> = HashMap::new();
        for connection in self.connections.values() {
            let frame = frames
                .entry(connection.dialect)
                .or_insert_with(|| connection.dialect.notification(change, session, &self.config.registry));
            if let Some(frame) = frame {
                connection.queue.push(Outgoing::Frame(frame.clone()));
            }
        }
    }

    pub(super) fn refuse(&mut self, refusal: Refusal) {
        // A number that is not reserved might be given again after a crash: without one, nothing is sent.
        if self.published.seq >= self.reserved {
            return;
        }
        self.published.seq += 1;
        if let Some(connection) = self.connections.get(&refusal.connection)
            && let Some(frame) = (refusal.frame)(self.published.seq)
        {
            connection.queue.push(Outgoing::Frame(frame));
        }
    }
}

/// Whether an event is told to everybody, beside the subscribers.
fn is_news(change: &SessionEvent) -> bool {
    matches!(change, SessionEvent::Listed | SessionEvent::Removed)
}
