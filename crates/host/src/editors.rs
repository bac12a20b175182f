//! Connected editors: agents see their unsaved versions of files, and write them through the editor.
//!
//! A client of the released protocol offers this with `documents` in the `_meta` of its `initialize`, and writes with
//! `documentWrites`. It is then asked with the protocol's own `resourceRead` and `resourceWrite`, on the session's
//! channel, for files of sessions that it takes part in. An editor that does not answer in time, or does not have the
//! file open (an error), is skipped.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_core::{ClientId, Extra, SessionId};
use grove_wire::ahp::{ContentEncoding, Method, ResourceReadParams, ResourceReadResult, ResourceWriteParams};
use grove_wire::jsonrpc::CallTable;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::host::Host;
use crate::sequencer::ConnectionId;
use crate::subscriber::{Outgoing, Queue};

/// The time in which an editor must answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// The time in which an editor must write a file, which it may format. After it the host writes the file.
pub const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest text that is written through an editor; the host writes larger ones.
pub const WRITE_BYTES: usize = 4 << 20;
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
    writes: bool,
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
        let writes = meta?.get("documentWrites").is_some_and(|writes| writes == true);
        let editor = ConnectedEditor { client: client.clone(), queue: queue.clone(), calls: calls.clone(), writes };
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
        let (channel, editors) = self.editors_of(session)?;
        for editor in editors {
            if let Some(text) = self.shown_by(&editor, &channel, path).await {
                return Some(text);
            }
        }
        None
    }

    /// Writes a file through the editor that shows it with unsaved changes. Returns whether there was one.
    ///
    /// Otherwise the editor's version and the file would be in conflict. `on_disk` is the file's text; an editor that
    /// shows the same has nothing unsaved, and reads the file again by itself when it changes.
    pub async fn write_document(&self, session: &SessionId, path: &Path, on_disk: Option<&str>, text: &str) -> bool {
        if text.len() > WRITE_BYTES {
            return false;
        }
        let Some((channel, editors)) = self.editors_of(session) else { return false };
        for editor in editors.iter().filter(|editor| editor.writes) {
            let shown = self.shown_by(editor, &channel, path).await;
            if shown.is_none_or(|shown| on_disk == Some(shown.as_str())) {
                continue;
            }
            let params = ResourceWriteParams {
                channel: channel.clone(),
                uri: grove_work::file_uri(path),
                data: text.to_owned(),
                encoding: ContentEncoding::Utf8,
                meta: None,
                content_type: None,
                create_only: None,
                mode: None,
                position: None,
                if_match: None,
            };
            if self.ask_editor(editor, Method::ResourceWrite, &params, WRITE_TIMEOUT).await.is_some() {
                return true;
            }
        }
        false
    }

    /// The channel of a session, and the editors that take part in it.
    fn editors_of(&self, session: &SessionId) -> Option<(String, Vec<ConnectedEditor>)> {
        let editors: Vec<ConnectedEditor> = self.0.editors.all().values().cloned().collect();
        if editors.is_empty() {
            return None;
        }
        let (channel, taking_part) = self.0.sequencer.read(|published| {
            let session = published.state.sessions.get(session)?;
            let clients: Vec<_> = session.active_clients.iter().map(|active| active.client.clone()).collect();
            Some((session.uri.to_string(), clients))
        })?;
        Some((channel, editors.into_iter().filter(|editor| taking_part.contains(&editor.client)).collect()))
    }

    /// A file's text in one editor, if it has the file open.
    async fn shown_by(&self, editor: &ConnectedEditor, channel: &str, path: &Path) -> Option<String> {
        let params = ResourceReadParams {
            channel: channel.to_owned(),
            meta: None,
            uri: grove_work::file_uri(path),
            encoding: Some(ContentEncoding::Utf8),
        };
        let answer = self.ask_editor(editor, Method::ResourceRead, &params, ANSWER_TIMEOUT).await?;
        match serde_json::from_str(answer.get()) {
            Ok(ResourceReadResult { data, encoding: ContentEncoding::Utf8, .. }) => Some(data),
            Ok(_) | Err(_) => None,
        }
    }

    /// Sends a request to an editor. `None` if it refuses, or does not answer in time.
    async fn ask_editor(
        &self,
        editor: &ConnectedEditor,
        method: Method,
        params: &(impl Serialize + Sync),
        timeout: Duration,
    ) -> Option<Box<RawValue>> {
        let call = editor.calls.begin(method.as_str(), params).ok()?;
        editor.queue.push(Outgoing::Frame(call.frame.as_str().into()));
        tokio::select! {
            answer = call.answer() => answer.ok(),
            () = self.0.env.clock.sleep(timeout) => None,
        }
    }
}
