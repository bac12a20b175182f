//! Limits of sessions and of the host's queues.

use grove_core as core;
use grove_host::{Limits, limits as host};

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups(limits: &Limits) -> Vec<LimitGroup> {
    vec![sessions(limits), session_texts(), queues()]
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
            "editor-write-time",
            time(host::EDITOR_WRITE_TIMEOUT),
            "write by an editor",
            "the host writes the file",
        ),
        Limit::new(
            "editor-write-size",
            bytes(host::EDITOR_WRITE_BYTES),
            "write by an editor",
            "the host writes the file",
        ),
    ];
    LimitGroup { subject: "Queues of the host", about: "", limits: rows }
}

fn session_texts() -> LimitGroup {
    let rows = vec![
        Limit::new("session-id", bytes(core::SessionUri::MAX_ID_BYTES), "session", "the session is refused (-32602)"),
        Limit::new(
            "session-scheme",
            bytes(core::SessionUri::MAX_SCHEME_BYTES),
            "session",
            "the session is refused (-32602)",
        ),
        Limit::new(
            "action-id",
            bytes(grove_wire::limits::ACTION_ID_BYTES),
            "id from a client",
            "the action is refused (-32602)",
        ),
        Limit::new(
            "remembered-permission",
            bytes(core::MAX_REMEMBERED_SUBJECT_BYTES),
            "remembered permission",
            "the answer counts once and is not remembered",
        ),
        Limit::new("warnings", count(host::WARNINGS), "session", "further warnings are left out"),
        Limit::new(
            "paste-beginning",
            bytes(host::PASTE_BEGINNING_BYTES),
            "text that went to a file",
            "only its beginning stays in the message",
        ),
        Limit::new("import-damage", count(host::IMPORT_DAMAGE), "import", "further damage is counted"),
        Limit::new(
            "import-source",
            bytes(host::IMPORT_SOURCE_BYTES),
            "name of a tool or its session",
            "the name is left out",
        ),
        Limit::new(
            "copy-wait",
            time(host::COPY_TIMEOUT),
            "deletion, move or reuse of a folder",
            "copies out of the folder are not awaited any longer",
        ),
        Limit::new(
            "tree-preview",
            count(grove_tree::limits::PREVIEW_CHARS),
            "row of a tree, in characters",
            "the preview is cut",
        ),
        Limit::new("log-damage", count(grove_tree::limits::DAMAGE_ITEMS), "log", "further damage is counted"),
    ];
    LimitGroup { subject: "Names and texts of sessions", about: "", limits: rows }
}
