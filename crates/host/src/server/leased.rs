//! What programs that hooks run may do: the tree of one chat, by a token of their own, one request at a time.

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_wire::jsonrpc::{self, ErrorObject, Frame, Message};
use grove_wire::x_grove::Method;

use super::access::bearer;
use super::{Refusal, Server};
use crate::dialect::x_grove;

/// How large such a request may be.
const BODY: usize = 64 << 10;

/// Answers a JSON-RPC request with an `x-grove/` method about the chat that the token opens.
pub(super) async fn answer(State(server): State<Server>, request: Request) -> Response {
    let place = bearer(request.headers()).and_then(|token| server.host.0.leases.place(token));
    let Some(place) = place else { return Refusal::Bearer.into_response() };
    let Ok(body) = to_bytes(request.into_body(), BODY).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request is too large\n").into_response();
    };
    let text = String::from_utf8_lossy(&body);
    let answer = match jsonrpc::parse(&text) {
        Ok(Frame::Single(Ok(Message::Request(request)))) => match Method::named(&request.method) {
            Some(method) => {
                let id = request.id.clone();
                match x_grove::begin(&server.host, request.id, method, request.params, place).await {
                    Ok(begun) => begun.answer(&server.host).await,
                    Err(error) => jsonrpc::error(Some(&id), &error),
                }
            }
            None => jsonrpc::error(Some(&request.id), &ErrorObject::unknown_method(&request.method)),
        },
        Ok(Frame::Single(Err(invalid))) => jsonrpc::error(invalid.id.as_ref(), &invalid.error),
        Ok(_) => jsonrpc::error(None, &ErrorObject::invalid_request("one request at a time is answered here")),
        Err(error) => jsonrpc::error(None, &error),
    };
    ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer).into_response()
}
