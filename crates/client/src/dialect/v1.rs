//! Version 1: the root and sessions.

use std::convert::Infallible;
use std::sync::Arc;

use grove_wire::registry::{Registry, VersionCapabilities};
use grove_wire::v1::{
    self, Action, ActionEnvelope, ActionError, ActionType, ClientInfo, Method, Notification, RootState, SessionAction,
    SessionChange, SessionState, SessionSummary,
};
use grove_wire::x_grove::announcement::Announcement;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    AddressedAction, Dialect, DispatchOrigin, IncomingNotification, InitializeResponse, ListChange, ListPage, Model,
    ReconnectResponse, RequestParams, ResourceSnapshot, SequencedAction, Unsupported,
};
use crate::sessions::SessionList;

/// Version 1 of the protocol.
#[derive(Clone, Debug)]
pub struct V1 {
    /// The known versions. There is one in production; tests create others.
    pub registry: Registry,
    /// The name of this program, for people.
    pub info: Option<ClientInfo>,
}

impl Default for V1 {
    fn default() -> Self {
        let (name, version) = ("grove-client".to_owned(), Some(env!("CARGO_PKG_VERSION").to_owned()));
        Self { registry: Registry::RELEASED, info: Some(ClientInfo { name, version, title: None }) }
    }
}

/// The state of a version-1 resource.
#[derive(Clone, Debug, PartialEq)]
pub enum ResourceState {
    Root(RootState),
    Session(Box<SessionState>),
}

impl ResourceState {
    pub fn root(&self) -> Option<&RootState> {
        match self {
            ResourceState::Root(root) => Some(root),
            ResourceState::Session(_) => None,
        }
    }

    pub fn session(&self) -> Option<&SessionState> {
        match self {
            ResourceState::Root(_) => None,
            ResourceState::Session(session) => Some(session),
        }
    }
}

/// The description of a version-1 host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostDescription {
    pub version: u32,
    pub default_directory: Option<String>,
    /// The protocol extensions.
    pub grove: Option<Arc<Announcement>>,
}

impl HostDescription {
    /// The capabilities of its version.
    pub fn capabilities(&self) -> VersionCapabilities {
        VersionCapabilities::of(self.version)
    }
}

impl Model for V1 {
    type ResourceState = ResourceState;
    type Action = Action;

    fn reduce(state: &mut ResourceState, action: &Action) {
        match (state, action) {
            (ResourceState::Root(root), Action::Root(action)) => *root = v1::root_reducer(std::mem::take(root), action),
            (ResourceState::Session(session), Action::Session(action)) => v1::reduce::reduce_session(session, action),
            (ResourceState::Root(_), Action::Session(_)) | (ResourceState::Session(_), Action::Root(_)) => {}
        }
    }
}

impl Dialect for V1 {
    type ActionBody = SessionChange;
    type HostDescription = HostDescription;
    type SessionRow = SessionSummary;
    /// Version 1 announces new and removed sessions, but no changes.
    type SessionRowPatch = Infallible;

    fn initialize(&self, client_id: &str, resources: &[String]) -> impl Serialize {
        v1::InitializeParams {
            protocol_version: i64::from(self.registry.current),
            client_id: client_id.to_owned(),
            client_info: self.info.clone(),
            initial_subscriptions: Some(resources.to_vec()),
        }
    }

    fn initialized(&self, result: &RawValue) -> serde_json::Result<InitializeResponse<Self>> {
        let result: v1::InitializeResult<&RawValue> = serde_json::from_str(result.get())?;
        Ok(InitializeResponse {
            server: HostDescription {
                version: result.protocol_version,
                default_directory: result.default_directory,
                grove: Announcement::read(result.meta.as_ref()).map(Arc::new),
            },
            server_seq: result.server_seq,
            snapshots: result.snapshots.into_iter().map(snapshot).collect::<Result<_, _>>()?,
        })
    }

    fn reconnect(&self, client_id: &str, last_seen_seq: u64, resources: &[String]) -> impl Serialize {
        v1::ReconnectParams {
            client_id: client_id.to_owned(),
            last_seen_server_seq: last_seen_seq,
            subscriptions: resources.to_vec(),
        }
    }

    fn reconnected(&self, result: &RawValue) -> serde_json::Result<ReconnectResponse<Self>> {
        // A tagged enum could not keep its contents raw.
        #[derive(Deserialize)]
        struct Response<'a> {
            #[serde(borrow)]
            actions: Option<Vec<ActionEnvelope<&'a RawValue>>>,
            #[serde(borrow)]
            snapshots: Option<Vec<v1::Snapshot<&'a RawValue>>>,
        }
        let answer: Response<'_> = serde_json::from_str(result.get())?;
        match (answer.actions, answer.snapshots) {
            (Some(actions), None) => {
                let envelopes = actions.into_iter().map(envelope).collect::<Result<_, _>>()?;
                Ok(ReconnectResponse::Replay { envelopes, missing: Vec::new() })
            }
            (None, Some(snapshots)) => {
                Ok(ReconnectResponse::Snapshots(snapshots.into_iter().map(snapshot).collect::<Result<_, _>>()?))
            }
            (Some(_), Some(_)) | (None, None) => Err(serde::de::Error::custom("neither a replay nor snapshots")),
        }
    }

    fn subscribe(&self, resource: &str) -> impl Serialize {
        v1::SubscribeParams { resource: resource.to_owned() }
    }

    fn subscribed(&self, _resource: &str, result: &RawValue) -> serde_json::Result<ResourceSnapshot<ResourceState>> {
        snapshot(serde_json::from_str(result.get())?)
    }

    fn address(&self, server: &HostDescription, resource: &str, change: SessionChange) -> Result<Action, Unsupported> {
        let action = Action::Session(SessionAction { session: resource.to_owned(), change, timestamp: None });
        let kind = action.kind();
        let what = || kind.as_str().to_owned();
        if v1::is_root(resource) {
            return Err(Unsupported::ByResource { what: what(), resource: resource.to_owned() });
        }
        if !kind.client_may_dispatch() {
            return Err(Unsupported::ByClients { what: what() });
        }
        if !self.registry.knows_action(kind, server.version) || !capable(kind, server.capabilities()) {
            return Err(Unsupported::ByVersion { what: what(), version: server.version.to_string() });
        }
        Ok(action)
    }

    fn dispatch(&self, _resource: &str, client_seq: u64, action: &Action) -> impl Serialize {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct DispatchParams<'a> {
            client_seq: u64,
            action: &'a Action,
        }
        DispatchParams { client_seq, action }
    }

    fn list(&self, _cursor: Option<&str>) -> impl Serialize {
        v1::ListSessionsParams::default()
    }

    fn listed(&self, result: &RawValue) -> serde_json::Result<ListPage<SessionSummary>> {
        let result: v1::ListSessionsResult = serde_json::from_str(result.get())?;
        Ok(ListPage { rows: result.sessions, next: None })
    }

    fn row_uri(summary: &SessionSummary) -> &str {
        &summary.resource
    }

    fn last_used(summary: &SessionSummary) -> Option<u64> {
        Some(summary.modified_at)
    }

    fn patch(_summary: &mut SessionSummary, patch: &Infallible) {
        match *patch {}
    }

    fn notified(&self, method: &str, params: &RawValue) -> serde_json::Result<IncomingNotification<Self>> {
        match method {
            v1::notify::ACTION => {
                let params: v1::ActionParams<&RawValue> = serde_json::from_str(params.get())?;
                envelope(params.envelope).map(IncomingNotification::Action)
            }
            v1::notify::NOTIFICATION => {
                // A notification of an unknown type is ignored.
                let Ok(params) = serde_json::from_str::<v1::NotificationParams>(params.get()) else {
                    return Ok(IncomingNotification::Other);
                };
                Ok(IncomingNotification::List(match params.notification {
                    Notification::SessionAdded { summary } => ListChange::Added(summary),
                    Notification::SessionRemoved { session } => ListChange::Removed(session),
                }))
            }
            _ => Ok(IncomingNotification::Other),
        }
    }

    fn announced(server: &HostDescription) -> Option<&Announcement> {
        server.grove.as_deref()
    }

    fn canonical<'a>(&self, resource: &'a str) -> &'a str {
        if v1::is_root(resource) { v1::ROOT } else { resource }
    }

    fn is_gone(&self, resource: &str, list: &SessionList<Self>) -> bool {
        // A session's URI may have another scheme than in the list.
        let id = |uri: &str| uri.rsplit('/').next().map(ToOwned::to_owned);
        !v1::is_root(resource) && !list.iter().any(|row| id(&row.resource) == id(resource))
    }
}

/// Returns whether the host has the feature of an action.
fn capable(action: ActionType, capabilities: VersionCapabilities) -> bool {
    match action {
        ActionType::PermissionResolved => capabilities.permissions,
        _ => capabilities.sessions,
    }
}

fn snapshot(raw: v1::Snapshot<&RawValue>) -> serde_json::Result<ResourceSnapshot<ResourceState>> {
    let v1::Snapshot { resource, state, from_seq } = raw;
    let (resource, state) = if v1::is_root(&resource) {
        (v1::ROOT.to_owned(), ResourceState::Root(serde_json::from_str(state.get())?))
    } else {
        (resource, ResourceState::Session(serde_json::from_str(state.get())?))
    };
    Ok(ResourceSnapshot { resource, state, from_seq })
}

fn envelope(raw: ActionEnvelope<&RawValue>) -> serde_json::Result<SequencedAction<Action>> {
    let content = match Action::parse(raw.action) {
        Ok(action) => {
            let resource = match &action {
                Action::Root(_) => v1::ROOT.to_owned(),
                Action::Session(action) => action.session.clone(),
            };
            Some(AddressedAction { resource, action })
        }
        Err(ActionError::UnknownType(_)) => None,
        // A rejected action may be anything, and changes nothing.
        Err(ActionError::Malformed(_)) if raw.rejection_reason.is_some() => None,
        Err(ActionError::Malformed(error)) => return Err(error),
    };
    let origin = raw.origin.map(|origin| DispatchOrigin { client_id: origin.client_id, client_seq: origin.client_seq });
    Ok(SequencedAction { server_seq: raw.server_seq, origin, rejection: raw.rejection_reason, content })
}

/// Assigns methods and response types to the params of requests.
macro_rules! commands {
    ($($params:ty => $method:ident, $answer:ty;)*) => {$(
        impl RequestParams<V1> for $params {
            const METHOD: &'static str = Method::$method.as_str();
            type Response = $answer;

            fn check(&self, server: &HostDescription) -> Result<(), Unsupported> {
                if server.capabilities().sessions {
                    return Ok(());
                }
                Err(Unsupported::ByVersion { what: Self::METHOD.to_owned(), version: server.version.to_string() })
            }
        }
    )*};
}

commands! {
    v1::CreateSessionParams => CreateSession, ();
    v1::DisposeSessionParams => DisposeSession, ();
    v1::ListSessionsParams => ListSessions, v1::ListSessionsResult;
    v1::FetchTurnsParams => FetchTurns, v1::FetchTurnsResult;
    v1::FetchContentParams => FetchContent, v1::FetchContentResult;
    v1::BrowseDirectoryParams => BrowseDirectory, v1::BrowseDirectoryResult;
}

#[cfg(test)]
mod tests {
    use grove_wire::v1::UserMessage;
    use serde_json::{Value, json};

    use super::*;

    fn raw(value: &Value) -> Box<RawValue> {
        serde_json::value::to_raw_value(value).unwrap()
    }

    fn value(params: impl Serialize) -> Value {
        serde_json::to_value(params).unwrap()
    }

    fn notified(method: &str, params: Value) -> serde_json::Result<IncomingNotification<V1>> {
        V1::default().notified(method, &raw(&params))
    }

    #[test]
    fn messages_have_the_shape_of_version_1() {
        let v1 = V1::default();
        let resources = ["agenthost:root".to_owned()];
        assert_eq!(
            value(v1.initialize("a", &resources)),
            json!({
                "protocolVersion": 1,
                "clientId": "a",
                "clientInfo": {"name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION")},
                "initialSubscriptions": ["agenthost:root"],
            })
        );
        assert_eq!(
            value(v1.reconnect("a", 7, &resources)),
            json!({"clientId": "a", "lastSeenServerSeq": 7, "subscriptions": ["agenthost:root"]})
        );
        assert_eq!(value(v1.subscribe("s:/1")), json!({"resource": "s:/1"}));
        let server = HostDescription { version: 1, default_directory: None, grove: None };
        let user_message = UserMessage { text: "hi".to_owned(), attachments: None };
        let change = SessionChange::TurnStarted { turn_id: "t".to_owned(), user_message };
        let action = v1.address(&server, "s:/1", change).unwrap();
        assert_eq!(
            value(v1.dispatch("s:/1", 3, &action)),
            json!({"clientSeq": 3, "action": {"type": "session/turnStarted", "session": "s:/1", "turnId": "t",
                "userMessage": {"text": "hi"}}})
        );
    }

    #[test]
    fn answers_are_read_and_what_is_neither_replay_nor_snapshot_is_none() {
        let v1 = V1::default();
        let root = json!({"resource": "agenthost:/root", "state": {"agents": []}, "fromSeq": 4});
        let answer =
            json!({"protocolVersion": 1, "serverSeq": 5, "snapshots": [root], "defaultDirectory": "file:///h"});
        let initialized = v1.initialized(&raw(&answer)).unwrap();
        let default_directory = Some("file:///h".to_owned());
        assert_eq!(initialized.server, HostDescription { version: 1, default_directory, grove: None });
        assert_eq!(initialized.snapshots[0].resource, "agenthost:root", "one spelling");
        let replay = json!({"type": "replay", "actions": [
            {"serverSeq": 6, "action": {"type": "root/agentsChanged", "agents": []}},
            {"serverSeq": 7, "action": {"type": "later/thing"}, "origin": {"clientId": "b", "clientSeq": 1}}]});
        let ReconnectResponse::Replay { envelopes, missing } = v1.reconnected(&raw(&replay)).unwrap() else { panic!() };
        assert!(missing.is_empty());
        assert_eq!(envelopes[0].content.as_ref().unwrap().resource, "agenthost:root");
        assert_eq!((envelopes[1].server_seq, envelopes[1].content.is_none()), (7, true));
        let snapshots = json!({"type": "snapshot", "snapshots": [root]});
        assert!(matches!(v1.reconnected(&raw(&snapshots)), Ok(ReconnectResponse::Snapshots(all)) if all.len() == 1));
        assert!(v1.reconnected(&raw(&json!({"type": "else"}))).is_err());
    }

    #[test]
    fn notifications_are_actions_news_of_the_list_or_somebody_elses() {
        let action = json!({"envelope": {"serverSeq": 1, "action": {"type": "session/ready", "session": "s:/1"}}});
        assert!(
            matches!(notified("action", action), Ok(IncomingNotification::Action(envelope)) if envelope.content.is_some())
        );
        let broken = |rejection: Value| {
            let mut envelope = json!({"serverSeq": 1, "action": {"type": "session/delta", "session": "s:/1"}});
            envelope["rejectionReason"] = rejection;
            notified("action", json!({"envelope": envelope}))
        };
        assert!(broken(Value::Null).is_err(), "a state cannot be kept without it");
        assert!(
            matches!(broken("no".into()), Ok(IncomingNotification::Action(envelope)) if envelope.content.is_none())
        );
        let removed = json!({"notification": {"type": "notify/sessionRemoved", "session": "s:/1"}});
        assert!(matches!(notified("notification", removed), Ok(IncomingNotification::List(ListChange::Removed(_)))));
        let unknown = json!({"notification": {"type": "notify/other"}});
        assert!(matches!(notified("notification", unknown), Ok(IncomingNotification::Other)));
        assert!(matches!(notified("x-grove/else", json!({})), Ok(IncomingNotification::Other)));
    }
}
