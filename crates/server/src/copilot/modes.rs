//! The mode of a session: the agent's own setting, or a word that the endpoint keeps for agents without modes.

use grove_core::*;
use grove_wire::copilot::events::{ModeChanged, SessionWarning};
use grove_wire::copilot::methods::*;
use grove_wire::copilot::project;

use super::endpoint::EndpointState;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

/// The modes that the protocol has. An agent's own mode counts as the first.
const MODES: [&str; 3] = [INTERACTIVE, "plan", "autopilot"];

impl CopilotPeer {
    pub(super) async fn mode(&self, params: SessionParams) -> Result<String, CopilotError> {
        self.mode_of(&self.find(&params.session_id).await?).await
    }

    async fn mode_of(&self, session: &SessionRef) -> Result<String, CopilotError> {
        let (mode, has_modes) = self.look(session, |session| (project::mode(session), has_modes(session))).await?;
        let kept = self.endpoint().state().modes.get(&session.id).cloned();
        Ok(kept.filter(|_| !has_modes).unwrap_or(mode))
    }

    /// The mode, as one of those that the protocol has.
    pub(super) async fn known_mode(&self, session: &SessionRef) -> Result<String, CopilotError> {
        let mode = self.mode_of(session).await?;
        Ok(MODES.into_iter().find(|known| *known == mode).unwrap_or(INTERACTIVE).to_owned())
    }

    /// Sets the agent's mode. For an agent without modes it is kept while a program has the session open, and the
    /// clients are warned that it changes nothing.
    pub(super) async fn set_mode(&self, params: SetModeParams) -> Result<SetModeResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let (agent, has_modes) = self.look(&session, |session| (session.agent.clone(), has_modes(session))).await?;
        let now = self.mode_of(&session).await?;
        let applied =
            SetModeResult { status: "ok".to_owned(), model_changed: false, mode_applied: Some(true), message: None };
        if params.mode == now {
            return Ok(applied);
        }
        if has_modes {
            let values = Extra::from_iter([(SessionConfig::MODE.to_owned(), params.mode.into())]);
            self.carry_out(&session, ClientCommand::ChangeConfig { values, replace: false }).await?;
            return Ok(applied);
        }
        if !MODES.contains(&params.mode.as_str()) {
            let modes = MODES.join(", ");
            return Err(CopilotError::Failed(format!("{:?} is not a mode: use one of {modes}", params.mode)));
        }
        self.keep_mode(&session, &params.mode);
        if let Some(feed) = self.endpoint().feeds().of(&session.id) {
            let message = format!("The agent {agent} has no modes: {:?} changes nothing of what it does.", params.mode);
            feed.say(ModeChanged { previous_mode: now, new_mode: params.mode.clone() });
            feed.say(SessionWarning { warning_type: "mode".to_owned(), message: message.clone(), url: None });
            return Ok(SetModeResult { message: Some(message), ..applied });
        }
        Ok(applied)
    }

    fn keep_mode(&self, session: &SessionRef, mode: &str) {
        let mut state = self.endpoint().state();
        let EndpointState { open, modes, .. } = &mut *state;
        modes.retain(|kept, _| open.contains_key(kept) || *kept == session.id);
        modes.insert(session.id.clone(), mode.to_owned());
    }
}

/// Returns whether the agent has a setting for its mode, or has not told yet which settings it has.
fn has_modes(session: &Session) -> bool {
    let config = session.config.as_ref();
    let announced = config.map(|config| &config.schema).into_iter().chain(&session.details.settings);
    let known: Vec<_> = announced.filter_map(|schema| schema.get("properties")?.as_object()).collect();
    let is_untold = config.is_some() && known.iter().all(|known| known.is_empty());
    is_untold || known.iter().any(|known| known.contains_key(SessionConfig::MODE))
}
