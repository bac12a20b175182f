//! Limits of editors: programs that speak the Agent Client Protocol.

use grove_acp_agent::limits as editor;
use grove_server::limits as server;

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups() -> Vec<LimitGroup> {
    vec![editors()]
}

fn editors() -> LimitGroup {
    let rows = vec![
        Limit::new("editor-requests", count(editor::EDITOR_REQUESTS), "editor", "the request is refused (-32600)"),
        Limit::new("editor-sessions", count(editor::OPEN_SESSIONS), "editor", "the session is not opened (-32600)"),
        Limit::new("editor-prompts", count(editor::OPEN_PROMPTS), "session", "the prompt is refused (-32600)"),
        Limit::new("editor-updates", count(editor::QUEUED_UPDATES), "editor", "senders wait; updates become larger"),
        Limit::new(
            "editor-calls",
            count(editor::REQUESTS_TO_EDITOR),
            "editor",
            "a question stays open for other clients; a file is read or written by the host",
        ),
        Limit::new("editor-open-questions", count(editor::OPEN_QUESTIONS), "session", "further questions wait"),
        Limit::new("editor-loaded-turns", count(editor::REPLAYED_TURNS), "session/load", "older turns are not shown"),
        Limit::new("editor-listed-sessions", count(editor::LISTED_SESSIONS), "page of session/list", "it has a cursor"),
        Limit::new("editor-content", bytes(editor::SHOWN_CONTENT), "content", "the editor gets its address"),
        Limit::new(
            "editor-agent-start",
            time(editor::START_TIME),
            "session/new",
            "the session is not created (-32603)",
        ),
        Limit::new(
            "editor-host-away",
            time(editor::HOST_PATIENCE),
            "absence of the host",
            "open prompts fail (-32603)",
        ),
        Limit::new(
            "editor-messages",
            count(server::EDITOR_MESSAGES),
            "WebSocket of an editor, each way",
            "senders wait",
        ),
    ];
    LimitGroup { subject: "Editors", about: "", limits: rows }
}
