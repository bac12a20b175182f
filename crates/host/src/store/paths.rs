//! The only place that knows where things of a session lie. Paths are relative to the folder of all sessions, but for
//! [`root`], which is that folder.

use std::path::{Path, PathBuf};

use grove_core::{ChatId, ContentId, Session, SessionId};
use grove_fs::workspace::FilesFolder;

/// The folder of all sessions that the local store keeps, in a host's data folder.
pub fn root(data_folder: &Path) -> PathBuf {
    data_folder.join("session-state")
}

/// A session's folder.
pub fn folder(session: &SessionId) -> String {
    session.to_string()
}

/// Where the folder of a disposed session goes when a new one takes its id. No session's id has a `~`.
pub(crate) fn disposed_folder(session: &SessionId, number: u32) -> String {
    format!("{session}~{number}")
}

/// Whether a name is of a folder that was set aside.
pub(crate) fn is_disposed_folder(name: &str) -> bool {
    name.contains('~')
}

/// Where the folder of a chat that was taken away goes when a new one takes its id.
pub(crate) fn disposed_chat_folder(session: &SessionId, chat: &ChatId, number: u32) -> String {
    format!("{}~{number}", chat_folder(session, chat))
}

/// The folder of a chat: the main one's is its session's.
pub(crate) fn chat_folder(session: &SessionId, chat: &ChatId) -> String {
    match chat.as_str() {
        Session::MAIN_CHAT => folder(session),
        chat => format!("{}/chats/{chat}", folder(session)),
    }
}

/// Where the folder of a session goes that lies elsewhere now, until it is removed.
pub(crate) fn moved_away(session: &SessionId) -> String {
    format!("{session}{MOVED_AWAY}")
}

/// Whether a name is of such a folder.
pub(crate) fn is_moved_away(name: &str) -> bool {
    name.ends_with(MOVED_AWAY)
}

const MOVED_AWAY: &str = "~moved";

/// Where the files of a session lie that is being taken in.
pub(crate) fn staged(session: &SessionId) -> String {
    format!("{session}{STAGED}")
}

/// Whether a name is of such a folder.
pub(crate) fn is_staged(name: &str) -> bool {
    name.ends_with(STAGED)
}

const STAGED: &str = "~import";

/// The log of a chat.
pub fn log(session: &SessionId, chat: &ChatId) -> String {
    format!("{}/events.jsonl", chat_folder(session, chat))
}

/// The index beside a log.
pub(crate) fn side_index(session: &SessionId, chat: &ChatId) -> String {
    format!("{}/events.idx", chat_folder(session, chat))
}

/// What is known of a session beside its conversation.
pub(crate) fn session_file(session: &SessionId) -> String {
    session_file_in(&folder(session))
}

/// The same in a folder that is not a session's yet.
pub(crate) fn session_file_in(folder: &str) -> String {
    format!("{folder}/session.json")
}

/// Where the files of a session lie.
pub(crate) fn shelf(session: &SessionId, shelf: FilesFolder) -> String {
    format!("{}/{}", folder(session), shelf.folder())
}

/// Where summaries of compactions lie.
pub(crate) fn checkpoints(session: &SessionId) -> String {
    format!("{}/checkpoints", folder(session))
}

/// The bodies that are kept by reference.
pub(crate) fn contents(session: &SessionId) -> String {
    format!("{}/content", folder(session))
}

/// One of them.
pub(crate) fn content(session: &SessionId, content: &ContentId) -> String {
    format!("{}/{content}", contents(session))
}
