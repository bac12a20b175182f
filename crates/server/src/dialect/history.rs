//! Sessions of other tools, in every dialect.

use std::sync::Arc;

use grove_core::{SessionId, Timestamp};
use grove_host::Host;
use grove_host::history::{self, HistoryOpenError, HistoryQuery, HistoryUnavailable, Scan};
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::Encode;
use grove_wire::jsonrpc::{self, ErrorObject, Id, code};
use grove_wire::x_grove::history::{
    HistoryListParams, HistoryListResult, HistoryListRow, HistoryMethod, ScanParams, ScanResult,
};
use serde_json::value::RawValue;

use super::answer::{encode, read_params};
use super::history_import;
use crate::principal::Principal;

/// The default number of sessions in a page.
const ROWS: usize = 100;
pub const MAX_HISTORY_ROWS: usize = 10_000;

/// Answers a request. A list may have to wait for the disk, without holding up the client's next messages.
pub(super) fn handle(
    host: &Host,
    principal: &Arc<Principal>,
    id: Id,
    method: HistoryMethod,
    params: Option<&RawValue>,
    reply: ReplySink,
) {
    let query = match method {
        HistoryMethod::Scan => {
            let answer = match read_params::<ScanParams>(params) {
                Ok(params) => encode(&id, &scan(host, &params)),
                Err(error) => jsonrpc::error(Some(&id), &error),
            };
            return reply(Encode::Text(answer));
        }
        HistoryMethod::Import => return history_import::handle(host, principal, id, params, reply),
        HistoryMethod::List => read_params(params).and_then(query),
    };
    let query = match query {
        Ok(query) => query,
        Err(error) => return reply(Encode::later(move || jsonrpc::error(Some(&id), &error))),
    };
    let host = host.clone();
    host.clone().env().spawn.spawn(Box::pin(async move {
        let answer = match list(&host, query).await {
            Ok(result) => encode(&id, &result),
            Err(error) => jsonrpc::error(Some(&id), &unavailable(&error)),
        };
        reply(Encode::Text(answer));
    }));
}

pub(super) fn unavailable(error: &HistoryUnavailable) -> ErrorObject {
    ErrorObject::new(code::INTERNAL, error.to_string())
}

/// The error for a session that cannot be opened.
pub(super) fn not_opened(error: &HistoryOpenError) -> ErrorObject {
    match error {
        HistoryOpenError::HistoryUnavailable(error) => unavailable(error),
        HistoryOpenError::NoTurn(_) => ErrorObject::invalid_params(error.to_string()),
    }
}

/// Reports the progress of the scan. A host without a history has nothing to scan, and is done.
fn scan(host: &Host, params: &ScanParams) -> ScanResult {
    let scan = if params.start { Scan::Start } else { Scan::Poll };
    host.history().map_or_else(ScanResult::default, |history| history.scan(scan))
}

fn query(params: HistoryListParams) -> Result<HistoryQuery, ErrorObject> {
    let HistoryListParams { source, repository, since, text, cursor, limit } = params;
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    Ok(HistoryQuery {
        source: filled(source),
        repository: filled(repository),
        since: since.map(Timestamp),
        text: filled(text),
        after: cursor.as_deref().map(read_cursor).transpose()?,
        // One more tells whether there is a next page.
        limit: limit.unwrap_or(ROWS).clamp(1, MAX_HISTORY_ROWS) + 1,
    })
}

async fn list(host: &Host, query: HistoryQuery) -> Result<HistoryListResult, HistoryUnavailable> {
    let Some(history) = host.history() else { return Ok(HistoryListResult::default()) };
    let limit = query.limit - 1;
    let mut rows = history.list(query).await?;
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    let next_cursor = rows.last().filter(|_| has_more).map(|row| {
        let (at, id) = (row.session.modified_at.0, &row.session.id);
        format!("{at}:{id}")
    });
    let sessions = rows.into_iter().map(|history::HistoryRow { session, about }| HistoryListRow {
        resource: session.uri.to_string(),
        title: session.title,
        created_at: session.created_at.0,
        modified_at: session.modified_at.0,
        working_directory: session.working_directories.into_iter().next(),
        about,
    });
    Ok(HistoryListResult { sessions: sessions.collect(), next_cursor })
}

fn read_cursor(cursor: &str) -> Result<(Timestamp, SessionId), ErrorObject> {
    let place = cursor.split_once(':').and_then(|(at, id)| Some((Timestamp(at.parse().ok()?), SessionId::from(id))));
    let shown: String = cursor.chars().take(200).collect();
    place.ok_or_else(|| ErrorObject::invalid_params(format!("{shown} is not a cursor of this list")))
}
