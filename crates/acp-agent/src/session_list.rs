//! The editor's session list: its pages, and the titles and the archive that it shows.

use std::path::PathBuf;

use agent_client_protocol_schema::v1 as acp;
use grove_wire::ahp::{
    ListSessionsParams, ROOT, SessionAction, SessionIsArchivedChanged, SessionSummary, SessionTitleChanged, status,
};
use grove_wire::file_uri;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::Value;

use crate::host::refusal;
use crate::methods::MethodReply;
use crate::server::EditorLink;
use crate::session::{change_session, session_uri};

/// The sessions of one page of the list.
pub const PAGE: usize = 100;
/// The pages of the host's list that are searched for one page of the editor's list.
const SEARCHED_PAGES: usize = 20;

/// A page of the host's sessions.
pub(crate) async fn list(link: &EditorLink, params: acp::ListSessionsRequest) -> Result<MethodReply, ErrorObject> {
    let archived = params.archived.unwrap_or_default();
    let is_wanted = |row: &SessionSummary| match archived {
        acp::SessionArchiveFilter::Only => is_archived(row),
        acp::SessionArchiveFilter::Include => true,
        _ => !is_archived(row),
    };
    if let acp::SessionArchiveFilter::Other(other) = &archived {
        let other: String = other.chars().take(40).collect();
        return Err(ErrorObject::invalid_params(format!("{other:?} is no filter: use exclude, include or only")));
    }
    let mut cursor = params.cursor;
    let mut sessions: Vec<acp::SessionInfo> = Vec::new();
    let default = link.host.client.server().and_then(|server| server.default_directory);
    for _ in 0..SEARCHED_PAGES {
        let page = ListSessionsParams {
            channel: ROOT.to_owned(),
            // Sessions of other tools cannot be loaded.
            meta: Some([("history".to_owned(), Value::Bool(false))].into_iter().collect()),
            limit: Some(PAGE as u64),
            cursor: cursor.take(),
        };
        let page = link.host.client.request(page).await.map_err(|error| refusal(&error))?;
        let rows = page.items.iter().filter(|row| is_wanted(row)).map(|row| info(row, default.as_deref()));
        sessions.extend(rows.filter(|info| params.cwd.as_ref().is_none_or(|cwd| *cwd == info.cwd)));
        cursor = page.next_cursor;
        if cursor.is_none() || sessions.len() >= PAGE {
            break;
        }
    }
    MethodReply::new(&acp::ListSessionsResponse::new(sessions).next_cursor(cursor))
}

/// Renames a session, open or not. The host may store the title in another form, which the answer has.
pub(crate) async fn set_title(
    link: &EditorLink,
    params: acp::SetSessionTitleRequest,
) -> Result<MethodReply, ErrorObject> {
    if params.title.chars().all(|character| character.is_whitespace() || character.is_control()) {
        return Err(ErrorObject::invalid_params("a title needs at least one visible character"));
    }
    let session = link.host.client.subscribe(&session_uri(&params.session_id.0)).await;
    let session = session.map_err(|error| refusal(&error))?;
    change_session(&session, SessionAction::TitleChanged(SessionTitleChanged { title: params.title.clone() })).await?;
    let title = session.read_confirmed(|state, _| state.session().map(|session| session.title.clone()));
    MethodReply::new(&acp::SetSessionTitleResponse::new(title.unwrap_or(params.title)))
}

/// Moves a session to the archive, or back.
pub(crate) async fn set_archived(link: &EditorLink, id: &acp::SessionId, is_archived: bool) -> Result<(), ErrorObject> {
    let session = link.host.client.subscribe(&session_uri(&id.0)).await.map_err(|error| refusal(&error))?;
    change_session(&session, SessionAction::IsArchivedChanged(SessionIsArchivedChanged { is_archived })).await
}

/// The id in a session's URI.
pub(crate) fn id_of(uri: &str) -> &str {
    uri.rsplit('/').next().unwrap_or(uri)
}

fn is_archived(row: &SessionSummary) -> bool {
    row.status & status::IS_ARCHIVED != 0
}

fn info(row: &SessionSummary, default: Option<&str>) -> acp::SessionInfo {
    let path = |uri: &String| PathBuf::from(file_uri::to_path(uri).unwrap_or_else(|| uri.clone()));
    let mut folders = row.working_directories.iter().flatten().map(path);
    // The protocol needs a folder, and a session may have none.
    let elsewhere = || default.and_then(file_uri::to_path).map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let cwd = folders.next().unwrap_or_else(elsewhere);
    acp::SessionInfo::new(acp::SessionId::new(id_of(&row.resource)), cwd)
        .additional_directories(folders.collect::<Vec<_>>())
        .title(Some(row.title.clone()).filter(|title| !title.is_empty()))
        .updated_at(row.modified_at.clone())
        .archived(is_archived(row))
}
