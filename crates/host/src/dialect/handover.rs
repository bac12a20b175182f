//! A session that goes to another host, in every dialect.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core as core;
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::x_grove::handover::*;
use serde_json::value::RawValue;

use super::answer::{encode, read_params};
use super::x_grove::refusal;
use crate::branch::{HandingOver, TreePlace};
use crate::host::Host;
use crate::session::{HandedOver, HandoverAnswer, HandoverRequest};

/// Something that a session was asked for whoever moves it.
pub(crate) struct Begun {
    id: Id,
    asked: HandingOver,
}

/// Understands a request.
pub(super) fn read(method: Method, params: Option<&RawValue>) -> Result<HandoverRequest, ErrorObject> {
    Ok(match method {
        Method::Files => HandoverRequest::Files,
        Method::Read => {
            let ReadParams { path, offset } = read_params(params)?;
            HandoverRequest::Read { path, offset, length: MOST_BYTES }
        }
        Method::Leave => {
            let LeaveParams { to, seal } = read_params(params)?;
            HandoverRequest::Leave(to_core(to), seal)
        }
    })
}

/// Has the session do it.
pub(super) async fn begin(
    host: &Host,
    id: Id,
    request: HandoverRequest,
    (session, _): TreePlace,
) -> Result<Begun, ErrorObject> {
    let asked = host.ask_to_hand_over(&session, request).await.map_err(|error| refusal(&error))?;
    Ok(Begun { id, asked })
}

impl Begun {
    /// Waits until it is done.
    pub(super) async fn answer(self) -> String {
        let Self { id, asked } = self;
        let session = asked.session.to_string();
        match asked.answer().await {
            Ok(HandoverAnswer::Files(found)) => encode(&id, &files(*found)),
            Ok(HandoverAnswer::Piece(bytes)) => encode(&id, &ReadResult { data: STANDARD.encode(bytes) }),
            Ok(HandoverAnswer::Left) => encode(&id, &LeaveResult { session }),
            Err(error) => jsonrpc::error(Some(&id), &refusal(&error)),
        }
    }
}

fn files(found: HandedOver) -> FilesResult {
    let HandedOver { provider, inventory, moved_to, moved_from, working_directory } = found;
    let (stamp, seal) = (inventory.stamp(), Some(inventory.seal()));
    let file = |held: grove_fs::copy::Held| File { path: held.path, size: held.size, sha256: held.sha256 };
    FilesResult {
        provider: provider.to_string(),
        files: inventory.files.into_iter().map(file).collect(),
        stamp,
        seal,
        working_directory,
        moved_to: moved_to.map(of_core),
        moved_from: moved_from.map(of_core),
    }
}

/// Where a session is, as it is kept.
pub(super) fn to_core(at: Whereabouts) -> core::Whereabouts {
    let Whereabouts { host, address, session, stamp } = at;
    core::Whereabouts { host, address, session, stamp }
}

fn of_core(at: core::Whereabouts) -> Whereabouts {
    let core::Whereabouts { host, address, session, stamp } = at;
    Whereabouts { host, address, session, stamp }
}
