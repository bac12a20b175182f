//! Applying the chosen settings to an agent.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use grove_core::Extra;

use super::super::choices::ChosenSetting;
use super::super::process::AgentProcess;
use super::{CLOSING, SessionWorker};
use crate::acp::connection::{AgentCallError, CallPurpose};
use crate::acp::settings::SettingRequest;
use crate::agent::*;
use crate::sink::TurnSink;

/// The older method to choose a model, which the types no longer have.
const SET_MODEL: &str = "session/set_model";

impl SessionWorker {
    pub(super) async fn configure(&mut self, values: Extra) {
        self.chosen.extend(values.clone());
        self.refused.retain(
            |chosen_setting| !matches!(chosen_setting, ChosenSetting::Setting(name, _) if values.contains_key(name)),
        );
        let chosen_settings = values.into_iter().map(|(name, value)| ChosenSetting::Setting(name, value)).collect();
        self.look();
        let mut closing = self.closing.clone();
        let configured = async {
            if self.alive.is_none() {
                return self.prepare(None, None).await;
            }
            self.apply(chosen_settings, None).await;
            Ok(())
        };
        let configured = tokio::select! {
            biased;
            _ = closing.wait_for(|closing| *closing) => None,
            configured = configured => Some(configured),
        };
        match configured {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                tracing::warn!(session = %self.chat.session, %error, "cannot apply settings until the agent starts");
                self.drop_unopened().await;
            }
            None => self.drop_unopened().await,
        }
    }

    /// Sends the agent the title that a person gave the session. Without a process it is sent after the next start.
    pub(super) async fn send_title(&mut self) {
        let Some(process) = self.alive.as_ref().map(|alive| Arc::clone(&alive.process)) else { return };
        let (Some(session), Some(title)) = (process.session(), self.title.take()) else { return };
        if process.capabilities().session_capabilities.title.is_none() {
            return;
        }
        let request = acp::SetSessionTitleRequest::new(session, title);
        let patience = CLOSING.min(self.chat.pool.options().patience);
        let method = acp::AGENT_METHOD_NAMES.session_set_title;
        let set = process.agent_connection.call_for(CallPurpose::Any, method, &request, patience).await;
        set.inspect_err(|error| tracing::debug!(%error, "an agent did not change the title of its session")).ok();
    }

    pub(super) fn all_chosen_settings(&self) -> Vec<ChosenSetting> {
        self.chosen.iter().map(|(name, value)| ChosenSetting::Setting(name.clone(), value.clone())).collect()
    }

    /// Applies the chosen settings. A refusal is reported, and is not an error.
    pub(super) async fn apply(&mut self, chosen_settings: Vec<ChosenSetting>, turn: Option<&TurnSink>) {
        let Some(alive) = &self.alive else { return };
        let process = Arc::clone(&alive.process);
        let Some(session) = process.session() else { return };
        let before = process.with_choices(|choices| choices.settings().clone());
        let mut events = Vec::new();
        let mut is_refused = false;
        for chosen_setting in chosen_settings {
            if self.refused.contains(&chosen_setting) {
                continue;
            }
            let Some(change) = process.with_choices(|choices| choices.change(&session, &chosen_setting)) else {
                continue;
            };
            if let Err(error) = self.change(&process, &change).await {
                events.push(AgentEvent::Notice(format!(
                    "The agent refused the {}: {error}",
                    chosen_setting.description()
                )));
                self.refused.push(chosen_setting);
                is_refused = true;
            }
        }
        process.with_choices(|choices| {
            // A refused setting is shown with its present value.
            if is_refused || *choices.settings() != before {
                self.chat.profile.models(choices.settings());
                events.extend(choices.settings().event());
            }
        });
        self.report(turn, events).await;
    }

    async fn change(&self, process: &AgentProcess, change: &SettingRequest) -> Result<(), AgentCallError> {
        let (agent_connection, patience) = (&process.agent_connection, self.chat.pool.options().patience);
        let names = acp::AGENT_METHOD_NAMES;
        let answer = match change {
            SettingRequest::Option(request) => {
                agent_connection.call_for(CallPurpose::Any, names.session_set_config_option, request, patience).await?
            }
            SettingRequest::Mode(request) => {
                agent_connection.call_for(CallPurpose::Any, names.session_set_mode, request, patience).await?
            }
            SettingRequest::Model(request) => {
                agent_connection.call_for(CallPurpose::Any, SET_MODEL, request, patience).await?
            }
        };
        let confirmed = serde_json::from_str::<acp::SetSessionConfigOptionResponse>(answer.get()).ok();
        process.with_choices(|choices| match (change, confirmed) {
            (SettingRequest::Option(_), Some(answer)) if !answer.config_options.is_empty() => {
                choices.take_options(answer.config_options);
            }
            _ => choices.made(change),
        });
        Ok(())
    }
}
