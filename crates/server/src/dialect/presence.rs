//! The attached clients of sessions, in every dialect.

use std::sync::Arc;

use grove_core::{ClientId, RefusalKind, SessionId, SessionUri};
use grove_host::Host;
use grove_host::sequencer::{ConnectionId, PublishedState};
use grove_host::subscriber::Queue;
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::refusal::error_code;
use grove_wire::x_grove::presence::*;

/// A client that asks who is attached.
pub(super) struct PresenceAsker<'a> {
    pub(super) host: &'a Host,
    pub(super) client: &'a ClientId,
    pub(super) connection: ConnectionId,
    pub(super) queue: &'a Arc<Queue>,
}

impl PresenceAsker<'_> {
    /// The clients of a session. With `watch` the asker is told of changes, which only a subscriber may be.
    pub(super) fn session(&self, uri: &SessionUri, params: PresenceParams) -> Result<PresenceResult, ErrorObject> {
        let Some(session) = uri.id() else { return Ok(PresenceResult::default()) };
        let presence = self.host.presence();
        let Some(watch) = params.watch else { return Ok(presence.list(&session)) };
        let watching = watch.then(|| (self.queue.clone(), params.channel));
        match presence.watch(&session, self.client, self.connection, watching) {
            Some(list) => Ok(list),
            None if !watch => Ok(presence.list(&session)),
            None => {
                let reason = "only subscribers are told who is attached: subscribe to the session first";
                Err(ErrorObject::new(error_code(RefusalKind::InvalidState), reason))
            }
        }
    }

    /// The clients of all sessions.
    pub(super) fn all(&self) -> PresenceListResult {
        let (listed, more) = self.host.presence().list_all(MAX_PRESENT_SESSIONS);
        let uri = |id: &SessionId| {
            let look =
                |published: &PublishedState| published.state.sessions.get(id).map(|session| session.uri.to_string());
            self.host.sequencer().read(look)
        };
        // A session that is removed at this moment has no name any more.
        let named = listed.into_iter().filter_map(|(id, presence)| Some((uri(&id)?, presence)));
        let sessions = named.map(|(session, presence)| PresentSession { session, presence });
        PresenceListResult { sessions: sessions.collect(), more }
    }
}
