//! The attached clients of all sessions in the host's report about itself, which is small.

use grove_core::SessionId;
use grove_host::Host;
use grove_host::sequencer::PublishedState;
use grove_wire::x_grove::presence::{AttachedClient, AttendedSession, PresenceResult};

/// The sessions, and the clients of each, that a report names.
pub const ATTENDED_TOLD: usize = 10;
pub const ATTACHED_TOLD: usize = 5;
/// The characters of each name in a report.
const TOLD_NAME_CHARS: usize = 40;

/// The first sessions with attached clients, and the number of all of them.
pub(super) struct AttendedSessions {
    pub(super) sessions: Vec<AttendedSession>,
    pub(super) count: usize,
}

impl AttendedSessions {
    pub(super) fn of(host: &Host) -> Self {
        let (listed, more) = host.presence().list_all(ATTENDED_TOLD, ATTACHED_TOLD);
        let uri = |id: &SessionId| {
            let look = |published: &PublishedState| Some(published.state.sessions.get(id)?.uri.to_string());
            host.sequencer().read(look)
        };
        let count = listed.len() + more;
        // A session that is removed at this moment has no name any more.
        let named = listed.into_iter().filter_map(|(id, presence)| Some((uri(&id)?, presence)));
        let sessions = named.map(|(session, presence)| AttendedSession { session, presence: clipped(presence) });
        Self { sessions: sessions.collect(), count }
    }
}

fn clipped(presence: PresenceResult) -> PresenceResult {
    let clip = |name: String| -> String { name.chars().take(TOLD_NAME_CHARS).collect() };
    let clients = presence.clients.into_iter().map(|client| AttachedClient {
        client_id: clip(client.client_id),
        name: client.name.map(clip),
        token: clip(client.token),
        ..client
    });
    PresenceResult { clients: clients.collect(), more: presence.more }
}
