//! Serving an agent's requests: files and terminals, inside its working directories.

pub(crate) mod files;
mod output_spill;
mod plain;
pub(crate) mod terminals;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use grove_core::SessionId;
use grove_wire::jsonrpc::ErrorObject;
use grove_work::{FileError, Policy, Roots, Terminal, TerminalLimits, Terminals};

pub(crate) use self::files::{IS_ELSEWHERE, PlannedWrite};
use self::output_spill::OutputSpill;
use super::pool::Documents;
use super::program::FileScope;
use crate::spills::SpillStore;

/// The protocol's code for a missing file.
const NOT_FOUND: i64 = -32002;

/// The services of one agent process.
#[derive(Debug)]
pub(crate) struct AgentServices {
    session: SessionId,
    /// The working directory of commands that name none.
    cwd: PathBuf,
    policy: Policy,
    /// The same without bounds but Grove's own files.
    unbounded: Policy,
    files: FileScope,
    directories: Vec<PathBuf>,
    private: Vec<PathBuf>,
    documents: Arc<dyn Documents>,
    terminals: Terminals,
    /// The output of terminals, by their ids.
    output_spills: Mutex<HashMap<String, OutputSpill>>,
    /// The newest terminals of the turn, released or not: calls show them to the end.
    recent: Mutex<VecDeque<Terminal>>,
    spills: Arc<dyn SpillStore>,
    /// The prefix of its terminals' ids, which distinguishes them from those of an earlier host.
    tag: String,
}

/// The folders in which an agent works, and the files that it never sees.
#[derive(Clone, Debug)]
pub(crate) struct ServiceScope {
    pub(crate) session: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) private: Vec<PathBuf>,
    pub(crate) documents: Arc<dyn Documents>,
    pub(crate) spills: Arc<dyn SpillStore>,
    pub(crate) files: FileScope,
}

impl AgentServices {
    pub(crate) fn new(service_scope: ServiceScope, tag: String) -> Self {
        let ServiceScope { session, cwd, directories, private, documents, spills, files } = service_scope;
        let roots = Roots { private: private.clone(), ..Roots::default() };
        let policy = Policy::new(roots, directories.clone());
        let everything = Roots { private: private.clone(), read: vec![PathBuf::from("/")], ..Roots::default() };
        let unbounded = Policy::new(everything, Vec::new());
        let (terminals, output_spills) = (Terminals::new(TerminalLimits::default()), Mutex::default());
        let recent = Mutex::default();
        Self {
            session,
            cwd,
            policy,
            unbounded,
            files,
            directories,
            private,
            documents,
            terminals,
            output_spills,
            recent,
            spills,
            tag,
        }
    }
}

/// The error for a missing resource. Agents that are about to create a file recognize it by these words, which are
/// those of the protocol's own libraries.
fn not_found(name: &str) -> ErrorObject {
    let data = Some(serde_json::json!({ "uri": name }));
    ErrorObject { code: NOT_FOUND, message: format!("Resource not found: {name}"), data }
}

/// The error for a refused file, in words for an agent.
fn refused(error: &FileError) -> ErrorObject {
    match error {
        FileError::NotFound { path } => not_found(&path.display().to_string()),
        FileError::Outside { path } => {
            let message = format!("{} is outside the session's working directories", path.display());
            ErrorObject::invalid_params(message)
        }
        error => ErrorObject::invalid_params(error.to_string()),
    }
}
