//! Forms: one client asks, and the person at another one fills them in.

use grove_wire::copilot::events::{ElicitationCompleted, ElicitationRequested};
use grove_wire::copilot::methods::*;
use serde_json::Value;

use super::peer::{CopilotError, CopilotPeer};

const CANCEL: &str = "cancel";

impl CopilotPeer {
    /// Asks the clients that show forms. The first answer counts.
    pub(super) async fn elicit(&self, params: ElicitationParams) -> Result<ElicitationResponse, CopilotError> {
        let session = self.find(&params.session_id).await?;
        if params.requested_schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err(CopilotError::Failed("requestedSchema must be a JSON schema of type object".to_owned()));
        }
        let feed = self.endpoint().feeds().of(&session.id).filter(|feed| feed.shows_forms());
        let Some(feed) = feed else {
            return Err(CopilotError::Failed(
                "no client of this session shows forms: one must create or resume it with onElicitationRequest"
                    .to_owned(),
            ));
        };
        let request_id = self.host().new_id()?;
        let answered = feed.requests().begin_form(&request_id)?;
        feed.say(ElicitationRequested {
            request_id: request_id.clone(),
            message: params.message,
            mode: Some("form".to_owned()),
            requested_schema: Some(params.requested_schema),
        });
        // Without a client that shows forms any more, nobody fills it in.
        let cancelled = || ElicitationResponse { action: CANCEL.to_owned(), content: None };
        let response = answered.await.unwrap_or_else(|_| cancelled());
        let (action, content) = (Some(response.action.clone()), response.content.clone());
        feed.say(ElicitationCompleted { request_id, action, content });
        Ok(response)
    }

    pub(super) async fn answer_elicitation(&self, params: HandleElicitationParams) -> Result<Success, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let action = params.result.action.as_str();
        if !["accept", "decline", CANCEL].contains(&action) {
            return Err(CopilotError::Failed(format!("{action:?} is not an action: use accept, decline or {CANCEL}")));
        }
        let feed = self.endpoint().feeds().of(&session.id);
        let is_first = feed.is_some_and(|feed| feed.requests().answer_form(&params.request_id, params.result));
        Ok(if is_first { Success::YES } else { Success::NO })
    }
}
