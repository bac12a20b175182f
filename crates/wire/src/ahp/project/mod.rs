//! Projects core's state to this dialect.
//!
//! Data from another connection's dialect that core does not model (attachments of other kinds, a client's results) are
//! kept with their object and are sent as they came.

mod chat;
mod history;
mod input;
mod message;
mod session;
mod tool_call;

use grove_core as core;
use grove_core::Extra;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub use self::chat::*;
pub use self::history::*;
pub use self::input::*;
pub use self::message::*;
pub use self::session::*;
pub use self::tool_call::*;
use super::{Uri, status};
use crate::value_reader::from_value;

fn flags(activity: u32, is_read: bool, is_archived: bool) -> u32 {
    let read = status::with_flag(activity, status::IS_READ, is_read);
    status::with_flag(read, status::IS_ARCHIVED, is_archived)
}

fn activity(of: core::ChatStatus) -> u32 {
    match of {
        core::ChatStatus::Idle => status::IDLE,
        core::ChatStatus::InProgress => status::IN_PROGRESS,
        core::ChatStatus::InputNeeded => status::INPUT_NEEDED,
        core::ChatStatus::Error => status::ERROR,
    }
}

/// An object of the present members; `None` if there are none.
pub(crate) fn extra<const N: usize>(members: [(&str, Option<serde_json::Result<Value>>); N]) -> Option<Extra> {
    let there = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.ok()?)));
    Some(there.collect::<Extra>()).filter(|extra| !extra.is_empty())
}

/// The value kept under a name, if it can still be read.
fn from_extra<T: DeserializeOwned>(extra: Option<&Extra>, name: &str) -> Option<T> {
    from_value(extra?.get(name)?).ok()
}

/// A path as a URI; a URI stays unchanged.
pub(super) fn directory(path: &str) -> Uri {
    crate::file_uri::of_path(path).unwrap_or_else(|| path.to_owned())
}
