//! Editors that are connected: what they show of a file counts for agents, saved or not.
//!
//! A client of the released protocol offers it with `documents` in the `_meta` of its `initialize`. It is then asked with
//! the protocol's own `resourceRead`, on the session's channel, for files of sessions that it takes part in. One that does
//! not answer in time, or has the file not open (an error), is passed over.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::{ClientId, Extra, SessionId};
use grove_wire::ahp::{ContentEncoding, ResourceReadParams, ResourceReadResult};
use grove_wire::jsonrpc::CallTable;

use crate::connection::{Outgoing, Queue};
use crate::host::Host;
use crate::sequencer::ConnectionId;

/// How long an editor may take to say what it shows.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// How many questions to one editor may be open; past it, it is passed over.
const QUESTIONS: usize = 64;

/// The editors, by their connections.
#[derive(Debug, Default)]
pub(crate) struct Editors(Mutex<HashMap<ConnectionId, ConnectedEditor>>);

#[derive(Clone)]
struct ConnectedEditor {
    client: ClientId,
    queue: Arc<Queue>,
    calls: Arc<CallTable>,
}

impl std::fmt::Debug for ConnectedEditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Editor").field("client", &self.client).finish_non_exhaustive()
    }
}

impl Editors {
    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards whole data.
    fn all(&self) -> MutexGuard<'_, HashMap<ConnectionId, ConnectedEditor>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A client has begun: if it offers its documents, answers to what it is asked belong into these calls.
    pub(crate) fn begun(
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

    pub(crate) fn ended(&self, connection: ConnectionId) {
        if let Some(editor) = self.all().remove(&connection) {
            editor.calls.close();
        }
    }
}

impl Host {
    /// A file's text as an editor that takes part in the session shows it, where one does.
    pub async fn document(&self, session: &SessionId, path: &Path) -> Option<String> {
        let editors: Vec<ConnectedEditor> = self.0.editors.all().values().cloned().collect();
        if editors.is_empty() {
            return None;
        }
        let wanted = session.clone();
        let found = self.0.sequencer.read(move |published, _| {
            let session = published.state.sessions.get(&wanted)?;
            let clients: Vec<_> = session.active_clients.iter().map(|active| active.client.clone()).collect();
            Some((session.uri.clone(), clients))
        });
        let (channel, taking_part) = found.await.ok()??;
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
