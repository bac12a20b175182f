//! The status of the connection.

/// The status of a client's connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionStatus {
    /// Every state is up to date.
    Connected,
    /// The connection was lost; this is attempt number `attempt` to restore it. States are as they were.
    Reconnecting { attempt: u32, why: String },
    /// The client is closed for good.
    ClientClosed(ClientClosed),
}

impl ConnectionStatus {
    pub fn is_closed(&self) -> bool {
        matches!(self, ConnectionStatus::ClientClosed(_))
    }
}

/// The reason why a client is closed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientClosed {
    #[error("this client was closed")]
    LocalClose,
    #[error("another connection with the same client id took over: give each client its own")]
    TakenOver,
    #[error("the host rejected this client: {0}")]
    Refused(String),
    #[error("the host was unreachable in {attempts} attempts: {last}")]
    GaveUp { attempts: u32, last: String },
}
