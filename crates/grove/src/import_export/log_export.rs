//! A session as a log of Grove's, which is also the form of pi's sessions.
//!
//! One that is a log stays as it is, branches and all. Of another tool's session the turns are written as Grove writes its
//! own, each behind the one that it goes on from.

use std::io::Write;

use grove_core::Session;
use grove_history::{DamageKind, HistoryError};
use serde_json::Value;

use super::imported_log::{ImportedLogWriter, WriteError};
use super::transcript::Transcript;

/// Why a log could not be written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogExportError {
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the log, and gives what was left out, in words.
pub(crate) fn write(transcript: &Transcript, mut out: impl Write) -> Result<Vec<String>, LogExportError> {
    if let Some(log) = transcript.log() {
        out.write_all(log.bytes()).and_then(|()| out.flush()).map_err(WriteError::from)?;
        return Ok(Vec::new());
    }
    write_foreign(transcript, &transcript.header(), None, out)
}

/// Writes what was said in a session as a log of its own. `origin` says where it comes from.
pub(super) fn write_foreign(
    transcript: &Transcript,
    header: &Session,
    origin: Option<&Value>,
    out: impl Write,
) -> Result<Vec<String>, LogExportError> {
    let mut log = ImportedLogWriter::begin(out, header)?;
    if let Some(origin) = origin {
        log.note(origin)?;
    }
    transcript.each_of_all(&mut |turn| Ok::<(), LogExportError>(log.turn(turn)?))?;
    if let Some(title) = &transcript.session().title {
        log.name(title)?;
    }
    let omissions = log.finish()?.omissions;
    let mut words = super::prepared_import::omission_words(omissions);
    if transcript.session().damage.marks.contains(&DamageKind::TooLarge) {
        words.push("what is too large to be read is left out".to_owned());
    }
    Ok(words)
}

/// The name that pi gives the file of a session: when it began, and its id.
pub(crate) fn pi_file_name(transcript: &Transcript) -> String {
    let began = transcript.session().created_at.unwrap_or_default();
    let time = grove_wire::ahp::time::text(began).replace([':', '.'], "-");
    format!("{time}_{}.jsonl", transcript.file_name())
}
