//! A client of a chat's tree in either protocol: Grove's extension methods are the same in both.

use anyhow::anyhow;
use grove_client::{Ahp, Client, RequestError, V1};
use grove_wire::ahp::{error_code, status};
use grove_wire::x_grove::{
    AbortResult, BranchParams, CompactParams, CompactResult, ForkParams, LabelParams, LabelResult, MergeParams,
    MergeResult, Method, MigrateParams, MigrateResult, NavigateParams, NavigateResult, NewSessionResult,
    PermissionsParams, PermissionsResult, RenameParams, RenameResult, SetWorkingDirectoryParams,
    SetWorkingDirectoryResult, TreeParams, TreeResult, TreeRow,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::ahp::{self, MAIN_CHAT, chat_name, main_chat, other_chats};
use super::any::AnyChatClient;
use super::{MAX_PAGES, OtherChat, endless_list, v1};
use crate::cli::{Protocol, TreeOfArgs};
use crate::commands::Failure;
use crate::connect::{HostConnector, find_session, id_of, moved_to};
use crate::hosts::Destination;
use crate::show::style::sanitize;

/// The error for `--chat` with version 1.
pub(crate) const NO_CHATS_IN_V1: &str = "version 1 has only the main chat: leave out --protocol v1, or --chat";

/// The number of rows per request.
const PAGE: usize = 2_000;

#[derive(Debug)]
pub(crate) struct TreeClient {
    session: String,
    /// The channel of the session, or of the selected chat.
    channel: String,
    client: AnyClient,
}

/// A client in either protocol.
#[derive(Debug)]
pub(crate) enum AnyClient {
    Ahp(Client<Ahp>),
    V1(Client<V1>),
}

impl AnyClient {
    pub(crate) async fn connect(connector: &HostConnector, protocol: Protocol) -> Result<Self, Failure> {
        match protocol {
            Protocol::Ahp => Ok(AnyClient::Ahp(connector.ahp(None).await?)),
            Protocol::V1 => Ok(AnyClient::V1(connector.v1(None).await?)),
        }
    }

    /// Returns whether the host announces a method.
    pub(crate) fn offers(&self, method: Method) -> bool {
        match self {
            AnyClient::Ahp(client) => client.offers(method),
            AnyClient::V1(client) => client.offers(method),
        }
    }

    pub(crate) async fn ask<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Failure> {
        if !self.offers(method) {
            return Err(anyhow!(
                "the host does not offer {}: it is not a Grove host, is too old, or was not configured for it",
                method.as_str()
            )
            .into());
        }
        let answer = match self {
            AnyClient::Ahp(client) => client.request_raw(method.as_str(), params).await,
            AnyClient::V1(client) => client.request_raw(method.as_str(), params).await,
        };
        answer.map_err(|error| match error {
            // The host's message is complete; the name of the method would not help the user.
            RequestError::Refused { error, .. } if error.code == error_code::NOT_FOUND => {
                Failure::NotFound(error.message)
            }
            RequestError::Refused { error, .. } => anyhow!(error.message).into(),
            error => error.into(),
        })
    }
}

/// Params with the channel that they refer to.
#[derive(Serialize)]
pub(super) struct ChannelParams<'a, P> {
    pub(super) channel: &'a str,
    #[serde(flatten)]
    pub(super) params: &'a P,
}

impl TreeClient {
    /// Connects, and finds the session and the chat.
    pub(crate) async fn find(connector: &HostConnector, session: &str, args: &TreeOfArgs) -> Result<Self, Failure> {
        let mut tree = match (args.connect.protocol, &args.chat.name) {
            (Protocol::V1, Some(_)) => {
                return Err(anyhow!(NO_CHATS_IN_V1).into());
            }
            (protocol, _) => Self::of_session(connector, session, protocol).await?,
        };
        tree.choose_chat(args.chat.name.as_deref()).await?;
        Ok(tree)
    }

    /// Selects another chat of the session than its main one, if one is named.
    pub(crate) async fn choose_chat(&mut self, chat: Option<&str>) -> Result<(), Failure> {
        match (&self.client, chat) {
            (_, None) => Ok(()),
            (AnyClient::V1(_), Some(_)) => Err(anyhow!(NO_CHATS_IN_V1).into()),
            (AnyClient::Ahp(client), Some(chat)) => {
                self.channel = find_chat(client, &self.session, chat).await?;
                Ok(())
            }
        }
    }

    /// The title of a chat, if it has one.
    pub(crate) async fn chat_title(&self, chat: &str) -> Result<Option<String>, Failure> {
        let AnyClient::Ahp(client) = &self.client else { return Ok(None) };
        let session = client.subscribe(&self.session).await?;
        let title = session.read(|state| {
            let chat = state.session()?.chats.iter().find(|one| one.resource == chat)?;
            Some(chat.title.clone())
        });
        Ok(title.filter(|title| !title.trim().is_empty()))
    }

    /// The other chats of the session. Version 1 has none.
    pub(crate) async fn other_chats(&self) -> Result<Vec<OtherChat>, Failure> {
        let AnyClient::Ahp(client) = &self.client else { return Ok(Vec::new()) };
        let session = client.subscribe(&self.session).await?;
        Ok(session.read(|state| {
            let Some(session) = state.session() else { return Vec::new() };
            let main = main_chat(session).unwrap_or_default();
            other_chats(session, self.chat().unwrap_or(&main))
        }))
    }

    /// A chat client for the selected chat, to show its running turn. In version 1 it shows the main chat.
    pub(crate) async fn chat_client(&self) -> Result<AnyChatClient, Failure> {
        Ok(match &self.client {
            AnyClient::Ahp(client) => AnyChatClient::Ahp(
                ahp::AhpChatClient::join(client, &self.session, self.chat().map(str::to_owned)).await?,
            ),
            AnyClient::V1(client) => AnyChatClient::V1(v1::V1ChatClient::join(client, &self.session).await?),
        })
    }

    /// Connects to the host of a session.
    pub(crate) async fn of_session(
        connector: &HostConnector,
        session: &str,
        protocol: Protocol,
    ) -> Result<Self, Failure> {
        let (connector, session) = &connector.at_session(session).await?;
        let client = AnyClient::connect(connector, protocol).await?;
        let session = match &client {
            AnyClient::Ahp(client) => {
                let session = find_session(client, session).await?;
                tell_if_moved(connector, client, &session).await?;
                session
            }
            AnyClient::V1(client) => find_session(client, session).await?,
        };
        Ok(Self { channel: session.clone(), session, client })
    }

    /// The URI of the session.
    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// The URI of the selected chat, unless it is the main one.
    pub(crate) fn chat(&self) -> Option<&str> {
        (self.channel != self.session).then_some(&self.channel)
    }

    /// All rows, in the host's order.
    pub(crate) async fn rows(&self, filter: &str, search: Option<&str>) -> Result<Vec<TreeRow>, Failure> {
        let mut params = TreeParams {
            filter: Some(filter.to_owned()),
            search: search.map(ToOwned::to_owned),
            cursor: None,
            limit: Some(PAGE),
        };
        let mut rows = Vec::new();
        for _ in 0..MAX_PAGES {
            let page: TreeResult = self.ask(Method::Tree, &params).await?;
            // After a page without rows comes nothing more.
            params.cursor = page.next_cursor.filter(|_| !page.rows.is_empty());
            rows.extend(page.rows);
            if params.cursor.is_none() {
                return Ok(rows);
            }
        }
        Err(endless_list().into())
    }

    /// Moves the leaf.
    pub(crate) async fn navigate(&self, params: &NavigateParams) -> Result<NavigateResult, Failure> {
        self.ask(Method::Navigate, params).await
    }

    /// Labels an entry, or deletes its label.
    pub(crate) async fn label(&self, params: &LabelParams) -> Result<LabelResult, Failure> {
        self.ask(Method::Label, params).await
    }

    /// Renames the chat, and with the main chat its session.
    pub(crate) async fn rename(&self, params: &RenameParams) -> Result<RenameResult, Failure> {
        self.ask(Method::Rename, params).await
    }

    /// Lists the session's permission rules and remembered answers, after revoking them if requested.
    pub(crate) async fn permissions(&self, params: &PermissionsParams) -> Result<PermissionsResult, Failure> {
        self.ask(Method::Permissions, params).await
    }

    /// Has the session's agents work in another folder.
    pub(crate) async fn set_working_directory(
        &self,
        params: &SetWorkingDirectoryParams,
    ) -> Result<SetWorkingDirectoryResult, Failure> {
        self.ask(Method::SetWorkingDirectory, params).await
    }

    /// Makes a new session with what was said before a message of the user.
    pub(crate) async fn branch(&self, params: &BranchParams) -> Result<NewSessionResult, Failure> {
        self.ask(Method::Branch, params).await
    }

    /// Creates a copy of the session.
    pub(crate) async fn fork(&self, params: &ForkParams) -> Result<NewSessionResult, Failure> {
        self.ask(Method::Fork, params).await
    }

    /// Moves the session to another store.
    pub(crate) async fn migrate(&self, params: &MigrateParams) -> Result<MigrateResult, Failure> {
        self.ask(Method::Migrate, params).await
    }

    /// Merges another branch into the current one, as a summary.
    pub(crate) async fn merge(&self, params: &MergeParams) -> Result<MergeResult, Failure> {
        self.ask(Method::Merge, params).await
    }

    /// Replaces the older part of the conversation by a summary.
    pub(crate) async fn compact(&self, params: &CompactParams) -> Result<CompactResult, Failure> {
        self.ask(Method::Compact, params).await
    }

    /// Discards the summary in progress.
    pub(crate) async fn abort(&self) -> Result<AbortResult, Failure> {
        self.ask(Method::Abort, &()).await
    }

    pub(crate) async fn ask<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Failure> {
        self.client.ask(method, &ChannelParams { channel: &self.channel, params }).await
    }

    /// Sends a request about the whole session, whichever chat is selected.
    pub(crate) async fn ask_session<R: DeserializeOwned>(
        &self,
        method: Method,
        params: &(impl Serialize + Sync),
    ) -> Result<R, Failure> {
        self.client.ask(method, &ChannelParams { channel: &self.session, params }).await
    }
}

/// Prints the new location of a session that was moved to another host.
async fn tell_if_moved(connector: &HostConnector, client: &Client<Ahp>, session: &str) -> Result<(), Failure> {
    let is_archived =
        client.sessions().read(|list| list.get(session).is_some_and(|row| row.status & status::IS_ARCHIVED != 0));
    if is_archived && let Some(at) = moved_to(client, session).await? {
        let (host, id) = (Destination::of(connector.data_dir(), &at)?, sanitize(id_of(&at.session)));
        match &host {
            Destination::Known(name) => {
                anstream::eprintln!("this session was moved to {name}: use {name}/{id}");
            }
            Destination::Unknown { .. } => {
                anstream::eprintln!("this session was moved to {host}: use {id} there");
            }
        }
    }
    Ok(())
}

/// The URI of a session's chat, by its URI, a word of it, the beginning of its name, or its title.
pub(crate) async fn find_chat(client: &Client<Ahp>, session: &str, wanted: &str) -> Result<String, Failure> {
    let subscription = client.subscribe(session).await?;
    let (main, chats) = subscription.read(|state| {
        let chats = state.session().map(|session| session.chats.as_slice()).unwrap_or_default();
        let chats: Vec<(String, String)> =
            chats.iter().map(|chat| (chat.resource.clone(), chat.title.clone())).collect();
        (state.session().and_then(main_chat), chats)
    });
    let words = |chat: &str| chat.split_once(':').is_some_and(|(_, rest)| rest.split('/').any(|word| word == wanted));
    let whole = chats.iter().find(|(uri, _)| *uri == wanted || (!wanted.is_empty() && words(uri)));
    if let Some((uri, _)) = whole {
        return Ok(uri.clone());
    }
    if let (MAIN_CHAT, Some(main)) = (wanted, &main) {
        return Ok(main.clone());
    }
    let fits = |(uri, title): &&(String, String)| {
        !wanted.is_empty() && (chat_name(uri).starts_with(wanted) || title.eq_ignore_ascii_case(wanted))
    };
    match chats.iter().filter(fits).collect::<Vec<_>>().as_slice() {
        [(uri, _)] => Ok(uri.clone()),
        several => {
            let (session, problem) = (id_of(session), if several.is_empty() { "no" } else { "more than one" });
            let name = |uri: &String| if main.as_ref() == Some(uri) { MAIN_CHAT.to_owned() } else { chat_name(uri) };
            let names: Vec<String> = chats.iter().map(|(uri, _)| name(uri)).collect();
            let names = sanitize(&names.join(", "));
            Err(Failure::NotFound(format!("there is {problem} chat {wanted:?} in {session}: there are {names}")))
        }
    }
}
