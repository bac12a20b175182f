//! The Agent Host Protocol 1.0: the root, sessions, chats, and watches on files.

use std::sync::Arc;

use grove_wire::ahp::action::is_client_dispatchable;
use grove_wire::ahp::uri::{ChannelName, ChatName};
use grove_wire::ahp::{
    self, Action, ActionEnvelope, Implementation, Method, Notification, NotificationMethod, PartialSessionSummary,
    ROOT, SessionAction, SessionSummary, Version, status, time,
};
use grove_wire::x_grove::announcement::Announcement;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{
    AddressedAction, Dialect, DispatchOrigin, IncomingNotification, InitializeResponse, ListChange, ListPage, Model,
    ReconnectResponse, RequestParams, ResourceSnapshot, SequencedAction, Unsupported,
};

/// The state of any channel.
pub use grove_wire::ahp::SnapshotState as ResourceState;

/// The Agent Host Protocol.
///
/// Subscribers name channels. A host answers in the spelling of the request, so a client should use one spelling for
/// each session: that of the list.
#[derive(Clone, Debug)]
pub struct Ahp {
    /// The offered versions, the preferred one first.
    pub versions: Vec<Version>,
    /// The name of this program, for people.
    pub info: Option<Implementation>,
    /// The `_meta` of `initialize` and `reconnect`: what this client offers beside the protocol.
    pub meta: Option<ahp::Object>,
    /// The page size of the session list. `None`: the host decides.
    pub list_page: Option<u64>,
}

impl Default for Ahp {
    fn default() -> Self {
        let info = Implementation {
            name: "grove-client".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            title: None,
        };
        Self { versions: vec![ahp::version::CURRENT], info: Some(info), meta: None, list_page: None }
    }
}

/// A host's description of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct HostDescription {
    pub version: Version,
    pub info: Option<Implementation>,
    pub default_directory: Option<String>,
    /// Characters after which a client requests completions.
    pub completion_triggers: Vec<String>,
    /// The protocol extensions, if it is a Grove host.
    pub grove: Option<Arc<Announcement>>,
}

impl Model for Ahp {
    type ResourceState = ResourceState;
    type Action = Action;

    fn reduce(state: &mut ResourceState, action: &Action) {
        ahp::reduce::reduce(state, action);
        if let (ResourceState::Session(session), Action::Session(_)) = (state, action) {
            ahp::derive_session(session);
        }
    }
}

impl Dialect for Ahp {
    /// An action names no channel, so the body is the action itself.
    type ActionBody = Action;
    type HostDescription = HostDescription;
    type SessionRow = SessionSummary;
    type SessionRowPatch = Box<PartialSessionSummary>;

    fn initialize(&self, client_id: &str, resources: &[String]) -> impl Serialize {
        ahp::InitializeParams {
            channel: ROOT.to_owned(),
            meta: self.meta.clone(),
            protocol_versions: self.versions.iter().map(ToString::to_string).collect(),
            client_id: client_id.to_owned(),
            client_info: self.info.clone(),
            initial_subscriptions: Some(resources.to_vec()),
            ..ahp::InitializeParams::default()
        }
    }

    fn initialized(&self, result: &RawValue) -> serde_json::Result<InitializeResponse<Self>> {
        let result: ahp::InitializeResult = serde_json::from_str(result.get())?;
        let version: Version = result.protocol_version.parse().map_err(serde::de::Error::custom)?;
        if !self.versions.contains(&version) {
            return Err(serde::de::Error::custom(format!("it answers in version {version}, which was not offered")));
        }
        Ok(InitializeResponse {
            server: HostDescription {
                version,
                info: result.server_info,
                default_directory: result.default_directory,
                completion_triggers: result.completion_trigger_characters.unwrap_or_default(),
                grove: Announcement::read(result.meta.as_ref()).map(Arc::new),
            },
            server_seq: result.server_seq,
            snapshots: result.snapshots.into_iter().map(snapshot).collect(),
        })
    }

    fn reconnect(&self, client_id: &str, last_seen_seq: u64, resources: &[String]) -> impl Serialize {
        ahp::ReconnectWithWatermark {
            channel: Some(ROOT.to_owned()),
            meta: self.meta.clone(),
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
            #[serde(default)]
            missing: Vec<String>,
            snapshots: Option<Vec<ahp::Snapshot>>,
        }
        let answer: Response<'_> = serde_json::from_str(result.get())?;
        match (answer.actions, answer.snapshots) {
            (Some(actions), None) => {
                let envelopes = actions.into_iter().map(envelope).collect::<Result<_, _>>()?;
                Ok(ReconnectResponse::Replay { envelopes, missing: answer.missing })
            }
            (None, Some(snapshots)) => Ok(ReconnectResponse::Snapshots(snapshots.into_iter().map(snapshot).collect())),
            (Some(_), Some(_)) | (None, None) => Err(serde::de::Error::custom("neither a replay nor snapshots")),
        }
    }

    fn subscribe(&self, resource: &str) -> impl Serialize {
        ahp::SubscribeParams { channel: resource.to_owned(), ..ahp::SubscribeParams::default() }
    }

    fn subscribed(&self, resource: &str, result: &RawValue) -> serde_json::Result<ResourceSnapshot<ResourceState>> {
        let result: ahp::SubscribeResult = serde_json::from_str(result.get())?;
        let stateless = || serde::de::Error::custom(format!("{resource} has no state, so it cannot be subscribed"));
        result.snapshot.map(snapshot).ok_or_else(stateless)
    }

    fn unsubscribe(&self, resource: &str) -> impl Serialize {
        ahp::UnsubscribeParams { channel: resource.to_owned() }
    }

    fn address(&self, server: &HostDescription, resource: &str, action: Action) -> Result<Action, Unsupported> {
        let what = || action.kind().to_owned();
        if !is_client_dispatchable(action.kind()) {
            return Err(Unsupported::ByClients { what: what() });
        }
        if !ahp::version::knows(server.version, action.kind()) {
            return Err(Unsupported::ByVersion { what: what(), version: server.version.to_string() });
        }
        if !belongs(&action, resource) {
            return Err(Unsupported::ByResource { what: what(), resource: resource.to_owned() });
        }
        Ok(action)
    }

    fn dispatch(&self, resource: &str, client_seq: u64, action: &Action) -> impl Serialize {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct DispatchParams<'a> {
            channel: String,
            client_seq: u64,
            action: &'a Action,
        }
        DispatchParams { channel: resource.to_owned(), client_seq, action }
    }

    fn list(&self, cursor: Option<&str>) -> impl Serialize {
        ahp::ListSessionsParams {
            channel: ROOT.to_owned(),
            limit: self.list_page,
            cursor: cursor.map(ToOwned::to_owned),
            ..ahp::ListSessionsParams::default()
        }
    }

    fn listed(&self, result: &RawValue) -> serde_json::Result<ListPage<SessionSummary>> {
        let result: ahp::ListSessionsResult = serde_json::from_str(result.get())?;
        Ok(ListPage { rows: result.items, next: result.next_cursor })
    }

    fn row_uri(summary: &SessionSummary) -> &str {
        &summary.resource
    }

    fn last_used(summary: &SessionSummary) -> Option<u64> {
        let used = time::parse(&summary.modified_at).map_or(0, |at| at.0);
        (summary.status & status::IS_ARCHIVED == 0).then_some(used)
    }

    fn patch(summary: &mut SessionSummary, patch: &Box<PartialSessionSummary>) {
        // All fields by name: a new one must be handled here.
        let PartialSessionSummary {
            provider,
            title,
            status,
            activity,
            origin,
            project,
            working_directories,
            annotations,
            resource: _,
            created_at,
            modified_at,
            changes,
            meta,
            chats,
            default_chat,
        } = &**patch;
        assign(&mut summary.provider, provider);
        assign(&mut summary.title, title);
        assign(&mut summary.status, status);
        set(&mut summary.activity, activity);
        set(&mut summary.origin, origin);
        set(&mut summary.project, project);
        set(&mut summary.working_directories, working_directories);
        set(&mut summary.annotations, annotations);
        assign(&mut summary.created_at, created_at);
        assign(&mut summary.modified_at, modified_at);
        set(&mut summary.changes, changes);
        set(&mut summary.meta, meta);
        set(&mut summary.chats, chats);
        set(&mut summary.default_chat, default_chat);
    }

    fn notified(&self, method: &str, params: &RawValue) -> serde_json::Result<IncomingNotification<Self>> {
        if method == ahp::notify::ACTION {
            return envelope(serde_json::from_str(params.get())?).map(IncomingNotification::Action);
        }
        let Some(method) = NotificationMethod::named(method) else { return Ok(IncomingNotification::Other) };
        Ok(match Notification::parse(method, params.get())? {
            Notification::SessionAdded(params) => IncomingNotification::List(ListChange::Added(params.summary)),
            Notification::SessionRemoved(params) => IncomingNotification::List(ListChange::Removed(params.session)),
            Notification::SessionSummaryChanged(params) => IncomingNotification::List(ListChange::Changed {
                session: params.session,
                patch: Box::new(params.changes),
            }),
            Notification::Progress(_) | Notification::AuthRequired(_) => IncomingNotification::Other,
        })
    }

    fn list_resource(&self) -> Option<&str> {
        Some(ROOT)
    }

    fn announced(server: &HostDescription) -> Option<&Announcement> {
        server.grove.as_deref()
    }

    fn belongs_to_session(&self, session: &str, row: Option<&SessionSummary>, resource: &str) -> bool {
        let chats = row.and_then(|row| row.chats.as_ref()).into_iter().flatten();
        session == resource || is_part_of(session, resource) || chats.into_iter().any(|chat| chat.resource == resource)
    }

    fn removed(action: &Action) -> Option<&str> {
        match action {
            Action::Session(SessionAction::ChatRemoved(removed)) => Some(&removed.chat),
            _ => None,
        }
    }
}

/// Returns whether a name alone shows that it belongs to a session, or to one of its chats, in any spelling.
fn is_part_of(session: &str, resource: &str) -> bool {
    let Some(ChannelName::Session(session)) = ChannelName::parse(session) else { return false };
    match ChannelName::parse(resource) {
        Some(ChannelName::Session(name) | ChannelName::Chat(ChatName::Main(name) | ChatName::Of(name, _))) => {
            name.id == session.id
        }
        // A main chat has its session's id.
        Some(ChannelName::Chat(ChatName::ById(chat))) => chat.as_str() == session.id.as_str(),
        Some(ChannelName::Root | ChannelName::ResourceWatch(_) | ChannelName::Terminal(_)) | None => false,
    }
}

/// Returns whether an action may be sent to a channel of that name, so far as the name shows its kind.
fn belongs(action: &Action, resource: &str) -> bool {
    match (ChannelName::parse(resource), action) {
        (Some(ChannelName::Root), action) => matches!(action, Action::Root(_)),
        // A session may be renamed on its chat's channel.
        (Some(ChannelName::Chat(_)), action) => matches!(action, Action::Chat(_) | Action::Session(_)),
        (Some(ChannelName::ResourceWatch(_)), _) => false,
        (Some(ChannelName::Terminal(_)), action) => matches!(action, Action::Terminal(_)),
        // Names of changesets look like those of sessions.
        (Some(ChannelName::Session(_)) | None, action) => !matches!(action, Action::Root(_) | Action::Chat(_)),
    }
}

fn assign<T: Clone>(field: &mut T, value: &Option<T>) {
    if let Some(value) = value {
        field.clone_from(value);
    }
}

fn set<T: Clone>(field: &mut Option<T>, value: &Option<T>) {
    if value.is_some() {
        field.clone_from(value);
    }
}

fn snapshot(snapshot: ahp::Snapshot) -> ResourceSnapshot<ResourceState> {
    ResourceSnapshot { resource: snapshot.resource, state: snapshot.state, from_seq: snapshot.from_seq }
}

fn envelope(raw: ActionEnvelope<&RawValue>) -> serde_json::Result<SequencedAction<Action>> {
    let content = match Action::parse(raw.action.get()) {
        Ok(Action::Unknown(_)) => None,
        Ok(action) => Some(AddressedAction { resource: raw.channel, action }),
        // A rejected action may be anything, and changes nothing.
        Err(_) if raw.rejection_reason.is_some() => None,
        Err(error) => return Err(serde::de::Error::custom(error)),
    };
    let origin = raw.origin.map(|origin| DispatchOrigin { client_id: origin.client_id, client_seq: origin.client_seq });
    Ok(SequencedAction { server_seq: raw.server_seq, origin, rejection: raw.rejection_reason, content })
}

/// Disposes of a session with its chats.
#[derive(Clone, Debug, Serialize)]
pub struct DisposeSession {
    pub channel: String,
}

/// Disposes of a chat.
#[derive(Clone, Debug, Serialize)]
pub struct DisposeChat {
    pub channel: String,
}

/// Assigns methods and response types to the params of requests.
macro_rules! commands {
    ($($params:ty => $method:ident, $answer:ty;)*) => {$(
        impl RequestParams<Ahp> for $params {
            const METHOD: &'static str = Method::$method.as_str();
            type Response = $answer;
        }
    )*};
}

commands! {
    ahp::ListSessionsParams => ListSessions, ahp::ListSessionsResult;
    ahp::CreateSessionParams => CreateSession, ();
    DisposeSession => DisposeSession, ();
    ahp::CreateChatParams => CreateChat, ();
    DisposeChat => DisposeChat, ();
    ahp::FetchTurnsParams => FetchTurns, ahp::EmptyResult;
    ahp::CompletionsParams => Completions, ahp::CompletionsResult;
    ahp::ResolveSessionConfigParams => ResolveSessionConfig, ahp::ResolveSessionConfigResult;
    ahp::SessionConfigCompletionsParams => SessionConfigCompletions, ahp::SessionConfigCompletionsResult;
    ahp::AuthenticateParams => Authenticate, ahp::EmptyResult;
    ahp::ResourceReadParams => ResourceRead, ahp::ResourceReadResult;
    ahp::ResourceListParams => ResourceList, ahp::ResourceListResult;
    ahp::ResourceResolveParams => ResourceResolve, ahp::ResourceResolveResult;
    ahp::ResourceRequestParams => ResourceRequest, ahp::EmptyResult;
    ahp::CreateResourceWatchParams => CreateResourceWatch, ahp::CreateResourceWatchResult;
}

#[cfg(test)]
mod tests;
