//! Requests of agents.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A kind of action that rules distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Read,
    Edit,
    Shell,
    Fetch,
    /// A call of an MCP tool.
    Mcp,
}

impl Kind {
    pub const ALL: [Kind; 5] = [Kind::Read, Kind::Edit, Kind::Shell, Kind::Fetch, Kind::Mcp];

    /// The name in the grammar.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Edit => "edit",
            Kind::Shell => "shell",
            Kind::Fetch => "fetch",
            Kind::Mcp => "mcp",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The effect that an agent asks for, from its structured input.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestAction {
    /// Reads files; without paths, it is not known which.
    Read {
        paths: Vec<String>,
    },
    /// Changes, moves or deletes files; without paths, it is not known which.
    Edit {
        paths: Vec<String>,
    },
    Shell {
        command: String,
    },
    Fetch {
        url: String,
    },
    /// Calls a tool, named `server/tool`.
    Mcp {
        tool: String,
    },
    /// The agent did not say; the kind may be known.
    Unknown {
        kind: Option<Kind>,
    },
}

impl RequestAction {
    /// The kind, if it is known.
    pub fn kind(&self) -> Option<Kind> {
        match self {
            RequestAction::Read { .. } => Some(Kind::Read),
            RequestAction::Edit { .. } => Some(Kind::Edit),
            RequestAction::Shell { .. } => Some(Kind::Shell),
            RequestAction::Fetch { .. } => Some(Kind::Fetch),
            RequestAction::Mcp { .. } => Some(Kind::Mcp),
            RequestAction::Unknown { kind } => *kind,
        }
    }
}

/// A permission request, with everything that a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Request {
    pub agent: String,
    pub action: RequestAction,
    /// The working directory, absolute.
    pub directory: Option<String>,
    /// The home folder, absolute.
    pub home: Option<String>,
}

impl Request {
    pub fn new(agent: &str, action: RequestAction) -> Self {
        Self { agent: agent.to_owned(), action, directory: None, home: None }
    }

    pub fn in_directory(self, directory: &str) -> Self {
        Self { directory: Some(directory.to_owned()), ..self }
    }

    pub fn with_home(self, home: &str) -> Self {
        Self { home: Some(home.to_owned()), ..self }
    }
}
