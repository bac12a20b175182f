//! The hook of a fork: a new header, and checkpoint paths below the new folder.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::list::LOG;
use super::{LineAction, LogLine, LogRewriter};

/// Gives the main log a new first line, and makes checkpoint paths lead to the copy. Everything else stays byte for
/// byte:
/// only the path itself is replaced in its line, and lines without a path are not even parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForkLogRewriter {
    /// The header, without the line feed.
    pub header: Option<Vec<u8>>,
    pub moved: Option<PathRewrite>,
}

/// The session's folder before and after, each in its backend's spelling, without a separator at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathRewrite {
    pub from: String,
    pub to: String,
    /// The separator of the new spelling.
    pub separator: char,
}

/// The members that may hold the path of a checkpoint: `details` is ours, `data` the Copilot CLI's.
#[derive(Deserialize)]
struct LogEntryFields<'a> {
    #[serde(borrow)]
    details: Option<&'a RawValue>,
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CheckpointFields<'a> {
    #[serde(borrow, rename = "checkpointPath")]
    path: Option<&'a RawValue>,
}

impl LogRewriter for ForkLogRewriter {
    fn line(&mut self, log: &str, line: LogLine<'_>) -> LineAction {
        if let Some(header) = &self.header
            && line.number == 0
            && log == LOG
        {
            return LineAction::Replace(header.clone());
        }
        let rewritten = self.moved.as_ref().and_then(|moved| moved.rewrite(line.bytes));
        rewritten.map_or(LineAction::Keep, LineAction::Replace)
    }
}

impl PathRewrite {
    /// The line with the new path, if it has an old one.
    pub fn rewrite(&self, line: &[u8]) -> Option<Vec<u8>> {
        memchr::memmem::find(line, b"\"checkpointPath\"")?;
        let entry: LogEntryFields<'_> = serde_json::from_slice(line).ok()?;
        let body = |value: &'_ RawValue| -> Option<(usize, usize, String)> {
            let body: CheckpointFields<'_> = serde_json::from_str(value.get()).ok()?;
            let path = body.path?.get();
            let at = (path.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
            Some((at, at + path.len(), serde_json::from_str(path).ok()?))
        };
        let (start, end, old) = [entry.details, entry.data].into_iter().flatten().find_map(body)?;
        let rest = old.strip_prefix(&self.from)?;
        // `/s/1` is not the folder of `/s/10/checkpoints`.
        let rest = rest.strip_prefix(['/', '\\'])?;
        let below = rest.replace(['/', '\\'], self.separator.encode_utf8(&mut [0; 4]));
        let new = serde_json::Value::from(format!("{}{}{below}", self.to, self.separator)).to_string();
        Some([line.get(..start)?, new.as_bytes(), line.get(end..)?].concat())
    }
}
