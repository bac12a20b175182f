//! Chats.

use grove_core::*;
use grove_host::sequencer::PublishedState;
use grove_host::session::{ChatForkRequest, SessionHandle};
use grove_wire::ahp::uri::{ChannelName, ChatName};
use grove_wire::ahp::{self, error_code};
use grove_wire::jsonrpc::ErrorObject;
use serde_json::value::RawValue;

use super::sessions::ChannelTarget;
use super::{Peer, no_session, not_found, shown};
use crate::dialect::answer::{read_params, refused, stopped};

/// The chat that already has the name requested for a new one.
enum NameOwner {
    /// The main chat of a session, which is named by the session's id.
    MainChat,
    /// Another chat, of this session.
    Chat(SessionUri),
}

impl Peer {
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
                let add = HostCommand::AddChat { chat: chat.clone(), uri: params.chat };
                let added = self.host.carry_out(&session, add).await.map_err(stopped)?;
                added.map_err(|error| refused(&error))?;
            }
            Some(source) => self.fork_chat(&session, chat.clone(), params.chat, source).await?,
        }
        if let Some(message) = message {
            let turn = TurnId::from(format!("{chat}-first"));
            let start = ClientCommand::StartTurn { chat, turn, message, started_at: None };
            let started = self.host.carry_out(&session, start).await.map_err(stopped)?;
            started.map_err(|error| refused(&error))?;
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
        let forked = session.fork_chat(ChatForkRequest { source, turn: turn.into(), chat, uri, kind }).await;
        forked.ok_or_else(|| no_session(session.uri.as_str()))?.map_err(|error| refused(&error))
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
        let look = move |published: &PublishedState| {
            let here = published.state.sessions.values().find(|session| session.uri == at);
            let is_elsewhere = place.is_some_and(|place| !here.is_some_and(|here| place.fits(here)));
            let taken_by = match published.is_known(&SessionId::from(wanted.as_str())) {
                true => Some(NameOwner::MainChat),
                false => published.session_of_chat(&wanted).map(|owner| NameOwner::Chat(owner.uri.clone())),
            };
            (is_elsewhere, taken_by)
        };
        let (is_elsewhere, taken_by) = self.host.sequencer().read(look);
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
        let removed = self.host.carry_out(&session, HostCommand::RemoveChat(chat)).await.map_err(stopped)?;
        removed.map_err(|error| refused(&error))
    }
}
