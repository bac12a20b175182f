//! Finding sessions: a folder for each, or in older versions a file.

use std::path::Path;

use super::side::Side;
use crate::normal::Source;
use crate::reader::{Finding, Headline, Hints, Located, Root};

const EVENTS: &str = "events.jsonl";

/// Whether a log lies in a folder of its own, with its manifest beside it.
pub(super) fn is_folder_of_session(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == EVENTS)
}

pub(super) fn find(root: &Root, hints: Hints) -> Finding {
    let mut finding = Finding::default();
    for name in &finding.names(&root.folder) {
        let folder = root.folder.join(name);
        if folder.join(EVENTS).is_file() {
            let side = match hints {
                Hints::Read => Side::read(&folder, &mut finding.problems),
                Hints::Leave => Side::default(),
            };
            finding.add_file(root, folder.join(EVENTS), located(name, side));
        } else if let Some(id) = name.strip_suffix(".jsonl") {
            // The folder of the same session is the newer one.
            if !root.folder.join(id).join(EVENTS).is_file() {
                finding.add_file(root, folder, located(id, Side::default()));
            }
        }
    }
    finding
}

fn located(id: &str, side: Side) -> Located {
    Located {
        workspace: side.workspace,
        headline: Headline {
            title: side.custom_title.or(side.name),
            created_at: side.created_at,
            modified_at: side.updated_at,
            listed: None,
        },
        ..Located::nowhere(Source::CopilotCli, id)
    }
}
