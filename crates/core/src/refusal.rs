//! Kinds of refusals, from which each protocol takes its error code.

/// The kind of a refusal or failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusalKind {
    /// The request names something unknown, or a value in it does not fit.
    InvalidParams,
    /// The request is well formed; the session cannot do it in its current state, or a bound is reached.
    InvalidState,
    SessionNotFound,
    AgentNotFound,
    /// A session of this name or id exists.
    SessionExists,
    /// A turn or another operation runs: try again later.
    Busy,
    NotFound,
    NotPermitted,
    /// Something other than a session exists under this id.
    Exists,
    /// A bound of a connection or a token is reached: try again later.
    LimitReached,
    /// The host failed, or cannot do it at the moment: the request is not at fault.
    Failed,
}
