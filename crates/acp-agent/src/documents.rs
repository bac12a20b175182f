//! The editor's unsaved versions of files, for agents that read and write them.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_client::{HostRequest, RequestHandler};
use grove_wire::ahp::{
    ContentEncoding, EmptyResult, Method, ResourceReadParams, ResourceReadResult, ResourceWriteParams, error_code,
};
use grove_wire::file_uri;
use grove_wire::jsonrpc::ErrorObject;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};

use crate::editor::Editor;
use crate::session::EditorSession;
use crate::sessions::SessionTable;

/// The time in which the editor must give its version of a file: the host waits no longer.
const READ: Duration = Duration::from_secs(2);
/// The time in which the editor must write a file: the host waits no longer.
const WRITE: Duration = Duration::from_secs(10);

/// Passes the host's requests for files on to the editor.
pub(crate) fn handler(editor: Editor, sessions: Arc<SessionTable>) -> RequestHandler {
    RequestHandler::new(move |request| {
        let (editor, sessions) = (editor.clone(), sessions.clone());
        async move { answer(&editor, &sessions, &request).await }
    })
}

async fn answer(editor: &Editor, sessions: &SessionTable, request: &HostRequest) -> Result<Box<RawValue>, ErrorObject> {
    match Method::named(&request.method) {
        Some(Method::ResourceRead) => read(editor, sessions, params(request)?).await,
        Some(Method::ResourceWrite) => write(editor, sessions, params(request)?).await,
        Some(_) | None => Err(ErrorObject::unknown_method(&request.method)),
    }
}

fn params<T: DeserializeOwned>(request: &HostRequest) -> Result<T, ErrorObject> {
    serde_json::from_str(request.params.get())
        .map_err(|error| ErrorObject::invalid_params(format!("the params are invalid: {error}")))
}

/// The editor's version of a file.
async fn read(
    editor: &Editor,
    sessions: &SessionTable,
    params: ResourceReadParams,
) -> Result<Box<RawValue>, ErrorObject> {
    let (session, path) = file(sessions, &params.channel, &params.uri)?;
    let read = acp::ReadTextFileRequest::new(acp::SessionId::new(session.id.as_str()), path);
    let asked = editor.ask(acp::CLIENT_METHOD_NAMES.fs_read_text_file, &read);
    let answer = tokio::time::timeout(READ, asked).await.map_err(|_| missing())?.map_err(|_| missing())?;
    let answer: acp::ReadTextFileResponse = serde_json::from_str(answer.get()).map_err(|_| missing())?;
    result(&ResourceReadResult { data: answer.content, encoding: ContentEncoding::Utf8, content_type: None })
}

/// Has the editor replace the text of a file, and save it.
async fn write(
    editor: &Editor,
    sessions: &SessionTable,
    params: ResourceWriteParams,
) -> Result<Box<RawValue>, ErrorObject> {
    let (session, path) = file(sessions, &params.channel, &params.uri)?;
    // The host replaces whole texts.
    if params.encoding != ContentEncoding::Utf8 || params.mode.is_some() || !session.editor.writes_files {
        return Err(ErrorObject::invalid_params("the editor only replaces whole texts"));
    }
    let write = acp::WriteTextFileRequest::new(acp::SessionId::new(session.id.as_str()), path, params.data);
    let asked = editor.ask(acp::CLIENT_METHOD_NAMES.fs_write_text_file, &write);
    let failed = |reason: String| ErrorObject::internal(format!("the editor did not write the file: {reason}"));
    tokio::time::timeout(WRITE, asked)
        .await
        .map_err(|_| failed("it did not answer in time".to_owned()))?
        .map_err(|error| failed(error.to_string()))?;
    result(&EmptyResult {})
}

/// The session and the path that a request of the host is about.
fn file(sessions: &SessionTable, channel: &str, uri: &str) -> Result<(Arc<EditorSession>, String), ErrorObject> {
    let session = sessions.get(channel.rsplit('/').next().unwrap_or_default())?;
    Ok((session, file_uri::to_path(uri).ok_or_else(missing)?))
}

fn missing() -> ErrorObject {
    ErrorObject::new(error_code::NOT_FOUND, "the editor does not have the file")
}

fn result(result: &impl Serialize) -> Result<Box<RawValue>, ErrorObject> {
    to_raw_value(result).map_err(|error| ErrorObject::internal(error.to_string()))
}
