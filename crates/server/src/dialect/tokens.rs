//! The tokens of the host, in every dialect.

use std::time::Duration;

use grove_core::{RefusalKind, Scope, ScopeSet};
use grove_host::Host;
use grove_host::tokens::{NewToken, TokenError, TokenRegistry, TokenSummary};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::refusal::error_code;
use grove_wire::x_grove::tokens::*;
use serde_json::value::RawValue;

use super::answer::{encode, read_params};
use crate::principal::Principal;

/// The most scopes that a request may name: more than there are.
pub const MAX_NAMED_SCOPES: usize = 32;

/// Answers a request of a principal.
pub(super) fn answer(
    host: &Host,
    principal: &Principal,
    id: &Id,
    method: TokensMethod,
    params: Option<&RawValue>,
) -> String {
    let Some(tokens) = host.tokens() else {
        return jsonrpc::error(Some(id), &ErrorObject::unknown_method(method.as_str()));
    };
    let answered = match method {
        TokensMethod::List => Ok(encode(id, &list(tokens))),
        TokensMethod::Add => add(tokens, principal, params).map(|result| encode(id, &result)),
        TokensMethod::Revoke => revoke(tokens, params).map(|result| encode(id, &result)),
        TokensMethod::Rotate => rotate(tokens, principal, params).map(|result| encode(id, &result)),
        TokensMethod::IssueCode => issue_code(tokens, principal).map(|result| encode(id, &result)),
    };
    answered.unwrap_or_else(|error| jsonrpc::error(Some(id), &error))
}

fn list(tokens: &TokenRegistry) -> TokensListResult {
    let row = |token: TokenSummary| TokenRow {
        name: token.name,
        scopes: token.scopes.iter().map(|scope| scope.as_str().to_owned()).collect(),
        created_at: token.created_at,
        expires_at: token.expires_at,
    };
    TokensListResult { tokens: tokens.list().into_iter().map(row).collect() }
}

fn add(
    tokens: &TokenRegistry,
    principal: &Principal,
    params: Option<&RawValue>,
) -> Result<TokenSecretResult, ErrorObject> {
    let AddTokenParams { name, scopes, expires_in_ms } = read_params(params)?;
    if scopes.len() > MAX_NAMED_SCOPES {
        return Err(ErrorObject::invalid_params(format!("a token has at most {} scopes", Scope::ALL.len())));
    }
    let scopes = scopes.iter().map(|name| name.parse()).collect::<Result<Vec<Scope>, _>>();
    let scopes: ScopeSet =
        scopes.map_err(|error| ErrorObject::invalid_params(error.to_string()))?.into_iter().collect();
    let wanted = NewToken { name, scopes, lifetime: expires_in_ms.map(Duration::from_millis) };
    let secret = tokens.add(wanted, principal.scopes()).map_err(|error| refused(&error))?;
    Ok(TokenSecretResult { token: secret.reveal().to_owned() })
}

fn revoke(tokens: &TokenRegistry, params: Option<&RawValue>) -> Result<RevokeTokenResult, ErrorObject> {
    let TokenNameParams { name } = read_params(params)?;
    tokens.revoke(&name).map(|()| RevokeTokenResult {}).map_err(|error| refused(&error))
}

fn rotate(
    tokens: &TokenRegistry,
    principal: &Principal,
    params: Option<&RawValue>,
) -> Result<TokenSecretResult, ErrorObject> {
    let TokenNameParams { name } = read_params(params)?;
    let token = tokens.rotate(&name, principal.scopes()).map_err(|error| refused(&error))?;
    Ok(TokenSecretResult { token })
}

fn issue_code(tokens: &TokenRegistry, principal: &Principal) -> Result<IssueCodeResult, ErrorObject> {
    let code = tokens.issue_code(principal.scopes()).map_err(|error| refused(&error))?;
    let expires_in_ms = u64::try_from(tokens.code_lifetime().as_millis()).unwrap_or(u64::MAX);
    Ok(IssueCodeResult { secret: code.reveal().to_owned(), expires_in_ms })
}

fn refused(error: &TokenError) -> ErrorObject {
    let kind = match error {
        TokenError::BadName(_) | TokenError::NoScope => RefusalKind::InvalidParams,
        TokenError::Exists(_) => RefusalKind::Exists,
        TokenError::Unknown(_) => RefusalKind::NotFound,
        TokenError::HostToken | TokenError::TooMany => RefusalKind::InvalidState,
        TokenError::NotYours(_) => RefusalKind::NotPermitted,
        TokenError::NotStored(_) => RefusalKind::Failed,
    };
    ErrorObject::new(error_code(kind), error.to_string())
}
