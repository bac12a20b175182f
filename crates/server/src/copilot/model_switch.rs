//! The model of a session: reading it, switching it, and its reasoning effort.
//!
//! A program may name a model that no agent has, since programs name Copilot's own. The session then goes on with the
//! model that it has, under the name that the program selected, and the clients are warned.

use grove_core::*;
use grove_wire::copilot::events::{ModelChange, SessionWarning};
use grove_wire::copilot::methods::*;

use super::peer::{CopilotError, CopilotPeer, SessionRef};
use super::sessions::effort;

impl CopilotPeer {
    pub(super) async fn model(&self, params: SessionParams) -> Result<CurrentModel, CopilotError> {
        self.current_model(&self.find(&params.session_id).await?).await
    }

    async fn current_model(&self, session: &SessionRef) -> Result<CurrentModel, CopilotError> {
        let (model, effort) = (self.selected_model(session).await?, self.look(session, effort).await?);
        let reasoning_effort = match effort {
            Some((_, chosen)) => chosen,
            None => self.selected_effort(session),
        };
        Ok(CurrentModel { model_id: Some(model), reasoning_effort })
    }

    pub(super) async fn set_effort(&self, params: SetEffortParams) -> Result<SetEffortResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.change_effort(&session, &params.reasoning_effort).await?;
        Ok(SetEffortResult { reasoning_effort: params.reasoning_effort })
    }

    /// Changes the agent's reasoning effort. If it has no such setting, the effort belongs to a model that no agent has,
    /// or it is refused.
    pub(super) async fn change_effort(&self, session: &SessionRef, wanted: &str) -> Result<(), CopilotError> {
        let (agent, effort) = self.look(session, |session| (session.agent.clone(), effort(session))).await?;
        let Some((setting, _)) = effort else {
            let reason = format!("agent {agent} has no setting for the reasoning effort");
            let model = self.selected_model(session).await?;
            if !matches!(self.agent_for(Some(&model)), Err(CopilotError::UnknownModel(_))) {
                return Err(CopilotError::Failed(reason));
            }
            self.select_model(session, &model, Some(wanted.to_owned())).await?;
            self.warn_of_model(session, format!("{reason}: {wanted:?} has no effect."));
            return Ok(());
        };
        let values = Extra::from_iter([(setting, wanted.into())]);
        self.carry_out(session, ClientCommand::ChangeConfig { values, replace: false }).await
    }

    pub(super) async fn switch_model(&self, params: SwitchModelParams) -> Result<SwitchModelResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        self.change_model(&session, &params.model_id, params.reasoning_effort.as_deref()).await?;
        let state = self.current_model(&session).await?;
        Ok(SwitchModelResult { model_id: state.model_id.clone(), message: None, model_state: Some(state) })
    }

    /// Switches a session to another model of its agent, and that to a reasoning effort. The agent stays.
    pub(super) async fn change_model(
        &self,
        session: &SessionRef,
        wanted: &str,
        effort: Option<&str>,
    ) -> Result<(), CopilotError> {
        let (mine, now) = self.look(session, |session| (session.agent.clone(), session.model.clone())).await?;
        let (agent, model) = match self.agent_for(Some(wanted)) {
            Err(CopilotError::UnknownModel(reason)) => {
                return self
                    .keep_model(session, wanted, effort, &format!("{reason}. The session keeps its model."))
                    .await;
            }
            found => found?,
        };
        let before = self.selected_model(session).await?;
        if agent != mine {
            return Err(CopilotError::Failed(format!(
                "session {} uses the agent {mine}: create another session for a model of {agent}",
                session.id
            )));
        }
        if let Some(model) = model.filter(|model| Some(model) != now.as_ref()) {
            self.carry_out(session, ClientCommand::ChangeModel(model)).await?;
            self.select_model(session, wanted, None).await?;
        } else {
            self.select_model(session, wanted, None).await?;
            self.tell_model(session, before, None).await?;
        }
        match effort {
            Some(effort) => self.change_effort(session, effort).await,
            None => Ok(()),
        }
    }

    /// Goes on with the session's model under a name that no agent has.
    async fn keep_model(
        &self,
        session: &SessionRef,
        wanted: &str,
        chosen: Option<&str>,
        reason: &str,
    ) -> Result<(), CopilotError> {
        let before = self.selected_model(session).await?;
        if self.look(session, effort).await?.is_some()
            && let Some(chosen) = chosen
        {
            self.change_effort(session, chosen).await?;
        }
        self.select_model(session, wanted, chosen.map(str::to_owned)).await?;
        self.tell_model(session, before, chosen).await?;
        self.warn_of_model(session, reason.to_owned());
        Ok(())
    }

    /// Tells the clients of another name of the model, of which the session itself knows nothing.
    async fn tell_model(&self, session: &SessionRef, before: String, effort: Option<&str>) -> Result<(), CopilotError> {
        let new_model = self.selected_model(session).await?;
        if (new_model != before || effort.is_some())
            && let Some(feed) = self.endpoint().feeds().of(&session.id)
        {
            let reasoning_effort = effort.map(str::to_owned);
            feed.say(ModelChange { previous_model: Some(before), new_model, reasoning_effort });
        }
        Ok(())
    }

    fn warn_of_model(&self, session: &SessionRef, message: String) {
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            feed.say(SessionWarning { warning_type: "model".to_owned(), message, url: None });
        }
    }
}
