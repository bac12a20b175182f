//! Common parts of requests and answers in all dialects.

use grove_core::{ClientId, RefusalKind};
use grove_host::Refusal;
use grove_host::sequencer::HostStopped;
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::refusal::error_code;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::principal::Forbidden;

pub(super) fn read_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    let params = params.ok_or_else(|| ErrorObject::invalid_params("params are missing"))?;
    serde_json::from_str(params.get()).map_err(|error| ErrorObject::invalid_params(format!("params: {error}")))
}

pub(super) fn client_id(id: String) -> Result<ClientId, ErrorObject> {
    const MOST: usize = 256;
    if id.is_empty() || id.len() > MOST {
        return Err(ErrorObject::invalid_params(format!("`clientId` must have 1 to {MOST} bytes")));
    }
    Ok(id.into())
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
