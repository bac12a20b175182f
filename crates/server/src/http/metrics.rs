//! `GET /metrics`: the host's numbers in Prometheus' text format.

use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_metrics::{CONTENT_TYPE, Sessions};

use super::ListenerState;

/// Answers a client with the token.
///
/// The numbers say how much is going on, and when: that is not for everybody who reaches the listener.
pub(super) async fn answer(State(server): State<ListenerState>, request: Request) -> Response {
    // A wrong token is delayed and counted like everywhere, by the check around all routes.
    match server.token_holder(&request) {
        Ok(holder) if holder.may_read() => {}
        Ok(_) => return (StatusCode::FORBIDDEN, "this token does not have the scope `read`\n").into_response(),
        Err(refusal) => return refusal.into_response(),
    }
    let status = match server.host.status().await {
        Ok(status) => status,
        Err(stopped) => return (StatusCode::SERVICE_UNAVAILABLE, stopped.to_string()).into_response(),
    };
    let env = server.host.env();
    let sessions = Sessions { all: status.sessions, loaded: status.loaded, running_turns: status.running_turns };
    let uptime = Duration::from_millis(env.clock.now().0.saturating_sub(server.host.started_at().0));
    let metrics = env.metrics.clone();
    // It reads files of the system.
    let text = env.spawn.run_blocking(move || {
        metrics.refresh(sessions, uptime);
        metrics.encode()
    });
    match text.await {
        Ok(text) => ([(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE))], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
