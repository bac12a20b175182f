//! Finds sessions: a folder for each, or in older versions a file.

use std::path::Path;

use grove_transcript::TranscriptSource;

use super::sidecar::Sidecar;
use crate::reader::{Hints, SessionLocation, SessionPreview, StoreListing, StoreRoot};

const EVENTS: &str = "events.jsonl";

/// True if a log is in a folder of its own, with its manifest beside it.
pub(super) fn is_folder_of_session(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == EVENTS)
}

pub(super) fn find(root: &StoreRoot, hints: Hints) -> StoreListing {
    let mut listing = StoreListing::default();
    for name in &listing.names(&root.folder) {
        let folder = root.folder.join(name);
        if folder.join(EVENTS).is_file() {
            let sidecar = match hints {
                Hints::Read => Sidecar::read(&folder, &mut listing.problems),
                Hints::Skip => Sidecar::default(),
            };
            listing.add_file(root, folder.join(EVENTS), location(name, sidecar));
        } else if let Some(id) = name.strip_suffix(".jsonl") {
            // The folder of the same session is the newer one.
            if !root.folder.join(id).join(EVENTS).is_file() {
                listing.add_file(root, folder, location(id, Sidecar::default()));
            }
        }
    }
    listing
}

fn location(id: &str, sidecar: Sidecar) -> SessionLocation {
    SessionLocation {
        workspace: sidecar.workspace,
        preview: SessionPreview {
            title: sidecar.custom_title.or(sidecar.name),
            created_at: sidecar.created_at,
            modified_at: sidecar.updated_at,
            listed: None,
        },
        ..SessionLocation::without_file(TranscriptSource::CopilotCli, id)
    }
}
