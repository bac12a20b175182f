//! Turns of which a log has only a part.

use grove_core::*;
use grove_fs::SessionFs;
use grove_tree::store;

use crate::journal::JournalContents;
use crate::store::session_file::LoadError;
use crate::store::{log_lock, paths};

/// Cuts a partial turn off the end of a log, as a power cut leaves it, if the journal has the turn whole.
///
/// The part is kept beside the log. The turn would otherwise count as one that the log has.
pub(super) async fn cut_partial_turn(
    contents: &JournalContents,
    fs: &dyn SessionFs,
    session: &SessionId,
    chat: &ChatId,
) -> Result<(), LoadError> {
    let path = paths::log(session, chat);
    let _held = log_lock::hold(fs, &path).await?;
    if !fs.exists(&path).await? {
        return Ok(());
    }
    let side_index = paths::side_index(session, chat);
    let index = store::open_log_with_side_index(fs, &path, &side_index, &mut String::new).await?.index;
    let mut newest: Vec<_> = index.entries().collect();
    let (mut partial, mut begins) = (None, None);
    while let Some(entry) = newest.pop() {
        let line = store::read_lines(fs, &path, &index, &[entry]).await?;
        let turn = line.first().and_then(|line| turn_of(line));
        if turn.is_none() || partial.as_ref().is_some_and(|partial| turn.as_ref() != Some(partial)) {
            break;
        }
        partial = turn;
        begins = Some(index.offset(entry));
    }
    let (Some(turn), Some(offset)) = (partial, begins) else { return Ok(()) };
    let starts_it = |event: &Event| {
        matches!(&event.change, Change::Chat(_, mine, ChatEvent::TurnStarted { turn: started, .. })
            if mine == chat && *started == turn)
    };
    if !contents.events_of(session).any(|(_, event)| starts_it(event)) {
        return Ok(());
    }
    let size = fs.stat(&path).await?.size;
    let cut = fs.read_range(&path, offset, usize::try_from(size - offset.min(size)).unwrap_or(0)).await?;
    tracing::warn!(%session, %chat, %turn, bytes = cut.len(), "a log ends within a turn: it is written again");
    fs.append_file(&format!("{path}.torn"), &cut).await?;
    fs.truncate(&path, offset).await?;
    Ok(())
}

/// The turn that a message in a log belongs to; `None` for the end of a turn, and for entries outside turns.
fn turn_of(line: &[u8]) -> Option<TurnId> {
    #[derive(serde::Deserialize)]
    struct TurnLine {
        grove: Option<TurnField>,
    }
    #[derive(serde::Deserialize)]
    struct TurnField {
        turn: TurnId,
    }
    serde_json::from_slice::<TurnLine>(line).ok()?.grove.map(|grove| grove.turn)
}
