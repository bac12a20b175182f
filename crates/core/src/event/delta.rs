//! Deltas: events that append text to a part. Consecutive ones of a part can be merged.

use super::{Change, ChatEvent};

impl Change {
    /// The text that this change appends to a part, if it is a delta.
    pub fn delta(&self) -> Option<&str> {
        match self {
            Change::Chat(_, _, ChatEvent::TextDelta { content, .. } | ChatEvent::ReasoningDelta { content, .. }) => {
                Some(content)
            }
            _ => None,
        }
    }

    /// The same delta with another text. Other changes stay as they are.
    pub fn with_delta(mut self, text: String) -> Self {
        if let Change::Chat(_, _, ChatEvent::TextDelta { content, .. } | ChatEvent::ReasoningDelta { content, .. }) =
            &mut self
        {
            *content = text;
        }
        self
    }

    /// True if both are deltas of the same part, so that they can be merged.
    pub fn continues(&self, earlier: &Change) -> bool {
        let (Change::Chat(session, chat, this), Change::Chat(its_session, its_chat, earlier)) = (self, earlier) else {
            return false;
        };
        let appends_to_same_part = match (this, earlier) {
            (ChatEvent::TextDelta { turn, part, .. }, ChatEvent::TextDelta { turn: its_turn, part: its_part, .. })
            | (
                ChatEvent::ReasoningDelta { turn, part, .. },
                ChatEvent::ReasoningDelta { turn: its_turn, part: its_part, .. },
            ) => turn == its_turn && part == its_part,
            _ => false,
        };
        appends_to_same_part && session == its_session && chat == its_chat
    }
}
