//! The differences between agents' programs in how they take a session's setup.

use super::program::AcpProgram;

/// The ways in which a program takes a session's setup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgramQuirks {
    pub(crate) stdio_servers: StdioServers,
    pub(crate) system_message: SystemMessageWay,
    pub(crate) tool_filter: ToolFilterWay,
}

/// The way of MCP servers over stdio to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum StdioServers {
    /// In the request that opens the session.
    #[default]
    Request,
    /// In a file that `--additional-mcp-config` names: those of the request are dropped without an error.
    ConfigFile,
}

/// The way of a system message to a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum SystemMessageWay {
    /// In the request that opens the session if the agent announces that it takes it, else before the first prompt.
    #[default]
    Announced,
    /// In the request that opens the session, in its metadata if the agent announces nothing.
    Metadata,
}

/// The way in which a program's own tools are excluded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ToolFilterWay {
    #[default]
    None,
    /// By arguments.
    Arguments,
    /// In the metadata of the request that opens the session.
    Metadata,
}

impl ProgramQuirks {
    /// The quirks of a program, by the name of its file.
    pub(crate) fn of(program: &AcpProgram) -> Self {
        match program.program.file_stem().and_then(|name| name.to_str()) {
            Some("copilot") => Self {
                stdio_servers: StdioServers::ConfigFile,
                tool_filter: ToolFilterWay::Arguments,
                ..Self::default()
            },
            Some("claude-agent-acp" | "claude-code-acp") => Self {
                system_message: SystemMessageWay::Metadata,
                tool_filter: ToolFilterWay::Metadata,
                ..Self::default()
            },
            _ => Self::default(),
        }
    }
}
