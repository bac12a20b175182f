//! Connected editors: agents see their unsaved versions of files.
//!
//! A client of the released protocol offers this with `documents` in the `_meta` of its `initialize`. It is then asked
//! with the protocol's own `resourceRead`, on the session's channel, for files of sessions that it takes part in. An
//! editor that does not answer in time, or does not have the file open (an error), is skipped.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::{ClientId, Extra, SessionId};
use grove_wire::ahp::{ContentEncoding, ResourceReadParams, ResourceReadResult};
use grove_wire::jsonrpc::CallTable;

use crate::host::Host;
use crate::sequencer::ConnectionId;
use crate::subscriber::{Outgoing, Queue};

/// The time in which an editor must answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// Calls to one editor that may be open; with more, it is skipped.
pub const QUESTIONS: usize = 64;

/// The editors, by connection.
#[derive(Debug, Default)]
pub struct Editors(Mutex<HashMap<ConnectionId, ConnectedEditor>>);

#[derive(Clone)]
struct ConnectedEditor {
    client: ClientId,
    queue: Arc<Queue>,
    calls: Arc<CallTable>,
}

impl std::fmt::Debug for ConnectedEditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ConnectedEditor").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Editors {
    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn all(&self) -> MutexGuard<'_, HashMap<ConnectionId, ConnectedEditor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client that has initialized, if it offers its documents. Its answers settle these calls.
    pub fn begun(
        &self,
        connection: ConnectionId,
        client: &ClientId,
        queue: &Arc<Queue>,
        meta: Option<&Extra>,
    ) -> Option<Arc<CallTable>> {
        if meta?.get("documents")? != true {
            return None;
        }
        let calls = Arc::new(CallTable::new(QUESTIONS));
        let editor = ConnectedEditor { client: client.clone(), queue: queue.clone(), calls: calls.clone() };
        self.all().insert(connection, editor);
        Some(calls)
    }

    /// Removes a connection that has ended, if it was an editor. Its open calls fail.
    pub fn ended(&self, connection: ConnectionId) {
        if let Some(editor) = self.all().remove(&connection) {
            editor.calls.close();
        }
    }
}

impl Host {
    /// The editors that are connected.
    pub fn editors(&self) -> &Editors {
        &self.0.editors
    }

    /// A file's text in an editor that takes part in the session, if one has it open.
    pub async fn document(&self, session: &SessionId, path: &Path) -> Option<String> {
        let editors: Vec<ConnectedEditor> = self.0.editors.all().values().cloned().collect();
        if editors.is_empty() {
            return None;
        }
        let found = self.0.sequencer.read(|published| {
            let session = published.state.sessions.get(session)?;
            let clients: Vec<_> = session.active_clients.iter().map(|active| active.client.clone()).collect();
            Some((session.uri.clone(), clients))
        });
        let (channel, taking_part) = found?;
        let params = ResourceReadParams {
            channel: channel.to_string(),
            meta: None,
            uri: grove_work::file_uri(path),
            encoding: Some(ContentEncoding::Utf8),
        };
        for editor in editors.iter().filter(|editor| taking_part.contains(&editor.client)) {
            let Ok(call) = editor.calls.begin("resourceRead", &params) else { continue };
            editor.queue.push(Outgoing::Frame(call.frame.as_str().into()));
            let answer = tokio::select! {
                answer = call.answer() => answer,
                () = self.0.env.clock.sleep(ANSWER_TIMEOUT) => continue,
            };
            let Ok(answer) = answer else { continue };
            if let Ok(ResourceReadResult { data, encoding: ContentEncoding::Utf8, .. }) =
                serde_json::from_str(answer.get())
            {
                return Some(data);
            }
        }
        None
    }
}
