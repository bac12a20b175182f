//! Limits of agents and their processes.

use grove_agents::limits as agents;
use grove_host::{Limits, limits as host};
use grove_shim::{ShimLimits, limits as shim};
use grove_work::TerminalLimits;

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups(limits: &Limits) -> Vec<LimitGroup> {
    vec![agent_processes(limits), agent_requests(), agent_texts(), agent_catalog(), client_terminals()]
}

fn agent_processes(limits: &Limits) -> LimitGroup {
    let of_shim = ShimLimits::default();
    let rows = vec![
        Limit::new(
            "agent-line",
            bytes(of_shim.line_bytes),
            "line of an agent",
            "the agent is ended; a longer write to it is refused",
        ),
        Limit::new("agent-spool", bytes(of_shim.spool_bytes), "agent", "its stdout is not read, so it waits"),
        Limit::new("agent-stdin", bytes(of_shim.stdin_bytes), "agent", "the host is disconnected from the shim"),
        Limit::new("agent-log", bytes(of_shim.log_bytes), "agent", "the newest output of stderr is kept"),
        Limit::new("agent-alone", time(of_shim.alone), "agent without a host", "the agent is ended"),
        Limit::new("agent-linger", time(of_shim.linger), "ended agent without a host", "its last lines are dropped"),
        Limit::new("agent-grace", time(of_shim.grace), "agent that has to end", "it gets SIGTERM, then SIGKILL"),
        Limit::new("shim-hosts", count(shim::PENDING_HOSTS), "shim", "further connections wait"),
        Limit::new("shim-greeting", time(shim::GREETING_TIME), "connection to a shim", "the connection is closed"),
        Limit::new(
            "shim-output",
            bytes(shim::HOST_BYTES),
            "connection to a shim",
            "the shim reads no more from the agent",
        ),
        Limit::new("shim-frame", bytes(shim::CONTROL_BYTES), "frame that is no line", "the connection is closed"),
        Limit::new(
            "spill-bytes",
            bytes(limits.spill_bytes),
            "output or message",
            "it goes to a file that the agent is told of",
        )
        .set_by("spill-bytes"),
        Limit::new(
            "spill-file",
            bytes(grove_fs::spill::SpillLimits::default().file),
            "file of output",
            "later output is dropped, and the notice says so",
        ),
    ];
    LimitGroup {
        subject: "Processes of agents",
        about: "`agents` and `agent-idle` of the program bound the processes themselves.",
        limits: rows,
    }
}

fn agent_requests() -> LimitGroup {
    let terminals = TerminalLimits::default();
    let rows = vec![
        Limit::new("agent-calls", count(agents::OPEN_CALLS), "agent", "the host's next call to it fails"),
        Limit::new("agent-requests", count(agents::AGENT_REQUESTS), "agent", "its request is refused"),
        Limit::new("agent-reports", count(host::AGENT_REPORTS), "chat", "the agent waits"),
        Limit::new("agent-commands", count(host::AGENT_COMMANDS), "agent", "further slash commands are left out"),
        Limit::new("agent-read", bytes(agents::READ_BYTES), "file", "the agent's read is refused"),
        Limit::new(
            "agent-tool-calls",
            count(agents::REMEMBERED_CALLS),
            "turn",
            "content of further calls is shown as it comes",
        ),
        Limit::new(
            "agent-tool-content",
            bytes(agents::REMEMBERED_CALL_BYTES),
            "turn",
            "content of further calls is shown as it comes",
        ),
        Limit::new("login-methods", count(agents::LOGIN_METHODS), "agent", "further methods to log in are left out"),
        Limit::new("login-choice", time(agents::LOGIN_CHOICE_TIME), "question how to log in", "the turn fails"),
        Limit::new("login-time", time(agents::LOGIN_TIME), "login of an agent", "the login fails, and is asked again"),
        Limit::new("agent-script", bytes(agents::SCRIPT_BYTES), "prompt of the scripted agent", "the turn fails"),
        Limit::new("summary", bytes(agents::SUMMARY_BYTES), "summary", "the summary is cut"),
        Limit::new("summary-time", time(agents::SUMMARY_TIME), "summary", "the summary fails"),
        Limit::new("hook-input", bytes(host::HOOK_BYTES), "call of a hook", "the hook gets the newest part"),
        Limit::new("hook-call", bytes(agents::HOOK_LINE_BYTES), "tool call of an agent with own hooks", "it is denied"),
        Limit::new("hooked-calls", count(agents::HOOKED_CALLS), "agent with own hooks", "further calls wait"),
        Limit::new("hook-host", time(agents::HOOK_HOST_WAIT), "tool call without a host", "the call is denied"),
        Limit::new("terminals", count(terminals.terminals), "agent", "the terminal is refused"),
        Limit::new("terminal-output", bytes(terminals.output_bytes), "terminal", "the newest output is kept"),
        Limit::new("terminal-grace", time(terminals.grace), "killed command", "it gets SIGKILL"),
    ];
    LimitGroup { subject: "Requests of agents", about: "", limits: rows }
}

fn client_terminals() -> LimitGroup {
    let rows = vec![
        Limit::new(
            "terminal-inputs",
            count(grove_work::limits::TERMINAL_INPUTS),
            "terminal whose command reads nothing",
            "further input is refused",
        ),
        Limit::new(
            "client-terminals",
            count(host::CLIENT_TERMINALS),
            "host",
            "an ended one makes room, or the terminal is refused (-32029)",
        ),
        Limit::new(
            "connection-terminals",
            count(host::CONNECTION_TERMINALS),
            "connection",
            "the terminal is refused (-32029)",
        ),
        Limit::new(
            "terminal-scrollback",
            bytes(host::SCROLLBACK_BYTES),
            "terminal of a client",
            "the newest output is kept",
        ),
        Limit::new(
            "terminal-window",
            bytes(host::TERMINAL_WINDOW_BYTES),
            "subscriber that reads slowly",
            "the command waits",
        ),
        Limit::new(
            "terminal-stall",
            time(host::TERMINAL_STALL),
            "subscriber that does not read",
            "the command goes on, and the connection is closed (4008) when the output that it needs is dropped",
        ),
        Limit::new("terminal-message", bytes(host::TERMINAL_MESSAGE_BYTES), "message", "the next message has more"),
        Limit::new("terminal-input", bytes(host::TERMINAL_INPUT_BYTES), "piece of input", "the input is refused"),
        Limit::new(
            "terminal-action",
            bytes(host::TERMINAL_ACTION_BYTES),
            "action on a terminal",
            "the action is refused",
        ),
        Limit::new("terminal-title", bytes(host::TERMINAL_TITLE_BYTES), "title of a terminal", "the title is refused"),
        Limit::new("terminal-side", count(host::TERMINAL_SIDE), "rows or columns", "the size is refused"),
    ];
    LimitGroup { subject: "Terminals of clients", about: "", limits: rows }
}

fn agent_catalog() -> LimitGroup {
    let rows = vec![
        Limit::new("agent-catalog", bytes(agents::CATALOG_BYTES), "catalog of agents", "the catalog is refused"),
        Limit::new(
            "agent-catalog-entries",
            count(agents::CATALOG_AGENTS),
            "catalog of agents",
            "the catalog is refused",
        ),
        Limit::new(
            "agent-catalog-text",
            bytes(agents::CATALOG_TEXT_BYTES),
            "text of a catalog",
            "the catalog is refused",
        ),
        Limit::new(
            "agent-catalog-list",
            count(agents::CATALOG_LIST_ITEMS),
            "list of a catalog",
            "the catalog is refused",
        ),
        Limit::new(
            "installed-agent",
            bytes(agents::INSTALLED_RECORD_BYTES),
            "record of an installed agent",
            "the agent is searched in `PATH`",
        ),
    ];
    LimitGroup { subject: "The catalog of agents", about: "", limits: rows }
}

fn agent_texts() -> LimitGroup {
    let rows = vec![
        Limit::new("agent-inbox", count(agents::AGENT_INBOX), "agent", "senders wait"),
        Limit::new("setup", bytes(agents::SETUP_BYTES), "setup of a session", "the session is refused"),
        Limit::new(
            "setup-file",
            bytes(grove_storage::limits::SETUP_FILE_BYTES),
            "setup file of a session",
            "its agent does not start",
        ),
        Limit::new("mcp-servers", count(agents::MCP_SERVERS), "session", "the session is refused"),
        Limit::new("mcp-server-name", bytes(agents::MCP_SERVER_NAME_BYTES), "MCP server", "the session is refused"),
        Limit::new(
            "tools-message",
            bytes(agents::TOOLS_MESSAGE_BYTES),
            "call of a client's tool",
            "the connection is closed",
        ),
        Limit::new(
            "tools-requests",
            count(agents::TOOLS_REQUESTS),
            "agent",
            "its next call of a client's tool is refused",
        ),
        Limit::new("tools-connections", count(agents::TOOLS_CONNECTIONS), "agent", "further connections wait"),
        Limit::new(
            "tools-hello",
            time(agents::TOOLS_HELLO_TIME),
            "connection to clients' tools",
            "the connection is closed",
        ),
        Limit::new(
            "tools-announced",
            count(agents::ANNOUNCED_CALLS),
            "turn",
            "further calls of clients' tools are shown twice",
        ),
        Limit::new(
            "agent-sessions",
            count(agents::AGENT_SESSIONS),
            "agent",
            "further sessions of its own are left out",
        ),
        Limit::new("agent-close", time(agents::AGENT_CLOSE_TIME), "session of an agent", "the agent keeps the session"),
        Limit::new(
            "agent-copy",
            time(host::AGENT_COPY_TIMEOUT),
            "copied conversation",
            "the agent of the copy is told the conversation",
        ),
        Limit::new(
            "agent-last-words",
            bytes(agents::EXIT_MESSAGE_BYTES),
            "ended agent",
            "only the end of its stderr is shown",
        ),
        Limit::new(
            "live-output",
            bytes(agents::LIVE_OUTPUT_BYTES),
            "running tool call",
            "only the end of its output is shown",
        ),
        Limit::new(
            "released-terminals",
            count(agents::RELEASED_TERMINALS),
            "agent",
            "the oldest released terminal is forgotten",
        ),
        Limit::new("shown-file", bytes(agents::SHOWN_FILE_BYTES), "edited file", "its earlier text is not shown"),
        Limit::new(
            "recap",
            bytes(agents::RECAP_BYTES),
            "conversation that is told to an agent",
            "the oldest part is left out",
        ),
        Limit::new(
            "summarized",
            bytes(host::SUMMARIZED_BYTES),
            "summary, if the model is unknown",
            "the oldest part is left out",
        ),
        Limit::new(
            "summarized-result",
            count(grove_tree::limits::TOOL_RESULT_CHARS),
            "result of a tool in a summary, in characters",
            "its middle is left out",
        ),
        Limit::new(
            "script-output",
            bytes(agents::SCRIPT_OUTPUT_BYTES),
            "step of the scripted agent",
            "the script is refused",
        ),
    ];
    LimitGroup { subject: "Output and texts of agents", about: "", limits: rows }
}
