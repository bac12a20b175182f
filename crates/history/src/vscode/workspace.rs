//! `workspace.json`, and its folder: the folders of a workspace.

use std::path::{Path, PathBuf};

use grove_transcript::TranscriptWorkspace;
use grove_transcript::uri::{location_from, location_of_uri};
use serde_json::Value;

use super::code_workspace;
use crate::error::HistoryError;
use crate::files;
use crate::limits::MAX_SMALL_FILE;

/// A folder of `workspaceStorage`.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkspaceFolder {
    /// Its name, which VS Code derives from the folder's path and creation time: it changes when the folder is moved.
    pub hash: String,
    pub folder: PathBuf,
    /// Empty if `workspace.json` is missing: its sessions exist all the same.
    pub workspace: TranscriptWorkspace,
}

/// The contents of `workspace.json`: one folder, a file that lists several, or the older form of that.
pub fn workspace_of(json: &[u8]) -> Result<TranscriptWorkspace, serde_json::Error> {
    let value: Value = serde_json::from_slice(json)?;
    let mut workspace = TranscriptWorkspace::default();
    if let Some(folder) = value.get("folder").and_then(location_from) {
        workspace.folders.push(folder);
    }
    workspace.file = ["workspace", "configuration"].iter().find_map(|key| location_from(value.get(key)?));
    Ok(workspace)
}

/// The folders of a `cacheKey`: URIs, joined by commas. A comma in a path is escaped, or not followed by a scheme.
pub(crate) fn workspace_of_cache_key(key: &str) -> TranscriptWorkspace {
    let mut uris: Vec<String> = Vec::new();
    for piece in key.split(',') {
        match uris.last_mut() {
            Some(last) if !piece.contains("://") => {
                last.push(',');
                last.push_str(piece);
            }
            _ if piece.contains("://") => uris.push(piece.trim().to_owned()),
            _ => {}
        }
    }
    TranscriptWorkspace {
        folders: uris.iter().map(|uri| location_of_uri(uri)).collect(),
        ..TranscriptWorkspace::default()
    }
}

/// Reads a folder of `workspaceStorage`. A missing `workspace.json` is ignored; an invalid one is a problem that hides
/// no session.
pub(crate) fn read(folder: &Path, problems: &mut Vec<HistoryError>) -> TranscriptWorkspace {
    let path = folder.join("workspace.json");
    if !path.exists() {
        return TranscriptWorkspace::default();
    }
    let json = files::read(&path, MAX_SMALL_FILE);
    let read = json.and_then(|json| workspace_of(&json).map_err(|error| HistoryError::malformed(&path, error)));
    let mut workspace = read.unwrap_or_else(|error| {
        problems.push(error);
        TranscriptWorkspace::default()
    });
    if let (Some(file), true) = (&workspace.file, workspace.folders.is_empty()) {
        match code_workspace::folders(file) {
            Ok(folders) => workspace.folders = folders,
            Err(error) => problems.push(error),
        }
    }
    workspace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_json_is_read_in_each_of_its_forms() {
        let shown = |json: &str| {
            let workspace = workspace_of(json.as_bytes()).unwrap();
            let folders: Vec<String> = workspace.folders.iter().map(|place| place.shown().to_owned()).collect();
            (folders.join(" "), workspace.file.map(|file| file.shown().to_owned()))
        };
        assert_eq!(shown(r#"{"folder":"file:///home/me/my%20app"}"#), ("/home/me/my app".into(), None));
        assert_eq!(
            shown(r#"{"workspace":"file:///w/all.code-workspace"}"#),
            (String::new(), Some("/w/all.code-workspace".into()))
        );
        let old = r#"{"configuration":{"$mid":1,"path":"/w/all.code-workspace","scheme":"file"}}"#;
        assert_eq!(shown(old), (String::new(), Some("/w/all.code-workspace".into())));
        assert_eq!(shown("{}"), (String::new(), None));
        assert!(workspace_of(b"{").is_err());
    }

    #[test]
    fn a_cache_key_names_one_or_more_folders() {
        let paths = |key: &str| {
            let places = workspace_of_cache_key(key).folders;
            places.iter().map(|place| place.shown().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(paths("file:///a/b"), ["/a/b"]);
        assert_eq!(paths("file:///a/b,file:///c%20d"), ["/a/b", "/c d"]);
        assert_eq!(paths("file:///a,b/c,file:///d"), ["/a,b/c", "/d"]);
        assert!(paths("no-uri").is_empty() && paths("").is_empty());
    }
}
