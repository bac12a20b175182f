//! The class of each event: everything that a host decides by the kind of an event alone.
//!
//! One table for each enum, one row for each event. A new event gets its row here, and the host needs no change.

use super::{Change, ChatEvent, RootEvent, SessionEvent};

/// The handling of an event apart from its effect ([`crate::apply`]) and its encodings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventClass {
    /// A power cut must not undo the event: it confirms something. Streamed text may lose its last moment.
    pub is_durable: bool,
    /// Its effect on lists of sessions.
    pub listed: ListChange,
    /// It can change the session's copy of its chats: their rows and open questions ([`crate::mirror`]).
    pub is_mirrored: bool,
    /// It leaves something to read in a chat, and so in its session. The chats' own flags do not tell: somebody may have
    /// read the session and not its chats.
    pub makes_unread: bool,
    /// It changes the session's set of chats, and so the addresses under which clients know them.
    pub changes_chat_set: bool,
    /// The file that must have the event before a session stored by a client publishes it.
    pub saved: SaveTarget,
    /// It completes an entry of the chat's log, which is written then.
    pub completes_entry: bool,
    /// It begins or ends a turn.
    pub boundary: Option<TurnBoundary>,
}

/// The effect of an event on lists of sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListChange {
    None,
    /// The session's row is added.
    Added,
    /// The session's row changes.
    Changed,
    /// The session's row is removed.
    Removed,
}

/// The file of a session that stores an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveTarget {
    /// None: the event only streams, or is useless later.
    None,
    /// The session's own file. If that cannot be written, the event does not happen.
    SessionFile,
    /// The chat's log. The event happens even if it cannot be written yet, and the sender waits for the write.
    Log,
    /// The chat's log, and nobody waits for the write: a turn has ended and a decision has been made whatever the
    /// storage says.
    LogLater,
}

/// The first or the last event of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TurnBoundary {
    Start,
    End,
}

impl EventClass {
    /// An event that only its subscribers care about.
    const PLAIN: Self = Self {
        is_durable: false,
        listed: ListChange::None,
        is_mirrored: false,
        makes_unread: false,
        changes_chat_set: false,
        saved: SaveTarget::None,
        completes_entry: false,
        boundary: None,
    };
    const DURABLE: Self = Self { is_durable: true, ..Self::PLAIN };

    /// True if lists are notified of the event, beside the subscribers of its channel.
    pub fn is_announced(self) -> bool {
        self.listed != ListChange::None
    }

    const fn listed(self, listed: ListChange) -> Self {
        Self { listed, ..self }
    }

    const fn mirrored(self) -> Self {
        Self { is_mirrored: true, ..self }
    }

    const fn unread(self, makes_unread: bool) -> Self {
        Self { makes_unread, ..self }
    }

    const fn chat_set(self) -> Self {
        Self { changes_chat_set: true, ..self }
    }

    const fn saved(self, saved: SaveTarget) -> Self {
        Self { saved, ..self }
    }

    const fn entry(self) -> Self {
        Self { completes_entry: true, ..self }
    }

    const fn starts_turn(self) -> Self {
        Self { boundary: Some(TurnBoundary::Start), ..self }
    }

    const fn ends_turn(self) -> Self {
        Self { boundary: Some(TurnBoundary::End), ..self }
    }
}

impl Change {
    /// The class of the change's event.
    pub fn class(&self) -> EventClass {
        match self {
            Change::Root(event) => event.class(),
            Change::Session(_, event) => event.class(),
            Change::Chat(_, _, event) => event.class(),
        }
    }
}

impl RootEvent {
    pub fn class(&self) -> EventClass {
        match self {
            RootEvent::AgentsChanged(_) | RootEvent::ActiveSessionsChanged(_) => EventClass::PLAIN,
        }
    }
}

impl SessionEvent {
    pub fn class(&self) -> EventClass {
        use ListChange::{Added, Changed, Removed};
        use SaveTarget::SessionFile;
        const PLAIN: EventClass = EventClass::PLAIN;
        const DURABLE: EventClass = EventClass::DURABLE;
        match self {
            SessionEvent::Created(_) => DURABLE.chat_set(),
            SessionEvent::Ready => DURABLE,
            SessionEvent::CreationFailed(_) => DURABLE,
            SessionEvent::Listed => PLAIN.listed(Added),
            SessionEvent::Removed => DURABLE.listed(Removed),
            // The main chat goes by the session's title.
            SessionEvent::TitleChanged(_) => DURABLE.listed(Changed).mirrored().saved(SessionFile),
            SessionEvent::ModelChanged(_) => DURABLE.saved(SessionFile),
            SessionEvent::ModelReset => DURABLE.saved(SessionFile),
            SessionEvent::ReadChanged(_) => DURABLE.listed(Changed),
            SessionEvent::ArchivedChanged(_) => DURABLE.listed(Changed).saved(SessionFile),
            // These follow from the chats, and are found again with them.
            SessionEvent::ChatRowChanged(_) => PLAIN.listed(Changed),
            SessionEvent::InputNeededSet(_) => PLAIN,
            SessionEvent::InputNeededRemoved { .. } => PLAIN,
            SessionEvent::ChatAdded(_) => DURABLE.listed(Changed).chat_set().saved(SessionFile),
            SessionEvent::ChatRemoved(_) => DURABLE.listed(Changed).chat_set().saved(SessionFile),
            SessionEvent::ActiveClientSet(_) => DURABLE,
            SessionEvent::ActiveClientRemoved(_) => DURABLE,
            SessionEvent::ConfigChanged { .. } => DURABLE.saved(SessionFile),
            // It contains permissions that were given permanently.
            SessionEvent::DetailsChanged(_) => DURABLE,
            // A pull request that a turn made is not found again.
            SessionEvent::CheckoutChanged(_) => DURABLE.listed(Changed),
            SessionEvent::WorkingDirectoryChanged { .. } => DURABLE.listed(Changed).saved(SessionFile),
            // The old folder is deleted right after it.
            SessionEvent::Moved(_) => DURABLE.saved(SessionFile),
        }
    }
}

impl ChatEvent {
    pub fn class(&self) -> EventClass {
        use SaveTarget::{Log, LogLater, SessionFile};
        const PLAIN: EventClass = EventClass::PLAIN;
        const DURABLE: EventClass = EventClass::DURABLE;
        match self {
            ChatEvent::TurnStarted { .. } => DURABLE.mirrored().unread(true).saved(SessionFile).starts_turn(),
            ChatEvent::PartAdded { .. } => PLAIN,
            ChatEvent::TextDelta { .. } => PLAIN,
            ChatEvent::ReasoningDelta { .. } => PLAIN,
            ChatEvent::ToolCallStarted { .. } => PLAIN,
            ChatEvent::ToolCallInputDelta { .. } => PLAIN,
            ChatEvent::ToolCallReady { .. } => PLAIN.mirrored(),
            ChatEvent::ToolCallRestated { .. } => PLAIN.mirrored(),
            ChatEvent::ToolCallGated { .. } => DURABLE.mirrored(),
            ChatEvent::ToolCallConfirmed { .. } => DURABLE.mirrored().saved(LogLater),
            ChatEvent::ToolCallOutput { .. } => PLAIN.mirrored(),
            ChatEvent::ToolCallCompleted { .. } => DURABLE.mirrored(),
            ChatEvent::ToolCallResultGated { .. } => PLAIN.mirrored(),
            ChatEvent::ToolCallResultConfirmed { .. } => DURABLE.mirrored(),
            ChatEvent::UsageReported { .. } => PLAIN,
            ChatEvent::InputRequested { .. } => DURABLE.mirrored().unread(true),
            ChatEvent::InputAnswerChanged { .. } => PLAIN.mirrored(),
            ChatEvent::InputAnswered { .. } => DURABLE.mirrored(),
            ChatEvent::TurnCompleted { .. } => DURABLE.mirrored().saved(LogLater).entry().ends_turn(),
            ChatEvent::TurnCancelled { .. } => DURABLE.mirrored().saved(LogLater).entry().ends_turn(),
            ChatEvent::TurnFailed { .. } => DURABLE.mirrored().saved(LogLater).entry().ends_turn(),
            ChatEvent::SteeringSet(_) => DURABLE.saved(SessionFile),
            ChatEvent::SteeringRemoved(_) => DURABLE.saved(SessionFile),
            ChatEvent::QueuedSet(_) => DURABLE.saved(SessionFile),
            ChatEvent::QueuedRemoved(_) => DURABLE.saved(SessionFile),
            ChatEvent::QueueReordered(_) => DURABLE.saved(SessionFile),
            ChatEvent::DraftChanged(_) => PLAIN,
            ChatEvent::ChatReadChanged(read) => DURABLE.mirrored().unread(!*read),
            ChatEvent::ChatArchivedChanged(_) => DURABLE.mirrored().saved(SessionFile),
            ChatEvent::ChatTitleChanged(_) => DURABLE.mirrored().saved(SessionFile),
            ChatEvent::ActivityChanged(_) => PLAIN,
            ChatEvent::AgentSessionChanged(_) => DURABLE,
            // The chat's status depends on its newest turn.
            ChatEvent::TurnsCleared => DURABLE.mirrored().saved(Log),
            ChatEvent::BranchTurnsLoaded { .. } => DURABLE.mirrored().saved(Log),
            ChatEvent::TurnsInherited { .. } => DURABLE.mirrored().saved(Log),
            ChatEvent::EntryAdded(_) => DURABLE.saved(Log).entry(),
        }
    }
}
