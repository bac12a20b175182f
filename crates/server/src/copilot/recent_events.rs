//! The newest ephemeral events of a session, for clients that read events instead of listening.

use std::collections::VecDeque;

use grove_wire::copilot::Event;

/// The ephemeral events that are kept; of more, the newest. Pieces of streamed texts are not among them.
pub const MAX_RECENT_EVENTS: usize = 256;
/// The bytes of these events; of more, the newest.
pub const MAX_RECENT_BYTES: usize = 1 << 20;

#[derive(Debug, Default)]
pub(super) struct RecentEvents {
    events: VecDeque<(Event, usize)>,
    bytes: usize,
}

impl RecentEvents {
    /// Adds an event of so many bytes.
    pub(super) fn push(&mut self, event: Event, bytes: usize) {
        self.bytes += bytes;
        self.events.push_back((event, bytes));
        while self.events.len() > MAX_RECENT_EVENTS || self.bytes > MAX_RECENT_BYTES {
            let Some((_, bytes)) = self.events.pop_front() else { return };
            self.bytes -= bytes;
        }
    }

    /// The persisted events with these among them: each follows the one that was the last when it was sent.
    pub(super) fn merged_into(&self, persisted: Vec<Event>) -> Vec<Event> {
        let mut merged = Vec::with_capacity(persisted.len() + self.events.len());
        for event in persisted {
            let id = event.id.clone();
            merged.push(event);
            let behind = self.events.iter().filter(|(recent, _)| recent.parent_id.as_ref() == Some(&id));
            merged.extend(behind.map(|(recent, _)| recent.clone()));
        }
        merged
    }
}

#[cfg(test)]
mod tests {
    use grove_wire::copilot::events::SessionIdle;

    use super::*;

    fn event(id: &str, parent: Option<&str>) -> Event {
        Event {
            id: id.into(),
            timestamp: String::new(),
            parent_id: parent.map(Into::into),
            ephemeral: parent.is_some(),
            agent_id: None,
            data: SessionIdle::default().into(),
        }
    }

    #[test]
    fn the_newest_events_stand_behind_the_one_that_they_followed() {
        let mut recent = RecentEvents::default();
        for (id, parent) in [("1", "a"), ("2", "a"), ("3", "b"), ("4", "gone")] {
            recent.push(event(id, Some(parent)), 10);
        }
        let merged = recent.merged_into(vec![event("a", None), event("b", None)]);
        assert_eq!(merged.iter().map(|event| &*event.id).collect::<Vec<_>>(), ["a", "1", "2", "b", "3"]);
        recent.push(event("large", Some("b")), MAX_RECENT_BYTES);
        assert_eq!(recent.merged_into(vec![event("b", None)]).len(), 2);
    }
}
