//! The tokens of the host, in every dialect.

use std::time::Duration;

use grove_core::{RefusalKind, Scope, ScopeSet};
use grove_host::Host;
use grove_host::tokens::{EndedTokens, NewToken, RotatedToken, TokenError, TokenMaker, TokenRegistry, TokenSummary};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::refusal::error_code;
use grove_wire::x_grove::tokens::*;
use serde_json::value::RawValue;

use super::answer::{encode, read_params};
use crate::principal::Principal;

/// The most scopes that a request may name: more than there are.
pub const MAX_NAMED_SCOPES: usize = 32;

/// The answer to a request, and the tokens that have ended with it.
pub(super) struct TokensAnswer {
    pub(super) text: String,
    /// Dropped after the answer is sent: the client may have ended its own token.
    pub(super) ended: Option<EndedTokens>,
}

/// Answers a request of a principal. Tokens are stored on a thread that may wait for the disk.
pub(super) async fn answer(
    host: &Host,
    principal: &Principal,
    id: &Id,
    method: TokensMethod,
    params: Option<&RawValue>,
) -> TokensAnswer {
    let Some(tokens) = host.tokens().cloned() else {
        let text = jsonrpc::error(Some(id), &ErrorObject::unknown_method(method.as_str()));
        return TokensAnswer { text, ended: None };
    };
    let (maker, params, request) = (principal.token_maker(), params.map(ToOwned::to_owned), id.clone());
    let work = move || carry_out(&tokens, maker, &request, method, params.as_deref());
    match host.env().spawn.run_blocking(work).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(error)) => TokensAnswer { text: jsonrpc::error(Some(id), &error), ended: None },
        Err(panicked) => {
            let error = ErrorObject::internal(panicked.to_string());
            TokensAnswer { text: jsonrpc::error(Some(id), &error), ended: None }
        }
    }
}

fn carry_out(
    tokens: &TokenRegistry,
    maker: TokenMaker,
    id: &Id,
    method: TokensMethod,
    params: Option<&RawValue>,
) -> Result<TokensAnswer, ErrorObject> {
    let (text, ended) = match method {
        TokensMethod::List => (encode(id, &list(tokens)), None),
        TokensMethod::Add => (encode(id, &add(tokens, maker, params)?), None),
        TokensMethod::Revoke => {
            let TokenNameParams { name } = read_params(params)?;
            let ended = tokens.revoke(&name).map_err(|error| refused(&error))?;
            (encode(id, &RevokeTokenResult {}), Some(ended))
        }
        TokensMethod::Rotate => {
            let TokenNameParams { name } = read_params(params)?;
            let RotatedToken { secret, ended } = tokens.rotate(&name, maker).map_err(|error| refused(&error))?;
            (encode(id, &TokenSecretResult { token: secret }), Some(ended))
        }
        TokensMethod::IssueCode => (encode(id, &issue_code(tokens, maker)?), None),
    };
    Ok(TokensAnswer { text, ended })
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

fn add(tokens: &TokenRegistry, maker: TokenMaker, params: Option<&RawValue>) -> Result<TokenSecretResult, ErrorObject> {
    let AddTokenParams { name, scopes, expires_in_ms } = read_params(params)?;
    if scopes.len() > MAX_NAMED_SCOPES {
        return Err(ErrorObject::invalid_params(format!("a token has at most {} scopes", Scope::ALL.len())));
    }
    let scopes = scopes.iter().map(|name| name.parse()).collect::<Result<Vec<Scope>, _>>();
    let scopes: ScopeSet =
        scopes.map_err(|error| ErrorObject::invalid_params(error.to_string()))?.into_iter().collect();
    let wanted = NewToken { name, scopes, lifetime: expires_in_ms.map(Duration::from_millis) };
    let secret = tokens.add(wanted, maker).map_err(|error| refused(&error))?;
    Ok(TokenSecretResult { token: secret.reveal().to_owned() })
}

fn issue_code(tokens: &TokenRegistry, maker: TokenMaker) -> Result<IssueCodeResult, ErrorObject> {
    let code = tokens.issue_code(maker).map_err(|error| refused(&error))?;
    let expires_in_ms = u64::try_from(tokens.code_lifetime().as_millis()).unwrap_or(u64::MAX);
    Ok(IssueCodeResult { secret: code.reveal().to_owned(), expires_in_ms })
}

fn refused(error: &TokenError) -> ErrorObject {
    let kind = match error {
        TokenError::BadName(_) | TokenError::NoScope => RefusalKind::InvalidParams,
        TokenError::Exists(_) => RefusalKind::Exists,
        TokenError::Unknown(_) => RefusalKind::NotFound,
        TokenError::HostToken | TokenError::TooMany => RefusalKind::InvalidState,
        TokenError::NotYours(_) | TokenError::Outlives(_) => RefusalKind::NotPermitted,
        TokenError::NotStored(_) => RefusalKind::Failed,
    };
    ErrorObject::new(error_code(kind), error.to_string())
}
