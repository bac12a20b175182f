//! The events of changes in the session itself.

use grove_core::{self as core, Session, SessionConfig, SessionEvent, Timestamp};

use super::Projector;
use crate::copilot::Event;
use crate::copilot::events::*;
use crate::copilot::methods::{ALLOW_ALL, INTERACTIVE, MANUAL};
use crate::copilot::project::{persistence_error, turn_events};

impl Projector {
    pub(super) fn on_session_event(&mut self, event: &core::Event, change: &SessionEvent, events: &mut Vec<Event>) {
        let at = event.at;
        match change {
            SessionEvent::TitleChanged(title) => {
                self.session.apply(event);
                events.push(self.aside(at, TitleChanged { title: title.text().to_owned() }));
            }
            SessionEvent::ModelChanged(model) => {
                let previous_model = self.session.model.as_ref().map(core::ModelId::to_string);
                self.session.apply(event);
                let changed = ModelChange { previous_model, new_model: model.to_string(), ..ModelChange::default() };
                events.push(self.aside(at, changed));
            }
            // The SDK's event needs a model's name, and which one the agent takes by itself is not known.
            SessionEvent::ModelReset => self.session.apply(event),
            SessionEvent::ConfigChanged { .. } => {
                let previous_mode = mode(&self.session);
                self.session.apply(event);
                let new_mode = mode(&self.session);
                if previous_mode != new_mode {
                    events.push(self.aside(at, ModeChanged { previous_mode, new_mode }));
                }
            }
            SessionEvent::DetailsChanged(details) => self.on_details_changed(event, details, events),
            SessionEvent::CreationFailed(error) => events.push(self.aside(at, turn_events::session_error(error))),
            SessionEvent::Created(_)
            | SessionEvent::Ready
            | SessionEvent::Listed
            | SessionEvent::Removed
            | SessionEvent::ReadChanged(_)
            | SessionEvent::ArchivedChanged(_)
            | SessionEvent::ChatRowChanged(_)
            | SessionEvent::InputNeededSet(_)
            | SessionEvent::InputNeededRemoved { .. }
            | SessionEvent::ChatAdded(_)
            | SessionEvent::ChatRemoved(_)
            | SessionEvent::ActiveClientSet(_)
            | SessionEvent::ActiveClientRemoved(_)
            | SessionEvent::CheckoutChanged(_)
            | SessionEvent::WorkingDirectoryChanged { .. }
            | SessionEvent::Moved(_) => {}
        }
    }

    fn on_details_changed(&mut self, event: &core::Event, details: &core::SessionDetails, events: &mut Vec<Event>) {
        let (before, after) = (self.session.details.allows_all(), details.allows_all());
        if before != after {
            let named = |allows| if allows { ALLOW_ALL } else { MANUAL }.to_owned();
            let changed = PermissionsChanged { mode: named(after), previous_mode: named(before) };
            events.push(self.aside(event.at, changed));
        }
        let known = &self.session.details.warnings;
        let new: Vec<_> = details.warnings.iter().filter(|warning| !known.contains(warning)).cloned().collect();
        for message in new {
            events
                .push(self.aside(event.at, SessionWarning { warning_type: "session".to_owned(), message, url: None }));
        }
        if let Some(reason) = &details.unsaved
            && self.session.details.unsaved.as_ref() != Some(reason)
        {
            events.push(self.aside(event.at, persistence_error(reason)));
        }
        self.session.apply(event);
    }

    pub(super) fn used(&mut self, at: Timestamp, usage: &core::Usage, events: &mut Vec<Event>) {
        let asked_for = self.active().and_then(|active| active.message.model.as_ref());
        let model = usage.model.as_ref().or(asked_for).or(self.session.model.as_ref());
        let model = model.map_or_else(|| self.session.agent.to_string(), core::ModelId::to_string);
        let used = Usage {
            model,
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
        };
        events.push(self.aside(at, used));
        if let Some(context) = usage.context {
            // Only the agent knows the number of messages in its context window.
            let info = UsageInfo { token_limit: context.size, current_tokens: context.used, messages_length: 0 };
            events.push(self.aside(at, info));
        }
    }
}

/// The session's mode, as the protocol names it.
pub fn mode(session: &Session) -> String {
    let values = session.config.as_ref().map(|config| &config.values);
    let mode = values.and_then(|values| values.get(SessionConfig::MODE)).and_then(|mode| mode.as_str());
    mode.unwrap_or(INTERACTIVE).to_owned()
}
