//! Requests of programs that hooks run: the tree of one chat, by a lease's token, one request at a time.

use axum::body::to_bytes;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_checks::Check;
use grove_core::ScopeSet;
use grove_host::audit::PendingRecord;
use grove_host::session::ChatAddress;
use grove_wire::ahp::error_code;
use grove_wire::jsonrpc::{self, ErrorObject, Frame, RpcMessage};
use grove_wire::scopes;
use grove_wire::x_grove::Method;

use super::access::bearer;
use super::{AccessError, Admission, ListenerState, TokenId};
use crate::dialect::x_grove::{self, MessageShape};
use crate::listener::PeerAddress;
use crate::principal::Principal;
use crate::recording;

/// The name of hooks' programs in the audit log.
const HOOK: &str = "hook";
/// The largest request.
pub const MAX_BODY_BYTES: usize = 64 << 10;

/// Answers a JSON-RPC request with an `x-grove/` method about the chat of the token.
pub(super) async fn answer(
    State(server): State<ListenerState>,
    Extension(client_admission): Extension<Admission>,
    Extension(peer): Extension<PeerAddress>,
    request: Request,
) -> Response {
    let token = bearer(request.headers()).map(str::to_owned);
    let place = token.as_deref().and_then(|token| server.host.leased_chat(token));
    let (Some(token), Some(place)) = (token, place) else { return AccessError::Bearer.into_response() };
    // A summary takes long, and no pending connection may displace it.
    if let Err(full) = client_admission.admit(TokenId::lease(&token), HOOK) {
        return full.into_response();
    }
    let Ok(body) = to_bytes(request.into_body(), MAX_BODY_BYTES).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response();
    };
    let text = String::from_utf8_lossy(&body);
    let answer = match jsonrpc::parse(&text) {
        Ok(Frame::Single(Ok(RpcMessage::Request(request)))) => match Method::named(&request.method) {
            Some(method) if !is_open(method) => jsonrpc::error(Some(&request.id), &closed(method)),
            Some(method) => {
                let (id, record) = (request.id.clone(), record(&server, peer, method, &place));
                let answer =
                    match x_grove::begin(&server.host, request.id, method, request.params, place, MessageShape::Ahp)
                        .await
                    {
                        Ok(begun) => begun.answer(&server.host).await,
                        Err(error) => jsonrpc::error(Some(&id), &error),
                    };
                recording::finish(record, &answer);
                answer
            }
            None => jsonrpc::error(Some(&request.id), &ErrorObject::unknown_method(&request.method)),
        },
        Ok(Frame::Single(Err(invalid))) => jsonrpc::error(invalid.id.as_ref(), &invalid.error),
        Ok(_) => jsonrpc::error(None, &ErrorObject::invalid_request("send one request at a time, no batches")),
        Err(error) => jsonrpc::error(None, &error),
    };
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer).into_response()
}

/// The record of a hook's request.
fn record(server: &ListenerState, peer: PeerAddress, method: Method, place: &ChatAddress) -> PendingRecord {
    let hook = Principal::new(HOOK, ScopeSet::NONE, peer);
    let (needed, session) = (ScopeSet::from(scopes::x_grove_method(method)), place.0.to_string());
    recording::begin(&server.host, &hook, None, needed, method.as_str(), Some(&session))
}

/// Says whether a lease permits a method: those that read or change the chat's tree.
///
/// The match is exhaustive, so that every new method needs a decision.
fn is_open(method: Method) -> bool {
    if !Check::LeaseMethods.is_enforced() {
        return true;
    }
    match method {
        Method::Tree
        | Method::Entries
        | Method::Navigate
        | Method::Label
        | Method::Branch
        | Method::Fork
        | Method::Merge
        | Method::Compact
        | Method::Abort => true,
        // Its name, its folder, what it has beside its conversation, where it lies, and what is about other sessions.
        Method::Rename
        | Method::Permissions
        | Method::Policy(_)
        | Method::SetWorkingDirectory
        | Method::Migrate
        | Method::Setup
        | Method::Workspace(_)
        | Method::Handover(_)
        | Method::Import(_)
        | Method::Removal(_)
        | Method::History(_)
        | Method::Sessions(_)
        | Method::Tokens(_)
        | Method::Administration(_)
        | Method::Notify(_)
        | Method::Presence => false,
    }
}

fn closed(method: Method) -> ErrorObject {
    let words = format!("a hook's token is for the tree of its chat: {} is not permitted", method.as_str());
    ErrorObject::new(error_code::PERMISSION_DENIED, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hooks_token_opens_the_tree_of_its_chat_and_nothing_else() {
        let open: Vec<_> = Method::ALL.into_iter().filter(|method| is_open(*method)).map(Method::as_str).collect();
        let tree = ["tree", "entries", "navigate", "label", "branch", "fork", "merge", "compact", "abort"];
        assert_eq!(open, tree.map(|name| format!("x-grove/{name}")));
    }
}
