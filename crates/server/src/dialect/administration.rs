//! The administration of the host, in every dialect.

use std::pin::pin;
use std::sync::Arc;

use grove_host::Host;
use grove_host::administration::AdministrationRefusal;
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::{Encode, Queue};
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::refusal::error_code;
use grove_wire::x_grove::administration::{AdministrationCall, AdministrationMethod};
use serde_json::value::RawValue;

use super::answer::{encode, refuse};

/// Answers a request beside the client's next messages. The work for it ends with the connection.
pub(super) fn handle(
    host: &Host,
    queue: &Arc<Queue>,
    id: Id,
    method: AdministrationMethod,
    params: Option<&RawValue>,
    reply: ReplySink,
) {
    let Some(administration) = host.administration().cloned() else {
        return reply(Encode::Text(refuse(host, &id, &ErrorObject::unknown_method(method.as_str()))));
    };
    let call = match AdministrationCall::read(method, params) {
        Ok(call) => call,
        Err(error) => {
            return reply(Encode::Text(refuse(host, &id, &ErrorObject::invalid_params(error.to_string()))));
        }
    };
    let (host, queue) = (host.clone(), queue.clone());
    host.clone().env().spawn.spawn(Box::pin(async move {
        let mut closed = pin!(queue.closed());
        let answer = tokio::select! {
            outcome = administration.call(call) => match outcome {
                Ok(outcome) => encode(&id, &outcome),
                Err(refusal) => refuse(&host, &id, &refused(refusal)),
            },
            // Nobody reads it, but its record in the audit log gets an end.
            _ = &mut closed => jsonrpc::error(Some(&id), &ErrorObject::internal("the connection is closed")),
        };
        reply(Encode::Text(answer));
    }));
}

fn refused(refusal: AdministrationRefusal) -> ErrorObject {
    ErrorObject::new(error_code(refusal.kind), refusal.words)
}
