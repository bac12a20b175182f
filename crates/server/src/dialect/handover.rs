//! Requests to hand a session over to another host, in every dialect.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core as core;
use grove_host::Host;
use grove_host::session::{ChatAddress, HandoverAnswer, HandoverManifest, HandoverRequest, PendingHandover};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::x_grove::handover::*;
use serde_json::value::RawValue;

use super::answer::{encode, read_params, refused};

/// A request about a handover that the session has not answered yet.
pub(crate) struct PendingHandoverCall {
    id: Id,
    asked: PendingHandover,
}

/// Parses a request.
pub(super) fn read(method: HandoverMethod, params: Option<&RawValue>) -> Result<HandoverRequest, ErrorObject> {
    Ok(match method {
        HandoverMethod::Files => HandoverRequest::Files,
        HandoverMethod::Read => {
            let ReadParams { path, offset } = read_params(params)?;
            HandoverRequest::Read { path, offset, length: MAX_READ_BYTES }
        }
        HandoverMethod::Leave => {
            let LeaveParams { to, seal } = read_params(params)?;
            HandoverRequest::Leave(to_core(to), seal)
        }
    })
}

/// Sends the request to the session.
pub(super) async fn begin(
    host: &Host,
    id: Id,
    request: HandoverRequest,
    (session, _): ChatAddress,
) -> Result<PendingHandoverCall, ErrorObject> {
    let asked = host.ask_to_hand_over(&session, request).await.map_err(|error| refused(&error))?;
    Ok(PendingHandoverCall { id, asked })
}

impl PendingHandoverCall {
    /// Waits for the answer.
    pub(super) async fn answer(self) -> String {
        let Self { id, asked } = self;
        let session = asked.session.to_string();
        match asked.answer().await {
            Ok(HandoverAnswer::Files(found)) => encode(&id, &files(*found)),
            Ok(HandoverAnswer::Piece(bytes)) => encode(&id, &ReadResult { data: STANDARD.encode(bytes) }),
            Ok(HandoverAnswer::Left) => encode(&id, &LeaveResult { session }),
            Err(error) => jsonrpc::error(Some(&id), &refused(&error)),
        }
    }
}

fn files(found: HandoverManifest) -> FilesResult {
    let HandoverManifest { agent, inventory, moved_to, moved_from, working_directory } = found;
    let (stamp, seal) = (inventory.stamp(), Some(inventory.seal()));
    let file = |held: grove_fs::copy::InventoryFile| File { path: held.path, size: held.size, sha256: held.sha256 };
    FilesResult {
        provider: agent.to_string(),
        files: inventory.files.into_iter().map(file).collect(),
        stamp,
        seal,
        working_directory,
        moved_to: moved_to.map(of_core),
        moved_from: moved_from.map(of_core),
    }
}

/// The location of a session, in the form that is stored.
pub(super) fn to_core(at: RemoteSession) -> core::RemoteSession {
    let RemoteSession { host, address, session, stamp } = at;
    core::RemoteSession { host, address, session, stamp }
}

fn of_core(at: core::RemoteSession) -> RemoteSession {
    let core::RemoteSession { host, address, session, stamp } = at;
    RemoteSession { host, address, session, stamp }
}
