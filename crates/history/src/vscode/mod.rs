//! VS Code's Copilot Chat, and the programs that are built from VS Code.
//!
//! A session is a file of one of two forms: a flat object (`flat`), or since 1.109 a log of what changed in it
//! ([`replay`]). Both come to the same requests (`request`), each of which is a turn with parts (`parts`). What was edited
//! lies beside them ([`editing`]).

mod attachments;
mod code_workspace;
mod edited;
pub mod editing;
mod find;
mod flat;
pub mod index;
mod invocation;
mod locations;
mod log;
mod noted;
mod pairing;
mod parts;
mod rendered;
mod request;
mod results;
mod session;
mod uri;
mod words;
mod workspace;

pub use find::{editing_folder, sessions, workspaces};
pub use invocation::approval_of;
pub use locations::locations;
pub use log::{Replayed, replay};
pub use request::details_of;
pub use results::flattened;
pub use uri::place_of_uri;
pub use workspace::{WorkspaceFolder, workspace_of};

use std::io::BufReader;
use std::path::Path;

use grove_core::Extra;
use serde_json::Value;

use crate::damage::Mark;
use crate::ending::{Amount, Ending, Places, Requests};
use crate::error::HistoryError;
use crate::files;
use crate::normal::{ForeignSession, ForeignTurn, Source};
use crate::reader::{Bookmark, Finding, Hints, Located, Reader, Reading, Root};
use noted::Noted;
use session::Assembly;

/// The reader of VS Code's sessions.
#[derive(Clone, Copy, Debug, Default)]
pub struct VsCode;

impl Reader for VsCode {
    fn source(&self) -> Source {
        Source::VsCode
    }

    fn find(&self, root: &Root, hints: Hints) -> Finding {
        find::find(root, hints)
    }

    fn locate(&self, path: &Path) -> Result<Located, HistoryError> {
        find::locate(path)
    }

    /// Neither form can be read on from a bookmark: a later line may change any earlier request.
    fn read(
        &self,
        located: &Located,
        _: Option<&Bookmark>,
        turns: &mut dyn FnMut(ForeignTurn),
    ) -> Result<Reading, HistoryError> {
        let (file, _) = files::open(located.meant_for(Source::VsCode)?)?;
        let mut assembly = Assembly::new(&located.id);
        let (editing, problem) = match edited::editing_of(located) {
            Ok(editing) => (editing, None),
            Err(problem) => (None, Some(problem)),
        };
        let turns = &mut |mut turn: ForeignTurn| {
            if let Some(editing) = &editing {
                edited::add_edits(&mut turn, editing);
            }
            turns(turn);
        };
        let source = BufReader::with_capacity(BUFFER, file);
        let is_log = located.path.extension().is_some_and(|extension| extension == "jsonl");
        let io = |error| HistoryError::io(&located.path, error);
        if !is_log {
            let mut noted = Noted::default();
            let root = flat::read(source, &mut assembly, &mut noted, turns).map_err(io)?;
            assembly.beside(problem);
            return Ok(reading(assembly, root, Some(noted), located));
        }
        let (replayed, mut noted) = log::replay_noting(source).map_err(io)?;
        let lacks_start = replayed.state.is_none() || replayed.damage.marks.contains(&Mark::MissingStart);
        let root = match &located.older {
            // What came before the log is worth more than a log without its beginning.
            Some(older) if lacks_start => {
                assembly.session.damage = replayed.damage;
                assembly.session.damage.mark(Mark::FromOlderFile);
                let (file, _) = files::open(older)?;
                let source = BufReader::with_capacity(BUFFER, file);
                let read = flat::read(source, &mut assembly, &mut Noted::default(), turns);
                noted = None;
                read.map_err(|error| HistoryError::io(older, error))?
            }
            _ => requests(replayed, &mut assembly, noted.as_mut(), turns),
        };
        assembly.beside(problem);
        Ok(reading(assembly, root, noted, located))
    }
}

fn reading(assembly: Assembly, root: Extra, noted: Option<Noted>, located: &Located) -> Reading {
    let requests = noted.and_then(|noted| noted.finish(assembly.session.turns));
    let ending =
        requests.map(|requests| Ending { mark: located.mark, fingerprint: None, places: Places::Requests(requests) });
    Reading { session: assembly.finish(root, located), bookmark: None, ending }
}

/// The newest turns, read from where they lie; `None` where that cannot be done.
pub(crate) fn newest(
    located: &Located,
    requests: &Requests,
    amount: Amount,
) -> Result<Option<Vec<ForeignTurn>>, HistoryError> {
    let (mut file, _) = files::open(located.meant_for(Source::VsCode)?)?;
    let mut turns = Vec::new();
    let read = noted::read(&mut file, &located.id, requests, amount, &mut turns);
    if let Some(editing) = edited::editing_of(located).unwrap_or_default() {
        turns.iter_mut().for_each(|turn| edited::add_edits(turn, &editing));
    }
    Ok(read.map_err(|error| HistoryError::io(&located.path, error))?.map(|()| turns))
}

/// Reads a session that is at hand as a flat object.
pub fn read_flat(bytes: &[u8], id: &str, turns: &mut dyn FnMut(ForeignTurn)) -> std::io::Result<ForeignSession> {
    let mut assembly = Assembly::new(id);
    let root = flat::read(bytes, &mut assembly, &mut Noted::default(), turns)?;
    Ok(assembly.finish(root, &Located::nowhere(Source::VsCode, id)))
}

/// Reads a session that is at hand as a log.
pub fn read_log(bytes: &[u8], id: &str, turns: &mut dyn FnMut(ForeignTurn)) -> std::io::Result<ForeignSession> {
    let mut assembly = Assembly::new(id);
    let root = requests(replay(bytes)?, &mut assembly, None, turns);
    Ok(assembly.finish(root, &Located::nowhere(Source::VsCode, id)))
}

/// The requests of a replayed log become turns; what stands beside them is given back.
fn requests(
    replayed: Replayed,
    assembly: &mut Assembly,
    mut noted: Option<&mut Noted>,
    turns: &mut dyn FnMut(ForeignTurn),
) -> Extra {
    assembly.session.damage = replayed.damage;
    let mut root = match replayed.state {
        Some(Value::Object(root)) => root,
        Some(other) => {
            assembly.session.damage.mark(Mark::Damaged);
            [("state".to_owned(), other)].into_iter().collect()
        }
        None => Extra::new(),
    };
    if let Some(Value::Array(requests)) = root.get_mut("requests") {
        let requests = std::mem::take(requests);
        // A hole is where a log without its beginning knows of no request.
        for (number, request) in requests.into_iter().enumerate().filter(|(_, request)| !request.is_null()) {
            let turn = assembly.turn(request);
            if let Some(noted) = noted.as_deref_mut() {
                noted.turn(number, &turn);
            }
            turns(turn);
        }
        root.shift_remove("requests");
    }
    root
}

/// How much of a file is read at once.
const BUFFER: usize = 128 * 1024;
