//! Limits of sessions, agents and their processes.

use grove_agents::limits as agents;
use grove_core as core;
use grove_host::{Limits, limits as host};
use grove_session_hub::limits as hub;
use grove_shim::{ShimLimits, limits as shim};
use grove_work::TerminalLimits;

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups(limits: &Limits) -> Vec<LimitGroup> {
    vec![sessions(limits), queues(), agent_processes(limits), agent_requests()]
}

fn sessions(limits: &Limits) -> LimitGroup {
    let rows = vec![
        Limit::new("chats", count(core::MAX_CHATS), "session", "the chat is refused (-32600)"),
        Limit::new("queued-prompts", count(core::MAX_QUEUED), "chat", "the message is refused (-32600)"),
        Limit::new(
            "active-clients",
            count(core::MAX_ACTIVE_CLIENTS),
            "session",
            "the client cannot take part (-32600)",
        ),
        Limit::new("working-directories", count(host::DIRECTORIES), "session", "the session is refused (-32602)"),
        Limit::new(
            "title",
            count(core::MAX_TITLE),
            "title, in characters",
            "the title is shortened or refused (-32602)",
        ),
        Limit::new(
            "label",
            count(grove_server::limits::LABEL_BYTES),
            "label, in characters",
            "the label is refused (-32602)",
        ),
        Limit::new("permission-rules", count(core::MAX_PERMISSION_RULES), "session", "the rule is refused (-32600)"),
        Limit::new("permission-argument", bytes(core::MAX_PERMISSION_ARGUMENT), "rule", "the rule is refused (-32602)"),
        Limit::new(
            "remembered-permissions",
            count(core::MAX_REMEMBERED_PERMISSIONS),
            "session",
            "the answer counts once and is not remembered",
        ),
        Limit::new(
            "inline-bytes",
            bytes(limits.inline_bytes),
            "body",
            "the body is stored, and clients get a reference",
        ),
        Limit::new("preview-bytes", bytes(limits.preview_bytes), "body", "only its beginning stays in the state"),
        Limit::new("creation", time(limits.creation), "session", "creating the session fails"),
        Limit::new("turn-quiet", time(limits.turn_quiet), "turn", "clients are told that the agent is silent"),
        Limit::new("turn-silence", time(limits.turn_silence), "turn", "the turn ends in error").set_by("turn-silence"),
        Limit::new("stop-grace", time(limits.stop_grace), "host", "running turns are interrupted"),
        Limit::new("session-idle", time(limits.session_idle), "session", "an idle session leaves memory")
            .set_by("session-idle"),
    ];
    LimitGroup { subject: "Sessions", about: "", limits: rows }
}

fn queues() -> LimitGroup {
    let rows = vec![
        Limit::new("sequencer-inbox", count(host::SEQUENCER_INBOX), "host", "senders wait"),
        Limit::new(
            "sequencer-batch",
            count(host::SEQUENCER_BATCH),
            "write of the journal",
            "the rest is in the next batch",
        ),
        Limit::new("session-inbox", count(host::SESSION_INBOX), "session", "senders wait"),
        Limit::new("workspace-requests", count(host::WORKSPACE_REQUESTS), "session", "the request is refused (-32603)"),
        Limit::new(
            "tracked-sessions",
            count(host::TRACKED_SESSIONS),
            "host",
            "further sessions stay in memory a while longer",
        ),
        Limit::new("deleted-sessions", count(host::DELETED_SESSIONS), "list", "older deleted sessions are left out"),
        Limit::new(
            "editor-questions",
            count(host::EDITOR_QUESTIONS),
            "connection",
            "the agent reads the file from the disk",
        ),
        Limit::new(
            "editor-time",
            time(host::EDITOR_TIMEOUT),
            "question to an editor",
            "the agent reads the file from the disk",
        ),
        Limit::new(
            "hub-viewers",
            count(hub::DETACHED_VIEWERS),
            "host, disconnected",
            "the viewer that left first is forgotten",
        ),
        Limit::new("hub-frames", count(hub::PENDING_FRAMES), "subscriber of the session hub", "it gets the list again"),
        Limit::new("hub-hosts", count(hub::HOSTS_AT_ONCE), "list, at a time", "further hosts wait"),
        Limit::new(
            "hub-query",
            bytes(grove_sessions::provider::MAX_QUERY_BYTES),
            "message through the session hub",
            "the message is refused (-32602)",
        ),
    ];
    LimitGroup { subject: "Queues of the host", about: "", limits: rows }
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
        about: "`max-agents` and `agent-idle` bound the processes themselves.",
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
        Limit::new("agent-script", bytes(agents::SCRIPT_BYTES), "prompt of the scripted agent", "the turn fails"),
        Limit::new("summary", bytes(agents::SUMMARY_BYTES), "summary", "the summary is cut"),
        Limit::new("summary-time", time(agents::SUMMARY_TIME), "summary", "the summary fails"),
        Limit::new("hook-input", bytes(host::HOOK_BYTES), "call of a hook", "the hook gets the newest part"),
        Limit::new("terminals", count(terminals.terminals), "agent", "the terminal is refused"),
        Limit::new("terminal-output", bytes(terminals.output_bytes), "terminal", "the newest output is kept"),
        Limit::new("terminal-grace", time(terminals.grace), "killed command", "it gets SIGKILL"),
    ];
    LimitGroup { subject: "Requests of agents", about: "", limits: rows }
}
