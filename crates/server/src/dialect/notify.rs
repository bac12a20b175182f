//! The devices that the host tells when an agent needs a person, in every dialect.

use grove_host::Host;
use grove_host::notifications::{NotifyCaller, NotifyRefusal};
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::Encode;
use grove_wire::jsonrpc::{ErrorObject, Id};
use grove_wire::refusal::error_code;
use grove_wire::x_grove::notify::{NotifyCall, NotifyMethod};
use serde_json::value::RawValue;

use super::answer::{encode, read_params, refuse};
use crate::principal::Principal;

/// Answers a request. It may have to wait for the disk or a push service, without holding up the client's next messages.
pub(super) fn handle(
    host: &Host,
    principal: &Principal,
    id: Id,
    method: NotifyMethod,
    params: Option<&RawValue>,
    reply: ReplySink,
) {
    let call = host.notifications().cloned().ok_or_else(|| ErrorObject::unknown_method(method.as_str()));
    let (service, call) = match call.and_then(|service| Ok((service, read(method, params)?))) {
        Ok(call) => call,
        Err(error) => return reply(Encode::Text(refuse(host, &id, &error))),
    };
    let caller =
        NotifyCaller { token: principal.token_id(), name: principal.name().clone(), scopes: principal.scopes() };
    let asked = host.clone();
    host.env().spawn.spawn(Box::pin(async move {
        let answer = match service.call(caller, call).await {
            Ok(outcome) => encode(&id, &outcome),
            Err(NotifyRefusal { kind, words }) => refuse(&asked, &id, &ErrorObject::new(error_code(kind), words)),
        };
        reply(Encode::Text(answer));
    }));
}

fn read(method: NotifyMethod, params: Option<&RawValue>) -> Result<NotifyCall, ErrorObject> {
    Ok(match method {
        NotifyMethod::Key => NotifyCall::Key,
        NotifyMethod::List => NotifyCall::List,
        NotifyMethod::Subscribe => NotifyCall::Subscribe(Box::new(read_params(params)?)),
        NotifyMethod::Unsubscribe => NotifyCall::Unsubscribe(read_params(params)?),
        NotifyMethod::Test => NotifyCall::Test(read_params(params)?),
    })
}
