//! Actions with an unusable `clientSeq` are refused, not dropped.

use std::sync::Arc;

use grove_core::ClientId;
use grove_host::Host;
use grove_host::sequencer::{ConnectionId, DirectReply};
use grove_wire::invalid_seq::InvalidSeqAction;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::value::RawValue;

use super::answer::stopped;

/// Refuses an action whose number could not be read. Returns the error if something else is wrong with it.
///
/// `refusal` makes the frame in the client's dialect.
pub(super) async fn refuse(
    host: &Host,
    connection: ConnectionId,
    client: ClientId,
    params: Option<&RawValue>,
    error: ErrorObject,
    refusal: fn(&InvalidSeqAction, &str, u64) -> Option<String>,
) -> Result<(), ErrorObject> {
    let Some(action) = params.and_then(InvalidSeqAction::read) else { return Err(error) };
    let frame = move |seq| refusal(&action, client.as_str(), seq).map(Arc::from);
    let refused = DirectReply { connection, frame: Box::new(frame), answer: None, permit: None };
    host.sequencer().send_direct(refused).await.map_err(stopped)
}
