//! The Gemini CLI: a folder for each project, a file for each session, which is an object or a log.
//!
//! A log may change any message later on, so it is replayed completely and read again when it has grown.

mod replay;
mod turns;

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::append_log::BUFFER;
use crate::error::HistoryError;
use crate::files;
use crate::json::{JsonMembers, text_of};
use crate::json_lines::value_of;
use crate::limits::MAX_SMALL_FILE;
use crate::platform::{Platform, StoreEnvironment, below, set};
use crate::reader::{
    Bookmark, Hints, HistoryReader, ReadOutcome, SessionLocation, StoreListing, StoreRoot, TurnSink, until_break,
};
use crate::subagents::SubagentChat;
use crate::tail_index::{RequestOrigin, RequestRange, RequestRanges, TailIndex, TailLayout, TailLimit, bytes_of};
use grove_transcript::{
    DamageKind, FileLocation, TranscriptChat, TranscriptSession, TranscriptSource, TranscriptTurn, TranscriptWorkspace,
};
use replay::ReplayedSession;

/// The reader of the Gemini CLI's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

/// The maximum number of a session's subagents.
const MAX_AGENTS: usize = 1_000;

/// The folder of sessions, with a folder for each project.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let home = set(environment.gemini_home.as_ref()).unwrap_or(&environment.home);
    let folder = below(platform, home, &[".gemini", "tmp"]);
    vec![StoreRoot { source: TranscriptSource::Gemini, product: "Gemini CLI".to_owned(), folder }]
}

impl HistoryReader for Gemini {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::Gemini
    }

    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing {
        let mut listing = StoreListing::default();
        for project in listing.names(&root.folder) {
            let folder = root.folder.join(project);
            let names = listing.names(&folder.join("chats"));
            // Subagents' files are in a folder named after their session.
            let names = names.iter().filter(|name| name.starts_with("session-"));
            let workspace = match hints {
                Hints::Read => workspace_of(&folder),
                Hints::Skip => TranscriptWorkspace::default(),
            };
            for name in names {
                let Some(stem) = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json")) else { continue };
                let location = SessionLocation {
                    workspace: workspace.clone(),
                    ..SessionLocation::without_file(TranscriptSource::Gemini, stem)
                };
                listing.add_file(root, folder.join("chats").join(name), location);
            }
        }
        listing
    }

    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        let mut location = SessionLocation::of_file(TranscriptSource::Gemini, path)?;
        let chats = path.parent().filter(|chats| chats.file_name().is_some_and(|name| name == "chats"));
        location.workspace = chats.and_then(Path::parent).map(workspace_of).unwrap_or_default();
        Ok(location)
    }

    fn read_until(
        &self,
        location: &SessionLocation,
        from: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let path = location.path_for(TranscriptSource::Gemini)?;
        location.without_bookmark(from)?;
        let (file, _) = files::open(path)?;
        let source = BufReader::with_capacity(BUFFER, file);
        let read = read_session(source, &location.id, |id| children_of(path, id), &mut until_break(turns));
        let (mut session, requests) = read.map_err(|error| HistoryError::io(path, error))?;
        session.workspace.fill(location.workspace.clone());
        let requests = RequestRanges { first: 0, requests, turns: session.turns, session: session.source_id.clone() };
        let tail_index = (!requests.requests.is_empty() && folder_of(path, &session.source_id).is_none())
            .then(|| TailIndex { mark: location.mark, fingerprint: None, places: TailLayout::RequestRanges(requests) });
        Ok(ReadOutcome { session, bookmark: None, tail_index, may_go_back: false })
    }
}

/// Reads a session's file in memory.
pub fn read_log(bytes: &[u8], id: &str, turns: &mut dyn FnMut(TranscriptTurn)) -> io::Result<TranscriptSession> {
    read_session(bytes, id, |_| HashMap::new(), turns).map(|(session, _)| session)
}

/// The newest turns, each read from its messages' positions; `None` if that is not possible.
pub(crate) fn newest(
    location: &SessionLocation,
    noted: &RequestRanges,
    amount: TailLimit,
) -> Result<Option<Vec<TranscriptTurn>>, HistoryError> {
    let path = location.path_for(TranscriptSource::Gemini)?;
    // The turns of subagents' files are known only when all turns are read.
    let Some((_, requests)) = noted.newest(amount).filter(|_| folder_of(path, &noted.session).is_none()) else {
        return Ok(None);
    };
    let (mut file, _) = files::open(path)?;
    let mut newest_turns = Vec::new();
    for request in requests {
        let (Some(mark), RequestOrigin::Value(first)) = (&request.turn, request.origin) else { return Ok(None) };
        let mut messages = Vec::new();
        for range in std::iter::once(first).chain(request.changes.iter().copied()) {
            let bytes = bytes_of(&mut file, range).map_err(|error| HistoryError::io(path, error))?;
            let Some(message) = value_of(&bytes).ok().and_then(|value| JsonMembers::of(value).ok()) else {
                return Ok(None);
            };
            messages.push(message);
        }
        let before = newest_turns.len();
        let mut session = TranscriptSession::new(TranscriptSource::Gemini, &noted.session);
        turns::tell(ReplayedSession::of(messages), &mut session, HashMap::new(), &mut |turn| newest_turns.push(turn));
        match newest_turns.last_mut().filter(|_| session.turns == 1) {
            Some(turn) => (turn.id, turn.follows) = (mark.id.clone(), mark.follows),
            None => return Ok(None),
        }
        if newest_turns.len() != before + 1 {
            return Ok(None);
        }
    }
    Ok(Some(newest_turns))
}

fn read_session(
    mut source: impl BufRead,
    id: &str,
    children: impl FnOnce(&str) -> HashMap<String, SubagentChat>,
    turns: &mut dyn FnMut(TranscriptTurn),
) -> io::Result<(TranscriptSession, Vec<RequestRange>)> {
    // Older sessions are one object over many lines, which is not a log.
    let head = source.fill_buf()?;
    let is_object = head.trim_ascii_start().strip_prefix(b"{").is_some_and(|rest| {
        let rest = rest.strip_prefix(b"\r").unwrap_or(rest);
        rest.starts_with(b"\n")
    });
    let mut replayed = if is_object { replay::object(source)? } else { replay::log(source)? };
    let mut session = TranscriptSession::new(TranscriptSource::Gemini, id);
    session.damage = std::mem::take(&mut replayed.damage);
    let about = &mut replayed.about;
    match about.string("sessionId").filter(|own| !own.is_empty()) {
        Some(own) if own != id => {
            session.source_id = own;
            session.aliases.push(id.to_owned());
        }
        Some(_) => {}
        None if session.damage.marks.contains(&DamageKind::Empty) => {}
        None => session.damage.mark(DamageKind::MissingStart),
    }
    session.created_at = about.time("startTime");
    let modified_at = about.time("lastUpdated");
    let title = about.string("summary").filter(|title| !title.is_empty());
    session.workspace.folders =
        about.list("directories").iter().map(|folder| FileLocation::local(text_of(folder))).collect();
    let children = children(&session.source_id);
    let requests = turns::tell(replayed, &mut session, children, turns);
    let first = session.first_message.lines().next().map(str::to_owned);
    session.title = title.or(first.filter(|first| session.turns > 0 && !first.is_empty()));
    session.modified_at = session.modified_at.max(modified_at).or(session.created_at);
    Ok((session, requests))
}

/// The conversations of a session's subagents, by their ids.
fn children_of(path: &Path, session: &str) -> HashMap<String, SubagentChat> {
    let Some(folder) = folder_of(path, session) else { return HashMap::new() };
    let names = files::names(&folder).unwrap_or_default();
    let ids = names.iter().filter_map(|name| {
        let id = name.strip_suffix(".jsonl").or_else(|| name.strip_suffix(".json"))?;
        Some((id, name))
    });
    let mut children = HashMap::new();
    for (id, name) in ids.take(MAX_AGENTS) {
        let Ok(bytes) = files::read(&folder.join(name), MAX_SMALL_FILE) else { continue };
        let mut turns = Vec::new();
        if read_log(&bytes, id, &mut |turn| turns.push(turn)).is_ok() {
            let chat = TranscriptChat { id: id.to_owned(), turns, ..TranscriptChat::default() };
            children.insert(id.to_owned(), SubagentChat { call: format!("agent-{id}"), chat });
        }
    }
    children
}

/// The folder of a session's subagents, if there is one.
fn folder_of(path: &Path, session: &str) -> Option<PathBuf> {
    let is_plain = !session.contains(['/', '\\', '\0', ':']) && !matches!(session, "" | "." | "..");
    path.parent().filter(|_| is_plain).map(|chats| chats.join(session)).filter(|folder| folder.is_dir())
}

/// The working directory of a project's sessions.
fn workspace_of(folder: &Path) -> TranscriptWorkspace {
    let path = files::read_text(&folder.join(".project_root"), MAX_SMALL_FILE).ok();
    let path = path.map(|path| path.trim().to_owned()).filter(|path| !path.is_empty());
    TranscriptWorkspace {
        folders: path.map(FileLocation::local).into_iter().collect(),
        ..TranscriptWorkspace::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_looked_for_below_the_programs_home() {
        let mut environment = StoreEnvironment { home: "/home/me".into(), ..StoreEnvironment::default() };
        let folder = |environment: &StoreEnvironment| store_roots(Platform::Linux, environment)[0].folder.clone();
        assert_eq!(folder(&environment).to_string_lossy(), "/home/me/.gemini/tmp");
        environment.gemini_home = Some("/own".into());
        assert_eq!(folder(&environment).to_string_lossy(), "/own/.gemini/tmp");
    }
}
