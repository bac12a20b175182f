//! Requests and client notifications: names, params, results.
//!
//! Every params object has the `channel` that it concerns, and may have `_meta`.

mod connection;
mod content;
mod resource;
mod session;

pub use connection::*;
pub use content::*;
pub use resource::*;
pub use session::*;

use super::macros::{names, records};
use super::{Object, Uri, error_code};

names! {
    /// The requests of the protocol. Either side may send those on resources.
    pub enum Method {
        Initialize = "initialize",
        Ping = "ping",
        Reconnect = "reconnect",
        Subscribe = "subscribe",
        ListSessions = "listSessions",
        CreateSession = "createSession",
        DisposeSession = "disposeSession",
        CreateChat = "createChat",
        DisposeChat = "disposeChat",
        MoveChat = "moveChat",
        FetchTurns = "fetchTurns",
        Completions = "completions",
        ResolveSessionConfig = "resolveSessionConfig",
        SessionConfigCompletions = "sessionConfigCompletions",
        Authenticate = "authenticate",
        CreateTerminal = "createTerminal",
        DisposeTerminal = "disposeTerminal",
        ResourceRead = "resourceRead",
        ResourceWrite = "resourceWrite",
        ResourceList = "resourceList",
        ResourceResolve = "resourceResolve",
        ResourceMkdir = "resourceMkdir",
        ResourceDelete = "resourceDelete",
        ResourceCopy = "resourceCopy",
        ResourceMove = "resourceMove",
        ResourceRequest = "resourceRequest",
        CreateResourceWatch = "createResourceWatch",
        InvokeChangesetOperation = "invokeChangesetOperation",
        ListAutomationTriggerDefinitions = "listAutomationTriggerDefinitions",
        RunAutomation = "runAutomation",
        FetchAutomationRuns = "fetchAutomationRuns",
    }
}

impl Method {
    /// The specific errors of this request. Any request may also fail with JSON-RPC's own errors and, if an agent needs
    /// a token, with `AUTH_REQUIRED`.
    pub const fn errors(self) -> &'static [i64] {
        use error_code::*;
        match self {
            Method::Initialize => &[UNSUPPORTED_PROTOCOL_VERSION],
            Method::Ping | Method::ListSessions | Method::Authenticate => &[],
            // The host does not know the client any more: it has to start with `initialize`.
            Method::Reconnect => &[NOT_FOUND],
            Method::Subscribe => &[SESSION_NOT_FOUND, NOT_FOUND],
            Method::CreateSession => &[PROVIDER_NOT_FOUND, SESSION_ALREADY_EXISTS],
            Method::ResolveSessionConfig | Method::SessionConfigCompletions => &[PROVIDER_NOT_FOUND],
            Method::DisposeSession => &[SESSION_NOT_FOUND],
            Method::CreateChat => &[SESSION_NOT_FOUND, NOT_FOUND, ALREADY_EXISTS, TURN_IN_PROGRESS],
            Method::MoveChat => &[SESSION_NOT_FOUND, NOT_FOUND, TURN_IN_PROGRESS],
            Method::DisposeChat | Method::FetchTurns | Method::Completions => &[NOT_FOUND],
            Method::CreateTerminal => &[ALREADY_EXISTS],
            Method::DisposeTerminal | Method::InvokeChangesetOperation => &[NOT_FOUND],
            Method::ResourceRead | Method::ResourceList | Method::ResourceResolve | Method::ResourceDelete => {
                &[NOT_FOUND, PERMISSION_DENIED]
            }
            Method::ResourceWrite => &[NOT_FOUND, PERMISSION_DENIED, ALREADY_EXISTS, CONFLICT],
            Method::ResourceMkdir => &[PERMISSION_DENIED, ALREADY_EXISTS],
            Method::ResourceCopy | Method::ResourceMove => &[NOT_FOUND, PERMISSION_DENIED, ALREADY_EXISTS],
            Method::ResourceRequest => &[PERMISSION_DENIED],
            Method::CreateResourceWatch => &[NOT_FOUND, PERMISSION_DENIED],
            Method::ListAutomationTriggerDefinitions | Method::RunAutomation | Method::FetchAutomationRuns => {
                &[NOT_FOUND]
            }
        }
    }
}

/// The names of the notifications on actions, of both sides. The others are in [`super::NotificationMethod`].
pub mod notify {
    pub const UNSUBSCRIBE: &str = "unsubscribe";
    pub const DISPATCH_ACTION: &str = "dispatchAction";
    pub const ACTION: &str = "action";
}

records! {
    /// The params of a request with only a channel: `ping`, `disposeSession`, `disposeChat`, `disposeTerminal`.
    #[derive(Default)]
    pub struct ChannelParams {
        pub channel: Uri,
        pub meta: Option<Object>,
    }

    /// The empty object as a result: `fetchTurns`, `authenticate`, and those that write resources. Other requests
    /// without a result return `null`.
    #[derive(Default, Eq)]
    pub struct EmptyResult {}
}
