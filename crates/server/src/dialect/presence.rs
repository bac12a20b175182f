//! The attached clients of a session, in every dialect.

use std::sync::Arc;

use grove_core::{ClientId, RefusalKind, SessionUri};
use grove_host::Host;
use grove_host::sequencer::ConnectionId;
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
    pub(super) fn list(&self, uri: &SessionUri, params: PresenceParams) -> Result<PresenceResult, ErrorObject> {
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
}
