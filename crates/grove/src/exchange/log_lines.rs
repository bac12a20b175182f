//! A session as a log of Grove's, which is also the form of pi's sessions.
//!
//! One that is a log stays as it is, branches and all. Of another tool's session the turns are written as Grove writes its
//! own, each behind the one that it goes on from.

use std::io::Write;

use grove_core::Session;
use grove_history::{HistoryError, Mark};
use serde_json::Value;

use super::foreign_log::{ForeignLog, WriteError};
use super::opened::Opened;

/// Why a log could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LinesError {
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the log, and gives what was left out, in words.
pub(crate) fn write(opened: &Opened, mut out: impl Write) -> Result<Vec<String>, LinesError> {
    if let Some(log) = opened.log() {
        out.write_all(log.bytes()).and_then(|()| out.flush()).map_err(WriteError::from)?;
        return Ok(Vec::new());
    }
    write_foreign(opened, &opened.header(), None, out)
}

/// Writes what was said in a session as a log of its own. `origin` says where it comes from.
pub(super) fn write_foreign(
    opened: &Opened,
    header: &Session,
    origin: Option<&Value>,
    out: impl Write,
) -> Result<Vec<String>, LinesError> {
    let mut log = ForeignLog::begin(out, header)?;
    if let Some(origin) = origin {
        log.note(origin)?;
    }
    opened.each_of_all(&mut |turn| Ok::<(), LinesError>(log.turn(turn)?))?;
    if let Some(title) = &opened.session().title {
        log.name(title)?;
    }
    let left_out = log.finish()?.left_out;
    let mut words = super::brought::left_out_words(left_out);
    if opened.session().damage.marks.contains(&Mark::TooLarge) {
        words.push("what is too large to be read is left out".to_owned());
    }
    Ok(words)
}

/// The name that pi gives the file of a session: when it began, and its id.
pub(crate) fn pi_file_name(opened: &Opened) -> String {
    let began = opened.session().created_at.unwrap_or_default();
    let time = grove_wire::ahp::time::text(began).replace([':', '.'], "-");
    format!("{time}_{}.jsonl", opened.file_name())
}
