//! The events of texts, thoughts and inputs that grow.

use grove_core::{self as core, Part, Timestamp, ToolCallId};

use super::Projector;
use crate::copilot::Event;
use crate::copilot::events::*;
use crate::copilot::project::ids;
use crate::copilot::project::steps::ProjectedTurn;

impl Projector {
    /// A text or a thought began, perhaps complete.
    pub(super) fn opened(&mut self, at: Timestamp, part: usize, content: &str, events: &mut Vec<Event>) {
        let Some(active) = self.active() else { return };
        let turn = ProjectedTurn::running(active);
        if let Some(Part::Text(_)) = turn.parts.get(part) {
            let message_id = ids::message(&self.session.id, turn, part).to_string();
            let id = ids::piece(&self.session.id, turn, "messageStart", part, 0);
            events.push(self.ephemeral(id, at, MessageStart { message_id }.into()));
        }
        events.extend(self.piece(at, part, 0, content));
    }

    /// A text, a thought or an input grew.
    pub(super) fn grown(
        &mut self,
        event: &core::Event,
        turn: &core::TurnId,
        what: &GrowingPart<'_>,
        content: &str,
        events: &mut Vec<Event>,
    ) {
        let Some(active) = self.active().filter(|active| active.id == *turn) else { return };
        // The growing part is the last, or near it.
        let Some(part) = active.parts().iter().rposition(|part| what.is(part)) else { return };
        let offset = length(&active.parts()[part]);
        self.session.apply(event);
        let is_longer = self.active().is_some_and(|active| length(&active.parts()[part]) > offset);
        if is_longer {
            events.extend(self.piece(event.at, part, offset, content));
        }
    }

    /// The delta of a growing part.
    fn piece(&self, at: Timestamp, part: usize, offset: usize, content: &str) -> Option<Event> {
        if content.is_empty() {
            return None;
        }
        let turn = ProjectedTurn::running(self.active()?);
        let delta = content.to_owned();
        let data: EventData = match turn.parts.get(part)? {
            Part::Text(_) => {
                let message_id = ids::message(&self.session.id, turn, part).to_string();
                MessageDelta { message_id, delta_content: delta }.into()
            }
            Part::Reasoning { id, .. } => ReasoningDelta { reasoning_id: id.to_string(), delta_content: delta }.into(),
            Part::ToolCall(call) => ToolCallDelta {
                tool_call_id: call.id.to_string(),
                tool_name: Some(call.name.clone()),
                input_delta: delta,
            }
            .into(),
            _ => return None,
        };
        let id = ids::piece(&self.session.id, turn, "delta", part, offset);
        Some(self.ephemeral(id, at, data))
    }
}

/// A part that can grow by a delta.
pub(super) enum GrowingPart<'a> {
    Part(&'a core::PartId),
    Input(&'a ToolCallId),
}

impl GrowingPart<'_> {
    fn is(&self, part: &Part) -> bool {
        match (self, part) {
            (GrowingPart::Part(id), Part::Text(text)) => text.id == **id,
            (GrowingPart::Part(id), Part::Reasoning { id: mine, .. }) => mine == *id,
            (GrowingPart::Input(id), Part::ToolCall(call)) => call.id == **id,
            _ => false,
        }
    }
}

fn length(part: &Part) -> usize {
    match part {
        Part::Text(text) => text.content.len(),
        Part::Reasoning { content, .. } => content.len(),
        Part::ToolCall(call) => call.input.as_ref().map_or(0, String::len),
        _ => 0,
    }
}
