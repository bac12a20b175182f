//! A session as a Grove log, which is also pi's format.
//!
//! A session that is a log stays unchanged, with its branches. The turns of another tool's session are written as Grove
//! writes its own, each after the one that it follows.

use std::io::{self, Write};

use grove_core::Session;
use grove_transcript::DamageKind;
use serde_json::Value;

use super::imported_log::{ImportedLogWriter, WriteError};
use super::transcript::Transcript;

/// An error of exporting a log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LogExportError {
    #[error("cannot read the turns from their temporary file: {0}")]
    Buffer(#[from] io::Error),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// Writes the log, and returns warnings about omitted parts.
pub(crate) fn write(transcript: &Transcript, mut out: impl Write) -> Result<Vec<String>, LogExportError> {
    if let Some(log) = transcript.log() {
        out.write_all(log.bytes()).and_then(|()| out.flush()).map_err(WriteError::from)?;
        return Ok(Vec::new());
    }
    write_foreign(transcript, &transcript.header(), None, out)
}

/// Writes the conversation of another tool's session as a new log. `origin` describes its source.
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
        words.push("parts that are too large are left out".to_owned());
    }
    Ok(words)
}

/// The name of pi's file for a session: its start, and its id.
pub(crate) fn pi_file_name(transcript: &Transcript) -> String {
    let began = transcript.session().created_at.unwrap_or_default();
    let time = grove_wire::ahp::time::text(began).replace([':', '.'], "-");
    format!("{time}_{}.jsonl", transcript.file_name())
}
