//! A session of any origin as a transcript, ready to be shown or exported.

use std::sync::Arc;

use grove_core::{NewSession, Session, SessionId, SessionUri, StoreName, Turn};
use grove_history::{HistoryError, SessionLocation, reader_of};
use grove_transcript::export::Heading;
use grove_transcript::{TranscriptSession, TranscriptTurn, TurnParent, path_of, transcript_turn};
use grove_tree::{Log, turns};

/// The source name of the host's sessions.
pub(crate) const GROVE: &str = "grove";
/// The source name of a log file: Grove, pi and oh-my-pi share one format.
pub(crate) const LOG: &str = "log";

/// A session that was found and opened.
#[derive(Debug)]
pub(crate) struct Transcript {
    source: &'static str,
    session: TranscriptSession,
    content: TranscriptContent,
    /// The running turn, after all others.
    running: Option<TranscriptTurn>,
}

#[derive(Debug)]
enum TranscriptContent {
    /// Turns are read from the tool's file on every pass, so memory holds one turn.
    Foreign {
        location: SessionLocation,
        /// The indexes of the turns that lead to the newest one. The others were abandoned.
        path: Vec<usize>,
    },
    Log {
        log: Log,
        turns: Vec<Arc<Turn>>,
    },
}

impl Transcript {
    /// A session of another tool.
    pub(crate) fn of_located(location: SessionLocation) -> Result<Self, HistoryError> {
        let location = location.with_database_copy()?;
        let mut follows = Vec::new();
        let reading = reader_of(location.source).read(&location, None, &mut |turn| follows.push(turn.follows))?;
        let source = location.source.name();
        let content = TranscriptContent::Foreign { path: path_of(&follows), location };
        Ok(Self { source, session: reading.session, content, running: None })
    }

    /// A session that is a log; `session` has the facts that the log does not.
    pub(crate) fn of_log(source: &'static str, mut session: TranscriptSession, log: Log) -> Self {
        let turns = turns::turns(&log);
        for turn in &turns {
            session.count(&transcript_turn(turn));
        }
        if session.created_at.is_none() {
            session.created_at = turns.first().map(|turn| turn.started_at);
        }
        Self { source, session, content: TranscriptContent::Log { log, turns }, running: None }
    }

    /// Adds the running turn.
    pub(crate) fn with_running(mut self, turn: TranscriptTurn) -> Self {
        self.session.count(&turn);
        self.running = Some(turn);
        self
    }

    pub(crate) fn heading(&self) -> Heading<'_> {
        Heading { source: self.source, session: &self.session, abandoned: self.abandoned(), allow_all: None }
    }

    /// The name of the session's source.
    pub(crate) fn source(&self) -> &'static str {
        self.source
    }

    pub(crate) fn session(&self) -> &TranscriptSession {
        &self.session
    }

    /// The log, if the session is one.
    pub(crate) fn log(&self) -> Option<&Log> {
        match &self.content {
            TranscriptContent::Foreign { .. } => None,
            TranscriptContent::Log { log, .. } => Some(log),
        }
    }

    /// The number of turns on abandoned branches of another tool's session.
    pub(crate) fn abandoned(&self) -> u32 {
        match &self.content {
            TranscriptContent::Foreign { path, .. } => {
                self.session.turns.saturating_sub(u32::try_from(path.len()).unwrap_or(u32::MAX))
            }
            // A log's turns are those of one branch already.
            TranscriptContent::Log { .. } => 0,
        }
    }

    /// Passes each turn of the current branch to `take`, in order, until it fails.
    pub(crate) fn each<E: From<HistoryError>>(
        &self,
        take: &mut dyn FnMut(TranscriptTurn) -> Result<(), E>,
    ) -> Result<(), E> {
        let TranscriptContent::Foreign { path, .. } = &self.content else { return self.each_of_all(take) };
        let mut number = 0;
        let mut wanted = path.iter().peekable();
        self.each_of_all(&mut |turn| {
            let is_wanted = wanted.next_if_eq(&&number).is_some();
            number += 1;
            // It follows the turn that was passed before it.
            if is_wanted { take(TranscriptTurn { follows: TurnParent::Previous, ..turn }) } else { Ok(()) }
        })
    }

    /// The same for the turns of all branches; a log has only one here.
    pub(crate) fn each_of_all<E: From<HistoryError>>(
        &self,
        take: &mut dyn FnMut(TranscriptTurn) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.content {
            TranscriptContent::Log { turns, .. } => turns.iter().try_for_each(|turn| take(transcript_turn(turn)))?,
            TranscriptContent::Foreign { location, .. } => {
                let mut taken = Ok(());
                reader_of(location.source).read(location, None, &mut |turn| {
                    if taken.is_ok() {
                        taken = take(turn);
                    }
                })?;
                taken?;
            }
        }
        self.running.clone().map_or(Ok(()), take)
    }

    /// The session's id as a portable file name.
    pub(crate) fn file_name(&self) -> String {
        let name = fit_for_a_file(&self.session.source_id);
        if name.is_empty() { "session".to_owned() } else { name }
    }

    /// The session for the header of a log.
    pub(crate) fn header(&self) -> Session {
        let session = &self.session;
        let folder = session.workspace.folders.first().map(|folder| folder.shown().to_owned());
        header(&session.source_id, self.source, folder, session.created_at.unwrap_or_default())
    }
}

/// Replaces characters that are not allowed in file names everywhere.
pub(crate) fn fit_for_a_file(name: &str) -> String {
    let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    name.chars().take(100).map(fit).collect()
}

/// A session with the facts of a log's header.
pub(crate) fn header(id: &str, provider: &str, cwd: Option<String>, created: grove_core::Timestamp) -> Session {
    let new = NewSession {
        id: SessionId::from(id),
        uri: SessionUri::from(format!("{provider}:/{id}")),
        provider: provider.into(),
        model: None,
        working_directories: cwd.into_iter().collect(),
        config: None,
        store: StoreName::default(),
    };
    Session::new(&new, created)
}
