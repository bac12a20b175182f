//! Actions of clients: read, taken to their session, and echoed or refused there.

use std::sync::Arc;

use grove_core::{ChatId, ClientId, Extra, TurnId};
use grove_wire::ahp::uri::Channel;
use grove_wire::ahp::{self, Action};
use grove_wire::jsonrpc::ErrorObject;
use serde_json::Value;
use serde_json::value::RawValue;

use super::sessions::Whereabouts;
use super::{Peer, wanted};
use crate::dialect::answer::stopped;
use crate::history::CONTINUE_FIRST;
use crate::sequencer::{Aside, Origin, ToSequencer};
use crate::session::{Dispatch, Reply, ToSession, Wish};

/// How much of what is not understood is kept for the echo.
const MOST_EXTRA: usize = 64 << 10;

impl Peer {
    /// Takes an action to its session. One for an unknown channel is ignored without an echo.
    pub(super) async fn dispatch(
        &self,
        client: ClientId,
        params: ahp::DispatchActionParams,
    ) -> Result<(), ErrorObject> {
        let Some(target) = self.find(&params.channel).await? else { return self.refuse_history(client, params).await };
        let action = params.action();
        let extra = action.as_ref().ok().and_then(|action| not_understood(&params.action, action));
        let origin = Origin { client, client_seq: params.client_seq, extra };
        let chat = match &target {
            Whereabouts::Chat(_, chat) => Some(chat),
            Whereabouts::Root | Whereabouts::Session(_) => None,
        };
        let wish = action.map_err(|error| error.to_string()).and_then(|action| wish(action, chat));
        let answer = self.aside(params.channel, params.action, origin.clone());
        match target {
            Whereabouts::Root => {
                let reason = wish.err().unwrap_or_else(|| "this action does not belong on this channel".to_owned());
                let refused = ToSequencer::Tell(answer(Reply::Refused(reason)));
                self.host.0.sequencer.tell(refused).await.map_err(stopped)
            }
            Whereabouts::Session(uri) | Whereabouts::Chat(uri, _) => {
                let Some(session) = self.host.session(&uri).await.map_err(stopped)? else { return Ok(()) };
                let dispatch = Dispatch { wish, origin, answer: Box::new(answer) };
                // A session that ends at this moment is unknown already.
                session.inbox.send(ToSession::Dispatch(dispatch)).await.ok();
                Ok(())
            }
        }
    }

    /// Nobody goes on with what another tool left.
    async fn refuse_history(&self, client: ClientId, params: ahp::DispatchActionParams) -> Result<(), ErrorObject> {
        match Channel::parse(&params.channel).and_then(wanted) {
            Some(wanted) if self.host.is_history(&wanted).await => {
                let origin = Origin { client, client_seq: params.client_seq, extra: None };
                let refused = self.aside(params.channel, params.action, origin)(Reply::Refused(CONTINUE_FIRST.into()));
                self.host.0.sequencer.tell(ToSequencer::Tell(refused)).await.map_err(stopped)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What is told to the client alone: its own action as it came, and why it is refused, if it is.
    fn aside(
        &self,
        channel: String,
        action: Box<RawValue>,
        origin: Origin,
    ) -> impl FnOnce(Reply) -> Aside + Send + 'static {
        let connection = self.id;
        move |reply| Aside {
            connection,
            frame: Box::new(move |seq| {
                let reason = match reply {
                    Reply::Refused(reason) => Some(reason),
                    Reply::NoChange => None,
                };
                ahp::encode::aside(&channel, &action, seq, Some(origin.to_ahp()), reason).map(Arc::from)
            }),
            answer: None,
        }
    }
}

/// What a client asks for.
fn wish(action: Action, chat: Option<&ChatId>) -> Result<Wish, String> {
    match (action, chat) {
        (Action::Chat(ahp::ChatAction::Truncated(truncated)), Some(chat)) => {
            Ok(Wish::Truncate { chat: chat.clone(), turn: truncated.turn_id.map(TurnId::from) })
        }
        (action, chat) => ahp::decode::command(action, chat).map(|command| Wish::Command(Box::new(command))),
    }
}

/// What an action says beyond its type, to be echoed as it came. More than a bound is let go.
fn not_understood(raw: &RawValue, action: &Action) -> Option<Extra> {
    let known = serde_json::to_value(action).ok()?;
    let raw: Value = serde_json::from_str(raw.get()).ok()?;
    let extra = ahp::encode::unknown(&raw, &known)?;
    (serde_json::to_string(&extra).ok()?.len() <= MOST_EXTRA).then_some(extra)
}
