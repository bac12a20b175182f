//! A conversation in the protocol that was asked for.

use anyhow::anyhow;
use grove_client::{Closed, Dispatched, Status};
use grove_wire::x_grove::handover::Whereabouts;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::tree::{NO_CHATS_IN_V1, find_chat};
use super::{Beginning, Deed, OtherChat, Settings, Talk, View, Waiting, ahp, v1};
use crate::cli::Protocol;
use crate::commands::Failure;
use crate::connect::{Reach, find_session};
use crate::follow::{Envelopes, Output, output};

#[derive(Debug)]
pub(crate) enum AnyTalk {
    Ahp(ahp::Conversation),
    V1(v1::Conversation),
}

/// Where envelopes come from, where they are printed.
pub(crate) type Arriving = Option<mpsc::UnboundedReceiver<String>>;

impl AnyTalk {
    /// Connects, and joins the session that somebody means.
    pub(crate) async fn join(
        reach: &Reach,
        protocol: Protocol,
        session: &str,
        chat: Option<&str>,
        wanted: Output,
    ) -> Result<(Self, Arriving), Failure> {
        let (reach, session) = &reach.at_session(session).await?;
        match protocol {
            Protocol::Ahp => {
                let (log, arriving) = output(wanted, Envelopes::Ahp);
                let client = reach.ahp(log).await?;
                let uri = find_session(&client, session).await?;
                let chat = match chat {
                    Some(chat) => Some(find_chat(&client, &uri, chat).await?),
                    None => None,
                };
                Ok((AnyTalk::Ahp(ahp::Conversation::join(&client, &uri, chat).await?), arriving))
            }
            Protocol::V1 if chat.is_some() => Err(anyhow!(NO_CHATS_IN_V1).into()),
            Protocol::V1 => {
                let (log, arriving) = output(wanted, Envelopes::V1);
                let client = reach.v1(log).await?;
                let uri = find_session(&client, session).await?;
                Ok((AnyTalk::V1(v1::Conversation::join(&client, &uri).await?), arriving))
            }
        }
    }
}

impl AnyTalk {
    /// The other chats of the session. Version 1 does not know them.
    pub(crate) fn other_chats(&self) -> Vec<OtherChat> {
        match self {
            AnyTalk::Ahp(talk) => talk.other_chats(),
            AnyTalk::V1(_) => Vec::new(),
        }
    }

    /// The id and name of each model that the session's agent offers.
    pub(crate) async fn models(&self) -> Result<Vec<(String, String)>, Failure> {
        match self {
            AnyTalk::Ahp(talk) => Ok(talk.models().await?),
            AnyTalk::V1(talk) => Ok(talk.models().await?),
        }
    }

    /// The settings of the session. Version 1 has none.
    pub(crate) fn settings(&self) -> Settings {
        match self {
            AnyTalk::Ahp(talk) => talk.settings(),
            AnyTalk::V1(_) => Settings::default(),
        }
    }

    /// Where the session went, if it is another host's now. Version 1 does not know.
    pub(crate) fn moved_to(&self) -> Option<Whereabouts> {
        match self {
            AnyTalk::Ahp(talk) => talk.moved_to(),
            AnyTalk::V1(_) => None,
        }
    }
}

impl Talk for AnyTalk {
    fn uri(&self) -> &str {
        match self {
            AnyTalk::Ahp(talk) => talk.uri(),
            AnyTalk::V1(talk) => talk.uri(),
        }
    }

    fn look<T>(&self, look: impl FnOnce(&View<'_>) -> T) -> T {
        match self {
            AnyTalk::Ahp(talk) => talk.look(look),
            AnyTalk::V1(talk) => talk.look(look),
        }
    }

    fn waiting(&self) -> Vec<Waiting> {
        match self {
            AnyTalk::Ahp(talk) => talk.waiting(),
            AnyTalk::V1(talk) => talk.waiting(),
        }
    }

    fn beginning(&self) -> Beginning {
        match self {
            AnyTalk::Ahp(talk) => talk.beginning(),
            AnyTalk::V1(talk) => talk.beginning(),
        }
    }

    async fn changed(&mut self) -> Result<(), Closed> {
        match self {
            AnyTalk::Ahp(talk) => talk.changed().await,
            AnyTalk::V1(talk) => talk.changed().await,
        }
    }

    fn status(&self) -> watch::Receiver<Status> {
        match self {
            AnyTalk::Ahp(talk) => talk.status(),
            AnyTalk::V1(talk) => talk.status(),
        }
    }

    fn is_gone(&self) -> bool {
        match self {
            AnyTalk::Ahp(talk) => talk.is_gone(),
            AnyTalk::V1(talk) => talk.is_gone(),
        }
    }

    async fn act(&mut self, deed: Deed) -> anyhow::Result<Dispatched> {
        match self {
            AnyTalk::Ahp(talk) => talk.act(deed).await,
            AnyTalk::V1(talk) => talk.act(deed).await,
        }
    }

    async fn content(&self, uri: &str) -> Option<String> {
        match self {
            AnyTalk::Ahp(talk) => talk.content(uri).await,
            AnyTalk::V1(talk) => talk.content(uri).await,
        }
    }

    fn finished(&self, turn: &str) -> Option<Value> {
        match self {
            AnyTalk::Ahp(talk) => talk.finished(turn),
            AnyTalk::V1(talk) => talk.finished(turn),
        }
    }
}
