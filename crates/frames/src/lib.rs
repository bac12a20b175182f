//! Logs of frames, for debugging: every message of a connection as a line of a file, without its secrets.
//!
//! [`FrameFile`] writes the file, [`Redaction`] removes the secrets. The format of a line belongs to the connection
//! ([`FrameRecord`]): the host's log of its clients and the capture of agents' messages use the same writer.

mod file;
pub mod limits;
mod redaction;

pub use file::{FrameFile, FrameRecord};
pub use redaction::{Redaction, RedactionRules, SecretMark, is_secret_name};
