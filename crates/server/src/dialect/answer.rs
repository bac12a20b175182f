//! Common parts of requests and answers in all dialects.

use grove_core::{ClientId, RefusalKind};
use grove_host::sequencer::{ClientClaim, HostStopped};
use grove_host::tokens::TokenPublicId;
use grove_host::{Host, LimitReached, Refusal, refusal_label};
use grove_metrics::RefusalLabel;
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::refusal::{LimitReachedData, error_code};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::principal::{Forbidden, Principal};

pub(super) fn read_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    let params = params.ok_or_else(|| ErrorObject::invalid_params("params are missing"))?;
    serde_json::from_str(params.get()).map_err(|error| ErrorObject::invalid_params(format!("params: {error}")))
}

/// The longest id of a client, in bytes.
pub const MAX_CLIENT_ID_BYTES: usize = 256;

/// Claims the id of a client that connects. It belongs to the token that first used it, as long as that exists.
///
/// The claim must be kept until the client is attached, or another token could claim the id meanwhile.
pub(super) fn claim_client(host: &Host, principal: &Principal, id: String) -> Result<ClientClaim, ErrorObject> {
    if id.is_empty() || id.len() > MAX_CLIENT_ID_BYTES {
        return Err(ErrorObject::invalid_params(format!("`clientId` must have 1 to {MAX_CLIENT_ID_BYTES} bytes")));
    }
    let exists = |owner| exists(host, owner);
    host.sequencer().claim_client(ClientId::from(id), principal.token_id(), exists).ok_or_else(|| {
        let message = "this `clientId` belongs to another token: choose another one";
        ErrorObject::new(error_code(RefusalKind::NotPermitted), message)
    })
}

/// Says whether a named token exists. The owner of the host, who has none, always does.
fn exists(host: &Host, token: Option<TokenPublicId>) -> bool {
    match token {
        Some(token) => host.tokens().is_some_and(|tokens| tokens.login(token).is_some()),
        None => true,
    }
}

pub(super) fn not_initialized() -> ErrorObject {
    ErrorObject::invalid_request("send `initialize` or `reconnect` first")
}

/// The answer to a request that the client may not send.
pub(super) fn not_permitted(forbidden: &Forbidden) -> ErrorObject {
    ErrorObject::new(error_code(RefusalKind::NotPermitted), forbidden.to_string())
}

pub(super) fn stopped(stopped: HostStopped) -> ErrorObject {
    refused(&stopped)
}

/// The answer to a request that was refused or has failed.
pub(super) fn refused(refusal: &impl Refusal) -> ErrorObject {
    ErrorObject::new(error_code(refusal.kind()), refusal.to_string())
}

/// The answer to a request beyond a bound of its connection or token.
pub(crate) fn limit_reached(reached: &LimitReached) -> ErrorObject {
    let retry_after_ms = reached.retry_after.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let data = LimitReachedData { limit: reached.limit.to_owned(), retry_after_ms };
    ErrorObject { data: serde_json::to_value(data).ok(), ..refused(reached) }
}

/// Counts a request that is answered with an error.
pub(crate) fn count_refusal(host: &Host, error: &ErrorObject) {
    host.env().metrics.refusals.of(label(error.code)).increment();
}

/// The label of an error code in metrics.
fn label(code: i64) -> RefusalLabel {
    const KINDS: [RefusalKind; 11] = [
        RefusalKind::InvalidParams,
        RefusalKind::InvalidState,
        RefusalKind::SessionNotFound,
        RefusalKind::AgentNotFound,
        RefusalKind::SessionExists,
        RefusalKind::Busy,
        RefusalKind::NotFound,
        RefusalKind::NotPermitted,
        RefusalKind::Exists,
        RefusalKind::LimitReached,
        RefusalKind::Failed,
    ];
    match code {
        jsonrpc::code::PARSE => RefusalLabel::Malformed,
        jsonrpc::code::METHOD_NOT_FOUND => RefusalLabel::UnknownMethod,
        code => KINDS.into_iter().find(|kind| error_code(*kind) == code).map_or(RefusalLabel::Other, refusal_label),
    }
}

/// The error that answers a request, counted.
pub(super) fn refuse(host: &Host, id: &Id, error: &ErrorObject) -> String {
    count_refusal(host, error);
    jsonrpc::error(Some(id), error)
}

pub(super) fn encode<R: Serialize>(id: &Id, result: &R) -> String {
    jsonrpc::response(id, result)
        .unwrap_or_else(|error| jsonrpc::error(Some(id), &ErrorObject::internal(error.to_string())))
}

pub(super) fn join<T: AsRef<str>>(items: impl Iterator<Item = T>) -> String {
    let mut joined = String::new();
    for item in items {
        if !joined.is_empty() {
            joined.push(',');
        }
        joined.push_str(item.as_ref());
    }
    joined
}
