//! What lies in a session's folder, and where.

pub(crate) mod content;
pub(crate) mod copies;
pub(crate) mod copy;
pub(crate) mod paths;
pub(crate) mod session_file;
