//! What an agent says, in our words.
//!
//! Every function here is pure: what is known of a tool call, a turn or a session is the host's to know, so an update is
//! told as it came and merged there. They read JSON and not the protocol's types: those leave out members that they do
//! not know and put defaults where nothing was said, and neither may happen to what is stored.

mod block;
mod call;
mod permission;
#[cfg(test)]
mod tests;
mod turn_end;
mod update;

pub(crate) use call::terminals;
pub(crate) use permission::{ParsedPermissionRequest, outcome, permission};
pub(crate) use turn_end::turn_end;
pub(crate) use update::{ParsedUpdate, UpdateContent, update};
pub use update::{UpdateError, read_update};

use serde_json::{Map, Value};

type JsonObject = Map<String, Value>;

/// Takes a text out of an object. What is there and no text stays.
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

/// The text of a member, where it is one with something in it.
fn text<'a>(object: &'a JsonObject, name: &str) -> Option<&'a str> {
    object.get(name)?.as_str().filter(|text| !text.is_empty())
}
