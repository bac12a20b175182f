//! Actions of clients: parsed, sent to their session, and echoed or refused there.

use std::sync::Arc;

use grove_core::{ChatId, ClientId, Extra, ScopeSet, SessionUri, TurnId};
use grove_host::audit::PendingRecord;
use grove_host::history::CONTINUE_FIRST;
use grove_host::presence::ClientParty;
use grove_host::sequencer::{DirectReply, ahp_echo};
use grove_host::session::{ActionRefusal, ClientAction, ClientRequest, DispatchOutcome};
use grove_storage::ActionOrigin;
use grove_wire::ahp::uri::ChannelName;
use grove_wire::ahp::{self, Action};
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::scopes::{self, further};
use serde_json::Value;
use serde_json::value::RawValue;

use super::sessions::ChannelTarget;
use super::{Peer, wanted};
use crate::dialect::answer::stopped;
use crate::recording;

/// The largest unknown part of an action that is kept for the echo.
pub const MAX_EXTRA_BYTES: usize = 64 << 10;

impl Peer {
    /// Sends an action to its session. One for an unknown channel is ignored without an echo.
    pub(super) async fn dispatch(
        &self,
        client: ClientId,
        params: ahp::DispatchActionParams,
    ) -> Result<(), ErrorObject> {
        if let Some(ChannelName::Terminal(_)) = ChannelName::parse(&params.channel) {
            return self.act_on_terminal(client, params).await;
        }
        let Some(target) = self.find(&params.channel).await? else { return self.refuse_history(client, params).await };
        let action = params.action();
        let extra = action.as_ref().ok().and_then(|action| not_understood(&params.action, action));
        let origin = ActionOrigin { client, client_seq: params.client_seq, extra };
        let chat = match &target {
            ChannelTarget::Chat(_, chat) => Some(chat),
            ChannelTarget::Root | ChannelTarget::Session(_) => None,
        };
        let session = match &target {
            ChannelTarget::Session(uri) | ChannelTarget::Chat(uri, _) => Some(uri),
            ChannelTarget::Root => None,
        };
        let mut record = PendingRecord::NONE;
        let client_request = match action {
            Ok(action) => {
                let needed = ScopeSet::from(scopes::ahp_action(&action)).union(further::ahp_action(&action));
                let (kind, client) = (action.kind(), Some(&origin.client));
                let name = session.map(ToString::to_string);
                record = recording::begin(&self.host, &self.principal, client, needed, kind, name.as_deref());
                let about = session.and_then(SessionUri::id);
                let allowed = self.principal.authorize(&self.host, needed, kind, client, about.as_ref()).await;
                allowed
                    .map_err(|forbidden| forbidden.to_string())
                    .and_then(|()| client_request(action, chat, &self.party))
            }
            Err(error) => Err(error.to_string()),
        };
        let answer = self.direct_reply(params.channel, params.action, origin.clone());
        match target {
            ChannelTarget::Root => {
                let reason =
                    client_request.err().unwrap_or_else(|| "this action does not belong on this channel".to_owned());
                let refused = answer(DispatchOutcome::Refused(ActionRefusal::Invalid(reason)));
                self.host.sequencer().send_direct(refused).await.map_err(stopped)
            }
            ChannelTarget::Session(uri) | ChannelTarget::Chat(uri, _) => {
                let Some(session) = self.host.session(&uri).await.map_err(stopped)? else { return Ok(()) };
                let dispatch = ClientAction { client_request, origin, record, answer: Box::new(answer) };
                // A session that ends at this moment counts as unknown.
                session.dispatch(dispatch).await;
                Ok(())
            }
        }
    }

    /// Refuses an action on another tool's session, which cannot be continued.
    async fn refuse_history(&self, client: ClientId, params: ahp::DispatchActionParams) -> Result<(), ErrorObject> {
        match ChannelName::parse(&params.channel).and_then(wanted) {
            Some(wanted) if self.host.is_history(&wanted).await => {
                let origin = ActionOrigin { client, client_seq: params.client_seq, extra: None };
                let refused = self.direct_reply(params.channel, params.action, origin)(DispatchOutcome::Refused(
                    ActionRefusal::Invalid(CONTINUE_FIRST.into()),
                ));
                self.host.sequencer().send_direct(refused).await.map_err(stopped)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The reply to the client alone: its own action unchanged, and the reason if it is refused.
    fn direct_reply(
        &self,
        channel: String,
        action: Box<RawValue>,
        origin: ActionOrigin,
    ) -> impl FnOnce(DispatchOutcome) -> DirectReply + Send + 'static {
        let connection = self.id;
        move |reply| DirectReply {
            connection,
            frame: Box::new(move |seq| {
                let reason = match reply {
                    DispatchOutcome::Refused(refusal) => Some(refusal.to_string()),
                    DispatchOutcome::NoChange => None,
                };
                ahp::encode::direct_reply(&channel, &action, seq, Some(ahp_echo(&origin)), reason).map(Arc::from)
            }),
            answer: None,
            permit: None,
        }
    }
}

/// The request that an action makes.
fn client_request(action: Action, chat: Option<&ChatId>, party: &ClientParty) -> Result<ClientRequest, String> {
    match (action, chat) {
        (Action::Chat(ahp::ChatAction::Truncated(truncated)), Some(chat)) => {
            Ok(ClientRequest::Truncate { chat: chat.clone(), turn: truncated.turn_id.map(TurnId::from) })
        }
        (action, chat) => {
            let command = ahp::decode::command(action, chat)?.answered_by(&party.answerer());
            Ok(ClientRequest::Command(Box::new(command)))
        }
    }
}

/// The members of an action beyond its known ones, to be echoed unchanged. Larger ones are dropped.
fn not_understood(raw: &RawValue, action: &Action) -> Option<Extra> {
    let known = serde_json::to_value(action).ok()?;
    let raw: Value = serde_json::from_str(raw.get()).ok()?;
    let extra = ahp::encode::unknown(&raw, &known)?;
    (serde_json::to_string(&extra).ok()?.len() <= MAX_EXTRA_BYTES).then_some(extra)
}
