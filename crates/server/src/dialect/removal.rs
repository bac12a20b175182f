//! Disposed sessions, and deleting any for good, in every dialect.

use grove_core::SessionUri;
use grove_host::Host;
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::x_grove::removal::*;
use serde_json::value::RawValue;

use super::answer::{encode, read_params};

/// Answers a request.
pub(super) async fn answer(host: &Host, id: &Id, method: RemovalMethod, params: Option<&RawValue>) -> String {
    match method {
        RemovalMethod::Disposed => {
            let sessions = host.disposed().await.into_iter().map(|session| DisposedSession {
                session: session.uri.to_string(),
                title: session.title,
                store: session.store.to_string(),
                modified_at: session.modified_at.0,
            });
            encode(id, &DisposedResult { sessions: sessions.collect() })
        }
        RemovalMethod::Erase => {
            let erased = match read_params::<EraseParams>(params) {
                Ok(params) => host.erase(&SessionUri::from(params.session)).await,
                Err(error) => return jsonrpc::error(Some(id), &error),
            };
            match erased {
                Ok(erased) => encode(id, &EraseResult { erased }),
                Err(error) => jsonrpc::error(Some(id), &ErrorObject::internal(error.to_string())),
            }
        }
    }
}
