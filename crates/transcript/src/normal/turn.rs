//! A turn: a person's message and its results.

use grove_core::{ErrorInfo, Extra, Timestamp};
use serde::{Deserialize, Serialize};

use super::{
    CodeBlock, CodeCitation, ContextBlock, FileLocation, TranscriptMessage, TranscriptModel, TranscriptPart,
    TranscriptToolCall, TranscriptUsage,
};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptTurn {
    /// The tool's own id; never empty.
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
    #[serde(skip_serializing_if = "super::is_default")]
    pub follows: TurnParent,
    /// The model's id of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_message_id: Option<String>,
    /// The agent's id of the conversation at this turn: another id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_response_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_ms: Option<u64>,
    pub message: TranscriptMessage,
    pub parts: Vec<TranscriptPart>,
    pub outcome: TurnOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<TranscriptModel>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<TranscriptAgent>,
    /// The agent's permission mode, in the tool's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TranscriptUsage>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub code_blocks: Vec<CodeBlock>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<CodeCitation>,
    /// Locations that the answer used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub references: Vec<FileLocation>,
    /// The tool's suggestions for the next message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub followups: Vec<String>,
    /// The model's texts of each round between its calls, if the tool keeps them beside the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<String>,
    /// The tool's additions to the model's prompt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<ContextBlock>,
    #[serde(skip_serializing_if = "Extra::is_empty")]
    pub raw: Extra,
}

/// The parent of a turn. Tools whose sessions are trees keep abandoned branches in the same file, and so does the
/// normal form: [`path`] gives the turns that such a tool shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnParent {
    /// The previous turn, if there is one.
    #[default]
    Previous,
    /// An earlier turn, by its number from 0: those in between were abandoned.
    Turn(u32),
    /// None: it starts a new conversation.
    Nothing,
}

impl TurnParent {
    pub fn is_previous(&self) -> bool {
        *self == Self::Previous
    }

    /// The number of the parent of turn `own`. One that names itself or a later turn is wrong, and has none.
    pub fn number(self, own: usize) -> Option<usize> {
        match self {
            Self::Previous => own.checked_sub(1),
            Self::Turn(turn) => usize::try_from(turn).ok().filter(|turn| *turn < own),
            Self::Nothing => None,
        }
    }

    /// The parent of turn `number` if it follows `turn`.
    pub fn of(number: u32, turn: Option<u32>) -> Self {
        match turn {
            Some(turn) if turn.checked_add(1) == Some(number) => Self::Previous,
            Some(turn) => Self::Turn(turn),
            None if number == 0 => Self::Previous,
            None => Self::Nothing,
        }
    }
}

/// The numbers of the turns that lead to the newest one, in order, without abandoned branches.
pub fn path(turns: &[TranscriptTurn]) -> Vec<usize> {
    path_of(&turns.iter().map(|turn| turn.follows).collect::<Vec<_>>())
}

/// The same from the parents alone.
pub fn path_of(follows: &[TurnParent]) -> Vec<usize> {
    path_among_newest(0, follows).0
}

/// The same for the newest turns alone, of which the first has the number `first`, and whether the path begins before them.
/// Turns are given by where they stand in `follows`.
pub fn path_among_newest(first: usize, follows: &[TurnParent]) -> (Vec<usize>, bool) {
    let mut path = Vec::new();
    let mut begins_before = false;
    let mut next = first.saturating_add(follows.len()).checked_sub(1);
    while let Some(number) = next {
        let Some(at) = number.checked_sub(first).filter(|at| *at < follows.len()) else {
            begins_before = true;
            break;
        };
        path.push(at);
        next = follows[at].number(number);
    }
    path.reverse();
    (path, begins_before)
}

/// The agent of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct TranscriptAgent {
    pub id: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extension: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// The outcome of a turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TurnOutcome {
    Complete,
    Cancelled,
    Failed(ErrorInfo),
    /// Its end is not known.
    #[default]
    Interrupted,
}

impl TranscriptTurn {
    /// The agent's complete text, without thoughts.
    pub fn text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            TranscriptPart::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n\n")
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &TranscriptToolCall> {
        self.parts.iter().filter_map(|part| match part {
            TranscriptPart::ToolCall(call) => Some(&**call),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_leaves_out_what_was_left_and_always_ends() {
        let turns = |follows: &[TurnParent]| -> Vec<TranscriptTurn> {
            follows.iter().map(|follows| TranscriptTurn { follows: *follows, ..TranscriptTurn::default() }).collect()
        };
        use TurnParent::{Nothing, Previous, Turn};
        assert_eq!(path(&turns(&[Previous, Previous, Turn(0), Previous])), [0, 2, 3]);
        assert_eq!(path(&turns(&[Previous, Previous, Nothing, Previous])), [2, 3]);
        assert_eq!(path(&turns(&[Turn(7), Turn(1)])), [1]);
        assert!(path(&[]).is_empty());
    }

    #[test]
    fn the_path_among_the_newest_turns_is_the_end_of_the_path_among_all() {
        use TurnParent::{Nothing, Previous, Turn};
        let all = [Previous, Previous, Turn(0), Previous, Turn(2), Turn(1), Previous];
        assert_eq!(path_of(&all), [0, 1, 5, 6]);
        assert_eq!(path_among_newest(5, &all[5..]), (vec![0, 1], true));
        assert_eq!(
            path_among_newest(2, &all[2..]),
            (vec![3, 4], true),
            "turn 5 goes on from one that is not among them"
        );
        assert_eq!(path_among_newest(1, &all[1..]), (vec![0, 4, 5], true));
        assert_eq!(path_among_newest(0, &all), (vec![0, 1, 5, 6], false));
        assert_eq!(path_among_newest(3, &[Nothing, Previous]), (vec![0, 1], false));
        assert_eq!(path_among_newest(3, &[]), (vec![], true));
    }
}
