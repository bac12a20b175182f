//! What an agent may ask of us: files and terminals, inside its working directories.

mod files;
mod output_spill;
mod plain;
mod protected;
mod terminals;

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use grove_core::SessionId;
use grove_wire::jsonrpc::ErrorObject;
use grove_work::{FileError, Policy, Roots, Terminal, TerminalLimits, Terminals};

pub(crate) use self::files::PlannedWrite;
use self::output_spill::OutputSpill;
use super::pool::Documents;
use crate::spills::SpillStore;

/// What the protocol says where there is no such file.
const NOT_FOUND: i64 = -32002;

/// What one agent's process may use.
#[derive(Debug)]
pub(crate) struct AgentServices {
    session: SessionId,
    /// Where commands run that say nothing else.
    cwd: PathBuf,
    policy: Policy,
    directories: Vec<PathBuf>,
    private: Vec<PathBuf>,
    documents: Arc<dyn Documents>,
    terminals: Terminals,
    /// What terminals have shown, by their ids.
    output_spills: Mutex<HashMap<String, OutputSpill>>,
    /// The newest terminals of the turn, released or not: calls show them to the end.
    recent: Mutex<VecDeque<Terminal>>,
    spills: Arc<dyn SpillStore>,
    /// What its terminals are called, so that those of an earlier host are not taken for them.
    tag: String,
}

/// Where an agent works, and what it never sees.
#[derive(Clone, Debug)]
pub(crate) struct ServiceScope {
    pub(crate) session: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) directories: Vec<PathBuf>,
    pub(crate) private: Vec<PathBuf>,
    pub(crate) documents: Arc<dyn Documents>,
    pub(crate) spills: Arc<dyn SpillStore>,
}

impl AgentServices {
    pub(crate) fn new(service_scope: ServiceScope, tag: String) -> Self {
        let ServiceScope { session, cwd, directories, private, documents, spills } = service_scope;
        let roots = Roots { private: private.clone(), ..Roots::default() };
        let policy = Policy::new(roots, directories.clone());
        let (terminals, output_spills) = (Terminals::new(TerminalLimits::default()), Mutex::default());
        let recent = Mutex::default();
        Self { session, cwd, policy, directories, private, documents, terminals, output_spills, recent, spills, tag }
    }
}

/// Something that an agent asked for does not exist. Agents that are about to create a file know that by these words, so
/// they are those of the protocol's own libraries.
fn not_found(name: &str) -> ErrorObject {
    let data = Some(serde_json::json!({ "uri": name }));
    ErrorObject { code: NOT_FOUND, message: format!("Resource not found: {name}"), data }
}

/// Why a file is not given, in words for an agent.
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
