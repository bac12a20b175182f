//! Logs that the Copilot CLI wrote at a storage client: they become logs of Grove when they are first resumed.

use std::sync::Arc;

use grove_core::*;
use grove_fs::{FsError, MemoryFs, SessionFs};
use grove_storage::chat_log::{ChatLog, ChatLogError};
use grove_storage::paths;
use grove_wire::copilot::import::{CopilotLog, read_log};

/// The beginning of a line that the Copilot CLI writes first.
const FIRST_EVENT: &str = "\"session.start\"";
/// The bytes in which it is looked for.
const PROBE_BYTES: usize = 16 << 10;
/// The end of the name under which the original is kept.
const ORIGINAL: &str = ".copilot";

/// The reason why such a log could not be converted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CopilotLogError {
    #[error(transparent)]
    Fs(#[from] FsError),
    #[error(transparent)]
    Log(#[from] ChatLogError),
}

/// Replaces a log of the Copilot CLI by Grove's own, with the same turns. The original stays beside it. Another log is left
/// as it is.
///
/// The original is copied before it is replaced, so that a failure in between loses nothing.
pub(crate) async fn convert(fs: &dyn SessionFs, id: &SessionId, agent: &AgentId) -> Result<(), CopilotLogError> {
    let main = ChatId::from(Session::MAIN_CHAT);
    let path = paths::log(id, &main);
    let beginning = fs.read_range(&path, 0, PROBE_BYTES).await?;
    if !String::from_utf8_lossy(&beginning).contains(FIRST_EVENT) {
        return Ok(());
    }
    let original = fs.read_file(&path).await?;
    let Some(log) = read_log(&String::from_utf8_lossy(&original)) else { return Ok(()) };
    let session = session_of(log, id, agent);
    let memory: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
    ChatLog::new(memory.clone(), id, main).catch_up(&session).await?;
    let converted = memory.read_file(&path).await?;
    fs.write_file(&format!("{path}{ORIGINAL}"), &original).await?;
    fs.write_file(&path, &converted).await?;
    tracing::info!(session = %id, turns = session.chats[0].turns.len(), "a log of the Copilot CLI was converted");
    Ok(())
}

fn session_of(log: CopilotLog, id: &SessionId, agent: &AgentId) -> Session {
    let CopilotLog { turns, title, folder, started_at } = log;
    let started_at = started_at.or(turns.first().map(|turn| turn.started_at)).unwrap_or(Timestamp(0));
    let folder = folder.map(|folder| grove_work::file_uri(std::path::Path::new(&folder)));
    let new = NewSession {
        id: id.clone(),
        uri: SessionUri::from(format!("{agent}:/{id}")),
        agent: agent.clone(),
        model: None,
        working_directories: folder.into_iter().collect(),
        config: None,
        store: StoreName::default(),
    };
    let mut session = Session::new(&new, started_at);
    if let Some(title) = title {
        session.set_title(&SessionTitle::given(&title));
    }
    session.modified_at = turns.last().map_or(started_at, |turn| turn.ended_at);
    if let Some(chat) = session.chats.first_mut() {
        (chat.modified_at, chat.touched_at) = (session.modified_at, session.modified_at);
        chat.turns = turns;
    }
    session
}
