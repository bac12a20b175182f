//! Reads other programs' JSON: objects from which known members are taken and the rest is kept, and objects too large
//! for memory.

pub(crate) mod fragment;
pub(crate) mod lenient;
mod members;
mod rewind;
pub(crate) mod stream;

pub(crate) use members::{JsonMembers, message_of, text_of, time_of};
