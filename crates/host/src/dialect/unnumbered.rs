//! Actions with a `clientSeq` that cannot be used are refused, and not dropped.

use std::sync::Arc;

use grove_core::ClientId;
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::unnumbered::UnnumberedAction;
use serde_json::value::RawValue;

use super::answer::stopped;
use crate::host::Host;
use crate::sequencer::{Aside, ConnectionId, ToSequencer};

/// Refuses an action that could not be read for its number. Gives the error back where something else is wrong with it.
/// `refusal` makes the frame as the client's dialect has it.
pub(super) async fn refuse(
    host: &Host,
    connection: ConnectionId,
    client: ClientId,
    params: Option<&RawValue>,
    error: ErrorObject,
    refusal: fn(&UnnumberedAction, &str, u64) -> Option<String>,
) -> Result<(), ErrorObject> {
    let Some(action) = params.and_then(UnnumberedAction::read) else { return Err(error) };
    let frame = move |seq| refusal(&action, client.as_str(), seq).map(Arc::from);
    let refused = Aside { connection, frame: Box::new(frame), answer: None };
    host.0.sequencer.tell(ToSequencer::Tell(refused)).await.map_err(stopped)
}
