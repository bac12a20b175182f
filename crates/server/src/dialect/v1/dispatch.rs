//! Notifications and actions of clients.

use std::sync::Arc;

use grove_core::SessionUri;
use grove_host::audit::PendingRecord;
use grove_host::history::CONTINUE_FIRST;
use grove_host::sequencer::{DirectReply, v1_origin};
use grove_host::session::{self, ActionRefusal, ClientAction, ClientRequest};
use grove_storage::ActionOrigin;
use grove_wire::invalid_seq::InvalidSeqAction;
use grove_wire::jsonrpc::ErrorObject;
use grove_wire::scopes;
use grove_wire::v1;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Peer, wanted};
use crate::dialect::answer::{not_initialized, read_params, stopped};
use crate::dialect::unnumbered;
use crate::recording;

impl Peer {
    pub(in crate::dialect) async fn notified(
        &self,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), ErrorObject> {
        let Some(client) = &self.client else { return Err(not_initialized()) };
        match method {
            v1::notify::UNSUBSCRIBE => {
                let params: v1::UnsubscribeParams = read_params(params)?;
                self.host.sequencer().unsubscribe(self.id, wanted(&params.resource)).await.map_err(stopped)?;
            }
            v1::notify::DISPATCH_ACTION => {
                let params = match read_params::<v1::DispatchActionParams>(params) {
                    Ok(params) => params,
                    Err(error) => {
                        let refusal = InvalidSeqAction::refusal_v1;
                        return unnumbered::refuse(&self.host, self.id, client.clone(), params, error, refusal).await;
                    }
                };
                let origin = ActionOrigin { client: client.clone(), client_seq: params.client_seq, extra: None };
                self.dispatch(origin, params.action).await?;
            }
            other => return Err(ErrorObject::unknown_method(other)),
        }
        Ok(())
    }

    /// Sends an action to its session. One for an unknown session is ignored without an echo.
    async fn dispatch(&self, origin: ActionOrigin, raw: Box<RawValue>) -> Result<(), ErrorObject> {
        // Every member is optional: an action that names a session is answered whatever else is wrong with it.
        #[derive(Deserialize)]
        struct Head {
            #[serde(rename = "type", default)]
            kind: serde_json::Value,
            #[serde(default)]
            session: serde_json::Value,
        }
        let head: Head =
            serde_json::from_str(raw.get()).map_err(|error| ErrorObject::invalid_params(error.to_string()))?;
        let mut record = PendingRecord::NONE;
        let command = match v1::Action::parse(&raw) {
            Ok(action) => {
                let (kind, session, client) = (action.kind(), head.session.as_str(), Some(&origin.client));
                let needed = scopes::v1_action(kind).into();
                record = recording::begin(&self.host, &self.principal, client, needed, kind.as_str(), session);
                let about = session.and_then(|session| SessionUri::from(session).id());
                let allowed = self.principal.authorize(&self.host, needed, kind.as_str(), client, about.as_ref()).await;
                let party = self.party.answerer();
                let command = || match v1::decode::command(action) {
                    Ok(command) => Ok(command.answered_by(&party)),
                    Err(error) => Err(error.to_string()),
                };
                allowed.map_err(|forbidden| forbidden.to_string()).and_then(|()| command())
            }
            Err(error) => Err(error.to_string()),
        };
        let connection = self.id;
        let answer = {
            let origin = v1_origin(&origin);
            move |reply: session::DispatchOutcome| DirectReply {
                connection,
                frame: Box::new(move |server_seq| {
                    let rejection_reason = match reply {
                        session::DispatchOutcome::Refused(refusal) => Some(refusal.to_string()),
                        session::DispatchOutcome::NoChange => None,
                    };
                    let envelope =
                        v1::ActionEnvelope { action: raw, server_seq, origin: Some(origin), rejection_reason };
                    v1::encode::action_frame(&envelope).ok().map(Arc::from)
                }),
                answer: None,
                permit: None,
            }
        };
        match (head.session.as_str(), head.kind.as_str()) {
            (Some(uri), _) => {
                let Some(session) = self.host.session(&SessionUri::from(uri)).await.map_err(stopped)? else {
                    if self.host.is_history(&wanted(uri)).await {
                        let refused = answer(session::DispatchOutcome::Refused(ActionRefusal::Invalid(
                            CONTINUE_FIRST.to_owned(),
                        )));
                        self.host.sequencer().send_direct(refused).await.map_err(stopped)?;
                    }
                    return Ok(());
                };
                let dispatch = ClientAction {
                    client_request: command.map(|command| ClientRequest::Command(Box::new(command))),
                    origin,
                    record,
                    answer: Box::new(answer),
                };
                // A session that ends at this moment counts as unknown.
                session.dispatch(dispatch).await;
            }
            (None, Some(kind)) if kind.starts_with("root/") => {
                let reason = command.err().unwrap_or_else(|| format!("only the host may dispatch {kind}"));
                let refused = answer(session::DispatchOutcome::Refused(ActionRefusal::Invalid(reason)));
                self.host.sequencer().send_direct(refused).await.map_err(stopped)?;
            }
            (None, _) => return Err(ErrorObject::invalid_params("the action names no session")),
        }
        Ok(())
    }
}
