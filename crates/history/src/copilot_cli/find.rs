//! Finding sessions: a folder for each, or in older versions a file.

use std::path::Path;

use super::side::Side;
use crate::files;
use crate::normal::Source;
use crate::reader::{FileMark, Finding, Headline, Hints, Located, Root};

const EVENTS: &str = "events.jsonl";

/// Whether a log lies in a folder of its own, with its manifest beside it.
pub(super) fn is_folder_of_session(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == EVENTS)
}

pub(super) fn find(root: &Root, hints: Hints) -> Finding {
    let mut finding = Finding::default();
    let names = match files::names(&root.folder) {
        Ok(names) => names,
        Err(problem) => {
            finding.problems.push(problem);
            return finding;
        }
    };
    for name in &names {
        let folder = root.folder.join(name);
        if folder.join(EVENTS).is_file() {
            let side = match hints {
                Hints::Read => Side::read(&folder, &mut finding.problems),
                Hints::Leave => Side::default(),
            };
            add(root, name, &folder.join(EVENTS), side, &mut finding);
        } else if let Some(id) = name.strip_suffix(".jsonl") {
            // The folder of the same session is the newer one.
            if !root.folder.join(id).join(EVENTS).is_file() {
                add(root, id, &folder, Side::default(), &mut finding);
            }
        }
    }
    finding
}

fn add(root: &Root, id: &str, path: &Path, side: Side, finding: &mut Finding) {
    let mark = match files::stat(path) {
        Ok(metadata) => FileMark::of(&metadata),
        Err(problem) => return finding.problems.push(problem),
    };
    finding.sessions.push(Located {
        product: root.product.clone(),
        path: path.to_owned(),
        mark,
        workspace: side.workspace,
        headline: Headline {
            title: side.custom_title.or(side.name),
            created_at: side.created_at,
            modified_at: side.updated_at.or(Some(mark.modified_at)),
            listed: None,
        },
        ..Located::nowhere(Source::CopilotCli, id)
    });
}
