//! Detecting the format of a path, and preparing its session for an import.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use grove_core::{ImportSource, NewSession, Session, SessionId, SessionUri, StoreName, Timestamp, normalized_title};
use grove_fs::workspace::{Field, Manifest, Value};
use grove_history::{HistoryError, SessionLocation, detect_source, locate, reader_of};
use grove_host::history::{PreparedFile, PreparedHistory};
use grove_host::import::ImportRequest;
use grove_transcript::{Damage, DamageKind, TranscriptSource};
use grove_wire::ahp::time;
use grove_wire::x_grove::import::BeginParams;
use serde::Deserialize;
use serde_json::json;

use super::folder::{SidecarFile, list_sidecars};
use super::imported_log::{ImportedLogWriter, Omissions, WriteError, WrittenLog};
use super::log_export::{self, LogExportError};
use super::transcript::{LOG as LOG_SOURCE, Transcript};

const LOG: &str = "events.jsonl";
/// The number of bytes that are read to detect the format of a file.
const FIRST_LINE: u64 = 1 << 20;
/// The maximum size of a manifest, which usually has a few lines; a larger one is left out.
const LARGEST_MANIFEST: u64 = 1 << 20;

/// A session that is ready for an import.
#[derive(Debug)]
pub(crate) struct PreparedImport {
    pub(crate) about: BeginParams,
    /// The log, from its beginning.
    pub(crate) log: File,
    pub(crate) manifest: Option<String>,
    pub(crate) files: Vec<SidecarFile>,
    /// The number of turns, if they were counted.
    pub(crate) turns: Option<usize>,
    /// Missing and damaged parts, for the user.
    pub(crate) warnings: Vec<String>,
}

impl PreparedImport {
    /// The same for the host in this process. A file that cannot be opened is left out.
    pub(crate) fn into_history(self) -> PreparedHistory {
        let Self { about, log, manifest, files, turns: _, mut warnings } = self;
        let BeginParams { id, preferred_provider, title, working_directory, .. } = about;
        let BeginParams { created_at, modified_at, imported_from, .. } = about;
        let request = ImportRequest {
            id: id.map(Into::into),
            preferred_agent: preferred_provider.map(Into::into),
            title,
            working_directory,
            created_at: created_at.map(Timestamp),
            modified_at: modified_at.map(Timestamp),
            imported_from,
            ..ImportRequest::default()
        };
        let mut all = vec![PreparedFile { name: LOG.to_owned(), content: Box::new(log) }];
        if let Some(manifest) = manifest {
            let content = Box::new(io::Cursor::new(manifest.into_bytes()));
            all.push(PreparedFile { name: "workspace.yaml".to_owned(), content });
        }
        for file in files {
            match File::open(&file.path) {
                Ok(opened) => all.push(PreparedFile { name: file.name, content: Box::new(opened) }),
                Err(error) => warnings.push(format!("{} is left out: {error}", file.name)),
            }
        }
        PreparedHistory { request, files: all, warnings }
    }
}

/// An error of preparing an import.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrepareImportError {
    #[error("{}: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
    #[error(
        "{} is no session: name a session's folder of the Copilot CLI or of Grove (with {LOG} in it), a session's file of another tool, \
         or a session by its tool and id (opencode:ses_…)",
        .0.display()
    )]
    NotASession(PathBuf),
    #[error("{} contains nothing readable", .0.display())]
    Empty(PathBuf),
    #[error(transparent)]
    History(#[from] HistoryError),
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// The id of the imported session.
#[derive(Clone, Debug)]
pub(crate) enum ImportId {
    /// The session's own id, if it is valid here.
    Own,
    New(String),
}

/// The session at a path.
#[derive(Debug, PartialEq)]
pub(crate) enum PathSession {
    /// A session of another tool.
    Foreign(Box<SessionLocation>),
    /// A log in Grove's format, which some other programs share.
    Log(PathBuf),
}

/// Makes a session of a path. Its own files are not changed.
pub(crate) fn prepare_import(path: &Path, id: &ImportId) -> Result<PreparedImport, PrepareImportError> {
    match find(path)? {
        PathSession::Foreign(location) if location.source == TranscriptSource::CopilotCli => {
            of_copilot_cli(&location, id)
        }
        PathSession::Foreign(location) => of_foreign(*location, id),
        PathSession::Log(log) => of_log(&log, id),
    }
}

/// Prepares a session that another tool keeps.
pub(crate) fn prepare_located_import(
    location: SessionLocation,
    id: &ImportId,
) -> Result<PreparedImport, PrepareImportError> {
    match location.source {
        // Their own files have the branches and the files beside the log.
        TranscriptSource::CopilotCli | TranscriptSource::Pi => prepare_import(&location.path, id),
        TranscriptSource::VsCode
        | TranscriptSource::Claude
        | TranscriptSource::Codex
        | TranscriptSource::Gemini
        | TranscriptSource::OpenCode => of_foreign(location, id),
    }
}

/// Detects the session at a path.
pub(super) fn find(path: &Path) -> Result<PathSession, PrepareImportError> {
    let io = |error| PrepareImportError::Io { path: path.to_owned(), error };
    let is_folder = fs::metadata(path).map_err(io)?.is_dir();
    let log = if is_folder { path.join(LOG) } else { path.to_owned() };
    if !log.is_file() {
        return Err(PrepareImportError::NotASession(path.to_owned()));
    }
    if let Some(source) = detect_source(&log)? {
        return Ok(PathSession::Foreign(Box::new(locate(source, &log)?)));
    }
    let mut first = Vec::new();
    let file = File::open(&log).map_err(io)?;
    let mut lines = BufReader::new(file.take(FIRST_LINE));
    // After a power failure a file may begin with empty lines.
    while first.trim_ascii().is_empty() {
        first.clear();
        if lines.read_until(b'\n', &mut first).map_err(io)? == 0 {
            return Err(PrepareImportError::Empty(log));
        }
    }
    #[derive(Deserialize)]
    struct FirstLine {
        #[serde(rename = "type")]
        kind: String,
    }
    // Some editors write a byte order mark.
    let first = first.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&first);
    let kind = serde_json::from_slice::<FirstLine>(first).ok().map(|line| line.kind);
    let is_copilot_cli = match kind.as_deref() {
        Some("session" | "title") => return Ok(PathSession::Log(log)),
        Some(kind) => kind.contains('.') || kind == "abort",
        // If the first line is damaged, the rest of a Copilot CLI folder is still read.
        None => is_folder && path.join("workspace.yaml").is_file(),
    };
    if !is_copilot_cli {
        return Err(PrepareImportError::NotASession(path.to_owned()));
    }
    Ok(PathSession::Foreign(Box::new(locate(TranscriptSource::CopilotCli, &log)?)))
}

fn of_copilot_cli(location: &SessionLocation, id: &ImportId) -> Result<PreparedImport, PrepareImportError> {
    let log = location.path.as_path();
    let manifest = log.parent().and_then(|folder| manifest_of(folder).ok().flatten());
    // The name of a folder may differ from its session's.
    let own = manifest.as_ref().and_then(|manifest| manifest.text(Field::Id).ok().flatten());
    let id = chosen(id, own.filter(|own| !own.is_empty()).unwrap_or(&location.id));
    let session = header_of(&id, manifest.as_ref(), location.preview.modified_at.unwrap_or_default());
    let out = temporary(log)?;
    let mut foreign = ImportedLogWriter::begin(BufWriter::new(&out), &session)?;
    let mut failed = None;
    let reading = reader_of(TranscriptSource::CopilotCli).read(location, None, &mut |turn| {
        if failed.is_none() {
            failed = foreign.turn(turn).err();
        }
    })?;
    if let Some(error) = failed {
        return Err(error.into());
    }
    let WrittenLog { turns, omissions } = foreign.finish()?;
    let read = reading.session;
    if turns == 0 && read.damage.marks.contains(&DamageKind::Empty) {
        return Err(PrepareImportError::Empty(log.to_owned()));
    }
    let mut warnings = damage_words(&read.damage, LOG);
    warnings.extend(omission_words(omissions));
    let folder = read.workspace.folders.first().and_then(|place| place.path.clone());
    let about = BeginParams {
        id: Some(id.to_string()),
        preferred_provider: Some(agent_of(TranscriptSource::CopilotCli)),
        title: read.title.as_deref().and_then(normalized_title),
        working_directory: folder.and_then(|folder| working_directory(&folder)),
        created_at: read.created_at.map(|at| at.0),
        modified_at: read.modified_at.map(|at| at.0),
        imported_from: import_source(TranscriptSource::CopilotCli.name(), &read.source_id),
        ..BeginParams::default()
    };
    complete(about, out, log, Some(turns), warnings)
}

/// A session of another tool as a log: everything that its normal form holds, and its source.
fn of_foreign(location: SessionLocation, id: &ImportId) -> Result<PreparedImport, PrepareImportError> {
    let path = location.path.clone();
    let transcript = Transcript::of_located(&location)?;
    let read = transcript.session();
    if read.turns == 0 {
        return Err(PrepareImportError::Empty(path));
    }
    let id = chosen(id, &read.source_id);
    let out = temporary(&path)?;
    let origin = json!({"infoType": "import", "message": format!("imported from {}", transcript.source()),
        "source": transcript.source(), "sourceId": read.source_id, "path": path});
    let header = Session { id: id.clone(), ..transcript.header() };
    let written = log_export::write_foreign(&transcript, &header, Some(&origin), BufWriter::new(&out));
    let omissions = written.map_err(|error| match error {
        LogExportError::Buffer(error) => PrepareImportError::Io { path: path.clone(), error },
        LogExportError::Write(error) => error.into(),
    })?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut warnings = damage_words(&read.damage, &name);
    warnings.extend(omissions);
    let folder = read.workspace.folders.first().and_then(|place| place.path.clone());
    let about = BeginParams {
        id: Some(id.to_string()),
        preferred_provider: Some(agent_of(read.source)),
        title: read.title.as_deref().and_then(normalized_title),
        working_directory: folder.and_then(|folder| working_directory(&folder)),
        created_at: read.created_at.map(|at| at.0),
        modified_at: read.modified_at.map(|at| at.0),
        imported_from: import_source(transcript.source(), &read.source_id),
        ..BeginParams::default()
    };
    let mut log = out;
    log.seek(SeekFrom::Start(0)).map_err(|error| PrepareImportError::Io { path, error })?;
    let turns = usize::try_from(read.turns).ok();
    Ok(PreparedImport { about, log, manifest: None, files: Vec::new(), turns, warnings })
}

/// The agent that continues the sessions of a tool: the tool itself, by its name in the catalog of agents.
fn agent_of(source: TranscriptSource) -> String {
    let name = match source {
        TranscriptSource::VsCode | TranscriptSource::CopilotCli => "copilot",
        TranscriptSource::Claude => "claude",
        TranscriptSource::Codex => "codex",
        TranscriptSource::Pi => "omp",
        TranscriptSource::Gemini => "gemini",
        TranscriptSource::OpenCode => "opencode",
    };
    name.to_owned()
}

/// The session of another tool that is imported, where it has an id.
fn import_source(source: &str, id: &str) -> Option<ImportSource> {
    (!id.is_empty()).then(|| ImportSource { source: source.to_owned(), source_id: id.to_owned() })
}

fn of_log(log: &Path, id: &ImportId) -> Result<PreparedImport, PrepareImportError> {
    let io = |error| PrepareImportError::Io { path: log.to_owned(), error };
    let modified = fs::metadata(log).and_then(|found| found.modified()).map_err(io)?;
    let modified = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let header = header_in(log).map_err(io)?;
    // The name of a log is in its header; a log in its own folder has the folder's name.
    let named = match log.file_name().is_some_and(|name| name == LOG) {
        true => log.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned()),
        false => header.id,
    };
    let about = BeginParams {
        id: Some(chosen(id, named.as_deref().unwrap_or_default()).to_string()),
        working_directory: header.cwd.as_deref().and_then(working_directory),
        created_at: header.timestamp.and_then(|text| time::parse(&text).ok()).map(|at| at.0),
        modified_at: u64::try_from(modified.as_millis()).ok(),
        imported_from: named.as_deref().and_then(|named| import_source(LOG_SOURCE, named)),
        ..BeginParams::default()
    };
    complete(about, File::open(log).map_err(io)?, log, None, Vec::new())
}

/// Adds the files beside the log, if it has its own folder.
fn complete(
    mut about: BeginParams,
    mut out: File,
    log: &Path,
    turns: Option<usize>,
    mut warnings: Vec<String>,
) -> Result<PreparedImport, PrepareImportError> {
    out.seek(SeekFrom::Start(0)).map_err(|error| PrepareImportError::Io { path: log.to_owned(), error })?;
    let folder = log.parent().filter(|_| log.file_name().is_some_and(|name| name == LOG));
    let (mut manifest, mut files) = (None, Vec::new());
    if let Some(folder) = folder {
        let found = list_sidecars(folder);
        warnings.extend(found.warnings);
        files = found.files;
        match manifest_of(folder) {
            Ok(found) => manifest = found,
            Err(why) => warnings.push(format!("workspace.yaml is left out: {why}")),
        }
    }
    if let (Some(manifest), Some(id)) = (&mut manifest, &about.id) {
        manifest.set(Field::Id, Value::Text(id));
        let text = |field| manifest.text(field).ok().flatten().map(str::to_owned);
        about.title = about.title.or_else(|| text(Field::Name));
        about.working_directory = about.working_directory.or_else(|| working_directory(&text(Field::Cwd)?));
    }
    Ok(PreparedImport {
        about,
        log: out,
        manifest: manifest.map(|manifest| manifest.to_string()),
        files,
        turns,
        warnings,
    })
}

fn manifest_of(folder: &Path) -> Result<Option<Manifest>, String> {
    let path = folder.join("workspace.yaml");
    match fs::symlink_metadata(&path) {
        Ok(found) if found.is_file() && found.len() <= LARGEST_MANIFEST => {
            let text = fs::read_to_string(&path).map_err(|error| error.to_string())?;
            Manifest::parse(&text).map(Some).map_err(|error| error.to_string())
        }
        Ok(found) if found.is_file() => Err("it is too large".to_owned()),
        Ok(_) => Err("it is not a file".to_owned()),
        Err(_) => Ok(None),
    }
}

/// The header of a log.
#[derive(Default, Deserialize)]
#[serde(default)]
struct HeaderLine {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    cwd: Option<String>,
    timestamp: Option<String>,
}

fn header_in(log: &Path) -> io::Result<HeaderLine> {
    let lines = BufReader::new(File::open(log)?.take(FIRST_LINE));
    // oh-my-pi writes a title before it.
    for line in lines.split(b'\n').take(4) {
        if let Ok(header) = serde_json::from_slice::<HeaderLine>(&line?)
            && header.kind == "session"
        {
            return Ok(header);
        }
    }
    Ok(HeaderLine::default())
}

/// The id for a session: its own, if it is valid here.
fn chosen(id: &ImportId, own: &str) -> SessionId {
    match id {
        ImportId::New(id) => SessionId::from(id.as_str()),
        ImportId::Own => {
            let fit = SessionUri::from(format!("x:/{own}")).id();
            // Invalid characters are replaced.
            fit.unwrap_or_else(|| {
                let fit = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
                let id: String = own.chars().take(100).map(fit).collect();
                SessionId::from(if id.is_empty() { "session".to_owned() } else { id })
            })
        }
    }
}

/// The session of a log's header. The host decides which agent continues it.
fn header_of(id: &SessionId, manifest: Option<&Manifest>, fallback: Timestamp) -> Session {
    let created = manifest.and_then(|manifest| manifest.time(Field::CreatedAt).ok().flatten());
    let created = created.and_then(|at| u64::try_from(at.as_millisecond()).ok()).map(Timestamp);
    let cwd = manifest.and_then(|manifest| manifest.text(Field::Cwd).ok().flatten());
    let new = NewSession {
        id: id.clone(),
        uri: SessionUri::from(format!("copilot:/{id}")),
        agent: "copilot".into(),
        model: None,
        working_directories: cwd.map(str::to_owned).into_iter().collect(),
        config: None,
        store: StoreName::default(),
    };
    Session::new(&new, created.unwrap_or(fallback))
}

/// The URI of a folder, if a session can work in it.
fn working_directory(folder: &str) -> Option<String> {
    grove_work::local_path(folder).ok().map(|path| grove_work::file_uri(&path))
}

/// Descriptions of the damage of a session's file, for the user.
fn damage_words(damage: &Damage, name: &str) -> Vec<String> {
    let mut words: Vec<String> = damage
        .places
        .iter()
        .map(|place| {
            let line = place.line.map_or_else(|| format!("byte {}", place.offset), |line| format!("line {line}"));
            format!("{name}, {line}: {}; it is left out", place.what)
        })
        .collect();
    let untold = damage.count.saturating_sub(damage.places.len() as u64);
    if untold > 0 {
        words.push(format!("{name}: {untold} more damaged places"));
    }
    let marks = damage.marks.iter().filter_map(|mark| match mark {
        DamageKind::TornTail if damage.places.is_empty() => Some(format!("{name} ends unexpectedly")),
        DamageKind::MissingStart => Some(format!("{name} lacks its beginning: the rest is imported")),
        DamageKind::NewerVersion { version } => {
            Some(format!("{name} is of version {version}, which is newer than this program supports"))
        }
        DamageKind::TooLarge if damage.places.is_empty() => Some(format!("{name}: an oversized part is left out")),
        DamageKind::TornTail
        | DamageKind::Damaged
        | DamageKind::FromOlderFile
        | DamageKind::Empty
        | DamageKind::TooLarge => None,
    });
    words.extend(marks);
    words
}

pub(super) fn omission_words(omissions: Omissions) -> Vec<String> {
    let Omissions { chats, events } = omissions;
    let mut words = Vec::new();
    if chats > 0 {
        words.push(format!("the conversations of {chats} subagents are left out; their results are included"));
    }
    if events > 0 {
        words.push(format!("{events} unknown events are too large, and left out"));
    }
    words
}

/// A file without a name, which goes with the process.
fn temporary(log: &Path) -> Result<File, PrepareImportError> {
    tempfile::tempfile().map_err(|error| PrepareImportError::Io { path: log.to_owned(), error })
}
