//! Requests to upgrade to a WebSocket: of clients, and of editors.

use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_host::tokens::TokenPublicId;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tracing::Instrument;
use tracing::field::Empty;

use super::access::{AccessError, TokenHolder, in_query};
use super::page_access::{ChallengeResponse, PageLogin, named_token};
use super::{Admission, ListenerState, PendingStream};
use crate::connection::{self, EditorRequest, EditorService, UpgradedStream};
use crate::listener::Stream;
use crate::origin::PeerProcess;

/// The longest name of an agent in an address.
const AGENT_CHARS: usize = 100;

/// The party that a WebSocket is opened for.
enum SocketUse {
    Client,
    Editor(Arc<dyn EditorService>, EditorRequest),
}

/// Opens a WebSocket for a client of the host.
pub(super) async fn client(
    State(server): State<ListenerState>,
    Extension(client_admission): Extension<Admission>,
    Extension(process): Extension<Arc<PeerProcess>>,
    request: Request,
) -> Response {
    upgrade(server, client_admission, process, request, SocketUse::Client)
}

/// Opens a WebSocket for an editor, which speaks the Agent Client Protocol.
///
/// `?agent=` names the agent of new sessions. `?files=shared` says that the editor and the host have the same files.
pub(super) async fn editor(
    State(server): State<ListenerState>,
    Extension(client_admission): Extension<Admission>,
    Extension(process): Extension<Arc<PeerProcess>>,
    request: Request,
) -> Response {
    let Some(service) = server.editors.clone() else {
        return (StatusCode::NOT_FOUND, "this host serves no editors here\n").into_response();
    };
    let query = request.uri().query();
    let agent = in_query(query, "agent").map(|agent| agent.chars().take(AGENT_CHARS).collect());
    let shares_files = in_query(query, "files").is_some_and(|files| files == "shared");
    upgrade(
        server,
        client_admission,
        process,
        request,
        SocketUse::Editor(service, EditorRequest { agent, shares_files }),
    )
}

fn upgrade(
    server: ListenerState,
    client_admission: Admission,
    process: Arc<PeerProcess>,
    mut request: Request,
    socket_use: SocketUse,
) -> Response {
    let query = request.uri().query();
    let allowed = server.token_holder(&request);
    let (ticket, page) = (in_query(query, "ticket"), ChallengeResponse::from_query(query));
    if let (Err(refusal), None, None) = (&allowed, &ticket, &page) {
        return refusal.into_response();
    }
    let Some(key) = websocket_key(request.headers()) else {
        return (StatusCode::UPGRADE_REQUIRED, "this address speaks WebSocket, version 13\n").into_response();
    };
    // A ticket or a challenge is used up only by opening a WebSocket.
    let login = match (page, allowed, ticket) {
        (Some(page), ..) => named_token(query).and_then(|token| page_holder(&server, request.headers(), token, &page)),
        (None, Ok(holder), _) => Ok((holder, None)),
        (None, Err(_), Some(ticket)) => server.ticket_holder(&ticket).map(|holder| (holder, None)),
        (None, Err(refusal), None) => Err(refusal),
    };
    let (holder, first) = match login {
        Ok(login) => login,
        Err(refusal) => return refusal.into_response(),
    };
    let place = match client_admission.admit(holder.token_id(), holder.token_name()) {
        Ok(place) => place,
        Err(full) => return full.into_response(),
    };
    if let (Some(tokens), TokenHolder::Token(token)) = (server.host.tokens(), &holder) {
        tokens.used(token);
    }
    let accept = derive_accept_key(key.as_bytes());
    let upgraded = hyper::upgrade::on(&mut request);
    let (host, frame_log) = (server.host.clone(), server.frame_log.clone());
    let visit = server.client_activity.begin();
    let principal = server.principal(holder, process);
    server.host.env().spawn.spawn(Box::pin(async move {
        match upgraded.await {
            Ok(upgraded) => {
                let upgraded = UpgradedStream { first, ..raw_stream(upgraded) };
                let span = tracing::debug_span!("connection", id = Empty, dialect = Empty);
                match socket_use {
                    SocketUse::Client => {
                        connection::serve(host, frame_log.as_ref(), upgraded, principal).instrument(span).await;
                    }
                    SocketUse::Editor(service, request) => {
                        let editing = connection::serve_editor(host, frame_log, upgraded, principal, service, request);
                        Box::pin(editing).instrument(span).await;
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "a WebSocket upgrade failed"),
        }
        drop((place, visit));
    }));
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (header::UPGRADE, HeaderValue::from_static("websocket")),
    ];
    let mut response = (StatusCode::SWITCHING_PROTOCOLS, headers).into_response();
    if let Ok(accept) = HeaderValue::from_str(&accept) {
        response.headers_mut().insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
    response
}

/// The holder behind a page's answer, and the message that proves the host to the page.
fn page_holder(
    server: &ListenerState,
    headers: &HeaderMap,
    token: Option<TokenPublicId>,
    page: &ChallengeResponse,
) -> Result<(TokenHolder, Option<String>), AccessError> {
    let PageLogin { key, grant } = server.answered(headers, token, page)?;
    // A one-time code opens nothing itself.
    let grant = grant.ok_or(AccessError::ChallengeResponse)?;
    Ok((TokenHolder::Token(grant), Some(key.socket_proof(page))))
}

/// The stream under an upgraded connection, and the bytes that were read from it already.
///
/// Without hyper's layers and buffer an idle connection costs less.
fn raw_stream(upgraded: Upgraded) -> UpgradedStream {
    let (stream, read): (Box<dyn Stream>, _) = match upgraded.downcast::<TokioIo<PendingStream<Box<dyn Stream>>>>() {
        Ok(parts) => (parts.io.into_inner().into_inner(), parts.read_buf.to_vec()),
        Err(upgraded) => (Box::new(TokioIo::new(upgraded)), Vec::new()),
    };
    UpgradedStream { stream, read, first: None }
}

/// The key of a WebSocket request, according to RFC 6455.
fn websocket_key(headers: &HeaderMap) -> Option<String> {
    let says = |name: header::HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(word))
    };
    let asks = says(header::CONNECTION, "upgrade")
        && says(header::UPGRADE, "websocket")
        && says(header::SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(header::SEC_WEBSOCKET_KEY)?.to_str().ok()?;
    asks.then(|| key.to_owned())
}
