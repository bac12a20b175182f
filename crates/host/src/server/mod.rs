//! HTTP and WebSocket on one port.

mod access;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::get;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

pub use access::{Access, Token};

use crate::connection;
use crate::env::{Listener, Stream};
use crate::host::Host;

/// How long a client may take to send a request's head.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How much a request's head may have.
const HEAD_BYTES: usize = 16 << 10;
/// How long to wait after `accept` failed, as it does when the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct Server {
    host: Host,
    access: Arc<Access>,
}

/// Serves a host on a listener, until it is dropped. `drained` resolves when the last connection has ended.
#[derive(Debug)]
pub struct Serving {
    connections: Arc<Semaphore>,
    limit: usize,
}

impl Serving {
    /// Waits until no connection is left.
    pub async fn drained(&self) {
        let all = u32::try_from(self.limit).unwrap_or(u32::MAX);
        // The semaphore is never closed, so this only ends with all permits in hand.
        self.connections.acquire_many(all).await.ok();
    }
}

/// Accepts connections on `listener` from now on, in a task of its own.
pub fn serve(host: Host, access: Access, mut listener: Box<dyn Listener>) -> Serving {
    let limit = host.0.config.limits.connections;
    let connections = Arc::new(Semaphore::new(limit));
    let serving = Serving { connections: connections.clone(), limit };
    let env = host.0.env.clone();
    let router = router(Server { host, access: Arc::new(access) });
    let spawn = env.spawn.clone();
    env.spawn.spawn(Box::pin(async move {
        loop {
            let stream = match listener.accept().await {
                Ok(stream) => stream,
                Err(error) if error.kind() == io::ErrorKind::NotConnected => break,
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    env.clock.sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let Ok(permit) = connections.clone().try_acquire_owned() else {
                tracing::warn!(limit, "too many connections: the newest is dropped");
                continue;
            };
            let router = router.clone();
            spawn.spawn(Box::pin(serve_stream(stream, router, Arc::new(permit))));
        }
    }));
    serving
}

/// A connection's place among those that are allowed. A WebSocket outlives the HTTP connection that it began as, so
/// the place travels with the request.
type Place = Arc<OwnedSemaphorePermit>;

async fn serve_stream(stream: Box<dyn Stream>, router: Router, place: Place) {
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(place.clone());
        TowerToHyperService::new(router.clone()).call(request)
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    if let Err(error) = served {
        tracing::debug!(%error, "an HTTP connection ended early");
    }
}

fn router(server: Server) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/ws", get(upgrade))
        .route("/", get(upgrade))
        .layer(middleware::from_fn_with_state(server.clone(), check))
        .with_state(server)
}

/// Nothing is served to a request whose `Host` or `Origin` is not ours.
async fn check(State(server): State<Server>, request: Request, next: Next) -> Response {
    match server.access.check_source(request.headers()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

/// Says that the host is alive; to those who hold the token, also what it is doing.
async fn healthz(State(server): State<Server>, request: Request) -> Response {
    if server.access.check_token(request.headers(), request.uri().query()).is_err() {
        return Json(serde_json::json!({"status": "ok"})).into_response();
    }
    match server.host.status().await {
        Ok(status) => Json(serde_json::json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "sessions": status.sessions,
            "runningTurns": status.running_turns,
            "connections": status.connections,
            "serverSeq": status.server_seq,
        }))
        .into_response(),
        Err(stopped) => (StatusCode::SERVICE_UNAVAILABLE, stopped.to_string()).into_response(),
    }
}

async fn upgrade(State(server): State<Server>, Extension(place): Extension<Place>, mut request: Request) -> Response {
    if let Err(refusal) = server.access.check_token(request.headers(), request.uri().query()) {
        return refusal.into_response();
    }
    let Some(key) = websocket_key(request.headers()) else {
        return (StatusCode::UPGRADE_REQUIRED, "this address speaks WebSocket, version 13\n").into_response();
    };
    let accept = derive_accept_key(key.as_bytes());
    let upgraded = hyper::upgrade::on(&mut request);
    let host = server.host.clone();
    server.host.0.env.spawn.spawn(Box::pin(async move {
        match upgraded.await {
            Ok(stream) => connection::serve(host, TokioIo::new(stream)).await,
            Err(error) => tracing::debug!(%error, "a WebSocket was not taken up"),
        }
        drop(place);
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

/// The key of a request that asks for a WebSocket, as RFC 6455 has it.
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
