//! Limits of messages, queues and answers.

use grove_host::Limits;
use grove_server::limits as server;
use grove_wire::{copilot, jsonrpc, x_grove};

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups(limits: &Limits) -> Vec<LimitGroup> {
    vec![incoming(limits), outgoing(limits), answers(limits)]
}

fn incoming(limits: &Limits) -> LimitGroup {
    let rows = vec![
        Limit::new(
            "message-bytes",
            bytes(limits.message_bytes),
            "message",
            "the connection is closed (1009); an SDK gets -32700 first",
        ),
        Limit::new("message-depth", count(jsonrpc::MAX_DEPTH), "message", "the message is refused (-32600)"),
        Limit::new("batch", count(jsonrpc::MAX_BATCH), "message", "the batch is refused (-32600)"),
        Limit::new("queued-messages", count(server::QUEUED_MESSAGES), "connection", "reading pauses"),
        Limit::new("control-bytes", bytes(server::CONTROL_BYTES), "connection", "only the newest ping is answered"),
        Limit::new(
            "sdk-head",
            bytes(copilot::framing::MAX_HEAD),
            "SDK message",
            "the connection is closed, with -32700 first",
        ),
        Limit::new("sdk-queued-calls", count(server::SDK_QUEUED_CALLS), "SDK connection", "the connection is closed"),
        Limit::new("sdk-queued-bytes", bytes(server::SDK_QUEUED_BYTES), "SDK connection", "the connection is closed"),
        Limit::new("action-extra", bytes(server::EXTRA_BYTES), "action", "the action is refused (-32602)"),
        Limit::new("import-piece", bytes(x_grove::import::MAX_PUT_BYTES), "call", "the piece is refused (-32602)"),
        Limit::new("workspace-text", bytes(server::TEXT_BYTES), "call", "the text is refused (-32602)"),
        Limit::new(
            "workspace-file",
            bytes(x_grove::workspace::MAX_FILE_BYTES),
            "call",
            "the file is read and written in pieces",
        ),
        Limit::new("sdk-log-message", bytes(copilot::methods::MAX_LOG_MESSAGE), "call", "the call is refused"),
        Limit::new("sdk-named-sessions", count(copilot::methods::MAX_NAMED_SESSIONS), "call", "the call is refused"),
        Limit::new("sdk-skills", count(server::SDK_SKILLS), "call", "further skills are left out"),
        Limit::new(
            "sdk-commands",
            count(copilot::methods::MAX_CLIENT_COMMANDS),
            "SDK client of a session",
            "further commands are left out",
        ),
        Limit::new("sdk-client-requests", count(server::SDK_CLIENT_REQUESTS), "session", "the request is refused"),
        Limit::new("sdk-queued-commands", count(server::SDK_QUEUED_COMMANDS), "session", "the command is refused"),
        Limit::new("sdk-file", bytes(server::SDK_FILE_BYTES), "call", "the file is refused"),
        Limit::new(
            "sdk-wait",
            time(std::time::Duration::from_millis(copilot::methods::MAX_WAIT_MS)),
            "call",
            "the call is answered without events",
        ),
    ];
    LimitGroup { subject: "Messages from clients", about: "", limits: rows }
}

fn outgoing(limits: &Limits) -> LimitGroup {
    let rows = vec![
        Limit::new(
            "queue-messages",
            count(limits.queue_messages),
            "connection",
            "past half, text is merged; past it the connection is closed (4008)",
        ),
        Limit::new(
            "queue-bytes",
            bytes(limits.queue_bytes),
            "connection",
            "past half, text is merged; past it the connection is closed (4008)",
        ),
        Limit::new(
            "answer-bytes",
            bytes(limits.answer_bytes),
            "connection",
            "its next requests wait; one answer may be larger",
        ),
        Limit::new(
            "batch-answers",
            bytes(server::BATCH_BYTES),
            "batch",
            "requests of the batch beyond it are refused (-32600)",
        ),
        Limit::new("replay-actions", count(limits.replay_actions), "host", "an older `reconnect` gets snapshots")
            .set_by("replay-actions"),
        Limit::new("replay-bytes", bytes(limits.replay_bytes), "host", "an older `reconnect` gets snapshots")
            .set_by("replay-bytes"),
        Limit::new("snapshot-turns", count(limits.snapshot_turns), "snapshot", "older turns come by `fetchTurns`"),
        Limit::new("snapshot-bytes", bytes(limits.snapshot_bytes), "snapshot", "older turns come by `fetchTurns`"),
        Limit::new(
            "full-snapshots",
            count(server::FULL_SNAPSHOTS),
            "answer",
            "with more snapshots, each has fewer turns",
        ),
        Limit::new("merge-delay", time(server::MERGE_DELAY), "subscription", "a longer delay is shortened to this"),
        Limit::new(
            "sdk-open-calls",
            count(server::SDK_OPEN_CALLS),
            "SDK connection",
            "the host's call to the SDK fails",
        ),
        Limit::new("sdk-feed", count(server::SDK_FEED_EVENTS), "session", "SDKs read the events again from the log"),
        Limit::new(
            "session-notices",
            count(server::SESSION_NOTICES),
            "connection",
            "the session hub waits with further notices",
        ),
        Limit::new(
            "sdk-endpoint-events",
            count(server::SDK_ENDPOINT_EVENTS),
            "SDK endpoint",
            "further events of the endpoint are left out",
        ),
        Limit::new(
            "sdk-session-news",
            count(server::SDK_SESSION_NEWS),
            "SDK endpoint",
            "notices of sessions are missed",
        ),
        Limit::new(
            "in-process-messages",
            count(server::IN_PROCESS_MESSAGES),
            "connection inside the process",
            "further messages wait in its queue",
        ),
        Limit::new(
            "logged-frames",
            count(grove_frames::limits::LOGGED_FRAMES),
            "frame log (`--log-frames`)",
            "further frames are counted and left out",
        ),
        Limit::new(
            "logged-bytes",
            bytes(grove_frames::limits::LOGGED_BYTES),
            "frame log (`--log-frames`)",
            "further frames are counted and left out",
        ),
        Limit::new(
            "logged-depth",
            count(grove_frames::limits::LOGGED_DEPTH),
            "frame of a frame log",
            "deeper values are left out",
        ),
    ];
    LimitGroup { subject: "Messages to clients", about: "", limits: rows }
}

fn answers(limits: &Limits) -> LimitGroup {
    let rows = vec![
        Limit::new("fetch-bytes", bytes(limits.fetch_bytes), "answer", "the file is refused (-32602)"),
        Limit::new("folder-entries", count(limits.folder_entries), "answer", "the folder is refused (-32602)"),
        Limit::new("listed-sessions", count(server::LISTED_SESSIONS), "page", "the next page has more"),
        Limit::new(
            "listed-histories",
            count(server::V1_HISTORY_SESSIONS),
            "list",
            "older sessions of other tools are left out in version 1",
        ),
        Limit::new("history-rows", count(server::HISTORY_ROWS), "page", "the next page has more"),
        Limit::new("turns", count(server::TURNS_AT_ONCE), "page", "the next page has more"),
        Limit::new("completions", count(server::COMPLETIONS), "answer", "further completions are left out"),
        Limit::new("tree-rows", count(grove_tree::MAX_ROWS), "page", "the next page has more"),
        Limit::new("entries", bytes(grove_host::limits::ENTRIES_BYTES), "page", "the next page has more"),
        Limit::new("export-piece", bytes(x_grove::handover::MAX_READ_BYTES), "call", "the next call has more"),
        Limit::new("hub-rows", count(x_grove::sessions::MAX_LIST_ROWS), "page", "the next page has more"),
        Limit::new(
            "hub-deletions",
            count(x_grove::sessions::MAX_DELETED_SESSIONS),
            "call",
            "the call is refused (-32602)",
        ),
        Limit::new(
            "hub-filter-text",
            bytes(x_grove::sessions::MAX_FILTER_TEXT),
            "call",
            "the call is refused (-32602)",
        ),
        Limit::new(
            "hub-filter-providers",
            count(x_grove::sessions::MAX_FILTER_PROVIDERS),
            "call",
            "the call is refused (-32602)",
        ),
        Limit::new(
            "hub-waiting",
            count(x_grove::sessions::MAX_WAITING_ITEMS),
            "answer",
            "further requests are counted",
        ),
        Limit::new(
            "hub-waiting-bytes",
            bytes(x_grove::sessions::MAX_WAITING_BYTES),
            "request in such an answer",
            "it is listed without its content",
        ),
        Limit::new("sdk-events", count(copilot::methods::MAX_EVENTS), "page", "the next page has more"),
        Limit::new(
            "sdk-recent-events",
            count(server::SDK_RECENT_EVENTS),
            "session",
            "older events that are not stored cannot be read any more",
        ),
        Limit::new(
            "sdk-recent-bytes",
            bytes(server::SDK_RECENT_BYTES),
            "session",
            "older events that are not stored cannot be read any more",
        ),
        Limit::new(
            "sdk-log-entries",
            count(grove_storage::limits::LOG_INFO_ENTRIES),
            "answer with a conversation",
            "older events outside of turns are left out",
        ),
        Limit::new(
            "sdk-log-entry-bytes",
            bytes(grove_storage::limits::LOG_INFO_BYTES),
            "answer with a conversation",
            "older events outside of turns are left out",
        ),
        Limit::new(
            "sdk-entry-tail",
            count(copilot::project::MAX_TAIL),
            "session",
            "an older event is not named as the one before another",
        ),
        Limit::new(
            "sdk-history",
            count(server::SDK_HISTORY_READS),
            "answer with a conversation, in snapshots",
            "older turns are left out",
        ),
    ];
    LimitGroup { subject: "Answers", about: "", limits: rows }
}
