//! What a protocol must say of itself so that this crate can speak it.
//!
//! A [`Model`] is the pure half: states, actions, and how an action changes a state; reconciliation needs nothing else.
//! A [`Dialect`] is the wire half: what the params of a request look like, and what is made of an answer. The names of
//! the messages that every dialect has are in [`method`].

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
    /// The state of any resource that there is. Where resources differ in kind, an enum.
    type ResourceState: Clone + Debug + PartialEq + Send;
    /// What changes a state.
    type Action: Clone + Debug + Send + Sync;

    /// Changes a state in place. What does not fit changes nothing.
    fn reduce(state: &mut Self::ResourceState, action: &Self::Action);
}

/// A protocol between a client and a host.
///
/// A value of it holds what this side says of itself: which versions it offers, and whatever else its `initialize`
/// carries.
pub trait Dialect: Model + Debug + Send + Sync + Sized {
    /// What a caller asks of a resource; an [action](Model::Action) once it is addressed.
    type ActionBody: Send;
    /// What the host said of itself: its version, and what follows from it.
    type HostDescription: Clone + Debug + Send + Sync;
    /// A session's row in the list.
    type SessionRow: Clone + Debug + PartialEq + Send;
    /// What changes such a row.
    type SessionRowPatch: Clone + Debug + Send;

    /// Params of `initialize`.
    fn initialize(&self, client_id: &str, resources: &[String]) -> impl Serialize;
    fn initialized(&self, result: &RawValue) -> serde_json::Result<InitializeResponse<Self>>;

    /// Params of `reconnect`.
    fn reconnect(&self, client_id: &str, seen: u64, resources: &[String]) -> impl Serialize;
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

    /// Addresses a change to a resource, where this client may ask that of this host. Otherwise nothing is sent.
    fn address(
        &self,
        server: &Self::HostDescription,
        resource: &str,
        change: Self::ActionBody,
    ) -> Result<Self::Action, Unsupported>;
    /// Params of `dispatchAction`.
    fn dispatch(&self, resource: &str, client_seq: u64, action: &Self::Action) -> impl Serialize;

    /// Params of `listSessions`. `cursor` is where the page before ended.
    fn list(&self, cursor: Option<&str>) -> impl Serialize;
    fn listed(&self, result: &RawValue) -> serde_json::Result<ListPage<Self::SessionRow>>;
    /// The session that a row is about.
    fn row_uri(summary: &Self::SessionRow) -> &str;
    /// The time of a session's last use, in milliseconds since 1970; none of an archived session.
    fn last_used(summary: &Self::SessionRow) -> Option<u64>;
    fn patch(summary: &mut Self::SessionRow, patch: &Self::SessionRowPatch);

    /// What a notification of the host means.
    fn notified(&self, method: &str, params: &RawValue) -> serde_json::Result<IncomingNotification<Self>>;

    /// The one spelling of a resource's URI that this client uses.
    fn canonical<'a>(&self, resource: &'a str) -> &'a str {
        resource
    }

    /// The resource that must be subscribed to hear what becomes of the session list, where there is one.
    fn list_resource(&self) -> Option<&str> {
        None
    }

    /// Whether a resource goes with a session. `row` is what the list said of it, where there is a list.
    fn belongs_to_session(&self, session: &str, _row: Option<&Self::SessionRow>, resource: &str) -> bool {
        session == resource
    }

    /// The resource that is not there any more after an action of another.
    fn removed(_action: &Self::Action) -> Option<&str> {
        None
    }

    /// What the host said that it adds to the protocol.
    fn announced(server: &Self::HostDescription) -> Option<&Announcement>;

    /// Whether a list that was fetched after a replay shows that a resource is gone. A dialect whose replay names what
    /// is missing need not look.
    fn is_gone(&self, _resource: &str, _list: &SessionList<Self>) -> bool {
        false
    }
}

/// A request of a dialect, with the type of its answer.
pub trait RequestParams<D: Dialect>: Serialize + Send + Sync {
    const METHOD: &'static str;
    type Response: DeserializeOwned;

    /// Whether the host can do it. Otherwise nothing is sent.
    fn check(&self, _server: &D::HostDescription) -> Result<(), Unsupported> {
        Ok(())
    }
}

/// A resource's state, cut at a sequence number.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot<S> {
    pub resource: String,
    pub state: S,
    pub from_seq: u64,
}

/// The answer to `initialize`.
#[derive(Debug)]
pub struct InitializeResponse<D: Dialect> {
    pub server: D::HostDescription,
    pub server_seq: u64,
    /// What was subscribed; what is not here, there is not.
    pub snapshots: Vec<ResourceSnapshot<D::ResourceState>>,
}

/// The answer to `reconnect`.
#[derive(Debug)]
pub enum ReconnectResponse<D: Dialect> {
    /// Everything that was missed, in its order.
    Replay { envelopes: Vec<SequencedAction<D::Action>>, missing: Vec<String> },
    /// Everything afresh; what is not here, there is not any more.
    Snapshots(Vec<ResourceSnapshot<D::ResourceState>>),
}

/// An action in its place in the order, as it arrives.
#[derive(Clone, Debug, PartialEq)]
pub struct SequencedAction<A> {
    pub server_seq: u64,
    pub origin: Option<DispatchOrigin>,
    /// Why the host refused the action; then it changes nothing.
    pub rejection: Option<String>,
    /// `None` where its type is not known here: it is ignored, as protocols ask, and only its number counts.
    pub content: Option<AddressedAction<A>>,
}

/// An action, and the resource that it changes.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressedAction<A> {
    pub resource: String,
    pub action: A,
}

/// Who dispatched an action, and as the how-manieth of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DispatchOrigin {
    pub client_id: String,
    pub client_seq: u64,
}

/// Some rows of the session list.
#[derive(Clone, Debug)]
pub struct ListPage<S> {
    pub rows: Vec<S>,
    /// Where the next page begins.
    pub next: Option<String>,
}

/// What a host's notification means.
#[derive(Debug)]
pub enum IncomingNotification<D: Dialect> {
    Action(SequencedAction<D::Action>),
    List(ListChange<D::SessionRow, D::SessionRowPatch>),
    /// Nothing that this crate keeps; whoever listens for notifications hears it.
    Other,
}

/// What became of the session list.
#[derive(Clone, Debug)]
pub enum ListChange<S, P> {
    Added(S),
    Removed(String),
    Changed { session: String, patch: P },
}

/// What was wanted is not possible with this host, or not for a client. Nothing was sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    #[error("the host speaks version {version}, which has no {what}: update the host, or do without")]
    ByVersion { what: String, version: String },
    #[error("only the host dispatches {what}")]
    ByClients { what: String },
    #[error("{what} is nothing that {resource} could do")]
    ByResource { what: String, resource: String },
}
