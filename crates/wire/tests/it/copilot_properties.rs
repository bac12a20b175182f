//! The law of the Copilot SDK's events: the live events of a turn equal a later read.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use grove_core::*;
use grove_wire::copilot::project::{EventPosition, Projector, TurnPosition, history, locate};
use grove_wire::copilot::{self, EventData};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use crate::random::{self, Dice};

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

/// Agents append to the last part only: the host starts a new one after any other.
fn adds_to_an_older_part(session: &Session, command: &Command) -> bool {
    let Command::Agent(EventReport::Chat { event, .. }) = command else { return false };
    let (ChatEvent::TextDelta { part, .. } | ChatEvent::ReasoningDelta { part, .. }) = event else { return false };
    let last = session.main_chat().and_then(|chat| chat.active.as_ref()?.parts().last());
    match last {
        Some(Part::Text(text)) => text.id != *part,
        Some(Part::Reasoning { id, .. }) => id != part,
        _ => true,
    }
}

/// The data of persisted events by id, without their order and times.
fn kept<'a>(events: impl IntoIterator<Item = &'a copilot::Event>) -> BTreeMap<String, EventData> {
    let kept = events.into_iter().filter(|event| !event.ephemeral);
    kept.map(|event| (event.id.to_string(), event.data.clone())).collect()
}

/// A client that collects its events.
struct Client {
    projector: Projector,
    /// The persisted events, of the present turns.
    kept: Vec<copilot::Event>,
    ids: HashSet<String>,
    open: BTreeSet<(&'static str, String)>,
    idle: bool,
    kinds: BTreeSet<String>,
}

impl Client {
    fn of(session: &Session) -> Self {
        Self {
            projector: Projector::new(session, entries(session)),
            kept: read(session),
            ids: HashSet::new(),
            open: BTreeSet::new(),
            idle: session.main_chat().unwrap().active.is_none(),
            kinds: BTreeSet::new(),
        }
    }

    fn hear(&mut self, event: &Event) -> Result<Vec<copilot::Event>, TestCaseError> {
        let told = self.projector.tell(event);
        for event in &told {
            let last = &self.kept.last().unwrap().id;
            prop_assert_eq!(event.parent_id.as_ref(), Some(last), "{:?}", event);
            prop_assert!(self.ids.insert(event.id.to_string()), "told twice: {:?}", event);
            self.kinds.insert(event.kind().to_owned());
            match &event.data {
                EventData::PermissionRequested(asked) => self.open("permission", &asked.request_id)?,
                EventData::PermissionCompleted(asked) => self.close("permission", &asked.request_id)?,
                EventData::ExternalToolRequested(asked) => self.open("tool", &asked.request_id)?,
                EventData::ExternalToolCompleted(asked) => self.close("tool", &asked.request_id)?,
                EventData::UserInputRequested(asked) => self.open("input", &asked.request_id)?,
                EventData::UserInputCompleted(asked) => self.close("input", &asked.request_id)?,
                EventData::UserMessage(_) => self.idle = false,
                EventData::SessionIdle(_) => {
                    prop_assert!(!self.idle, "idle again");
                    prop_assert!(self.open.is_empty(), "idle, and {:?} is open", self.open);
                    self.idle = true;
                }
                _ => {}
            }
            if !event.ephemeral {
                self.kept.push(event.clone());
            }
        }
        Ok(told)
    }

    fn open(&mut self, what: &'static str, request: &str) -> Result<(), TestCaseError> {
        prop_assert!(self.open.insert((what, request.to_owned())), "asked twice: {what} {request}");
        Ok(())
    }

    fn close(&mut self, what: &'static str, request: &str) -> Result<(), TestCaseError> {
        prop_assert!(self.open.remove(&(what, request.to_owned())), "never asked: {what} {request}");
        Ok(())
    }
}

/// More than the entries of any run.
const ENTRIES: usize = 10_000;

/// The entries of a session's log outside of turns, as if none was ever written.
fn entries(session: &Session) -> &[LogEntry] {
    &session.main_chat().unwrap().unlogged
}

/// Forgets the entries behind an abandoned turn when another one of its id ends. A log tells them apart by their branches.
fn forget_abandoned(session: &mut Session, event: &Event) {
    let Change::Chat(_, chat, change) = &event.change else { return };
    if let (Session::MAIN_CHAT, true, Some(turn)) = (chat.as_str(), change.ends_turn(), change.turn()) {
        session.chats[0].unlogged.retain(|entry| entry.after.as_ref() != Some(turn));
    }
}

/// Now and then an entry outside of turns that has an event, in place of another command.
fn with_entries(session: &Session, command: Command, number: usize, dice: &mut Dice) -> Command {
    if !dice.chance(8) {
        return command;
    }
    let data = match dice.below(4) {
        0 => json!({"infoType": "log", "level": "warning", "message": "look"}),
        1 => json!({"infoType": "plan", "message": "The plan was created.", "operation": "create"}),
        2 => json!({"infoType": "fork", "message": "Forked."}),
        _ => json!({"infoType": "resume", "message": "Resumed.", "turns": 1, "wasActive": false}),
    };
    let id = format!("{number:08x}");
    let line = match dice.chance(25) {
        true => json!({"type": "compaction", "id": id, "timestamp": "t", "summary": "short", "tokensBefore": 9}),
        false => json!({"type": "custom", "customType": "grove.info", "id": id, "timestamp": "t", "data": data}),
    };
    let chat = session.main_chat().unwrap();
    let after = chat.turns.last().map(|turn| turn.id.clone());
    let entries = vec![LogEntry { line: line.to_string().into(), after }];
    Command::Host(HostCommand::AddEntries { chat: chat.id.clone(), entries, resets_agent: false })
}

/// The kept events of a session whose turns are all loaded.
fn read(session: &Session) -> Vec<copilot::Event> {
    history(session, session.main_chat().unwrap().turns.iter().cloned(), entries(session)).collect()
}

fn must_be_a_chain(events: &[copilot::Event]) -> Result<(), TestCaseError> {
    prop_assert_eq!(&events[0].parent_id, &None);
    for pair in events.windows(2) {
        prop_assert_eq!(pair[1].parent_id.as_ref(), Some(&pair[0].id));
    }
    prop_assert!(events.iter().all(|event| !event.ephemeral));
    Ok(())
}

/// Runs `steps` and returns the types of the sent events.
fn hold_to_law(steps: &[u64], second: usize) -> Result<BTreeSet<String>, TestCaseError> {
    let agent = random::agent();
    let mut session = Session::new(&random::new_session(), Timestamp(1));
    let mut client = Client::of(&session);
    let mut late: Option<Projector> = None;
    for (number, step) in steps.iter().enumerate() {
        if number == second {
            late = Some(Projector::new(&session, entries(&session)));
        }
        let mut dice = Dice::new(*step);
        let command = random::command(&session, &mut dice);
        let command = with_entries(&session, command, number, &mut dice);
        if adds_to_an_older_part(&session, &command) {
            continue;
        }
        let now = Timestamp(number as u64 + 2);
        let mut moved = session.clone();
        let Ok(batch) = advance(&mut session, Some(&agent), command, now) else { continue };
        for event in &batch.events {
            forget_abandoned(&mut session, event);
            moved.apply(event);
            forget_abandoned(&mut moved, event);
            let told = client.hear(event)?;
            // A client that joined later gets the same.
            if let Some(late) = &mut late {
                let said = |events: Vec<copilot::Event>| -> Vec<_> {
                    events.into_iter().map(|event| (event.id, event.ephemeral, event.data)).collect()
                };
                prop_assert_eq!(said(late.tell(event)), said(told));
            }
            if let Change::Chat(_, chat, ChatEvent::TurnsCleared | ChatEvent::BranchTurnsLoaded { .. }) = &event.change
                && chat.as_str() == Session::MAIN_CHAT
            {
                client.ids.clear();
                client.kept = read(&moved);
            }
        }
        let again = read(&session);
        must_be_a_chain(&again)?;
        // The start has the session's current model.
        prop_assert_eq!(kept(&client.kept[1..]), kept(&again[1..]), "after {:?}", batch.events);
        prop_assert_eq!(client.kept.len(), again.len());
        prop_assert_eq!(client.idle, session.main_chat().unwrap().active.is_none(), "after {:?}", batch.events);
    }
    Ok(client.kinds)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_was_told_live_is_what_is_read_again(steps in vec(any::<u64>(), 1..160), second in 0..160usize) {
        hold_to_law(&steps, second)?;
    }

    #[test]
    fn events_that_do_not_fit_tell_what_the_state_makes_of_them(steps in vec(any::<u64>(), 1..200)) {
        let mut session = Session::new(&random::new_session(), Timestamp(1));
        let mut projector = Projector::new(&session, &[]);
        for (number, step) in steps.iter().enumerate() {
            let mut dice = Dice::new(*step);
            let event = match dice.chance(30) {
                true => random::event(&mut dice),
                false => Event {
                    at: Timestamp(number as u64),
                    change: Change::Chat(session.id.clone(), Session::MAIN_CHAT.into(), random::chat_event(&mut dice)),
                },
            };
            projector.tell(&event);
            session.apply(&event);
            projector.waiting(Timestamp(number as u64));
            must_be_a_chain(&read(&session))?;
        }
    }

    #[test]
    fn every_kept_event_is_found_where_it_stands(steps in vec(any::<u64>(), 50..200)) {
        let agent = random::agent();
        let mut session = Session::new(&random::new_session(), Timestamp(1));
        for (number, step) in steps.iter().enumerate() {
            let mut dice = Dice::new(*step);
            let command = random::command(&session, &mut dice);
            let command = with_entries(&session, command, number, &mut dice);
            let _ = advance(&mut session, Some(&agent), command, Timestamp(number as u64 + 2));
        }
        let turns = || session.main_chat().unwrap().turns.iter().cloned();
        let mut before = None;
        let kept = entries(&session).to_vec();
        for event in history(&session, turns(), &kept) {
            let place = locate(&session, turns(), &kept, &event.id).unwrap();
            let order = |place: EventPosition| (place.turn, match place.position {
                TurnPosition::SessionStart => 0,
                TurnPosition::Entry(entry) => entry + 1,
                TurnPosition::UserMessage => ENTRIES,
                TurnPosition::Part(part) => part + ENTRIES + 1,
                TurnPosition::End => usize::MAX,
            });
            match &event.data {
                EventData::UserMessage(_) => prop_assert_eq!(place.position, TurnPosition::UserMessage),
                EventData::TurnEnd(_) => prop_assert_eq!(place.position, TurnPosition::End),
                EventData::ToolStart(_) => prop_assert!(matches!(place.position, TurnPosition::Part(_))),
                _ => {}
            }
            prop_assert!(before <= Some(order(place)));
            before = Some(order(place));
        }
        prop_assert_eq!(locate(&session, turns(), &kept, "nope"), None);
    }
}

/// The law proves little about runs in which little happens.
#[test]
fn the_random_runs_reach_every_event_that_state_alone_gives() {
    let mut seen = BTreeSet::new();
    for run in 0..100u64 {
        let steps: Vec<u64> = (0..250).map(|step| run * 1_000 + step).collect();
        seen.extend(hold_to_law(&steps, usize::MAX).unwrap());
    }
    // Events that only a host sends, or that follow from entries that the runs do not have.
    let others = [
        "session.start",
        "session.workspace_file_changed",
        "session.compaction_start",
        "session.snapshot_rewind",
        "session.shutdown",
        "session.context_changed",
        "session.mode_changed",
        "subagent.selected",
        "subagent.deselected",
        "elicitation.requested",
        "elicitation.completed",
        "command.queued",
        "command.execute",
        "command.completed",
        "commands.changed",
        "capabilities.changed",
    ];
    let missing: Vec<_> =
        EventData::KINDS.iter().filter(|kind| !seen.contains(**kind) && !others.contains(kind)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
