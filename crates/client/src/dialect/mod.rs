//! The interface of a protocol to this crate.
//!
//! A [`Model`] is the pure half: states, actions, and how an action changes a state; reconciliation needs nothing else.
//! A [`Dialect`] is the wire half: the params of requests, and the parsing of responses. [`method`] has the names of
//! the messages that every dialect has.

pub mod ahp;
pub mod v1;

use std::fmt::Debug;

use grove_wire::x_grove::announcement::Announcement;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::sessions::SessionList;

/// The names of the messages that every dialect has.
pub mod method {
    pub const INITIALIZE: &str = "initialize";
    pub const RECONNECT: &str = "reconnect";
    pub const PING: &str = "ping";
    pub const SUBSCRIBE: &str = "subscribe";
    pub const UNSUBSCRIBE: &str = "unsubscribe";
    pub const DISPATCH_ACTION: &str = "dispatchAction";
    pub const LIST_SESSIONS: &str = "listSessions";
}

/// States, and the actions that change them.
pub trait Model: 'static {
    /// The state of any resource; an enum if there are several kinds.
    type ResourceState: Clone + Debug + PartialEq + Send;
    /// A change of a state.
    type Action: Clone + Debug + Send + Sync;

    /// Changes a state in place. An action that does not apply changes nothing.
    fn reduce(state: &mut Self::ResourceState, action: &Self::Action);
}

/// A protocol between a client and a host.
///
/// Its value holds this client's description of itself: the offered versions, and the other params of `initialize`.
pub trait Dialect: Model + Debug + Send + Sync + Sized {
    /// A caller's change of a resource; it becomes an [action](Model::Action) once it is addressed.
    type ActionBody: Send;
    /// The host's description of itself: its version and capabilities.
    type HostDescription: Clone + Debug + Send + Sync;
    /// A session's row in the list.
    type SessionRow: Clone + Debug + PartialEq + Send;
    /// A change of such a row.
    type SessionRowPatch: Clone + Debug + Send;

    /// Params of `initialize`.
    fn initialize(&self, client_id: &str, resources: &[String]) -> impl Serialize;
    fn initialized(&self, result: &RawValue) -> serde_json::Result<InitializeResponse<Self>>;

    /// Params of `reconnect`.
    fn reconnect(&self, client_id: &str, last_seen_seq: u64, resources: &[String]) -> impl Serialize;
    fn reconnected(&self, result: &RawValue) -> serde_json::Result<ReconnectResponse<Self>>;

    /// Params of `subscribe`.
    fn subscribe(&self, resource: &str) -> impl Serialize;
    fn subscribed(
        &self,
        resource: &str,
        result: &RawValue,
    ) -> serde_json::Result<ResourceSnapshot<Self::ResourceState>>;

    /// Params of `unsubscribe`.
    fn unsubscribe(&self, resource: &str) -> impl Serialize {
        self.subscribe(resource)
    }

    /// Addresses a change to a resource. An error means that this host does not support it; nothing is sent.
    fn address(
        &self,
        server: &Self::HostDescription,
        resource: &str,
        change: Self::ActionBody,
    ) -> Result<Self::Action, Unsupported>;
    /// Params of `dispatchAction`.
    fn dispatch(&self, resource: &str, client_seq: u64, action: &Self::Action) -> impl Serialize;

    /// Params of `listSessions`. `cursor` is the end of the previous page.
    fn list(&self, cursor: Option<&str>) -> impl Serialize;
    fn listed(&self, result: &RawValue) -> serde_json::Result<ListPage<Self::SessionRow>>;
    /// The session of a row.
    fn row_uri(summary: &Self::SessionRow) -> &str;
    /// The time of a session's last use, in milliseconds since 1970; `None` for an archived session.
    fn last_used(summary: &Self::SessionRow) -> Option<u64>;
    fn patch(summary: &mut Self::SessionRow, patch: &Self::SessionRowPatch);

    /// Parses a notification of the host.
    fn notified(&self, method: &str, params: &RawValue) -> serde_json::Result<IncomingNotification<Self>>;

    /// The canonical spelling of a resource's URI.
    fn canonical<'a>(&self, resource: &'a str) -> &'a str {
        resource
    }

    /// The resource to subscribe for changes of the session list, if there is one.
    fn list_resource(&self) -> Option<&str> {
        None
    }

    /// Returns whether a resource belongs to a session. `row` is the session's row, if the list has one.
    fn belongs_to_session(&self, session: &str, _row: Option<&Self::SessionRow>, resource: &str) -> bool {
        session == resource
    }

    /// The resource that an action of another resource removes.
    fn removed(_action: &Self::Action) -> Option<&str> {
        None
    }

    /// The protocol extensions that the host announced.
    fn announced(server: &Self::HostDescription) -> Option<&Announcement>;

    /// Returns whether a list that was fetched after a replay shows that a resource is gone.
    ///
    /// Dialects whose replay names missing resources need not implement it.
    fn is_gone(&self, _resource: &str, _list: &SessionList<Self>) -> bool {
        false
    }
}

/// A request of a dialect, with the type of its response.
pub trait RequestParams<D: Dialect>: Serialize + Send + Sync {
    const METHOD: &'static str;
    type Response: DeserializeOwned;

    /// Checks that the host supports the request. An error means that nothing is sent.
    fn check(&self, _server: &D::HostDescription) -> Result<(), Unsupported> {
        Ok(())
    }
}

/// A resource's state at a sequence number.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot<S> {
    pub resource: String,
    pub state: S,
    pub from_seq: u64,
}

/// The response to `initialize`.
#[derive(Debug)]
pub struct InitializeResponse<D: Dialect> {
    pub server: D::HostDescription,
    pub server_seq: u64,
    /// The subscribed resources; others do not exist.
    pub snapshots: Vec<ResourceSnapshot<D::ResourceState>>,
}

/// The response to `reconnect`.
#[derive(Debug)]
pub enum ReconnectResponse<D: Dialect> {
    /// Everything that was missed, in order.
    Replay { envelopes: Vec<SequencedAction<D::Action>>, missing: Vec<String> },
    /// New snapshots; other resources no longer exist.
    Snapshots(Vec<ResourceSnapshot<D::ResourceState>>),
}

/// A received action with its sequence number.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedAction<A> {
    pub server_seq: u64,
    pub origin: Option<DispatchOrigin>,
    /// The host's reason for rejecting the action; then it changes nothing.
    pub rejection: Option<String>,
    /// `None` for an unknown type: it is ignored, as the protocols require, and only its number counts.
    pub content: Option<AddressedAction<A>>,
}

/// An action, and the resource that it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressedAction<A> {
    pub resource: String,
    pub action: A,
}

/// The client that dispatched an action, and its sequence number there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchOrigin {
    pub client_id: String,
    pub client_seq: u64,
}

/// Some rows of the session list.
#[derive(Clone, Debug)]
pub struct ListPage<S> {
    pub rows: Vec<S>,
    /// The cursor of the next page.
    pub next: Option<String>,
}

/// A parsed notification of the host.
#[derive(Debug)]
pub enum IncomingNotification<D: Dialect> {
    Action(SequencedAction<D::Action>),
    List(ListChange<D::SessionRow, D::SessionRowPatch>),
    /// Any other notification, for listeners.
    Other,
}

/// A change of the session list.
#[derive(Clone, Debug)]
pub enum ListChange<S, P> {
    Added(S),
    Removed(String),
    Changed { session: String, patch: P },
}

/// A request that this host does not support, or not for a client. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error("the host speaks version {version}, which has no {what}: update the host, or leave it out")]
    ByVersion { what: String, version: String },
    #[error("only the host dispatches {what}")]
    ByClients { what: String },
    #[error("{resource} does not support {what}")]
    ByResource { what: String, resource: String },
}
