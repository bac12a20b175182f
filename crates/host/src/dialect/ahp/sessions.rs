//! Sessions, chats, lists, settings, completions, older turns.

use std::path::Path;
use std::sync::Arc;

use grove_core::*;
use grove_wire::ahp::uri::{ChannelName, ChatName, SessionName, SessionUris, Spelling};
use grove_wire::ahp::{self, error_code, project};
use grove_wire::jsonrpc::{self, ErrorObject, Id, code};
use grove_wire::x_grove::history::HistoryMetadata;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use super::{Peer, no_session, not_found, shown};
use crate::connection::Encode;
use crate::dialect::answer::{encode, read_params, stopped};
use crate::dialect::history::unavailable;
use crate::dialect::turns::{self, TurnPage, TurnsError, newest};
use crate::dialect::x_grove::{refusal_code, tree_error};
use crate::history::{CONTINUE_FIRST, HistoryQuery};
use crate::host::{CreateError, CreateSession, install_hint};
use crate::sequencer::{DirectReply, PublishedState, ReplySink, ResolvedTarget, SubscriptionTarget, ToSequencer};
use crate::session::{ChatForkRequest, CommandError, SessionHandle, ToSession};

/// The default and the largest number of sessions in a list.
const MAX_SESSIONS: usize = 10_000;
/// The member of `listSessions`' `_meta` about sessions of other tools: `false` leaves them out of every page.
const HISTORY: &str = "history";
/// The turns in one answer to `fetchTurns`.
const TURNS_AT_ONCE: usize = 50;
/// The completions that are offered.
const MAX_COMPLETIONS: usize = 50;

/// A session's position in the list: last changed first.
type ListPosition = (Timestamp, SessionId);

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
        let look = move |published: &PublishedState, _| {
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
        self.host.0.sequencer.read(look).await.map_err(stopped)
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
        let provider = self.provider_of(params.provider, &name).await?;
        let active_client = params.active_client.map(ahp::decode::active_client).transpose();
        let active_client = active_client.map_err(ErrorObject::invalid_params)?;
        if active_client.as_ref().is_some_and(|active| Some(&active.client) != self.client.as_ref()) {
            return Err(ErrorObject::invalid_params("`activeClient` must be the client that asks"));
        }
        // Whatever its name here, other clients find it under its agent's name.
        let uri = SessionUri::from(format!("{provider}:/{}", name.id));
        self.spellings.note(&name.id, name.spelling());
        let wanted = CreateSession {
            uri: uri.clone(),
            provider: Some(provider),
            model: None,
            working_directories: params.working_directories.unwrap_or_default(),
            config: params.config,
            store: None,
        };
        self.host.create_session(wanted).await.map_err(|error| create_error(&error))?;
        if let Some(client) = active_client
            && let Some(session) = self.host.session(&uri).await.map_err(stopped)?
        {
            let take_part = self.host.carry_out(&session, Command::SetActiveClient(client)).await;
            take_part.map_err(stopped)?.map_err(refused)?;
        }
        Ok(())
    }

    /// The agent of a new session: the one that is named, else the one that its URI names, else the default.
    ///
    /// A URI that is not plain must name its agent, or the session could not be found under it.
    async fn provider_of(&self, named: Option<String>, name: &SessionName) -> Result<ProviderId, ErrorObject> {
        let of_scheme = match name.spelling() {
            Spelling::Plain | Spelling::Derived => None,
            Spelling::Computed => Some(ProviderId::from(name.scheme.as_str())),
        };
        let provider =
            named.map(ProviderId::from).or_else(|| of_scheme.clone()).or_else(|| self.host.default_provider());
        if let Some(provider) = &provider {
            self.must_have(provider).await?;
        }
        match provider {
            Some(provider) if of_scheme.is_some_and(|scheme| scheme != provider) => {
                let message = format!("a session of {provider} is named {provider}:/<id> or ahp-session:/<id>");
                Err(ErrorObject::invalid_params(message))
            }
            Some(provider) => Ok(provider),
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

    pub(super) async fn create_chat(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ahp::CreateChatParams = read_params(params)?;
        let message = params.initial_message.map(ahp::decode::message).transpose();
        let message = message.map_err(ErrorObject::invalid_params)?;
        if message.as_ref().is_some_and(|message| message.origin != MessageOrigin::User) {
            return Err(ErrorObject::invalid_params(Rejection::OnlyUserMessages.to_string()));
        }
        if message.as_ref().is_some_and(Message::is_empty) {
            return Err(ErrorObject::invalid_params(Rejection::EmptyMessage.to_string()));
        }
        let session = match self.find(&params.channel).await? {
            Some(ChannelTarget::Session(uri)) => self.handle_of(&uri).await?,
            Some(_) | None => None,
        };
        let Some(session) = session else {
            return Err(self.unchangeable(&params.channel, no_session(&params.channel)).await);
        };
        let chat = self.new_chat(&session.uri, &params.chat).await?;
        match params.source {
            None => {
                let add = Command::AddChat { chat: chat.clone(), uri: params.chat };
                let added = self.host.carry_out(&session, add).await.map_err(stopped)?;
                added.map_err(refused)?;
            }
            Some(source) => self.fork_chat(&session, chat.clone(), params.chat, source).await?,
        }
        if let Some(message) = message {
            let turn = TurnId::from(format!("{chat}-first"));
            let start = Command::StartTurn { chat, turn, message, started_at: None };
            let started = self.host.carry_out(&session, start).await.map_err(stopped)?;
            started.map_err(refused)?;
        }
        Ok(())
    }

    /// Creates a chat as a fork of another one of its session.
    async fn fork_chat(
        &self,
        session: &SessionHandle,
        chat: ChatId,
        uri: String,
        source: ahp::ChatSource,
    ) -> Result<(), ErrorObject> {
        let (from, turn, kind) = match source {
            ahp::ChatSource::Fork(fork) => (fork.chat, fork.turn_id, OriginKind::Fork),
            ahp::ChatSource::SideChat(side) => {
                let selection = side.selection.map(|it| Selection { text: it.text, part: it.response_part_id });
                (side.chat, side.turn_id, OriginKind::Side { selection })
            }
            ahp::ChatSource::Unknown(_) => {
                let message = "a chat's source must be a `fork` or a `sideChat`";
                return Err(ErrorObject::invalid_params(message));
            }
        };
        let source = match self.find(&from).await? {
            Some(ChannelTarget::Chat(uri, chat)) if uri == session.uri => chat,
            Some(ChannelTarget::Chat(..)) => {
                let message = format!("{} belongs to another session: fork that one (x-grove/fork)", shown(&from));
                return Err(ErrorObject::invalid_params(message));
            }
            Some(_) | None => return Err(self.unchangeable(&from, not_found(&from)).await),
        };
        let new = ChatForkRequest { chat, uri, turn: turn.into(), kind };
        let (done, told) = oneshot::channel();
        let gone = || no_session(session.uri.as_str());
        session.inbox.send(ToSession::Fork(source, new, done)).await.map_err(|_| gone())?;
        told.await.map_err(|_| gone())?.map_err(|error| tree_error(&error))
    }

    /// The id for a new chat of this name in a session, if the name is free.
    async fn new_chat(&self, session: &SessionUri, uri: &str) -> Result<ChatId, ErrorObject> {
        let exists = |message: String| ErrorObject::new(error_code::ALREADY_EXISTS, message);
        let shown = shown(uri);
        let name = match ChannelName::parse(uri) {
            Some(ChannelName::Chat(name)) => name,
            Some(_) | None => {
                let message = format!("{shown} is not a chat's URI: choose ahp-chat:/<id>");
                return Err(ErrorObject::invalid_params(message));
            }
        };
        let Some(chat) = name.new_chat().cloned() else {
            return Err(exists(format!("{shown} is the session's main chat: choose another id")));
        };
        let place = match &name {
            ChatName::Main(place) | ChatName::Of(place, _) => Some(place.clone()),
            ChatName::ById(_) => None,
        };
        let (at, wanted) = (session.clone(), chat.clone());
        let look = move |published: &PublishedState, _| {
            let here = published.state.sessions.values().find(|session| session.uri == at);
            let is_elsewhere = place.is_some_and(|place| !here.is_some_and(|here| place.fits(here)));
            let taken_by = match published.is_known(&SessionId::from(wanted.as_str())) {
                true => Some(NameOwner::MainChat),
                false => published.session_of_chat(&wanted).map(|owner| NameOwner::Chat(owner.uri.clone())),
            };
            (is_elsewhere, taken_by)
        };
        let (is_elsewhere, taken_by) = self.host.0.sequencer.read(look).await.map_err(stopped)?;
        if is_elsewhere {
            let message = format!("{shown} names a chat of another session than {session}: choose ahp-chat:/<id>");
            return Err(ErrorObject::invalid_params(message));
        }
        match taken_by {
            None => Ok(chat),
            Some(NameOwner::MainChat) => {
                Err(exists(format!("{shown} is the main chat of the session {chat}: choose another id")))
            }
            Some(NameOwner::Chat(owner)) => {
                Err(exists(format!("{shown} is a chat of the session {owner} already: choose another id")))
            }
        }
    }

    pub(super) async fn dispose_chat(&self, params: Option<&RawValue>) -> Result<(), ErrorObject> {
        let params: ahp::ChannelParams = read_params(params)?;
        let (uri, chat) = match self.find(&params.channel).await? {
            Some(ChannelTarget::Chat(uri, chat)) => (uri, chat),
            Some(_) | None => return Err(self.unchangeable(&params.channel, not_found(&params.channel)).await),
        };
        let session = self.handle_of(&uri).await?.ok_or_else(|| not_found(&params.channel))?;
        let removed = self.host.carry_out(&session, Command::RemoveChat(chat)).await.map_err(stopped)?;
        removed.map_err(refused)
    }

    async fn handle_of(&self, uri: &SessionUri) -> Result<Option<SessionHandle>, ErrorObject> {
        self.host.session(uri).await.map_err(stopped)
    }

    /// The tree of a channel: a chat's own, or that of its session's main chat.
    pub(in crate::dialect) async fn place(&self, channel: &str) -> Result<crate::branch::ChatAddress, ErrorObject> {
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
    async fn unchangeable(&self, channel: &str, otherwise: ErrorObject) -> ErrorObject {
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
        let look = move |published: &PublishedState, _| match published.find(&wanted)? {
            ResolvedTarget::Root => Some(ChannelTarget::Root),
            ResolvedTarget::SessionWithMainChat(session) | ResolvedTarget::Session(session) => {
                Some(ChannelTarget::Session(session.uri.clone()))
            }
            ResolvedTarget::Chat(session, chat) => Some(ChannelTarget::Chat(session.uri.clone(), chat.id.clone())),
        };
        self.host.0.sequencer.read(look).await.map_err(stopped)
    }

    /// Loads older turns into the client's state before it is answered.
    ///
    /// Other clients have them, or fetch them themselves.
    pub(super) async fn fetch_turns(
        &self,
        id: Id,
        params: Option<&RawValue>,
        reply: ReplySink,
    ) -> Result<(), (ReplySink, ErrorObject)> {
        let answer = encode(&id, &ahp::EmptyResult {});
        match self.older_turns(params).await {
            Ok(None) => reply(Encode::Text(answer)),
            Ok(Some((channel, action))) => {
                let frame = move |seq| {
                    let action = RawValue::from_string(action).ok()?;
                    ahp::encode::direct_reply(&channel, &action, seq, None, None).map(Arc::from)
                };
                let answer = Encode::Text(answer);
                let loaded = DirectReply { connection: self.id, frame: Box::new(frame), answer: Some((reply, answer)) };
                // A stopping host closes the connection; that is the answer.
                self.host.0.sequencer.tell(ToSequencer::SendDirect(loaded)).await.ok();
            }
            Err(error) => return Err((reply, error)),
        }
        Ok(())
    }

    /// The channel and the action that loads the turns before a cursor; `None` if none is older.
    async fn older_turns(&self, params: Option<&RawValue>) -> Result<Option<(String, String)>, ErrorObject> {
        let params: ahp::FetchTurnsParams = read_params(params)?;
        let missing = || not_found(&params.channel);
        let wanted = self.wanted(&params.channel).await.ok_or_else(missing)?;
        if !matches!(wanted, SubscriptionTarget::Chat(_)) {
            return Err(missing());
        }
        let Some(cursor) = &params.cursor else { return Ok(None) };
        // The empty cursor belongs to a client that wanted no turns at first: it gets the last ones.
        let before = Some(TurnId::from(cursor.as_str())).filter(|_| !cursor.is_empty());
        let found = turns::find(&self.host, wanted, before, TURNS_AT_ONCE).await.map_err(|error| match error {
            TurnsError::NoChat => missing(),
            TurnsError::NoTurn(_) => {
                ErrorObject::invalid_params(format!("{} is not a cursor of this chat", shown(cursor)))
            }
            TurnsError::Unreadable(error) => ErrorObject::invalid_params(error.to_string()),
            TurnsError::History(error) => unavailable(&error),
            TurnsError::HostStopped(error) => stopped(error),
        })?;
        let TurnPage { session, turns, older } = found;
        let window =
            newest(&turns, |turn| project::turn_json(&session, turn), self.host.0.config.limits.snapshot_bytes);
        let first = turns.get(turns.len() - window.len());
        let cursor = first.filter(|_| older || window.len() < turns.len()).map(|turn| turn.id.as_str());
        let cursor = cursor.and_then(|cursor| serde_json::to_string(cursor).ok());
        let cursor = cursor.map(|cursor| format!(r#","turnsNextCursor":{cursor}"#)).unwrap_or_default();
        let action = format!(r#"{{"type":"chat/turnsLoaded","turns":[{}]{cursor}}}"#, window.join(","));
        Ok(Some((params.channel, action)))
    }

    /// The settings that the agent is known to accept. Unknown ones have no effect and are not returned.
    pub(super) async fn resolve_config(
        &self,
        params: Option<&RawValue>,
    ) -> Result<ahp::ResolveSessionConfigResult, ErrorObject> {
        let params: ahp::ResolveSessionConfigParams = read_params(params)?;
        let named = params.provider.map(ProviderId::from);
        if let Some(provider) = &named {
            self.must_have(provider).await?;
        }
        let provider = named.or_else(|| self.host.default_provider());
        let known = provider.and_then(|provider| self.host.settings_of(&provider));
        let mut config = known.unwrap_or_else(|| SessionConfig::of(Extra::new()));
        config.choose(params.config.unwrap_or_default());
        let config = project::config(&config, None);
        Ok(ahp::ResolveSessionConfigResult { schema: config.schema, values: config.values })
    }

    pub(super) async fn config_completions(
        &self,
        params: Option<&RawValue>,
    ) -> Result<ahp::SessionConfigCompletionsResult, ErrorObject> {
        let params: ahp::SessionConfigCompletionsParams = read_params(params)?;
        if let Some(provider) = params.provider.map(ProviderId::from) {
            self.must_have(&provider).await?;
        }
        Ok(ahp::SessionConfigCompletionsResult::default())
    }

    /// Fails if the host has no such agent. An unknown one is looked for again first.
    async fn must_have(&self, provider: &ProviderId) -> Result<(), ErrorObject> {
        match self.host.agent_named(provider).await {
            Some(_) => Ok(()),
            None => {
                let hint = install_hint(provider);
                let message = format!("there is no agent {}{hint}", shown(provider.as_str()));
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

    /// Completes `@path` with files in the session's folder.
    pub(super) async fn completions(&self, params: Option<&RawValue>) -> Result<ahp::CompletionsResult, ErrorObject> {
        let params: ahp::CompletionsParams = read_params(params)?;
        let wanted = self.wanted(&params.channel).await;
        let wanted = wanted.filter(|wanted| matches!(wanted, SubscriptionTarget::Chat(_)));
        let wanted = wanted.ok_or_else(|| not_found(&params.channel))?;
        let look = move |published: &PublishedState, _| match published.find(&wanted)? {
            ResolvedTarget::Chat(session, _) => Some(session.working_directories.first().cloned()),
            ResolvedTarget::Root | ResolvedTarget::SessionWithMainChat(_) | ResolvedTarget::Session(_) => None,
        };
        let folder = self.host.0.sequencer.read(look).await.map_err(stopped)?;
        let folder = folder.ok_or_else(|| not_found(&params.channel))?;
        let none = ahp::CompletionsResult::default();
        let (Some(folder), Some(word)) = (folder, FileReference::at(&params.text, params.offset)) else {
            return Ok(none);
        };
        let Ok(folder) = grove_work::local_path(&folder) else { return Ok(none) };
        let (inside, begins) = word.path.rsplit_once('/').unwrap_or(("", &word.path));
        let looked_in = folder.join(inside);
        let policy = self.host.policy().await.map_err(stopped)?;
        let most = self.host.0.config.limits.folder_entries;
        // A folder that cannot be listed has no completions.
        let entries = grove_work::list(&policy, &looked_in, most).await.unwrap_or_default();
        let fitting = entries.into_iter().filter(|entry| entry.name.starts_with(begins)).take(MAX_COMPLETIONS);
        let items = fitting.map(|entry| completion(&word, inside, &looked_in, &entry));
        Ok(ahp::CompletionsResult { items: items.collect() })
    }
}

/// The chat that already has the name requested for a new one.
enum NameOwner {
    /// The main chat of a session, which is named by the session's id.
    MainChat,
    /// Another chat, of this session.
    Chat(SessionUri),
}

/// The target of a channel's name.
pub(super) enum ChannelTarget {
    Root,
    Session(SessionUri),
    /// A chat of the session with this URI.
    Chat(SessionUri, ChatId),
}

/// A file reference that is being typed: the position of its `@`, and the text after it.
struct FileReference {
    start: u64,
    end: u64,
    path: String,
}

impl FileReference {
    /// The reference that ends at an offset in UTF-16 units.
    fn at(text: &str, offset: u64) -> Option<Self> {
        let mut before = String::new();
        let mut units = 0;
        for character in text.chars() {
            if units >= offset {
                break;
            }
            units += character.len_utf16() as u64;
            before.push(character);
        }
        let word = before.rsplit(char::is_whitespace).next()?;
        let path = word.strip_prefix('@')?.to_owned();
        let length = word.encode_utf16().count() as u64;
        Some(Self { start: units - length, end: units, path })
    }
}

fn completion(
    word: &FileReference,
    inside: &str,
    folder: &Path,
    entry: &grove_work::FolderEntry,
) -> ahp::CompletionItem {
    let is_folder = entry.kind == grove_work::FileKind::Folder;
    let parent = if inside.is_empty() { String::new() } else { format!("{inside}/") };
    let slash = if is_folder { "/" } else { "" };
    ahp::CompletionItem {
        insert_text: format!("@{parent}{}{slash}", entry.name),
        range_start: Some(word.start),
        range_end: Some(word.end),
        attachment: ahp::MessageAttachment::Resource(ahp::MessageResourceAttachment {
            label: entry.name.clone(),
            range: None,
            display_kind: Some(if is_folder { "directory" } else { "document" }.to_owned()),
            meta: None,
            uri: grove_work::file_uri(&folder.join(&entry.name)),
            size_hint: None,
            content_type: None,
            nonce: None,
            selection: None,
        }),
    }
}

fn write_cursor((at, id): &ListPosition) -> String {
    format!("{}:{id}", at.0)
}

fn read_cursor(cursor: &str) -> Result<ListPosition, ErrorObject> {
    let place = cursor.split_once(':').and_then(|(at, id)| Some((Timestamp(at.parse().ok()?), SessionId::from(id))));
    place.ok_or_else(|| ErrorObject::invalid_params(format!("{} is not a cursor of this list", shown(cursor))))
}

/// The answer to a request that a session refused.
fn refused(refusal: CommandError) -> ErrorObject {
    ErrorObject::new(refusal_code(&refusal), refusal.to_string())
}

fn create_error(error: &CreateError) -> ErrorObject {
    let code = match error {
        CreateError::BadUri(_)
        | CreateError::ReservedUri(_)
        | CreateError::UnknownModel { .. }
        | CreateError::Store(_)
        | CreateError::WorkingDirectory(_)
        | CreateError::TooManyDirectories(_) => jsonrpc::code::INVALID_PARAMS,
        CreateError::UnknownProvider(_) => error_code::PROVIDER_NOT_FOUND,
        CreateError::Exists(_) | CreateError::IdTaken { .. } | CreateError::BeingImported(_) | CreateError::Kept(_) => {
            error_code::SESSION_ALREADY_EXISTS
        }
        CreateError::Folder(_)
        | CreateError::Provider { .. }
        | CreateError::BeingCopied(_)
        | CreateError::IdGenerationError(_)
        | CreateError::NotStored(_)
        | CreateError::HostStopped(_) => code::INTERNAL,
    };
    ErrorObject::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_ends_where_the_cursor_is_and_counts_in_utf16() {
        let word = |text: &str, offset| FileReference::at(text, offset).map(|word| (word.start, word.end, word.path));
        assert_eq!(word("see @src/ma", 11), Some((4, 11, "src/ma".into())));
        assert_eq!(word("see @src/ma please", 11), Some((4, 11, "src/ma".into())));
        assert_eq!(word("😀 @a", 5), Some((3, 5, "a".into())));
        assert_eq!(word("see src", 7), None);
        assert_eq!(word("", 0), None);
        assert_eq!(word("@", 99), Some((0, 1, String::new())));
    }
}
