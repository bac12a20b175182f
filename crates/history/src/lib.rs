//! Readers of other tools' sessions on this machine, in the normal form of [`grove_transcript`].
//!
//! # Contents
//!
//! - [`HistoryReader`]: the interface of readers. [`HistoryReader::find`] reads folders, indexes and small files and
//!   opens no session; [`HistoryReader::read`] returns a session's turns one by one. [`FileMark`] and [`Bookmark`] are
//!   for a catalog that reads only what is new.
//! - [`vscode`]: Copilot Chat in VS Code and the programs built from it; [`copilot_cli`]: the Copilot CLI; [`claude`]:
//!   Claude Code; [`codex`], [`gemini`], [`opencode`]; [`pi`]: pi and oh-my-pi. Each is a folder with a
//!   [`HistoryReader`] and a function `store_roots`, and is listed in [`readers`] and [`store_roots`].
//! - [`detect_source`]: detects the tool of a session file outside of any store.
//! - [`catalog`]: a disposable database of the found sessions; a scan reads only what is new.
//! - [`SessionChanges`]: the files that a session's edits changed, which the catalog collects while it reads.
//! - [`newest`]: reads the newest turns at the positions of a [`TailIndex`]. [`find_turn`]: reads up to one turn.
//!
//! # Formats
//!
//! Append-only logs are read on from a [`Bookmark`]. A format in which a later byte can change an earlier turn has no
//! bookmarks: it is replayed, within a limit. VS Code's own list of sessions is a hint, the files decide. Large files
//! are read one at a time, since some formats are held in memory as a whole.
//!
//! # Limits
//!
//! This crate writes nothing into another tool's store and creates no file beside one: a database is copied before it
//! is opened. No other crate opens other tools' files. It reads no clock and no environment: stores' paths are a
//! function of [`Platform`] and [`StoreEnvironment`]. Memory depends on one turn, one line or one replayed log, never
//! on a file; [`limits`] has the numbers and what happens beyond them. A file's contents can be wrong in every way and
//! are never fatal.
//!
//! # Example
//!
//! ```
//! use grove_history::{SessionLocation, read_with_turns, reader_of};
//! use grove_transcript::TranscriptSource;
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("s1.jsonl");
//! std::fs::write(&path, r#"{"kind":0,"v":{"version":3,"sessionId":"s1","requests":[]}}
//! {"kind":2,"k":["requests"],"v":[{"requestId":"r1","message":{"text":"Hi"},"response":[],"modelId":"copilot/gpt-4"}]}
//! {"kind":2,"k":["requests",0,"response"],"v":[{"value":"Hello!"}]}
//! {"kind":1,"k":["requests",0,"modelState"],"v":{"value":1}}
//! {"kind":1,"k":["customT"#)?;
//!
//! let location = SessionLocation::of_file(TranscriptSource::VsCode, &path)?;
//! let (session, turns) = read_with_turns(reader_of(location.source), &location)?;
//! assert_eq!((session.title.as_deref(), session.turns), (Some("Hi"), 1));
//! assert_eq!(turns[0].text(), "Hello!");
//! assert_eq!(session.models, ["gpt-4"]);
//! assert!(session.damage.is_recovered(), "the last line is torn");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod append_log;
mod blocks;
pub mod catalog;
mod changes;
pub mod claude;
pub mod codex;
pub mod copilot_cli;
mod database_copy;
mod detect;
mod error;
mod file_edit;
mod files;
mod fingerprint;
pub mod gemini;
mod json;
mod json_lines;
pub mod limits;
mod line_reader;
mod newest;
pub mod opencode;
mod parent_index;
pub mod pi;
mod platform;
mod reader;
mod subagents;
mod tail_index;
mod turn_builder;
mod turn_lookup;
pub mod vscode;

pub use blocks::blocks;
pub use changes::{ChangeOperation, FileChangeSummary, MAX_CHANGES, SessionChanges};
pub use detect::detect_source;
pub use error::HistoryError;
pub use newest::{NewestTurns, newest};
pub use platform::{Platform, StoreEnvironment};
pub use reader::{
    Bookmark, BufferedSession, FileMark, Hints, HistoryReader, MissingSession, ReadEnd, ReadOutcome, SessionLocation,
    SessionPreview, StoreListing, StoreRoot, TurnSink, read_buffered, read_with_turns,
};
pub use tail_index::{TailIndex, TailLimit};
pub use turn_lookup::{Branches, TurnLookup, find_turn};

use grove_transcript::TranscriptSource;

/// Every reader.
pub fn readers() -> [&'static dyn HistoryReader; 7] {
    [
        &vscode::VsCode,
        &copilot_cli::CopilotCli,
        &claude::Claude,
        &codex::Codex,
        &pi::Pi,
        &gemini::Gemini,
        &opencode::OpenCode,
    ]
}

/// The reader of a tool's sessions.
pub fn reader_of(source: TranscriptSource) -> &'static dyn HistoryReader {
    match source {
        TranscriptSource::VsCode => &vscode::VsCode,
        TranscriptSource::CopilotCli => &copilot_cli::CopilotCli,
        TranscriptSource::Claude => &claude::Claude,
        TranscriptSource::Codex => &codex::Codex,
        TranscriptSource::Pi => &pi::Pi,
        TranscriptSource::Gemini => &gemini::Gemini,
        TranscriptSource::OpenCode => &opencode::OpenCode,
    }
}

/// A session by its file, with the workspace and the title from its tool's store.
pub fn locate(source: TranscriptSource, path: &std::path::Path) -> Result<SessionLocation, HistoryError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    reader_of(source).locate(&path)
}

/// Every possible folder of sessions below another home. The home may be copied from a machine of any platform, so each
/// platform's layout is searched, in this machine's spelling of paths.
pub fn store_roots_below(home: &std::path::Path) -> Vec<StoreRoot> {
    let mut roots: Vec<StoreRoot> = Vec::new();
    for platform in [Platform::current(), Platform::Linux, Platform::MacOs, Platform::Windows] {
        // With an empty home, everything below it begins with a separator.
        for root in store_roots(platform, &StoreEnvironment::default()) {
            let folder = root.folder.to_string_lossy().into_owned();
            let folder = folder.split(['/', '\\']).filter(|name| !name.is_empty());
            let root = StoreRoot { folder: home.join(folder.collect::<std::path::PathBuf>()), ..root };
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
    }
    roots
}

/// Every possible folder of any tool's sessions.
pub fn store_roots(platform: Platform, environment: &StoreEnvironment) -> Vec<StoreRoot> {
    let mut roots = vscode::store_roots(platform, environment);
    roots.extend(copilot_cli::store_roots(platform, environment));
    roots.extend(claude::store_roots(platform, environment));
    roots.extend(codex::store_roots(platform, environment));
    roots.extend(pi::store_roots(platform, environment));
    roots.extend(gemini::store_roots(platform, environment));
    roots.extend(opencode::store_roots(platform, environment));
    roots
}
