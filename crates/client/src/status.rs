//! How it stands with the connection.

/// How it stands with a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// Every state is the host's.
    Connected,
    /// The connection was lost, and is tried again for the `attempt`th time. States are as they were.
    Reconnecting { attempt: u32, why: String },
    /// There will be no connection any more.
    ClientClosed(ClientClosed),
}

impl ConnectionStatus {
    pub fn is_closed(&self) -> bool {
        matches!(self, ConnectionStatus::ClientClosed(_))
    }
}

/// Why a client is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientClosed {
    #[error("this client was closed")]
    LocalClose,
    #[error("another connection with the same client id took over: give each client its own")]
    TakenOver,
    #[error("the host turned this client away: {0}")]
    Refused(String),
    #[error("the host was not there after {attempts} attempts: {last}")]
    GaveUp { attempts: u32, last: String },
}
