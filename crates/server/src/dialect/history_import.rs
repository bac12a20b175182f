//! Importing another tool's session from the host's own catalog, in every dialect.

use std::io::Read;
use std::sync::Arc;

use grove_core::{SessionId, SessionUri};
use grove_host::Host;
use grove_host::history::{History, PreparedFile, PreparedHistory};
use grove_host::import::ImportJob;
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::Encode;
use grove_wire::ahp::error_code;
use grove_wire::jsonrpc::{ErrorObject, Id, code};
use grove_wire::x_grove::Method;
use grove_wire::x_grove::history::{HistoryImportParams, HistoryImportResult, HistoryMethod};
use serde_json::value::RawValue;

use super::answer::{encode, not_permitted, read_params, refuse, refused};
use super::history::unavailable;
use crate::principal::Principal;

/// The size of the pieces in which a file is copied.
const PIECE_BYTES: u64 = 1 << 20;

/// Answers a request. Reading a session may take long, without holding up the client's next messages.
pub(super) fn handle(host: &Host, principal: &Arc<Principal>, id: Id, params: Option<&RawValue>, reply: ReplySink) {
    let params: Result<HistoryImportParams, ErrorObject> = read_params(params);
    let (host, principal) = (host.clone(), principal.clone());
    host.clone().env().spawn.spawn(Box::pin(async move {
        let answer = match params {
            Ok(params) => import(&host, &principal, params).await.map(|result| encode(&id, &result)),
            Err(error) => Err(error),
        };
        reply(Encode::Text(answer.unwrap_or_else(|error| refuse(&host, &id, &error))));
    }));
}

async fn import(
    host: &Host,
    principal: &Principal,
    params: HistoryImportParams,
) -> Result<HistoryImportResult, ErrorObject> {
    let none = || ErrorObject::new(error_code::SESSION_NOT_FOUND, "no other tool has this session".to_owned());
    let history: Arc<dyn History> = host.history().cloned().ok_or_else(none)?;
    let id = SessionUri::from(params.resource).id().ok_or_else(none)?;
    let new_id = match params.new_id {
        true => Some(host.new_id().map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))?),
        false => None,
    };
    let prepared = history.prepare_import(&id, new_id.map(SessionId::from)).await;
    let PreparedHistory { mut request, files, warnings } =
        prepared.map_err(|error| unavailable(&error))?.ok_or_else(none)?;
    request.agent = params.agent.map(Into::into);
    // The session works where its tool did, so that place is as good as one in the request.
    let folders = request.working_directory.iter().cloned().collect();
    let operation = Method::History(HistoryMethod::Import).as_str();
    let allowed = principal.check_folders(host, folders, operation).await;
    allowed.map_err(|missing| not_permitted(&missing.into()))?;
    let mut job = host.begin_import(request).await.map_err(|error| refused(&error))?;
    for file in files {
        if let Err(error) = put(host, &mut job, file).await {
            job.discard().await;
            return Err(error);
        }
    }
    let imported = job.commit().await.map_err(|error| refused(&error))?;
    let warnings = warnings.into_iter().chain(imported.damage).collect();
    Ok(HistoryImportResult { session: imported.session.to_string(), warnings })
}

/// Copies a file in pieces. An empty file has one piece, too.
async fn put(host: &Host, job: &mut ImportJob, file: PreparedFile) -> Result<(), ErrorObject> {
    let PreparedFile { name, mut content } = file;
    let mut offset = 0;
    loop {
        let read = move || {
            let mut piece = Vec::new();
            let read = content.by_ref().take(PIECE_BYTES).read_to_end(&mut piece);
            read.map(|_| (piece, content))
        };
        let read = host.env().spawn.run_blocking(read).await;
        let read = read.map_err(|error| ErrorObject::new(code::INTERNAL, error.to_string()))?;
        let (piece, rest) =
            read.map_err(|error| ErrorObject::new(code::INTERNAL, format!("reading {name}: {error}")))?;
        content = rest;
        if piece.is_empty() && offset > 0 {
            return Ok(());
        }
        let size = job.put(&name, offset, &piece).await.map_err(|error| refused(&error))?;
        if (piece.len() as u64) < PIECE_BYTES {
            return Ok(());
        }
        offset = size;
    }
}
