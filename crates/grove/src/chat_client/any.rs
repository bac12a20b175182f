//! A chat client for either protocol, chosen at run time.

use anyhow::anyhow;
use grove_client::{ClientClosed, ConnectionStatus, DispatchHandle};
use grove_wire::x_grove::handover::RemoteSession;
use grove_wire::x_grove::policy::{PolicyAllowResult, PolicyOffersResult};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::presence::PresenceLines;
use super::tree::{NO_CHATS_IN_V1, find_chat};
use super::{
    AlwaysChoice, ChatClient, ChatCommand, ChatView, OtherChat, PendingRequest, SessionReadiness, SessionSettings,
    ToolPermission, ahp, v1,
};
use crate::cli::Protocol;
use crate::commands::Failure;
use crate::connect::{HostConnector, find_session};
use crate::follow::{EnvelopeDialect, OutputFormat, output};

#[derive(Debug)]
pub(crate) enum AnyChatClient {
    Ahp(ahp::AhpChatClient),
    V1(v1::V1ChatClient),
}

/// The source of envelopes, if they are printed.
pub(crate) type EnvelopeReceiver = Option<mpsc::UnboundedReceiver<String>>;

impl AnyChatClient {
    /// Connects to the host of a session, and joins the session.
    pub(crate) async fn join(
        connector: &HostConnector,
        protocol: Protocol,
        session: &str,
        chat: Option<&str>,
        wanted: OutputFormat,
    ) -> Result<(Self, EnvelopeReceiver), Failure> {
        let (connector, session) = &connector.at_session(session).await?;
        match protocol {
            Protocol::Ahp => {
                let (log, arriving) = output(wanted, EnvelopeDialect::Ahp);
                let client = connector.ahp(log).await?;
                let uri = find_session(&client, session).await?;
                let chat = match chat {
                    Some(chat) => Some(find_chat(&client, &uri, chat).await?),
                    None => None,
                };
                Ok((AnyChatClient::Ahp(ahp::AhpChatClient::join(&client, &uri, chat).await?), arriving))
            }
            Protocol::V1 if chat.is_some() => Err(anyhow!(NO_CHATS_IN_V1).into()),
            Protocol::V1 => {
                let (log, arriving) = output(wanted, EnvelopeDialect::V1);
                let client = connector.v1(log).await?;
                let uri = find_session(&client, session).await?;
                Ok((AnyChatClient::V1(v1::V1ChatClient::join(&client, &uri).await?), arriving))
            }
        }
    }
}

impl AnyChatClient {
    /// The other chats of the session. Version 1 has none.
    pub(crate) fn other_chats(&self) -> Vec<OtherChat> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.other_chats(),
            AnyChatClient::V1(_) => Vec::new(),
        }
    }

    /// The id and name of each model that the session's agent offers.
    pub(crate) async fn models(&self) -> Result<Vec<(String, String)>, Failure> {
        match self {
            AnyChatClient::Ahp(chat_client) => Ok(chat_client.models().await?),
            AnyChatClient::V1(chat_client) => Ok(chat_client.models().await?),
        }
    }

    /// The settings of the session. Version 1 has none.
    pub(crate) fn settings(&self) -> SessionSettings {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.settings(),
            AnyChatClient::V1(_) => SessionSettings::default(),
        }
    }

    /// The lines about the session's other clients.
    pub(crate) fn watch_presence(&self) -> PresenceLines {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.watch_presence(),
            AnyChatClient::V1(chat_client) => chat_client.watch_presence(),
        }
    }

    /// The new location of a session that was moved to another host. Version 1 does not have it.
    pub(crate) fn moved_to(&self) -> Option<RemoteSession> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.moved_to(),
            AnyChatClient::V1(_) => None,
        }
    }
}

impl ChatClient for AnyChatClient {
    fn uri(&self) -> &str {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.uri(),
            AnyChatClient::V1(chat_client) => chat_client.uri(),
        }
    }

    fn read_view<T>(&self, read_view: impl FnOnce(&ChatView<'_>) -> T) -> T {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.read_view(read_view),
            AnyChatClient::V1(chat_client) => chat_client.read_view(read_view),
        }
    }

    fn waiting(&self) -> Vec<PendingRequest> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.waiting(),
            AnyChatClient::V1(chat_client) => chat_client.waiting(),
        }
    }

    fn readiness(&self) -> SessionReadiness {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.readiness(),
            AnyChatClient::V1(chat_client) => chat_client.readiness(),
        }
    }

    async fn changed(&mut self) -> Result<(), ClientClosed> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.changed().await,
            AnyChatClient::V1(chat_client) => chat_client.changed().await,
        }
    }

    fn status(&self) -> watch::Receiver<ConnectionStatus> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.status(),
            AnyChatClient::V1(chat_client) => chat_client.status(),
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.is_gone(),
            AnyChatClient::V1(chat_client) => chat_client.is_gone(),
        }
    }

    async fn act(&mut self, command: ChatCommand) -> anyhow::Result<DispatchHandle> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.act(command).await,
            AnyChatClient::V1(chat_client) => chat_client.act(command).await,
        }
    }

    async fn rule_offers(&self, permission: &ToolPermission) -> PolicyOffersResult {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.rule_offers(permission).await,
            AnyChatClient::V1(chat_client) => chat_client.rule_offers(permission).await,
        }
    }

    async fn allow_always(
        &self,
        permission: &ToolPermission,
        choice: AlwaysChoice,
    ) -> anyhow::Result<PolicyAllowResult> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.allow_always(permission, choice).await,
            AnyChatClient::V1(chat_client) => chat_client.allow_always(permission, choice).await,
        }
    }

    async fn content(&self, uri: &str) -> Option<String> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.content(uri).await,
            AnyChatClient::V1(chat_client) => chat_client.content(uri).await,
        }
    }

    fn finished(&self, turn: &str) -> Option<Value> {
        match self {
            AnyChatClient::Ahp(chat_client) => chat_client.finished(turn),
            AnyChatClient::V1(chat_client) => chat_client.finished(turn),
        }
    }
}
