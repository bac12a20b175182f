//! Encoding changes once for all clients.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use grove_sessions::management::{ActiveSession, ActiveView, SessionsEvent};
use grove_sessions::provider::SessionsChange;
use grove_sessions::session::SessionState;
use grove_sessions::{Management, Observable, Session, Subscription, SubscriptionItem};
use grove_wire::jsonrpc;
use grove_wire::x_grove::sessions::{CHANGED, MAX_LIST_ROWS, SessionListChange, SessionReplacement, VIEW};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;

use super::groups::{Headings, headings};
use super::rows;
use super::throttle::Throttle;

/// The number of frames that wait for a slow client. Beyond it the client must list again.
pub const FRAMES: usize = 256;

/// Listens to the management and publishes its changes.
pub(super) struct ChangePublisher {
    management: Management,
    events: Subscription<SessionsEvent>,
    headings: Headings,
    frames: broadcast::Sender<Arc<str>>,
    throttle: Throttle,
}

impl ChangePublisher {
    /// Listens from now on.
    pub(super) fn new(management: Management, frames: broadcast::Sender<Arc<str>>) -> Self {
        let (sessions, events) = management.subscribe();
        Self { headings: Headings::of(&sessions), management, events, frames, throttle: Throttle::default() }
    }

    /// Publishes changes until the management ends.
    pub(super) async fn run(mut self) {
        loop {
            let held = self.throttle.next();
            let notice = tokio::select! {
                notice = self.events.next() => match notice {
                    Some(notice) => Some(notice),
                    None => return,
                },
                () = until(held) => None,
            };
            let changed = match notice {
                Some(SubscriptionItem::Event(event)) => self.changed(event),
                Some(SubscriptionItem::Reset) => {
                    self.headings = Headings::of(&self.management.sessions());
                    self.throttle.clear();
                    Some(reset())
                }
                None => {
                    let due = self.throttle.due(Instant::now());
                    Some(self.list_changed(&due, false))
                }
            };
            if let Some(frame) = changed.as_ref().and_then(frame) {
                // An error means that there is no listener.
                self.frames.send(frame).ok();
            }
        }
    }

    fn changed(&mut self, event: SessionsEvent) -> Option<SessionListChange> {
        match event {
            SessionsEvent::Sessions(change) => {
                let regrouped = self.headings.change(&change);
                let change = self.throttle.admit(&change, &self.management.pins(), Instant::now());
                let is_empty = change.added.is_empty() && change.removed.is_empty() && change.changed.is_empty();
                (regrouped || !is_empty).then(|| self.list_changed(&change, regrouped))
            }
            SessionsEvent::SessionReplacement(replaced) => {
                let (from, to) = (replaced.from.id().to_string(), replaced.to.id().to_string());
                Some(SessionListChange {
                    replaced: vec![SessionReplacement { from, to }],
                    ..SessionListChange::default()
                })
            }
            SessionsEvent::SessionTypes | SessionsEvent::Availability(_) => {
                Some(SessionListChange { providers: true, ..SessionListChange::default() })
            }
            // The change of the list covers it.
            SessionsEvent::Sent { .. } | SessionsEvent::SessionDeleted(_) | SessionsEvent::ChatDeleted { .. } => None,
        }
    }

    fn list_changed(&mut self, change: &SessionsChange, regrouped: bool) -> SessionListChange {
        if change.added.len() + change.changed.len() + change.removed.len() > MAX_LIST_ROWS {
            // Clients read the list in pages instead of one large message.
            self.throttle.clear();
            return reset();
        }
        let pins = self.management.pins();
        let row = |session: &Session| rows::row(session, pins.contains(session.id()));
        let rows = |sessions: &[Session]| sessions.iter().map(row).collect();
        SessionListChange {
            added: rows(&change.added),
            removed: change.removed.iter().map(|session| session.id().to_string()).collect(),
            changed: rows(&change.changed),
            groups: regrouped.then(|| headings(self.management.sessions())),
            ..SessionListChange::default()
        }
    }
}

/// All frames for one client: the changes of the list, and of its own view.
pub(super) fn follow(
    frames: broadcast::Receiver<Arc<str>>,
    management: Arc<Management>,
) -> BoxStream<'static, Arc<str>> {
    let view = management.observe(|view| view.clone());
    let draft = draft(&view.get());
    stream::unfold(ClientFeed { frames, management, view, draft }, |mut following| async move {
        let frame = following.next().await?;
        Some((frame, following))
    })
    .filter_map(|frame| async move { frame })
    .boxed()
}

/// The sources of a client's frames.
struct ClientFeed {
    frames: broadcast::Receiver<Arc<str>>,
    management: Arc<Management>,
    view: Observable<ActiveView, ActiveView>,
    /// The draft session. It is in no list, so only the view can report its changes.
    draft: Option<Observable<SessionState>>,
}

impl ClientFeed {
    /// The next frame, or `Some(None)` if it could not be encoded. `None` is the end.
    async fn next(&mut self) -> Option<Option<Arc<str>>> {
        let Self { frames, management, view, draft: watched } = self;
        let changed = async {
            match watched {
                Some(watched) => watched.changed().await,
                None => None,
            }
        };
        let shown = tokio::select! {
            message = frames.recv() => return match message {
                Ok(frame) => Some(Some(frame)),
                Err(RecvError::Lagged(_)) => {
                    // Queued frames are older than the list that the client will request.
                    *frames = frames.resubscribe();
                    Some(frame(&reset()))
                }
                Err(RecvError::Closed) => None,
            },
            Some(view) = view.changed() => view,
            Some(_) = changed => view.get(),
        };
        // Listen before reading, so that no change is lost in between.
        self.draft = draft(&shown);
        Some(jsonrpc::notification(VIEW, &rows::view(&shown, &management.pins())).ok().map(Arc::from))
    }
}

async fn until(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// The draft session of a view.
fn draft(view: &ActiveView) -> Option<Observable<SessionState>> {
    let active = view.active_session.as_ref().map(ActiveSession::session).filter(|session| !session.was_sent());
    view.new_session.as_ref().or(active).map(|session| session.observe(SessionState::clone))
}

fn reset() -> SessionListChange {
    SessionListChange { reset: true, ..SessionListChange::default() }
}

fn frame(changed: &SessionListChange) -> Option<Arc<str>> {
    jsonrpc::notification(CHANGED, changed).ok().map(Arc::from)
}

#[cfg(test)]
mod tests {
    use grove_sessions::{InMemoryState, Registry};
    use serde_json::Value;

    use super::*;

    #[tokio::test]
    async fn who_is_too_slow_is_told_to_list_anew_and_nothing_older() {
        let (management, _driver) = Management::new(Registry::new(), Arc::new(InMemoryState::default())).unwrap();
        let frames = broadcast::Sender::new(2);
        let mut stream = follow(frames.subscribe(), Arc::new(management));
        for number in 0..5 {
            frames.send(format!("{number}").into()).unwrap();
        }
        let first: Value = serde_json::from_str(&stream.next().await.unwrap()).unwrap();
        assert_eq!((&first["method"], &first["params"]["reset"]), (&CHANGED.into(), &true.into()));
        frames.send("later".into()).unwrap();
        assert_eq!(stream.next().await.as_deref(), Some("later"));
        drop(frames);
        assert_eq!(stream.next().await, None);
    }
}
