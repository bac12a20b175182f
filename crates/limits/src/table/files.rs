//! Limits of files: stores, storage clients, working directories, histories.

use grove_fs::limits as fs;
use grove_history::limits as history;
use grove_host::Limits;
use grove_storage::limits as storage;
use grove_work::{WatchLimits, limits as work};

use crate::{Limit, LimitGroup, bytes, count, time};

pub(super) fn groups(limits: &Limits) -> Vec<LimitGroup> {
    vec![stores(limits), workspace(), working_directory(), histories()]
}

fn stores(limits: &Limits) -> LimitGroup {
    let calls = grove_fs::rpc::Limits::default();
    let rows = vec![
        Limit::new("import-files", count(limits.import_files), "import", "the file is refused (-32602)"),
        Limit::new("import-bytes", bytes(limits.import_bytes), "import", "the piece is refused (-32602)"),
        Limit::new("copied-files", count(fs::COPIED_FILES), "fork or move", "the copy is refused"),
        Limit::new("copied-depth", count(fs::COPIED_DEPTH), "fork or move", "the copy is refused"),
        Limit::new("log-line", bytes(grove_tree::MAX_LINE), "line of a log", "the line is damage, and is left out"),
        Limit::new(
            "log-depth",
            count(grove_tree::scan::MAX_DEPTH),
            "line of a log",
            "the line is damage, and is left out",
        ),
        Limit::new("journal-segment", bytes(storage::SEGMENT_BYTES), "segment", "the next segment begins"),
        Limit::new("journal-line", bytes(storage::JOURNAL_LINE_BYTES), "record", "the batch is refused"),
        Limit::new("file-name", bytes(grove_fs::names::MAX_NAME), "name", "the name is refused"),
        Limit::new("file-name-part", bytes(fs::NAME_PART_BYTES), "part of a name", "the name is refused"),
        Limit::new("store-name", bytes(storage::STORE_NAME_BYTES), "store", "the store is refused"),
        Limit::new("path", bytes(fs::PATH_BYTES), "path", "the path is refused"),
        Limit::new(
            "temp-files",
            count(fs::TEMP_FILES),
            "store",
            "further temporary files are removed at the next start",
        ),
        Limit::new(
            "storage-call",
            time(limits.storage_call),
            "call to a storage client",
            "the call has failed and is tried again",
        ),
        Limit::new("storage-late", time(limits.storage_late), "append without an answer", "its file is trusted again"),
        Limit::new(
            "unconfirmed-files",
            count(fs::UNCONFIRMED_FILES),
            "storage client",
            "a further append without an answer has failed",
        ),
        Limit::new("storage-calls", count(calls.in_flight), "storage client, at a time", "further calls wait"),
        Limit::new(
            "storage-file",
            bytes(grove_fs::storage_client::MAX_FILE),
            "file of a storage client",
            "the file is refused",
        ),
        Limit::new("storage-entries", count(calls.entries), "folder of a storage client", "the folder is refused"),
        Limit::new("client-stored-sessions", count(storage::CLIENT_STORED_SESSIONS), "host", "the session is refused"),
    ];
    LimitGroup { subject: "Stores of sessions", about: "", limits: rows }
}

fn workspace() -> LimitGroup {
    let rows = vec![
        Limit::new(
            "workspace-files",
            count(fs::WORKSPACE_FILES),
            "list",
            "further files are left out, and the list says so",
        ),
        Limit::new("workspace-depth", count(fs::WORKSPACE_DEPTH), "list", "deeper folders are left out"),
        Limit::new("workspace-text-file", bytes(fs::WORKSPACE_TEXT_BYTES), "file", "the file is refused (-32602)"),
        Limit::new("todos", count(fs::TODOS), "plan", "further items are left out"),
        Limit::new("todo-title", count(fs::TODO_TITLE), "item of a plan, in characters", "the title is cut"),
        Limit::new("plan-history", bytes(fs::PLAN_HISTORY_BYTES), "session", "the oldest versions are dropped"),
        Limit::new(
            "plan-recorded",
            bytes(fs::RECORDED_PLAN_BYTES),
            "plan",
            "its text is not recorded; forks get the present one",
        ),
        Limit::new("workspace-manifest", bytes(fs::MANIFEST_BYTES), "manifest", "the manifest is damage"),
        Limit::new("query-time", time(fs::QUERY_TIME), "query of a session's database", "the query is stopped"),
        Limit::new("query-rows", count(fs::QUERY_ROWS), "query of a session's database", "the query fails"),
        Limit::new("query-bytes", bytes(fs::QUERY_BYTES), "query of a session's database", "the query fails"),
    ];
    LimitGroup { subject: "Workspaces of sessions", about: "", limits: rows }
}

fn working_directory() -> LimitGroup {
    let watch = WatchLimits::default();
    let rows = vec![
        Limit::new("watch-folders", count(watch.folders), "watch", "the watch is refused, or ends"),
        Limit::new("watch-changes", count(watch.changes), "watch", "the client is told that it missed changes"),
        Limit::new("watch-patterns", count(watch.patterns), "watch", "the watch is refused (-32602)"),
        Limit::new("watch-delay", time(watch.debounce), "watch", "gathered changes are reported"),
        Limit::new("local-path", bytes(grove_work::MAX_PATH_BYTES), "path", "the path is refused (-32602)"),
        Limit::new(
            "write-grants",
            count(work::WRITE_GRANTS),
            "connection",
            "asking to change another path is refused (-32029)",
        ),
        Limit::new("changed-files", count(work::CHANGED_ENTRIES), "folder to delete, copy or move", "it is refused"),
        Limit::new("changed-depth", count(work::CHANGED_DEPTH), "folder to delete, copy or move", "it is refused"),
        Limit::new("copied-bytes", bytes(work::COPIED_BYTES), "copy of a client", "the copy is refused"),
        Limit::new("symbolic-links", count(work::LINKS), "path", "the path is refused"),
        Limit::new("git-file", bytes(work::GIT_FILE_BYTES), "file of a git repository", "the file is ignored"),
        Limit::new(
            "git-variables",
            count(work::GIT_VARIABLES),
            "file of a git repository",
            "later variables are ignored",
        ),
        Limit::new("git-value", bytes(work::GIT_VALUE_BYTES), "variable of git", "the variable is ignored"),
        Limit::new("branch-name", bytes(work::BRANCH_NAME_BYTES), "branch", "the branch is unknown"),
        Limit::new(
            "compared-files",
            count(work::COMPARED_FILES),
            "file with several names",
            "further private files are not compared with it",
        ),
    ];
    LimitGroup { subject: "Working directories", about: "", limits: rows }
}

fn histories() -> LimitGroup {
    let rows = vec![
        Limit::new(
            "history-item",
            bytes(history::MAX_JSON_ITEM),
            "line or member",
            "the item is damage, and is left out",
        ),
        Limit::new("history-state", bytes(history::MAX_STATE), "replayed log", "the rest is damage, and is left out"),
        Limit::new("history-small-file", bytes(history::MAX_SMALL_FILE), "side file", "the file is ignored"),
        Limit::new("history-database", bytes(history::MAX_DATABASE), "database", "the database is not opened"),
        Limit::new("history-depth", count(history::MAX_DEPTH), "item", "the item is damage, and is left out"),
        Limit::new(
            "history-entries",
            count(history::MAX_ENTRIES),
            "session",
            "further entries are damage, and are left out",
        ),
        Limit::new("history-page", count(grove_history::catalog::MAX_PAGE), "page", "the next page has more"),
        Limit::new(
            "history-editing-state",
            bytes(history::MAX_EDITING_STATE),
            "editing session",
            "the file is ignored",
        ),
        Limit::new("history-changes", count(history::CHANGED_FILES), "session", "further changed files are counted"),
        Limit::new("history-copied", count(history::COPIED_FILES), "session", "further files beside it are not copied"),
        Limit::new("history-matches", count(history::MATCHES), "ambiguous name", "further sessions are left out"),
    ];
    LimitGroup { subject: "Sessions of other tools", about: "", limits: rows }
}
