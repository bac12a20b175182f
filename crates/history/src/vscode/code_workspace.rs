//! `.code-workspace` files: the folders of a workspace with several. They are JSON with comments and trailing commas.

use std::path::{Component, Path, PathBuf};

use grove_transcript::FileLocation;
use grove_transcript::uri::{location_from, location_of_uri};
use serde_json::Value;

use crate::error::HistoryError;
use crate::files::{self, BYTE_ORDER_MARK};
use crate::limits::MAX_SMALL_FILE;

/// The folders that a workspace's file lists. A file on another machine has none.
pub(super) fn folders(file: &FileLocation) -> Result<Vec<FileLocation>, HistoryError> {
    let path = file.path.as_deref().filter(|_| file.host.is_none()).map(Path::new);
    let Some(path) = path.filter(|path| path.is_absolute() && path.is_file()) else { return Ok(Vec::new()) };
    let bytes = files::read(path, MAX_SMALL_FILE)?;
    folders_of(&bytes, path.parent().unwrap_or(path)).map_err(|error| HistoryError::malformed(path, error))
}

fn folders_of(bytes: &[u8], below: &Path) -> Result<Vec<FileLocation>, serde_json::Error> {
    let value: Value = serde_json::from_slice(&plain_json(bytes))?;
    let folders = value.get("folders").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let place = |folder: &Value| match folder.get("path").and_then(Value::as_str) {
        Some(path) if path.contains("://") => Some(location_of_uri(path)),
        Some(path) => Some(FileLocation::local(normal(&below.join(path)).to_string_lossy().into_owned())),
        None => location_from(folder.get("uri")?),
    };
    Ok(folders.iter().filter_map(place).collect())
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    normal
}

/// The JSON of a text with comments and trailing commas.
fn plain_json(bytes: &[u8]) -> Vec<u8> {
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let mut plain: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'"', _) => {
                let end = end_of_text(bytes, at);
                plain.extend_from_slice(&bytes[at..end]);
                at = end;
            }
            (b'/', Some(b'/')) => {
                at += bytes[at..].iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len() - at);
            }
            (b'/', Some(b'*')) => {
                let end = memchr::memmem::find(&bytes[at + 2..], b"*/").map(|end| at + 2 + end + 2);
                at = end.unwrap_or(bytes.len());
                plain.push(b' ');
            }
            (b'}' | b']', _) => {
                let trimmed_length = plain.trim_ascii_end().len();
                if plain[..trimmed_length].ends_with(b",") {
                    plain.truncate(trimmed_length - 1);
                }
                plain.push(*byte);
                at += 1;
            }
            _ => {
                plain.push(*byte);
                at += 1;
            }
        }
    }
    plain
}

/// The end of the string whose opening quote is at `at`.
fn end_of_text(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_told_with_comments_spare_commas_and_relative_paths() {
        let text = br#"{
            // which folders
            "folders": [
                { "path": "site", "name": "// the site" }, /* and , ] */
                { "path": "../shared/./lib" },
                { "path": "/else/where" },
                { "uri": "vscode-remote://ssh-remote%2Bbox/srv/app" },
                { "name": "nothing" },
            ],
            "settings": {"a": ["x",],},
        }"#;
        let places = folders_of(text, Path::new("/home/me/code")).unwrap();
        let shown: Vec<&str> = places.iter().map(FileLocation::shown).collect();
        assert_eq!(shown[..3], ["/home/me/code/site", "/home/me/shared/lib", "/else/where"]);
        assert_eq!(places[3].host.as_deref(), Some("ssh-remote+box"));
        assert_eq!(places.len(), 4);
        assert_eq!(folders_of(b"\xEF\xBB\xBF{}", Path::new("/")).unwrap(), []);
        assert!(folders_of(b"{\"folders\": [\"a", Path::new("/")).is_err());
    }
}
