//! Projects core's state to events.
//!
//! A turn gives a list of *steps* (`steps`): the user message, each piece of the answer, each call with its result, the
//! end. A step has one event, whose id is derived from its position (`ids`) and whose data from the turn alone
//! (`turn_events`). So the live stream ([`Projector`]) and a later read ([`history`]) return the same events under the
//! same ids, on every connection.
//!
//! Entries of the log outside of turns have events too (`entries`).
//!
//! Three things differ. A finished turn does not know the times of its pieces, so a later read has the time of the turn;
//! parallel calls come one after the other, each with its result, while the live stream sends results as they come; and
//! an entry that came during a turn is read before it.
//! Ephemeral events, questions included (`request_events`), are sent live only.

pub(crate) mod entries;
mod history;
mod ids;
mod live;
mod pending_input;
pub(super) mod request_events;
mod steps;
mod turn_events;

use grove_core as core;

pub use entries::{MAX_TAIL, entry_event_id, log_event};
pub use history::{EventPosition, TurnPosition, history, locate};
pub use ids::start_id;
pub use live::{Projector, mode};
pub use request_events::{permission_request, prompt_request, user_input};
pub use turn_events::start;

use super::events::SessionError;
use super::methods::server::{LifecycleKind, LifecycleParams};

/// The error while events cannot be stored.
pub fn persistence_error(reason: &str) -> SessionError {
    SessionError {
        error_type: "persistence".to_owned(),
        message: format!("Failed to persist session events: {reason}"),
        stack: None,
        url: None,
    }
}

/// The notification on a session that was created, changed or deleted. `session` is its state after the event, or
/// before its removal.
pub fn lifecycle(event: &core::SessionEvent, session: &core::Session) -> Option<LifecycleParams> {
    match event {
        core::SessionEvent::Listed => Some(LifecycleParams::of(LifecycleKind::Created, session)),
        core::SessionEvent::Removed => Some(LifecycleParams::deleted(&session.id)),
        core::SessionEvent::TitleChanged(_) | core::SessionEvent::ChatRowChanged(_) => {
            Some(LifecycleParams::of(LifecycleKind::Updated, session))
        }
        core::SessionEvent::Created(_)
        | core::SessionEvent::Ready
        | core::SessionEvent::CreationFailed(_)
        | core::SessionEvent::ModelChanged(_)
        | core::SessionEvent::ModelReset
        | core::SessionEvent::ReadChanged(_)
        | core::SessionEvent::ArchivedChanged(_)
        | core::SessionEvent::InputNeededSet(_)
        | core::SessionEvent::InputNeededRemoved { .. }
        | core::SessionEvent::ChatAdded(_)
        | core::SessionEvent::ChatRemoved(_)
        | core::SessionEvent::ActiveClientSet(_)
        | core::SessionEvent::ActiveClientRemoved(_)
        | core::SessionEvent::ConfigChanged { .. }
        | core::SessionEvent::DetailsChanged(_)
        | core::SessionEvent::CheckoutChanged(_)
        | core::SessionEvent::WorkingDirectoryChanged { .. }
        | core::SessionEvent::Moved(_) => None,
    }
}
