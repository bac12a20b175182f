//! Sessions, lists and settings; channels' names.

use grove_core::*;
use grove_host::history::{CONTINUE_FIRST, HistoryQuery};
use grove_host::sequencer::{PublishedState, ResolvedTarget, SubscriptionTarget};
use grove_host::session::SessionHandle;
use grove_host::{AgentSetup, CreateSession};
use grove_wire::ahp::uri::{ChannelName, SessionName, SessionUris, Spelling};
use grove_wire::ahp::{self, error_code, project};
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::x_grove::history::HistoryMetadata;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Peer, no_session, shown};
use crate::dialect::answer::{read_params, refused, stopped};
use crate::dialect::history::unavailable;

/// The default and the largest number of sessions in a list.
pub const MAX_SESSIONS: usize = 10_000;
/// The member of `listSessions`' `_meta` about sessions of other tools: `false` leaves them out of every page.
const HISTORY: &str = "history";

/// A session's position in the list: last changed first.
type ListPosition = (Timestamp, SessionId);

/// The target of a channel's name.
pub(super) enum ChannelTarget {
    Root,
    Session(SessionUri),
    /// A chat of the session with this URI.
    Chat(SessionUri, ChatId),
}

impl Peer {
    pub(super) async fn list_sessions(
        &self,
        params: Option<&RawValue>,
    ) -> Result<ahp::ListSessionsResult, ErrorObject> {
        let params: ahp::ListSessionsParams = read_params(params)?;
        // An unpaged request means the host's own sessions, and so does an explicit one.
        let own_only = params.meta.as_ref().and_then(|meta| meta.get(HISTORY)).and_then(Value::as_bool) == Some(false);
        let by_page = (params.limit.is_some() || params.cursor.is_some()) && !own_only;
        let after = params.cursor.as_deref().map(read_cursor).transpose()?;
        let limit = params.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(MAX_SESSIONS);
        let limit = limit.clamp(1, MAX_SESSIONS);
        let history = match self.host.history() {
            Some(history) if by_page => {
                // One more tells whether there is a next page.
                let query = HistoryQuery { after: after.clone(), limit: limit + 1, ..HistoryQuery::default() };
                history.list(query).await.map_err(|error| unavailable(&error))?
            }
            Some(_) | None => Vec::new(),
        };
        let spellings = self.spellings.clone();
        let look = move |published: &PublishedState| {
            let place = |session: &Session| (project::last_modified(session), session.id.clone());
            let own = published.listed().map(|(session, failed)| (place(session), session, failed, None));
            // A session that was imported under its own id is the host's.
            let foreign = history.iter().filter(|row| !published.is_known(&row.session.id));
            let foreign = foreign.map(|row| (place(&row.session), &row.session, false, Some(&row.about)));
            let mut sessions: Vec<(ListPosition, &Session, bool, Option<&HistoryMetadata>)> =
                own.chain(foreign).collect();
            sessions.sort_unstable_by(|(a, ..), (b, ..)| b.cmp(a));
            let start = after.map_or(0, |after| sessions.partition_point(|(place, ..)| *place >= after));
            let page = &sessions[start..sessions.len().min(start + limit)];
            let items = page.iter().map(|(_, session, failed, about)| {
                let (names, spelling) = (SessionUris::of(session), spellings.of(&session.id));
                match about {
                    Some(about) => project::history_summary(session, about, &names, spelling),
                    None => project::summary(session, *failed, &names, spelling),
                }
            });
            let more = start + page.len() < sessions.len();
            let next_cursor = page.last().filter(|_| more).map(|(place, ..)| write_cursor(place));
            ahp::ListSessionsResult { items: items.collect(), next_cursor }
        };
        Ok(self.host.sequencer().read(look))
    }

    pub(super) async fn create_session(&mut self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ahp::CreateSessionParams = read_params(params)?;
        let Some(ChannelName::Session(name)) = ChannelName::parse(&params.channel) else {
            let message = format!("{} is not a session URI: it must be <scheme>:/<id>", shown(&params.channel));
            return Err(ErrorObject::invalid_params(message));
        };
        // It would hide another tool's session of this name.
        if self.host.is_history(&SubscriptionTarget::Session(name.clone())).await {
            return Err(ErrorObject::new(error_code::SESSION_ALREADY_EXISTS, CONTINUE_FIRST));
        }
        let agent_id = self.agent_of(params.provider, &name).await?;
        let active_client = params.active_client.map(ahp::decode::active_client).transpose();
        let active_client = active_client.map_err(ErrorObject::invalid_params)?;
        if active_client.as_ref().is_some_and(|active| Some(&active.client) != self.client.as_ref()) {
            return Err(ErrorObject::invalid_params("`activeClient` must be the client that asks"));
        }
        // Whatever its name here, other clients find it under its agent's name.
        let uri = SessionUri::from(format!("{agent_id}:/{}", name.id));
        self.spellings.note(&name.id, name.spelling());
        let wanted = CreateSession {
            uri: uri.clone(),
            agent: Some(agent_id),
            model: None,
            working_directories: params.working_directories.unwrap_or_default(),
            config: params.config,
            store: None,
            setup: AgentSetup::default(),
            active_client: None,
        };
        self.host.create_session(wanted).await.map_err(|error| refused(&error))?;
        if let Some(client) = active_client
            && let Some(session) = self.host.session(&uri).await.map_err(stopped)?
        {
            let take_part = self.host.carry_out(&session, ClientCommand::SetActiveClient(client)).await;
            take_part.map_err(stopped)?.map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    /// The agent of a new session: the one that is named, else the one that its URI names, else the default.
    ///
    /// A URI that is not plain must name its agent, or the session could not be found under it.
    async fn agent_of(&self, named: Option<String>, name: &SessionName) -> Result<AgentId, ErrorObject> {
        let of_scheme = match name.spelling() {
            Spelling::Plain | Spelling::Derived => None,
            Spelling::Computed => Some(AgentId::from(name.scheme.as_str())),
        };
        let agent_id = named.map(AgentId::from).or_else(|| of_scheme.clone()).or_else(|| self.host.default_agent());
        if let Some(agent_id) = &agent_id {
            self.must_have(agent_id).await?;
        }
        match agent_id {
            Some(agent_id) if of_scheme.is_some_and(|scheme| scheme != agent_id) => {
                let message = format!("a session of {agent_id} is named {agent_id}:/<id> or ahp-session:/<id>");
                Err(ErrorObject::invalid_params(message))
            }
            Some(agent_id) => Ok(agent_id),
            None => Err(ErrorObject::new(error_code::PROVIDER_NOT_FOUND, "this host has no agent")),
        }
    }

    pub(super) async fn dispose_session(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ahp::ChannelParams = read_params(params)?;
        let uri = match self.find(&params.channel).await? {
            Some(ChannelTarget::Session(uri)) => uri,
            Some(_) | None => return Err(self.unchangeable(&params.channel, no_session(&params.channel)).await),
        };
        match self.host.dispose_session(&uri).await.map_err(stopped)? {
            true => Ok(()),
            false => Err(no_session(&params.channel)),
        }
    }

    pub(super) async fn handle_of(&self, uri: &SessionUri) -> Result<Option<SessionHandle>, ErrorObject> {
        self.host.session(uri).await.map_err(stopped)
    }

    /// The tree of a channel: a chat's own, or that of its session's main chat.
    pub(in crate::dialect) async fn place(
        &self,
        channel: &str,
    ) -> Result<grove_host::session::ChatAddress, ErrorObject> {
        match self.find(channel).await? {
            Some(ChannelTarget::Session(session)) => Ok((session, Session::MAIN_CHAT.into())),
            Some(ChannelTarget::Chat(session, chat)) => Ok((session, chat)),
            Some(ChannelTarget::Root) => Err(no_session(channel)),
            None => {
                let missing = match ChannelName::parse(channel) {
                    Some(ChannelName::Session(name)) => self.missing(&name.id, channel).await,
                    Some(_) | None => no_session(channel),
                };
                Err(self.unchangeable(channel, missing).await)
            }
        }
    }

    /// The error that another tool's session cannot be changed, or the given one.
    pub(super) async fn unchangeable(&self, channel: &str, otherwise: ErrorObject) -> ErrorObject {
        match ChannelName::parse(channel).and_then(super::wanted) {
            Some(wanted) if self.host.is_history(&wanted).await => ErrorObject::new(otherwise.code, CONTINUE_FIRST),
            Some(_) | None => otherwise,
        }
    }

    /// The error that a session is missing, with the reason if it is known.
    pub(super) async fn missing(&self, id: &SessionId, channel: &str) -> ErrorObject {
        match self.host.why_missing(id).await {
            Some(why) => ErrorObject::new(error_code::SESSION_NOT_FOUND, why),
            None => no_session(channel),
        }
    }

    /// The target of a channel's name.
    pub(super) async fn find(&self, channel: &str) -> Result<Option<ChannelTarget>, ErrorObject> {
        let Some(wanted) = self.wanted(channel).await else { return Ok(None) };
        let look = move |published: &PublishedState| match published.find(&wanted)? {
            ResolvedTarget::Root => Some(ChannelTarget::Root),
            ResolvedTarget::SessionWithMainChat(session) | ResolvedTarget::Session(session) => {
                Some(ChannelTarget::Session(session.uri.clone()))
            }
            ResolvedTarget::Chat(session, chat) => Some(ChannelTarget::Chat(session.uri.clone(), chat.id.clone())),
        };
        Ok(self.host.sequencer().read(look))
    }

    /// The settings that the agent is known to accept. Unknown ones have no effect and are not returned.
    pub(super) async fn resolve_config(
        &self,
        params: Option<&RawValue>,
    ) -> Result<ahp::ResolveSessionConfigResult, ErrorObject> {
        let params: ahp::ResolveSessionConfigParams = read_params(params)?;
        let named = params.provider.map(AgentId::from);
        if let Some(agent_id) = &named {
            self.must_have(agent_id).await?;
        }
        let agent_id = named.or_else(|| self.host.default_agent());
        let known = agent_id.and_then(|agent_id| self.host.settings_of(&agent_id));
        let mut config = known.unwrap_or_else(|| SessionConfig::of(Extra::new()));
        config.choose(params.config.unwrap_or_default());
        let config = project::config(&config, None);
        Ok(ahp::ResolveSessionConfigResult { schema: config.schema, values: config.values })
    }

    /// Fails if the host has no such agent. An unknown one is looked for again first.
    pub(super) async fn must_have(&self, agent_id: &AgentId) -> Result<(), ErrorObject> {
        match self.host.agent_named(agent_id).await {
            Some(_) => Ok(()),
            None => {
                let hint = self.host.install_hint(agent_id);
                let message = format!("there is no agent {}{hint}", shown(agent_id.as_str()));
                Err(ErrorObject::new(error_code::PROVIDER_NOT_FOUND, message))
            }
        }
    }

    /// Accepts and ignores a token: no agent asks for one yet.
    pub(super) fn authenticate(&self, params: Option<&RawValue>) -> Result<ahp::EmptyResult, ErrorObject> {
        let params: ahp::AuthenticateParams = read_params(params)?;
        let message = format!("no agent of this host asks for a token for {}", shown(&params.resource));
        Err(ErrorObject::new(error_code::NOT_FOUND, message))
    }
}

fn write_cursor((at, id): &ListPosition) -> String {
    format!("{}:{id}", at.0)
}

fn read_cursor(cursor: &str) -> Result<ListPosition, ErrorObject> {
    let place = cursor.split_once(':').and_then(|(at, id)| Some((Timestamp(at.parse().ok()?), SessionId::from(id))));
    place.ok_or_else(|| ErrorObject::invalid_params(format!("{} is not a cursor of this list", shown(cursor))))
}
