//! The program of an agent.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt};

use grove_core::AgentId;

use crate::agent::AgentError;
use crate::catalog::AgentEntry;
use crate::setup::McpServer;

/// An agent that speaks ACP, and its command line. `Debug` leaves out `env`, which may hold secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct AcpProgram {
    pub id: AgentId,
    pub display_name: String,
    pub description: String,
    pub program: PathBuf,
    pub args: Vec<String>,
    /// Variables beside the few that every program gets.
    pub env: BTreeMap<String, String>,
    /// The authentication methods to use when the agent asks for one, the best first; without any, the person is told
    /// the methods.
    pub auth: Vec<String>,
    /// The files that it may use through Grove.
    pub files: FileScope,
    /// The facts of the catalog about it; `None` for a program that the catalog does not know.
    pub known: Option<Arc<AgentEntry>>,
    /// The MCP servers of the configuration, for all of its sessions.
    pub mcp_servers: Vec<McpServer>,
}

/// The files that an agent may read and write through Grove. Grove's own files are never among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FileScope {
    /// Those in the session's working directories.
    Workspace,
    /// Those, and others after a person approved each use.
    #[default]
    Ask,
    All,
}

impl AcpProgram {
    /// Finds the program: by its path, or in one of the folders of `PATH`.
    pub(crate) fn find(&self) -> Result<String, AgentError> {
        let found = if self.program.is_absolute() {
            is_program(&self.program).then(|| self.program.clone())
        } else if self.program.components().count() == 1 {
            let path = self.env.get("PATH").map(Into::into).or_else(|| env::var_os("PATH")).unwrap_or_default();
            env::split_paths(&path).map(|folder| folder.join(&self.program)).find(|path| is_program(path))
        } else {
            // It would be searched in the folder that the host was started in.
            None
        };
        let (name, agent) = (self.program.display(), &self.display_name);
        let Some(found) = found else {
            return Err(AgentError::Start(format!(
                "{name} was not found: install {agent}, or give the program's full path in the agent's settings"
            )));
        };
        let text = found.to_str().map(ToOwned::to_owned);
        text.ok_or_else(|| AgentError::Start(format!("the path of {name} is not valid UTF-8: move or link it")))
    }
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

impl fmt::Debug for AcpProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AcpProgram")
            .field("id", &self.id)
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

    use super::*;

    fn program(path: &str) -> AcpProgram {
        AcpProgram {
            id: "a".into(),
            display_name: "An agent".to_owned(),
            description: String::new(),
            program: path.into(),
            args: Vec::new(),
            env: BTreeMap::from([("API_KEY".to_owned(), "hunter2".to_owned())]),
            auth: Vec::new(),
            files: FileScope::default(),
            known: None,
            mcp_servers: Vec::new(),
        }
    }

    #[test]
    fn a_program_is_found_by_its_full_path_or_on_the_path() {
        let shell = program("sh").find().unwrap();
        assert!(Path::new(&shell).is_absolute(), "{shell}");
        assert_eq!(program(&shell).find().unwrap(), shell);
        for missing in ["no-such-agent", "/no/such/agent", "bin/sh", "/etc/passwd", "/"] {
            let error = program(missing).find().unwrap_err().to_string();
            assert!(error.contains(missing) && error.contains("install An agent"), "{error}");
        }
    }

    #[test]
    fn an_agent_that_is_logged_shows_no_values_of_its_environment() {
        let shown = format!("{:?}", program("sh"));
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
