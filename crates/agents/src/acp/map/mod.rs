//! Translating an agent's messages into [`AgentEvent`](crate::AgentEvent)s.
//!
//! Every function here is pure. The host knows the state of a tool call, a turn or a session, so an update is passed on
//! as it came and merged there. The functions read JSON and not the protocol's types: those drop unknown members and
//! fill in defaults, and neither may happen to stored data.

mod block;
mod call;
mod permission;
#[cfg(test)]
mod tests;
mod turn_end;
mod update;
mod usage;

pub(crate) use call::{take_terminal_outputs, terminals};
pub(crate) use permission::{ParsedPermissionRequest, denial_reason, outcome, permission, response};
pub(crate) use turn_end::turn_end;
pub(crate) use update::{ParsedUpdate, UpdateContent, update};
pub use update::{UpdateError, read_update};

use serde_json::{Map, Value};

type JsonObject = Map<String, Value>;

/// Takes a text out of an object. A member that is not a text stays.
fn take_text(object: &mut JsonObject, name: &str) -> Option<String> {
    match object.get_mut(name) {
        Some(Value::String(text)) => {
            let text = std::mem::take(text);
            object.remove(name);
            Some(text)
        }
        _ => None,
    }
}

/// The text of a member, if it is a text and not empty.
fn text<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}
