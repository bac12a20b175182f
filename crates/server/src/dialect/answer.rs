//! Common parts of requests and answers in all dialects.

use grove_checks::Check;
use grove_core::{ClientId, RefusalKind};
use grove_host::sequencer::HostStopped;
use grove_host::tokens::TokenPublicId;
use grove_host::{Host, Refusal};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::refusal::error_code;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::principal::{MissingScope, Principal};

pub(super) fn read_params<P: DeserializeOwned>(params: Option<&RawValue>) -> Result<P, ErrorObject> {
    let params = params.ok_or_else(|| ErrorObject::invalid_params("params are missing"))?;
    serde_json::from_str(params.get()).map_err(|error| ErrorObject::invalid_params(format!("params: {error}")))
}

/// The id of a client that connects. It belongs to the token that first used it, as long as that exists.
pub(super) fn client_id(host: &Host, principal: &Principal, id: String) -> Result<ClientId, ErrorObject> {
    const MOST: usize = 256;
    if id.is_empty() || id.len() > MOST {
        return Err(ErrorObject::invalid_params(format!("`clientId` must have 1 to {MOST} bytes")));
    }
    let client = ClientId::from(id);
    let owner = host.sequencer().find_client(&client).map(|known| known.token);
    let is_taken = owner.is_some_and(|owner| owner != principal.token_id() && exists(host, owner));
    if Check::ClientId.is_enforced() && is_taken {
        let message = "this `clientId` belongs to another token: choose another one";
        return Err(ErrorObject::new(error_code(RefusalKind::NotPermitted), message));
    }
    Ok(client)
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

/// The answer to a request that needs a scope that the client's token does not have.
pub(super) fn not_permitted(missing: &MissingScope) -> ErrorObject {
    ErrorObject::new(error_code(RefusalKind::NotPermitted), missing.to_string())
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
