//! A session of any origin as a transcript, ready to be shown or exported.

use std::io;

use grove_core::{NewSession, Session, SessionId, SessionUri, StoreName};
use grove_history::{BufferedSession, HistoryError, SessionLocation, read_buffered};
use grove_transcript::export::Heading;
use grove_transcript::{TranscriptSession, TranscriptTurn, TurnBuffer, TurnParent, transcript_turn};
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
    /// The turns of all branches, in the order of their file.
    turns: TurnBuffer,
    /// The numbers of the turns that lead to the newest one. The others were abandoned.
    path: Vec<usize>,
    /// The log, if the session is one. Its turns are those of one branch.
    log: Option<Log>,
}

impl Transcript {
    /// A session of another tool, read once.
    pub(crate) fn of_located(location: &SessionLocation) -> Result<Self, HistoryError> {
        let BufferedSession { session, turns, path } = read_buffered(location)?;
        Ok(Self { source: location.source.name(), session, turns, path, log: None })
    }

    /// A session that is a log; `session` has the facts that the log does not.
    pub(crate) fn of_log(source: &'static str, session: TranscriptSession, log: Log) -> io::Result<Self> {
        let mut transcript = Self { source, session, turns: TurnBuffer::default(), path: Vec::new(), log: None };
        let turns = turns::turns(&log);
        for turn in &turns {
            transcript.add(transcript_turn(turn))?;
        }
        if transcript.session.created_at.is_none() {
            transcript.session.created_at = turns.first().map(|turn| turn.started_at);
        }
        Ok(Self { log: Some(log), ..transcript })
    }

    /// Adds the running turn.
    pub(crate) fn with_running(mut self, turn: TranscriptTurn) -> io::Result<Self> {
        self.add(turn)?;
        Ok(self)
    }

    fn add(&mut self, turn: TranscriptTurn) -> io::Result<()> {
        self.session.count(&turn);
        self.path.push(self.turns.len());
        self.turns.push(turn)
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
        self.log.as_ref()
    }

    /// The number of turns on abandoned branches of another tool's session.
    pub(crate) fn abandoned(&self) -> u32 {
        u32::try_from(self.turns.len() - self.path.len()).unwrap_or(u32::MAX)
    }

    /// Passes each turn of the current branch to `take`, in order, until it fails.
    pub(crate) fn each<E: From<io::Error>>(
        &self,
        take: &mut dyn FnMut(TranscriptTurn) -> Result<(), E>,
    ) -> Result<(), E> {
        for number in &self.path {
            let turn = self.turns.get(*number)?;
            // It follows the turn that was passed before it.
            let follows = if self.log.is_some() { turn.follows } else { TurnParent::Previous };
            take(TranscriptTurn { follows, ..turn })?;
        }
        Ok(())
    }

    /// The same for the turns of all branches; a log has only one here.
    pub(crate) fn each_of_all<E: From<io::Error>>(
        &self,
        take: &mut dyn FnMut(TranscriptTurn) -> Result<(), E>,
    ) -> Result<(), E> {
        (0..self.turns.len()).try_for_each(|number| take(self.turns.get(number)?))
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
pub(crate) fn header(id: &str, agent: &str, cwd: Option<String>, created: grove_core::Timestamp) -> Session {
    let new = NewSession {
        id: SessionId::from(id),
        uri: SessionUri::from(format!("{agent}:/{id}")),
        agent: agent.into(),
        model: None,
        working_directories: cwd.into_iter().collect(),
        config: None,
        store: StoreName::default(),
    };
    Session::new(&new, created)
}
