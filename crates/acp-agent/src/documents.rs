//! The editor's unsaved versions of files, for agents that read them.

use std::sync::Arc;
use std::time::Duration;

use agent_client_protocol_schema::v1 as acp;
use grove_client::{HostRequest, RequestHandler};
use grove_wire::ahp::{ContentEncoding, Method, ResourceReadParams, ResourceReadResult, error_code};
use grove_wire::file_uri;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::value::{RawValue, to_raw_value};

use crate::editor::Editor;
use crate::sessions::SessionTable;

/// The time in which the editor must answer: the host waits no longer.
const ANSWER: Duration = Duration::from_secs(2);

/// Answers the host's requests for files with the editor's.
pub(crate) fn handler(editor: Editor, sessions: Arc<SessionTable>) -> RequestHandler {
    RequestHandler::new(move |request| {
        let (editor, sessions) = (editor.clone(), sessions.clone());
        async move { answer(&editor, &sessions, &request).await }
    })
}

async fn answer(editor: &Editor, sessions: &SessionTable, request: &HostRequest) -> Result<Box<RawValue>, ErrorObject> {
    if request.method != Method::ResourceRead.as_str() {
        return Err(ErrorObject::unknown_method(&request.method));
    }
    let params: ResourceReadParams = serde_json::from_str(request.params.get())
        .map_err(|error| ErrorObject::invalid_params(format!("the params are invalid: {error}")))?;
    let id = params.channel.rsplit('/').next().unwrap_or_default();
    let session = sessions.get(id)?;
    let missing = || ErrorObject::new(error_code::NOT_FOUND, "the editor does not have the file");
    let path = file_uri::to_path(&params.uri).ok_or_else(missing)?;
    let read = acp::ReadTextFileRequest::new(acp::SessionId::new(session.id.as_str()), path);
    let asked = editor.ask(acp::CLIENT_METHOD_NAMES.fs_read_text_file, &read);
    let answer = tokio::time::timeout(ANSWER, asked).await.map_err(|_| missing())?.map_err(|_| missing())?;
    let answer: acp::ReadTextFileResponse = serde_json::from_str(answer.get()).map_err(|_| missing())?;
    let result = ResourceReadResult { data: answer.content, encoding: ContentEncoding::Utf8, content_type: None };
    to_raw_value(&result).map_err(|error| ErrorObject::internal(error.to_string()))
}
