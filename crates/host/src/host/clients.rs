//! The clients that sessions depend on.

use grove_core::*;

use super::Host;
use crate::sequencer::{HostStopped, PublishedState};
use crate::session::ToSession;

impl Host {
    /// Notes that a client's connection has ended. If it does not reconnect in time, sessions continue without it.
    pub fn client_left(&self, client: ClientId) {
        let host = self.clone();
        self.0.env.spawn.spawn(Box::pin(async move {
            // A stopping host releases everything anyway.
            host.release_client(client).await.ok();
        }));
    }

    /// Adds a warning to a session, for the clients that see it and for those that come later.
    pub async fn warn(&self, session: &SessionId, words: String) {
        if let Some(session) = self.open_session(session) {
            // A session that ends at this moment needs no warning.
            session.inbox.send(ToSession::Warn(words)).await.ok();
        }
    }

    async fn release_client(&self, client: ClientId) -> Result<(), HostStopped> {
        let left = self.0.sequencer.find_client(&client).map(|known| known.touched);
        self.0.env.clock.sleep(self.0.config.limits.client_grace).await;
        let known = self.0.sequencer.find_client(&client);
        // For a client that reconnected and left again, the time starts again from then.
        if known.is_some_and(|known| known.connected || Some(known.touched) != left) {
            return Ok(());
        }
        let look = |published: &PublishedState| {
            let sessions = published.state.sessions.values();
            let sessions = sessions.filter(|session| waited_for(session).any(|other| other == client));
            sessions.map(|session| session.uri.clone()).collect::<Vec<_>>()
        };
        for uri in self.0.sequencer.read(look) {
            if let Some(session) = self.session(&uri).await? {
                session.inbox.send(ToSession::ClientGone(client.clone())).await.ok();
            }
        }
        Ok(())
    }
}

/// The clients that a session depends on: participants, and those that run a tool call.
pub(super) fn waited_for(session: &Session) -> impl Iterator<Item = ClientId> + '_ {
    let parts = session.chats.iter().filter_map(|chat| chat.active.as_deref()).flat_map(ActiveTurn::parts);
    let runs = parts.filter_map(|part| match part {
        Part::ToolCall(call) if call.status == ToolCallStatus::Running => call.client.clone(),
        _ => None,
    });
    session.active_clients.iter().map(|active| active.client.clone()).chain(runs)
}
