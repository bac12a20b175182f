//! Making an agent use what was chosen.

use std::sync::Arc;

use agent_client_protocol_schema::v1 as acp;
use grove_core::Extra;

use super::super::choices::Wish;
use super::super::process::Process;
use super::Worker;
use crate::acp::connection::{CallError, Purpose};
use crate::acp::settings::Change;
use crate::agent::*;

/// The older way to choose a model, which the types do not have any more.
const SET_MODEL: &str = "session/set_model";

impl Worker {
    pub(super) async fn configure(&mut self, values: Extra) {
        self.chosen.extend(values.clone());
        self.refused.retain(|wish| !matches!(wish, Wish::Setting(name, _) if values.contains_key(name)));
        let wishes = values.into_iter().map(|(name, value)| Wish::Setting(name, value)).collect();
        self.look();
        let mut closing = self.closing.clone();
        let configured = async {
            if self.alive.is_none() {
                return self.prepare(None, None).await;
            }
            self.apply(wishes, None).await;
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
                tracing::warn!(session = %self.chat.session, %error, "settings wait for the agent's start");
                self.drop_unopened().await;
            }
            None => self.drop_unopened().await,
        }
    }

    pub(super) fn chosen_wishes(&self) -> Vec<Wish> {
        self.chosen.iter().map(|(name, value)| Wish::Setting(name.clone(), value.clone())).collect()
    }

    /// Makes the agent use what is chosen. What it refuses is said, and fails nothing.
    pub(super) async fn apply(&mut self, wishes: Vec<Wish>, turn: Option<&TurnSink>) {
        let Some(alive) = &self.alive else { return };
        let process = Arc::clone(&alive.process);
        let Some(session) = process.session() else { return };
        let before = process.with_choices(|choices| choices.settings().clone());
        let mut events = Vec::new();
        let mut told = false;
        for wish in wishes {
            if self.refused.contains(&wish) {
                continue;
            }
            let Some(change) = process.with_choices(|choices| choices.change(&session, &wish)) else { continue };
            if let Err(error) = self.change(&process, &change).await {
                events.push(AgentEvent::Notice(format!("The agent did not take the {}: {error}", wish.told())));
                self.refused.push(wish);
                told = true;
            }
        }
        process.with_choices(|choices| {
            // What was refused is shown as it is.
            if told || *choices.settings() != before {
                self.chat.learned.models(choices.settings());
                events.extend(choices.settings().event());
            }
        });
        self.report(turn, events).await;
    }

    async fn change(&self, process: &Process, change: &Change) -> Result<(), CallError> {
        let (link, patience) = (&process.link, self.chat.fleet.options().patience);
        let names = acp::AGENT_METHOD_NAMES;
        let answer = match change {
            Change::Option(request) => {
                link.call_for(Purpose::Any, names.session_set_config_option, request, patience).await?
            }
            Change::Mode(request) => link.call_for(Purpose::Any, names.session_set_mode, request, patience).await?,
            Change::Model(request) => link.call_for(Purpose::Any, SET_MODEL, request, patience).await?,
        };
        let told = serde_json::from_str::<acp::SetSessionConfigOptionResponse>(answer.get()).ok();
        process.with_choices(|choices| match (change, told) {
            (Change::Option(_), Some(answer)) if !answer.config_options.is_empty() => {
                choices.take_options(answer.config_options);
            }
            _ => choices.made(change),
        });
        Ok(())
    }
}
