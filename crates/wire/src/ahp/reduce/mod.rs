//! The reducers, which apply actions to states; shared by host and clients.
//!
//! One function for each channel changes its state in place. They are pure (no clock, no randomness) and total: an
//! action that does not fit the state, because it is late or its subject does not exist, changes nothing. Host and
//! clients must derive the same state from the same actions, so the reducers follow the protocol exactly, even where
//! another behaviour would be better.
//!
//! [`ReduceOutcome`] is exact: [`Changed`](ReduceOutcome::Changed) means that the state is not equal to the earlier
//! one. Hosts rely on it, because some clients answer an echo without a change with the same action, for ever.
//!
//! Objects are searched by id from the end, where they nearly always are, so that streamed text costs the same however
//! long a turn is. Ids are unique in a turn, so the direction does not matter.

mod annotations;
mod changeset;
mod chat;
mod customization;
mod edit;
mod resource_watch;
mod root;
mod session;
mod terminal;
mod time;

pub use annotations::annotations;
pub use changeset::changeset;
pub use chat::chat;
pub use resource_watch::resource_watch;
pub use root::root;
pub use session::session;
pub use terminal::terminal;

use super::action::Action;
/// The state of any channel, as it is in a snapshot.
pub use super::state::SnapshotState as State;

/// The effect of an action on a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOutcome {
    /// The state has changed.
    Changed,
    /// The state is equal to the earlier one.
    Unchanged,
}

impl ReduceOutcome {
    /// [`Changed`](Self::Changed) if `changed` is true.
    pub const fn of(changed: bool) -> Self {
        if changed { Self::Changed } else { Self::Unchanged }
    }

    pub const fn is_changed(self) -> bool {
        matches!(self, Self::Changed)
    }
}

/// Changed if either is.
impl std::ops::BitOr for ReduceOutcome {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::of(self.is_changed() || other.is_changed())
    }
}

impl std::ops::BitOrAssign for ReduceOutcome {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

/// Applies an action to the state of any channel. An action of another channel, or of an unknown type, changes nothing.
pub fn reduce(state: &mut State, action: &Action) -> ReduceOutcome {
    match (state, action) {
        (State::Root(state), Action::Root(action)) => root(state, action),
        (State::Session(state), Action::Session(action)) => session(state, action),
        (State::Chat(state), Action::Chat(action)) => chat(state, action),
        (State::Terminal(state), Action::Terminal(action)) => terminal(state, action),
        (State::Changeset(state), Action::Changeset(action)) => changeset(state, action),
        (State::Annotations(state), Action::Annotations(action)) => annotations(state, action),
        (State::ResourceWatch(state), Action::ResourceWatch(action)) => resource_watch(state, action),
        (
            State::Root(_)
            | State::Session(_)
            | State::Chat(_)
            | State::Terminal(_)
            | State::Changeset(_)
            | State::Annotations(_)
            | State::ResourceWatch(_)
            | State::Unknown(_),
            _,
        ) => ReduceOutcome::Unchanged,
    }
}
