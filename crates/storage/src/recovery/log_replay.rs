//! Logs made again from the events of the journal.

use std::collections::HashSet;

use grove_core::*;
use grove_fs::SessionFs;
use grove_tree::store;
use grove_tree::turns::{self, TurnLimit};

use super::restore::RestoreError;
use crate::store::chat_log::{ChatLog, entry_id};

/// Picks entries, and entries of turns, that the journal has from their beginning on.
pub(super) fn is_told_by<'a>(events: &[&'a Event], chat: &ChatId) -> impl Fn(&str, Option<&TurnId>) -> bool + use<'a> {
    let (mut turns, mut entries) = (HashSet::new(), HashSet::new());
    for event in events.iter().filter(|event| is_of(event, chat)) {
        match &event.change {
            Change::Chat(_, _, ChatEvent::TurnStarted { turn, .. }) => {
                turns.insert(turn);
            }
            Change::Chat(_, _, ChatEvent::EntryAdded(entry)) => entries.extend(entry_id(&entry.line)),
            _ => {}
        }
    }
    move |id, turn| entries.contains(id) || turn.is_some_and(|turn| turns.contains(turn))
}

/// The turns that a chat began with, from its log.
pub(super) async fn inherited(
    fs: &dyn SessionFs,
    path: &str,
    origin: &ChatOrigin,
    limit: TurnLimit,
) -> Result<turns::LoggedTurns, RestoreError> {
    let index = store::open_log(fs, path, &mut String::new).await?.index;
    let leaf = origin.log.leaf.as_ref().and_then(|leaf| index.find(leaf)).or_else(|| index.leaf());
    Ok(turns::newest_turns_at(fs, path, &index, leaf, limit).await?)
}

/// Replays a session from its creation on, and writes each of a chat's turns when it has ended, as it was written first:
/// what a branch was left with is in the log before the leaf moves. `inherited` is what the chat began with.
pub(super) async fn replay_all(
    events: &[&Event],
    chat: &ChatId,
    log: &mut ChatLog,
    inherited: Option<turns::LoggedTurns>,
) -> Result<(), RestoreError> {
    let Some((Event { at, change: Change::Session(_, SessionEvent::Created(new)) }, rest)) = events.split_first()
    else {
        return Ok(());
    };
    let mut session = Session::new(new, *at);
    for event in rest {
        match (&event.change, &inherited) {
            // The journal says only where they are.
            (Change::Chat(id, mine, ChatEvent::TurnsInherited { origin, .. }), Some(window)) if mine == chat => {
                let (turns, older) = (window.turns.clone(), window.older);
                let begun = ChatEvent::TurnsInherited { origin: origin.clone(), turns, older };
                session.apply(&Event { at: event.at, change: Change::Chat(id.clone(), mine.clone(), begun) });
            }
            _ => session.apply(event),
        }
        if is_of(event, chat) && event.change.class().completes_entry {
            write(&mut session, chat, log).await?;
        }
    }
    write(&mut session, chat, log).await
}

/// Replays what the journal has of a chat whose beginning it let go. The log has nothing of it: it ends before.
pub(super) async fn replay_newest(
    events: &[&Event],
    mut session: Session,
    chat: &ChatId,
    log: &mut ChatLog,
) -> Result<(), RestoreError> {
    for event in events.iter().filter(|event| is_of(event, chat)) {
        if matches!(event.change, Change::Chat(_, _, ChatEvent::TurnsInherited { .. })) {
            // The log begins with them.
            continue;
        }
        session.apply(event);
        if event.change.class().completes_entry {
            write(&mut session, chat, log).await?;
        }
    }
    write(&mut session, chat, log).await
}

fn is_of(event: &Event, chat: &ChatId) -> bool {
    matches!(&event.change, Change::Chat(_, mine, _) if mine == chat)
}

async fn write(session: &mut Session, chat: &ChatId, log: &mut ChatLog) -> Result<(), RestoreError> {
    if session.chat(chat).is_none_or(|chat| chat.active.is_some()) {
        return Ok(());
    }
    log.catch_up(session).await?;
    if let Some(chat) = session.chat_mut(chat) {
        chat.unlogged.clear();
    }
    Ok(())
}
