//! The kinds of store, by name.

use std::fmt;
use std::str::FromStr;

/// The kind of store that holds a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Backend {
    /// A folder on this machine.
    Local,
    /// The memory of this process.
    Memory,
    /// A storage client at the other end of a connection.
    Rpc,
}

impl Backend {
    pub const ALL: [Backend; 3] = [Backend::Local, Backend::Memory, Backend::Rpc];

    pub const fn name(self) -> &'static str {
        match self {
            Backend::Local => "local",
            Backend::Memory => "memory",
            Backend::Rpc => "rpc",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = UnknownBackend;

    fn from_str(name: &str) -> Result<Self, UnknownBackend> {
        let known = Backend::ALL.into_iter().find(|backend| backend.name() == name);
        known.ok_or_else(|| UnknownBackend(name.to_owned()))
    }
}

/// A name that no backend of this version has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no backend {0:?}: it is one of local, memory and rpc, or of a newer version")]
pub struct UnknownBackend(pub String);
