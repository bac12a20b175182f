//! VS Code's Copilot Chat, and the programs that are built from VS Code.
//!
//! A session is a file of one of two formats: a flat object (`flat`), or since 1.109 a log of its changes ([`replay`]).
//! Both give the same requests (`request`), each of which is a turn with parts (`parts`). Edits are stored beside them
//! ([`editing`]).

mod attachments;
mod code_workspace;
pub mod editing;
mod find;
mod flat;
pub mod index;
mod invocation;
mod link_labels;
mod mutation_log;
mod pairing;
mod parts;
mod prompt_blocks;
mod request;
mod request_ranges;
mod results;
mod session;
mod session_edits;
mod store_roots;
mod workspace;

pub use find::{editing_folder, sessions, workspaces};
use grove_transcript::{DamageKind, TranscriptSession, TranscriptSource, TranscriptTurn};
pub use invocation::approval_of;
pub use mutation_log::{ReplayOutcome, replay};
pub use request::details_of;
pub use results::flattened;
pub use store_roots::store_roots;
pub use workspace::{WorkspaceFolder, workspace_of};

use std::io::BufReader;
use std::path::Path;

use grove_core::Extra;
use serde_json::Value;

use crate::error::HistoryError;
use crate::files;
use crate::reader::{
    Bookmark, Hints, HistoryReader, ReadOutcome, SessionLocation, StoreListing, StoreRoot, TurnSink, every,
};
use crate::tail_index::{RequestRanges, TailIndex, TailLayout, TailLimit};
use request_ranges::RequestRangeRecorder;
use session::SessionBuilder;

/// The reader of VS Code's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct VsCode;

impl HistoryReader for VsCode {
    fn source(&self) -> TranscriptSource {
        TranscriptSource::VsCode
    }

    fn find(&self, root: &StoreRoot, hints: Hints) -> StoreListing {
        find::find(root, hints)
    }

    fn locate(&self, path: &Path) -> Result<SessionLocation, HistoryError> {
        find::locate(path)
    }

    /// Neither format can be read on from a bookmark: a later line may change any earlier request.
    fn read_until(
        &self,
        location: &SessionLocation,
        _: Option<&Bookmark>,
        turns: &mut TurnSink<'_>,
    ) -> Result<ReadOutcome, HistoryError> {
        let (file, _) = files::open(location.path_for(TranscriptSource::VsCode)?)?;
        let mut assembly = SessionBuilder::new(&location.id);
        let (editing, problem) = match session_edits::editing_of(location) {
            Ok(editing) => (editing, None),
            Err(problem) => (None, Some(problem)),
        };
        let turns = &mut |mut turn: TranscriptTurn| {
            if let Some(editing) = &editing {
                session_edits::add_edits(&mut turn, editing);
            }
            turns(turn)
        };
        let source = BufReader::with_capacity(BUFFER, file);
        let is_log = location.path.extension().is_some_and(|extension| extension == "jsonl");
        let io = |error| HistoryError::io(&location.path, error);
        if !is_log {
            let mut request_ranges = RequestRangeRecorder::default();
            let root = flat::read(source, &mut assembly, &mut request_ranges, turns).map_err(io)?;
            assembly.beside(problem);
            return Ok(reading(assembly, root, Some(request_ranges), location));
        }
        let (replayed, mut request_ranges) = mutation_log::replay_with_ranges(source).map_err(io)?;
        let lacks_start = replayed.state.is_none() || replayed.damage.marks.contains(&DamageKind::MissingStart);
        let root = match &location.older {
            // The older file is better than a log without its beginning.
            Some(older) if lacks_start => {
                assembly.session.damage = replayed.damage;
                assembly.session.damage.mark(DamageKind::FromOlderFile);
                let (file, _) = files::open(older)?;
                let source = BufReader::with_capacity(BUFFER, file);
                let read = flat::read(source, &mut assembly, &mut RequestRangeRecorder::default(), turns);
                request_ranges = None;
                read.map_err(|error| HistoryError::io(older, error))?
            }
            _ => requests(replayed, &mut assembly, request_ranges.as_mut(), turns),
        };
        assembly.beside(problem);
        Ok(reading(assembly, root, request_ranges, location))
    }
}

fn reading(
    assembly: SessionBuilder,
    root: Extra,
    request_ranges: Option<RequestRangeRecorder>,
    location: &SessionLocation,
) -> ReadOutcome {
    let requests = request_ranges.and_then(|request_ranges| request_ranges.finish(assembly.session.turns));
    let tail_index = requests.map(|requests| TailIndex {
        mark: location.mark,
        fingerprint: None,
        places: TailLayout::RequestRanges(requests),
    });
    ReadOutcome { session: assembly.finish(root, location), bookmark: None, tail_index, may_go_back: false }
}

/// The newest turns, read at their positions; `None` if that is not possible.
pub(crate) fn newest(
    location: &SessionLocation,
    requests: &RequestRanges,
    amount: TailLimit,
) -> Result<Option<Vec<TranscriptTurn>>, HistoryError> {
    let (mut file, _) = files::open(location.path_for(TranscriptSource::VsCode)?)?;
    let mut turns = Vec::new();
    let read = request_ranges::read(&mut file, &location.id, requests, amount, &mut turns);
    if let Some(editing) = session_edits::editing_of(location).unwrap_or_default() {
        turns.iter_mut().for_each(|turn| session_edits::add_edits(turn, &editing));
    }
    Ok(read.map_err(|error| HistoryError::io(&location.path, error))?.map(|()| turns))
}

/// Reads a session in memory as a flat object.
pub fn read_flat(bytes: &[u8], id: &str, turns: &mut dyn FnMut(TranscriptTurn)) -> std::io::Result<TranscriptSession> {
    let mut assembly = SessionBuilder::new(id);
    let root = flat::read(bytes, &mut assembly, &mut RequestRangeRecorder::default(), &mut every(turns))?;
    Ok(assembly.finish(root, &SessionLocation::without_file(TranscriptSource::VsCode, id)))
}

/// Reads a session in memory as a log.
pub fn read_log(bytes: &[u8], id: &str, turns: &mut dyn FnMut(TranscriptTurn)) -> std::io::Result<TranscriptSession> {
    let mut assembly = SessionBuilder::new(id);
    let root = requests(replay(bytes)?, &mut assembly, None, &mut every(turns));
    Ok(assembly.finish(root, &SessionLocation::without_file(TranscriptSource::VsCode, id)))
}

/// Converts the requests of a replayed log to turns, up to a break; the members beside them are returned.
fn requests(
    replayed: ReplayOutcome,
    assembly: &mut SessionBuilder,
    mut request_ranges: Option<&mut RequestRangeRecorder>,
    turns: &mut TurnSink<'_>,
) -> Extra {
    assembly.session.damage = replayed.damage;
    let mut root = match replayed.state {
        Some(Value::Object(root)) => root,
        Some(other) => {
            assembly.session.damage.mark(DamageKind::Damaged);
            [("state".to_owned(), other)].into_iter().collect()
        }
        None => Extra::new(),
    };
    if let Some(Value::Array(requests)) = root.get_mut("requests") {
        let requests = std::mem::take(requests);
        // A hole is an unknown request of a log without its beginning.
        for (number, request) in requests.into_iter().enumerate().filter(|(_, request)| !request.is_null()) {
            let turn = assembly.turn(request);
            if let Some(request_ranges) = request_ranges.as_deref_mut() {
                request_ranges.turn(number, &turn);
            }
            if turns(turn).is_break() {
                break;
            }
        }
        root.shift_remove("requests");
    }
    root
}

/// The size of one read of a file.
const BUFFER: usize = 128 * 1024;
