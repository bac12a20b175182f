//! Attaches subagents' conversations to the tool calls that started them.

use std::collections::HashMap;

use grove_core::MessageOrigin;
use grove_transcript::{
    CallState, ToolInput, TranscriptChat, TranscriptPart, TranscriptToolCall, TranscriptToolKind, TranscriptTurn,
    TurnOutcome,
};

/// The conversation of the tool call with this id.
#[derive(Debug)]
pub(crate) struct SubagentChat {
    pub call: String,
    pub chat: TranscriptChat,
}

/// The maximum nesting of subagents. Deeper ones are added beside the others: nested values are dropped recursively.
const MAX_NESTED: usize = 32;

/// Attaches each conversation to its call, which may be in another one. Children come in the order of their start, so a
/// parent comes before its children. One without a call gets a call of its own.
pub(crate) fn attach(parts: &mut Vec<TranscriptPart>, mut children: Vec<SubagentChat>) {
    let mut places: HashMap<String, CallPosition> = HashMap::new();
    for (at, child) in children.iter().enumerate() {
        for (turn, subagent_turn) in child.chat.turns.iter().enumerate() {
            note(&mut places, &subagent_turn.parts, |part| CallPosition::SubagentChat { at, turn, part });
        }
    }
    note(&mut places, parts, CallPosition::Main);
    // The nesting below each child.
    let mut heights = vec![0; children.len()];
    while let Some(SubagentChat { call, chat }) = children.pop() {
        let height = heights[children.len()] + 1;
        let part = match places.remove(&call) {
            Some(CallPosition::Main(part)) => parts.get_mut(part),
            Some(CallPosition::SubagentChat { at, .. }) if at >= children.len() || height > MAX_NESTED => None,
            Some(CallPosition::SubagentChat { at, turn, part }) => {
                heights[at] = heights[at].max(height);
                children.get_mut(at).and_then(|child| child.chat.turns.get_mut(turn)?.parts.get_mut(part))
            }
            None => None,
        };
        match part {
            Some(TranscriptPart::ToolCall(found)) => found.subagent = Some(Box::new(chat)),
            _ => parts.push(TranscriptPart::ToolCall(Box::new(TranscriptToolCall {
                id: call,
                name: "subagent".to_owned(),
                kind: TranscriptToolKind::Subagent,
                state: CallState::Interrupted,
                subagent: Some(Box::new(chat)),
                ..TranscriptToolCall::default()
            }))),
        }
    }
    tell_all(parts.iter_mut());
}

/// The position of a call.
enum CallPosition {
    Main(usize),
    SubagentChat { at: usize, turn: usize, part: usize },
}

fn note(places: &mut HashMap<String, CallPosition>, parts: &[TranscriptPart], place: impl Fn(usize) -> CallPosition) {
    for (at, part) in parts.iter().enumerate() {
        if let TranscriptPart::ToolCall(call) = part {
            places.insert(call.id.clone(), place(at));
        }
    }
}

/// A subagent's conversation begins with its prompt and ends with its answer: both are in its call.
fn tell(call: &mut TranscriptToolCall) {
    let Some(chat) = &mut call.subagent else { return };
    if let ToolInput::Subagent { agent, description, prompt } = &call.input {
        chat.agent = chat.agent.take().or_else(|| agent.clone());
        chat.description = chat.description.take().or_else(|| description.clone());
        if let Some(turn) = chat.turns.first_mut().filter(|turn| turn.message.text.is_empty()) {
            turn.message.text.clone_from(prompt);
        }
    }
    if let Some(turn) = chat.turns.first_mut() {
        turn.message.origin = MessageOrigin::Agent;
    }
    if let Some(turn) = chat.turns.last_mut() {
        let is_silent = !turn.parts.iter().any(|part| matches!(part, TranscriptPart::Text(_)));
        if let Some(output) = call.output.as_ref().filter(|output| is_silent && !output.text.is_empty()) {
            turn.parts.push(TranscriptPart::Text(output.text.clone()));
        }
        if turn.outcome == TurnOutcome::Interrupted && call.state == CallState::Complete {
            turn.outcome = TurnOutcome::Complete;
        }
    }
    tell_all(chat.turns.iter_mut().flat_map(|turn| &mut turn.parts));
}

fn tell_all<'a>(parts: impl Iterator<Item = &'a mut TranscriptPart>) {
    for part in parts {
        if let TranscriptPart::ToolCall(call) = part {
            tell(call);
        }
    }
}

/// A conversation of one turn.
pub(crate) fn chat_of(id: &str, turn: TranscriptTurn) -> TranscriptChat {
    TranscriptChat { id: id.to_owned(), turns: vec![turn], ..TranscriptChat::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subagents_that_start_each_other_are_nested_up_to_a_bound() {
        let call =
            |id: String| TranscriptPart::ToolCall(Box::new(TranscriptToolCall { id, ..TranscriptToolCall::default() }));
        let child = |number: usize| {
            let parts = vec![call(format!("c{}", number + 1))];
            SubagentChat {
                call: format!("c{number}"),
                chat: chat_of("x", TranscriptTurn { parts, ..TranscriptTurn::default() }),
            }
        };
        let mut parts = vec![call("c0".into())];
        attach(&mut parts, (0..100).map(child).collect());
        let mut deepest = 0;
        let mut open: Vec<(&TranscriptPart, usize)> = parts.iter().map(|part| (part, 0)).collect();
        let mut subagents = 0;
        while let Some((part, depth)) = open.pop() {
            let TranscriptPart::ToolCall(call) = part else { continue };
            deepest = deepest.max(depth);
            let Some(chat) = &call.subagent else { continue };
            subagents += 1;
            open.extend(chat.turns.iter().flat_map(|turn| &turn.parts).map(|part| (part, depth + 1)));
        }
        assert_eq!(subagents, 100);
        assert!(deepest <= MAX_NESTED + 1, "{deepest}");
    }
}
