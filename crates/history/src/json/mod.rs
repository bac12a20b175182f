//! JSON that others wrote: objects of which known members are taken and the rest is kept, and objects too large to be
//! read at once.

pub(crate) mod fragment;
pub(crate) mod lenient;
mod members;
mod rewind;
pub(crate) mod stream;

pub(crate) use members::{JsonMembers, message_of, text_of, time_of};
