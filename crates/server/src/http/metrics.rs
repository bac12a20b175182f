//! `GET /metrics`: the host's numbers in Prometheus' text format.

use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_metrics::CONTENT_TYPE;

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
    if let Err(stopped) = server.host.refresh_metrics().await {
        return (StatusCode::SERVICE_UNAVAILABLE, stopped.to_string()).into_response();
    }
    let text = server.host.env().metrics.encode();
    ([(header::CONTENT_TYPE, HeaderValue::from_static(CONTENT_TYPE))], text).into_response()
}
