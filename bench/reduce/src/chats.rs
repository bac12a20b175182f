//! The same chat for each reducer: finished turns, and an active one with a streamed last part.

use ahp::reducers::{ReduceOutcome, apply_action_to_chat};
use ahp_types::actions::{
    ChatDeltaAction, ChatResponsePartAction, ChatTurnCompleteAction, ChatTurnStartedAction, StateAction,
};
use ahp_types::state::{ChatState, MarkdownResponsePart, Message, MessageKind, MessageOrigin, ResponsePart};
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use grove_core::{
    Change, ChatEvent, ChatId, Delivery, Event, NewSession, Part, PartId, Session, SessionId, State, StoreName,
    TextPart, Timestamp, TurnId,
};
use serde_json::json;

use crate::Case;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Reducer {
    /// `grove_core::apply`: from the state of all sessions down to the part.
    Grove,
    /// `apply_action_to_chat` of the crate `ahp`: from one chat down to the part.
    Ahp,
}

impl Reducer {
    pub(crate) const ALL: [Self; 2] = [Self::Grove, Self::Ahp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Grove => "grove",
            Self::Ahp => "ahp",
        }
    }
}

const DELTA: &str = "twenty bytes of text";
const ACTIVE: &str = "active";

/// Runs the case and returns the length of the streamed text.
pub(crate) fn run(case: Case) -> Result<usize> {
    let length = match case.reducer {
        Reducer::Grove => grove(case)?,
        Reducer::Ahp => ahp(case)?,
    };
    ensure!(length == case.deltas * DELTA.len(), "the text has {length} bytes: deltas were lost");
    Ok(length)
}

fn part_id(number: usize) -> String {
    format!("part-{number}")
}

fn grove(case: Case) -> Result<usize> {
    let (session, chat) = (SessionId::from("bench"), ChatId::from(Session::MAIN_CHAT));
    let new = NewSession {
        id: session.clone(),
        uri: "scripted:/bench".into(),
        agent: "scripted".into(),
        model: None,
        working_directories: Vec::new(),
        config: None,
        store: StoreName::default(),
    };
    let mut state = State::default();
    state.sessions.insert(session.clone(), Session::new(&new, Timestamp(1)));

    let event =
        |change: ChatEvent| Event { at: Timestamp(2), change: Change::Chat(session.clone(), chat.clone(), change) };
    let start = |turn: &TurnId| {
        let message = grove_core::Message::user("a question");
        event(ChatEvent::TurnStarted { turn: turn.clone(), message, started_at: None, queued: None })
    };
    let text = |turn: &TurnId, part: String, content: &str| {
        let part = TextPart { id: part.into(), content: content.to_owned(), delivery: Delivery::Streamed };
        event(ChatEvent::PartAdded { turn: turn.clone(), part: Part::Text(part) })
    };

    for number in 0..case.turns {
        let turn = TurnId::from(format!("turn-{number}"));
        grove_core::apply(&mut state, &start(&turn));
        grove_core::apply(&mut state, &text(&turn, part_id(0), "an answer"));
        grove_core::apply(&mut state, &event(ChatEvent::TurnCompleted { turn, duration: None }));
    }
    let turn = TurnId::from(ACTIVE);
    grove_core::apply(&mut state, &start(&turn));
    for number in 0..case.parts {
        grove_core::apply(&mut state, &text(&turn, part_id(number), ""));
    }

    let part = PartId::from(part_id(case.parts - 1));
    let delta = event(ChatEvent::TextDelta { turn: turn.clone(), part, content: DELTA.to_owned() });
    for _ in 0..case.deltas {
        grove_core::apply(&mut state, &delta);
    }

    let chat = state.sessions.get(&session).and_then(Session::main_chat).context("the session has no chat")?;
    ensure!(chat.turns.len() == case.turns, "{} turns were finished", chat.turns.len());
    match chat.active_turn(&turn).and_then(|active| active.parts().last()) {
        Some(Part::Text(text)) => Ok(text.content.len()),
        _ => bail!("the active turn has no text"),
    }
}

fn ahp(case: Case) -> Result<usize> {
    let mut state: ChatState = serde_json::from_value(json!({
        "resource": "ahp-chat:/bench",
        "title": "",
        "status": 1,
        "modifiedAt": "2026-01-01T00:00:00.000Z",
        "turns": [],
    }))?;
    let mut apply = |action: StateAction| match apply_action_to_chat(&mut state, &action) {
        ReduceOutcome::Applied => Ok(()),
        _ => bail!("the action did not apply: {action:?}"),
    };
    let start = |turn_id: String| {
        StateAction::ChatTurnStarted(ChatTurnStartedAction {
            turn_id,
            started_at: "2026-01-01T00:00:00.000Z".to_owned(),
            message: Message {
                text: "a question".to_owned(),
                origin: MessageOrigin { kind: MessageKind::User },
                attachments: None,
                model: None,
                agent: None,
                meta: None,
            },
            queued_message_id: None,
            meta: None,
        })
    };
    let text = |turn_id: String, id: String, content: &str| {
        let part = ResponsePart::Markdown(MarkdownResponsePart { id, content: content.to_owned() });
        StateAction::ChatResponsePart(ChatResponsePartAction { turn_id, part, meta: None })
    };

    for number in 0..case.turns {
        let turn_id = format!("turn-{number}");
        apply(start(turn_id.clone()))?;
        apply(text(turn_id.clone(), part_id(0), "an answer"))?;
        apply(StateAction::ChatTurnComplete(ChatTurnCompleteAction { turn_id, duration: 1, meta: None }))?;
    }
    apply(start(ACTIVE.to_owned()))?;
    for number in 0..case.parts {
        apply(text(ACTIVE.to_owned(), part_id(number), ""))?;
    }

    let delta = StateAction::ChatDelta(ChatDeltaAction {
        turn_id: ACTIVE.to_owned(),
        part_id: part_id(case.parts - 1),
        content: DELTA.to_owned(),
        meta: None,
    });
    for _ in 0..case.deltas {
        apply_action_to_chat(&mut state, &delta);
    }

    ensure!(state.turns.len() == case.turns, "{} turns were finished", state.turns.len());
    match state.active_turn.as_ref().and_then(|active| active.response_parts.last()) {
        Some(ResponsePart::Markdown(text)) => Ok(text.content.len()),
        _ => bail!("the active turn has no text"),
    }
}
