//! Pairing: a page exchanges a one-time code for a token of its own.
//!
//! The page and the host prove to each other that they know the code, as with a token (`page_access.rs`); neither sends
//! it. The answer holds the new token, with a proof that it comes from the host that knows the code. A code is used up by
//! the first right answer, so one that is seen later, in a list of processes or a history, is worth nothing.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Json, Response};
use grove_host::audit::{AuditAction, AuditOutcome, AuditRecord};
use grove_host::tokens::TokenPublicId;
use serde::Deserialize;

use super::page_access::{ChallengeResponse, PageLogin};
use super::{AccessError, ListenerState};
use crate::listener::PeerAddress;

/// The largest request.
pub const MAX_BODY_BYTES: usize = 4 << 10;
/// The name of a pairing in the audit log.
const OPERATION: &str = "POST /pair";

/// A page's answer to the challenge of a code.
#[derive(Deserialize)]
struct PairingRequest {
    /// The public id of the code.
    code: String,
    challenge: String,
    answer: String,
    nonce: String,
}

/// Answers a page that knows a code with a token of its own.
pub(super) async fn pair(State(server): State<ListenerState>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let peer = head.extensions.get::<PeerAddress>().copied().unwrap_or(PeerAddress::InProcess);
    let Ok(body) = to_bytes(body, MAX_BODY_BYTES).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response();
    };
    let Ok(PairingRequest { code, challenge, answer, nonce }) = serde_json::from_slice(&body) else {
        let help = "send `code`, `challenge`, `answer` and `nonce` as a JSON object\n";
        return (StatusCode::BAD_REQUEST, help).into_response();
    };
    let (Some(id), Some(page)) = (TokenPublicId::parse(&code), ChallengeResponse::new(challenge, answer, &nonce))
    else {
        return AccessError::Code.into_response();
    };
    let key = match server.answered(&head.headers, Some(id), &page) {
        Ok(PageLogin { key, grant: None }) => key,
        // The id is that of a token.
        Ok(PageLogin { grant: Some(_), .. }) => return AccessError::Code.into_response(),
        Err(refusal) => return refusal.into_response(),
    };
    let Some(tokens) = server.host.tokens().cloned() else { return AccessError::Code.into_response() };
    match server.host.env().spawn.run_blocking(move || tokens.redeem_code(id)).await {
        Ok(Ok(Some((name, token)))) => {
            let (time, address) = (server.host.env().clock.now(), peer.to_string());
            let record = AuditRecord::new(time, &name, address, AuditAction::Token, OPERATION);
            server.host.audit(record.with_detail(Some(&name)).with_outcome(AuditOutcome::Done, None));
            let proof = key.pairing_proof(&page, token.reveal());
            let answer = serde_json::json!({"token": token.reveal(), "name": name, "proof": proof});
            ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(answer)).into_response()
        }
        Ok(Ok(None)) => AccessError::Code.into_response(),
        Ok(Err(error)) => {
            tracing::error!(%error, "a page could not be paired");
            (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
        }
        Err(panicked) => (StatusCode::INTERNAL_SERVER_ERROR, format!("{panicked}\n")).into_response(),
    }
}
