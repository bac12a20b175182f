//! Reading the audit log, with or without a running host.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use grove_core::Timestamp;
use grove_host::audit::{AuditAction, AuditOutcome, AuditRecord};

use super::{FILES, file};

/// The longest line. The host writes shorter ones.
pub(crate) const MAX_LINE: u64 = 64 << 10;

/// The records that a reader wants.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditFilter {
    pub(crate) since: Option<Timestamp>,
    pub(crate) until: Option<Timestamp>,
    pub(crate) token: Option<String>,
    pub(crate) client: Option<String>,
    /// A part of the session's name.
    pub(crate) session: Option<String>,
    pub(crate) action: Option<AuditAction>,
    pub(crate) outcome: Option<AuditOutcome>,
}

impl AuditFilter {
    pub(super) fn accepts(&self, record: &AuditRecord) -> bool {
        self.since.is_none_or(|since| record.time >= since)
            && self.until.is_none_or(|until| record.time <= until)
            && self.token.as_ref().is_none_or(|token| record.token == *token)
            && self.client.as_ref().is_none_or(|client| record.client.as_ref() == Some(client))
            && self.session.as_ref().is_none_or(|part| record.session.as_ref().is_some_and(|name| name.contains(part)))
            && self.action.is_none_or(|action| record.action == action)
            && self.outcome.is_none_or(|outcome| record.outcome == outcome)
    }
}

/// The records of the log, oldest first. Lines that cannot be read are skipped.
#[derive(Debug)]
pub(crate) struct AuditReader {
    filter: AuditFilter,
    /// Opened at once: a file that is renamed meanwhile is still the same.
    files: std::vec::IntoIter<File>,
    lines: Option<BufReader<File>>,
}

impl AuditReader {
    pub(crate) fn open(folder: &Path, filter: AuditFilter) -> Self {
        let files: Vec<File> = (0..FILES).rev().filter_map(|age| File::open(file(folder, age)).ok()).collect();
        Self { filter, files: files.into_iter(), lines: None }
    }

    /// The next line; `None` at the end of the log. A line that is too long is empty.
    fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(lines) = &mut self.lines else {
                self.lines = Some(BufReader::new(self.files.next()?));
                continue;
            };
            let mut line = Vec::new();
            match lines.by_ref().take(MAX_LINE).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => self.lines = None,
                // The rest of a line that is too long must not be taken for a line.
                Ok(_) if line.len() as u64 == MAX_LINE && !line.ends_with(b"\n") => {
                    if lines.skip_until(b'\n').is_err() {
                        self.lines = None;
                    }
                    return Some(Vec::new());
                }
                Ok(_) => return Some(line),
            }
        }
    }
}

impl Iterator for AuditReader {
    type Item = AuditRecord;

    fn next(&mut self) -> Option<AuditRecord> {
        loop {
            let line = self.line()?;
            if let Ok(record) = serde_json::from_slice::<AuditRecord>(&line)
                && self.filter.accepts(&record)
            {
                return Some(record);
            }
        }
    }
}
