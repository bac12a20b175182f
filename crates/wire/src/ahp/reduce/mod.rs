//! How actions change states: the reducers, shared by host and clients.
//!
//! One function for each channel changes its state in place. They are pure (no clock, no randomness) and total: an
//! action that does not fit the state, because it is late or about something that is not there, changes nothing. Host
//! and clients must come to the same state from the same actions, so what is done here is the protocol's word, also
//! where one would have liked it otherwise.
//!
//! [`ReduceOutcome`] is exact: [`Changed`](ReduceOutcome::Changed) is said exactly where the state is no longer equal to what it
//! was. Hosts rely on it, because there are clients that answer an echo without news with the same action, for ever.
//!
//! What is named by an id is looked for from the end, where it nearly always is; so text that streams in costs the same
//! however long a turn already is. Hosts give ids once per turn, hence it does not matter from which end one looks.

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

/// What an action did to a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOutcome {
    /// The state is another one now.
    Changed,
    /// The state is equal to what it was.
    Unchanged,
}

impl ReduceOutcome {
    /// [`Changed`](Self::Changed) where `changed` is true.
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

/// Changes the state of any channel. An action of another channel, or one that nobody knows, changes nothing.
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
