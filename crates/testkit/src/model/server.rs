//! The HTTP server.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::plan::{ReplyPlan, StreamAction, plan};
use super::record::{RecordedRequest, RequestLog, RequestPurpose};
use super::script_player::ScriptPlayer;
use super::wire::{ModelApi, Route};

/// The name of the only listed model. The server accepts any name.
pub const MODEL: &str = "fake-model";

/// The longest request. Agents send their whole conversation each time.
const LONGEST: usize = 32 << 20;

/// The time for sent data to reach the agent before its connection breaks. Without it hyper would drop both at once.
const FLUSH: Duration = Duration::from_millis(50);

/// The state that connections share.
#[derive(Debug)]
pub(super) struct ServerState {
    pub(super) player: Mutex<ScriptPlayer>,
    pub(super) records: Mutex<RequestLog>,
}

type ResponseBody = UnsyncBoxBody<Bytes, io::Error>;
type HttpResponse = hyper::Response<ResponseBody>;

/// The value, even if a test that held the lock panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves until it is dropped, and all connections with it.
pub(super) async fn serve(listener: TcpListener, shared: Arc<ServerState>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
        };
        let Ok((stream, _)) = accepted else {
            // Most likely no descriptors are left. Others may close theirs.
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        let shared = shared.clone();
        connections.spawn(async move {
            let _ = stream.set_nodelay(true);
            let service = service_fn(move |request| {
                let shared = shared.clone();
                async move { Ok::<_, Infallible>(respond(&shared, request).await) }
            });
            // A connection error is the agent's doing, or a scripted cut.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn respond(shared: &ServerState, request: hyper::Request<Incoming>) -> HttpResponse {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    if path.starts_with("/grove/") {
        return steer(shared, &head.method, path, body).await;
    }
    let Ok(bytes) = Limited::new(body, LONGEST).collect().await.map(|body| body.to_bytes()) else {
        return object(StatusCode::PAYLOAD_TOO_LARGE, &json!({"error": "the request is too long, or has ended early"}));
    };
    let parsed: Option<Value> = serde_json::from_slice(&bytes).ok();
    let is_readable = parsed.is_some();
    let body = parsed.unwrap_or_default();
    let length = bytes.len();
    let record = |purpose: RequestPurpose, body: Value| {
        lock(&shared.records).push(RecordedRequest::new(&head, body, purpose), length);
    };

    match Route::of(path) {
        Route::Models(wire) => {
            record(RequestPurpose::Models, body);
            object(StatusCode::OK, &wire.models(MODEL))
        }
        Route::Answer(wire) | Route::Count(wire) if !is_readable => {
            record(RequestPurpose::Unknown, body);
            object(StatusCode::BAD_REQUEST, &wire.error(400, "the request is not JSON"))
        }
        Route::Count(wire) => {
            let tokens = wire.read(path, &body).input_tokens;
            record(RequestPurpose::Count, body);
            object(StatusCode::OK, &wire.count(tokens))
        }
        Route::Answer(wire) => {
            let model_request = wire.read(path, &body);
            let part = lock(&shared.player).answer(&model_request);
            record(part.purpose, body);
            let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
            perform(plan(wire, &model_request, &part, created)).await
        }
        Route::Nothing => {
            record(RequestPurpose::Unknown, body);
            object(
                StatusCode::NOT_FOUND,
                &ModelApi::ChatCompletions.error(404, &format!("a model serves nothing at {path}")),
            )
        }
    }
}

/// For other processes: the requests, and another script.
async fn steer(shared: &ServerState, method: &Method, path: &str, body: Incoming) -> HttpResponse {
    match (method, path) {
        (&Method::GET, "/grove/requests") => object(StatusCode::OK, &json!(lock(&shared.records).all())),
        (&Method::PUT, "/grove/script") => {
            let bytes = Limited::new(body, LONGEST).collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            match serde_json::from_slice(&bytes) {
                Ok(script) => {
                    lock(&shared.player).replace(script);
                    object(StatusCode::OK, &json!({}))
                }
                Err(error) => object(StatusCode::BAD_REQUEST, &json!({"error": error.to_string()})),
            }
        }
        _ => object(StatusCode::NOT_FOUND, &json!({"error": "GET /grove/requests or PUT /grove/script"})),
    }
}

async fn perform(plan: ReplyPlan) -> HttpResponse {
    match plan {
        ReplyPlan::Refuse { wait, status, body } => {
            tokio::time::sleep(wait).await;
            object(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &body)
        }
        ReplyPlan::Whole { wait, body, is_cut: false } => {
            tokio::time::sleep(wait).await;
            object(StatusCode::OK, &body)
        }
        ReplyPlan::Whole { wait, body, is_cut: true } => {
            let text = body.to_string();
            let half = text.chars().take(text.len() / 2).collect();
            with_type(
                "application/json",
                played(vec![StreamAction::Wait(wait), StreamAction::Send(half), StreamAction::Cut]),
            )
        }
        ReplyPlan::Stream(actions) => {
            let mut response = with_type("text/event-stream", played(actions));
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
            response
        }
    }
}

/// A body that is sent action by action.
fn played(actions: Vec<StreamAction>) -> ResponseBody {
    let frames = stream::iter(actions).filter_map(|beat| async move {
        match beat {
            StreamAction::Send(text) if text.is_empty() => None,
            StreamAction::Send(text) => Some(Ok(Frame::data(Bytes::from(text)))),
            StreamAction::Wait(time) => {
                tokio::time::sleep(time).await;
                None
            }
            StreamAction::Cut => {
                tokio::time::sleep(FLUSH).await;
                Some(Err(io::Error::from(io::ErrorKind::ConnectionReset)))
            }
        }
    });
    StreamBody::new(frames).boxed_unsync()
}

fn object(status: StatusCode, value: &Value) -> HttpResponse {
    let text = Full::new(Bytes::from(value.to_string()));
    let mut response = with_type("application/json", text.map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

fn with_type(kind: &'static str, body: ResponseBody) -> HttpResponse {
    let mut response = hyper::Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
