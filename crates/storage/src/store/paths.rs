//! The only place that knows the paths in a session's folder.
//!
//! Paths are relative to the folder of all sessions, except for [`root`], which is that folder.

use std::path::{Path, PathBuf};

use grove_core::{ChatId, ContentId, Session, SessionId};
use grove_fs::workspace::FilesFolder;

/// The folder of all sessions in the local store, in a host's data folder.
pub fn root(data_folder: &Path) -> PathBuf {
    data_folder.join("session-state")
}

/// A session's folder.
pub fn folder(session: &SessionId) -> String {
    session.to_string()
}

/// The new name of a disposed session's folder when a new session takes its id. No session's id has a `~`.
pub(crate) fn disposed_folder(session: &SessionId, number: u32) -> String {
    format!("{session}~{number}")
}

/// Says whether a name is that of a renamed folder.
pub(crate) fn is_disposed_folder(name: &str) -> bool {
    name.contains('~')
}

/// The new name of a deleted chat's folder when a new chat takes its id.
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

/// The name of a moved session's old folder, until it is removed.
pub(crate) fn moved_away(session: &SessionId) -> String {
    format!("{session}{MOVED_AWAY}")
}

/// Says whether a name is that of such a folder.
pub(crate) fn is_moved_away(name: &str) -> bool {
    name.ends_with(MOVED_AWAY)
}

const MOVED_AWAY: &str = "~moved";

/// The folder of a session that is being imported.
pub fn staged(session: &SessionId) -> String {
    format!("{session}{STAGED}")
}

/// Says whether a name is that of such a folder.
pub(crate) fn is_staged(name: &str) -> bool {
    name.ends_with(STAGED)
}

const STAGED: &str = "~import";

/// The log of a chat.
pub fn log(session: &SessionId, chat: &ChatId) -> String {
    format!("{}/events.jsonl", chat_folder(session, chat))
}

/// The index beside a log.
pub fn side_index(session: &SessionId, chat: &ChatId) -> String {
    format!("{}/events.idx", chat_folder(session, chat))
}

/// The session's file: its data beside the conversation.
pub fn session_file(session: &SessionId) -> String {
    session_file_in(&folder(session))
}

/// The session's file in a folder that is not a session's yet.
pub(crate) fn session_file_in(folder: &str) -> String {
    format!("{folder}/session.json")
}

/// The file of a session's setup.
pub(crate) fn setup_file(session: &SessionId) -> String {
    format!("{}/setup.json", folder(session))
}

/// The folder of a session's files.
pub fn files_folder(session: &SessionId, kind: FilesFolder) -> String {
    format!("{}/{}", folder(session), kind.folder())
}

/// The folder of compactions' summaries.
pub fn checkpoints(session: &SessionId) -> String {
    format!("{}/checkpoints", folder(session))
}

/// The folder of bodies that are stored by reference.
pub(crate) fn contents(session: &SessionId) -> String {
    format!("{}/content", folder(session))
}

/// The path of one body.
pub(crate) fn content(session: &SessionId, content: &ContentId) -> String {
    format!("{}/{content}", contents(session))
}
