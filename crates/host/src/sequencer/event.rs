//! An event in its place in the order, encoded at most once per dialect.

use std::sync::{Arc, OnceLock};

use grove_core::*;
use grove_wire::registry::Registry;
use grove_wire::v1;
use serde::{Deserialize, Serialize};

use crate::dialect::Dialect;

/// Who dispatched what came to be this event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Origin {
    pub(crate) client: ClientId,
    pub(crate) client_seq: u64,
}

/// What clients subscribe to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Root,
    Session(SessionId),
}

/// A numbered event.
#[derive(Debug)]
pub(crate) struct Sequenced {
    pub(crate) seq: u64,
    pub(crate) event: Event,
    pub(crate) origin: Option<Origin>,
    /// The URI of the event's session, which version 1 writes into each action.
    uri: Option<SessionUri>,
    v1: OnceLock<Option<EncodedV1>>,
}

#[derive(Clone, Debug)]
struct EncodedV1 {
    kind: v1::ActionType,
    frame: Arc<str>,
}

impl Sequenced {
    pub(crate) fn new(seq: u64, event: Event, origin: Option<Origin>, uri: Option<SessionUri>) -> Self {
        Self { seq, event, origin, uri, v1: OnceLock::new() }
    }

    pub(crate) fn resource(&self) -> Resource {
        match self.event.change.session() {
            None => Resource::Root,
            Some(session) => Resource::Session(session.clone()),
        }
    }

    /// The frame that tells this event in a dialect, where the dialect and the client's version have one.
    pub(crate) fn frame(&self, dialect: Dialect, registry: &Registry) -> Option<Arc<str>> {
        match dialect {
            Dialect::V1 { version } => {
                let encoded = self.v1()?;
                registry.knows_action(encoded.kind, version).then(|| encoded.frame.clone())
            }
        }
    }

    /// How many bytes this event takes in a replay: itself and its frame, whether that has been asked for yet or not.
    pub(crate) fn weight(&self) -> usize {
        // What the frame of a delta has beside the text, about.
        const DELTA_FRAME: usize = 200;
        let (own, frame) = match (self.delta(), self.v1.get()) {
            (Some(text), None) => (text.len(), text.len() + DELTA_FRAME),
            (Some(text), Some(encoded)) => (text.len(), encoded.as_ref().map_or(0, |encoded| encoded.frame.len())),
            // Anything else is rare enough to be encoded for nobody. That tells how large it is itself, too.
            (None, _) => self.v1().map_or((0, 0), |encoded| (encoded.frame.len(), encoded.frame.len())),
        };
        size_of::<Self>() + own + frame
    }

    fn v1(&self) -> Option<&EncodedV1> {
        self.v1.get_or_init(|| self.encode_v1(&self.event)).as_ref()
    }

    /// The text that this event adds to a part, if that is what it does.
    pub(crate) fn delta(&self) -> Option<&str> {
        match &self.event.change {
            Change::Chat(_, _, ChatEvent::TextDelta { content, .. } | ChatEvent::ReasoningDelta { content, .. }) => {
                Some(content)
            }
            _ => None,
        }
    }

    /// Whether both add to the same part, so that one event can say what the two say.
    pub(crate) fn continues(&self, earlier: &Sequenced) -> bool {
        match (&earlier.event.change, &self.event.change) {
            (Change::Chat(session_a, chat_a, a), Change::Chat(session_b, chat_b, b)) => {
                session_a == session_b
                    && chat_a == chat_b
                    && match (a, b) {
                        (
                            ChatEvent::TextDelta { turn: turn_a, part: part_a, .. },
                            ChatEvent::TextDelta { turn: turn_b, part: part_b, .. },
                        )
                        | (
                            ChatEvent::ReasoningDelta { turn: turn_a, part: part_a, .. },
                            ChatEvent::ReasoningDelta { turn: turn_b, part: part_b, .. },
                        ) => turn_a == turn_b && part_a == part_b,
                        _ => false,
                    }
            }
            _ => false,
        }
    }

    /// This delta with more text and a later number: what several deltas in a row come to.
    pub(crate) fn merged(&self, text: String, seq: u64) -> Arc<Self> {
        let mut event = self.event.clone();
        if let Change::Chat(_, _, ChatEvent::TextDelta { content, .. } | ChatEvent::ReasoningDelta { content, .. }) =
            &mut event.change
        {
            *content = text;
        }
        Arc::new(Self::new(seq, event, None, self.uri.clone()))
    }

    fn encode_v1(&self, event: &Event) -> Option<EncodedV1> {
        let uri = self.uri.as_ref().map_or("", SessionUri::as_str);
        let action = v1::encode::action(event, uri)?;
        let kind = action.kind();
        let envelope = v1::ActionEnvelope {
            action,
            server_seq: self.seq,
            origin: self.origin.as_ref().map(Origin::to_v1),
            rejection_reason: None,
        };
        match v1::encode::action_frame(&envelope) {
            Ok(frame) => Some(EncodedV1 { kind, frame: frame.into() }),
            Err(error) => {
                tracing::error!(%error, kind = kind.as_str(), "an action could not be written as JSON");
                None
            }
        }
    }
}

impl Origin {
    pub(crate) fn to_v1(&self) -> v1::Origin {
        v1::Origin { client_id: self.client.to_string(), client_seq: self.client_seq }
    }
}

/// Whether an event confirms something to somebody, so that a power cut must not undo it. Text that streams does not:
/// its last moment may be lost.
pub(crate) fn confirms(change: &Change) -> bool {
    match change {
        Change::Root(_) => false,
        Change::Session(_, event) => match event {
            SessionEvent::Created(_)
            | SessionEvent::Ready
            | SessionEvent::CreationFailed(_)
            | SessionEvent::Removed
            | SessionEvent::TitleChanged(_)
            | SessionEvent::ModelChanged(_)
            | SessionEvent::ReadChanged(_)
            | SessionEvent::ArchivedChanged(_) => true,
            SessionEvent::Listed
            | SessionEvent::ChatRowChanged(_)
            | SessionEvent::InputNeededSet(_)
            | SessionEvent::InputNeededRemoved(_) => false,
        },
        Change::Chat(_, _, event) => match event {
            ChatEvent::TurnStarted { .. }
            | ChatEvent::ToolCallGated { .. }
            | ChatEvent::ToolCallConfirmed { .. }
            | ChatEvent::ToolCallCompleted { .. }
            | ChatEvent::ToolCallResultConfirmed { .. }
            | ChatEvent::InputRequested { .. }
            | ChatEvent::InputAnswered { .. }
            | ChatEvent::TurnCompleted { .. }
            | ChatEvent::TurnCancelled { .. }
            | ChatEvent::TurnFailed { .. }
            | ChatEvent::SteeringSet(_)
            | ChatEvent::SteeringRemoved(_)
            | ChatEvent::QueuedSet(_)
            | ChatEvent::QueuedRemoved(_)
            | ChatEvent::QueueReordered(_) => true,
            ChatEvent::PartAdded { .. }
            | ChatEvent::TextDelta { .. }
            | ChatEvent::ReasoningDelta { .. }
            | ChatEvent::ToolCallStarted { .. }
            | ChatEvent::ToolCallInputDelta { .. }
            | ChatEvent::ToolCallReady { .. }
            | ChatEvent::ToolCallResultGated { .. }
            | ChatEvent::UsageReported { .. }
            | ChatEvent::DraftChanged(_) => false,
        },
    }
}
