//! Sessions that other tools left on this machine, read in one normal form.
//!
//! # What this crate owns
//!
//! - [`normal`]: the normal form. A [`ForeignSession`] is what a list shows of a session, a [`ForeignTurn`] what a
//!   person said and what came of it. What a reader does not understand is kept in it raw.
//! - [`Reader`]: what a reader does. [`find`](Reader::find) looks at folders, indexes and small files and opens no
//!   session; [`read`](Reader::read) gives a session's turns one by one. [`FileMark`] and [`Bookmark`] are for a catalog
//!   that reads only what is new.
//! - [`vscode`]: Copilot Chat in VS Code and the programs built from it; [`copilot_cli`]: the Copilot CLI; [`claude`]: Claude
//!   Code; [`codex`], [`gemini`], [`opencode`]; [`pi`]: pi and oh-my-pi. Each is a folder with a [`Reader`] and a function
//!   `locations`, and is listed in [`readers`] and [`locations`].
//! - [`source_of`]: whose session a file is that lies somewhere.
//! - [`export`]: sessions written for people (Markdown, HTML) and for programs (JSON, Copilot Chat).
//! - [`Follows`] and [`path`]: several tools keep trees. All turns are told, in the order of the file, and each
//!   says which one it goes on from.
//! - [`core_turn`]: the normal form as `grove-core`'s turns, which `grove-tree` writes as entries.
//! - [`catalog`]: what was found, remembered in a database that can be thrown away; a scan reads only what is new.
//! - [`Changes`]: the files that a session's edits changed, which the catalog gathers while it reads.
//! - [`newest`]: the newest turns, read by where an [`Ending`] says that they lie.
//! - [`Damage`]: what is wrong with a session. Torn and damaged files give what they hold.
//!
//! # What it never does
//!
//! It writes nothing into another tool's store and makes no file beside one: a database is copied before it is opened.
//! Nobody else opens other tools' files. It reads no clock and no environment: where stores lie is a function of
//! [`Platform`] and [`Environment`]. Memory follows one turn, one line or one replayed log, never a file; [`limits`] says
//! how much, and what happens past it. What a file says can be wrong in every way and is never fatal.
//!
//! # Example
//!
//! ```
//! use grove_history::{Located, Source, read_whole, reader_of};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("s1.jsonl");
//! std::fs::write(&path, r#"{"kind":0,"v":{"version":3,"sessionId":"s1","requests":[]}}
//! {"kind":2,"k":["requests"],"v":[{"requestId":"r1","message":{"text":"Hi"},"response":[],"modelId":"copilot/gpt-4"}]}
//! {"kind":2,"k":["requests",0,"response"],"v":[{"value":"Hello!"}]}
//! {"kind":1,"k":["requests",0,"modelState"],"v":{"value":1}}
//! {"kind":1,"k":["customT"#)?;
//!
//! let located = Located::of_file(Source::VsCode, &path)?;
//! let (session, turns) = read_whole(reader_of(located.source), &located)?;
//! assert_eq!((session.title.as_deref(), session.turns), (Some("Hi"), 1));
//! assert_eq!(turns[0].text(), "Hello!");
//! assert_eq!(session.models, ["gpt-4"]);
//! assert!(session.damage.is_recovered(), "the last line is torn");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod blocks;
pub mod catalog;
mod chain;
mod changes;
pub mod claude;
pub mod codex;
pub mod copilot_cli;
mod damage;
mod database_copy;
mod draft;
mod ending;
mod error;
pub mod export;
mod file_edit;
mod files;
mod fingerprint;
pub mod gemini;
mod growing;
mod json;
pub mod limits;
mod lines;
mod newest;
pub mod normal;
pub mod opencode;
pub mod pi;
mod platform;
mod reader;
mod recognized;
mod records;
mod subagents;
mod to_core;
mod tools;
pub mod vscode;

pub use blocks::blocks;
pub use changes::{Changes, FileChange, MAX_CHANGES, Operation};
pub use damage::{BadPlace, Damage, Mark};
pub use ending::{Amount, Ending};
pub use error::HistoryError;
pub use newest::{Newest, newest};
pub use normal::*;
pub use platform::{Environment, Platform};
pub use reader::{Bookmark, FileMark, Finding, Headline, Hints, Located, Lost, Reader, Reading, Root, read_whole};
pub use recognized::source_of;
pub use to_core::{ChildChat, CoreTurn, HISTORY, core_turn};
pub use tools::{kind_of, model_name};

/// Every reader.
pub fn readers() -> [&'static dyn Reader; 7] {
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
pub fn reader_of(source: Source) -> &'static dyn Reader {
    match source {
        Source::VsCode => &vscode::VsCode,
        Source::CopilotCli => &copilot_cli::CopilotCli,
        Source::Claude => &claude::Claude,
        Source::Codex => &codex::Codex,
        Source::Pi => &pi::Pi,
        Source::Gemini => &gemini::Gemini,
        Source::OpenCode => &opencode::OpenCode,
    }
}

/// A session by its file, with the workspace and the title that its tool's store has for it.
pub fn locate(source: Source, path: &std::path::Path) -> Result<Located, HistoryError> {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    reader_of(source).locate(&path)
}

/// Every folder of another home in which any tool may have left sessions. The home may be copied from a machine of any
/// platform, so each platform's layout is looked for, spelled as this machine spells paths.
pub fn locations_below(home: &std::path::Path) -> Vec<Root> {
    let mut roots: Vec<Root> = Vec::new();
    for platform in [Platform::current(), Platform::Linux, Platform::MacOs, Platform::Windows] {
        // Behind an empty home everything but what lies outside of it begins with a separator.
        for root in locations(platform, &Environment::default()) {
            let folder = root.folder.to_string_lossy().into_owned();
            let folder = folder.split(['/', '\\']).filter(|name| !name.is_empty());
            let root = Root { folder: home.join(folder.collect::<std::path::PathBuf>()), ..root };
            if !roots.contains(&root) {
                roots.push(root);
            }
        }
    }
    roots
}

/// Every folder in which any tool may have left sessions.
pub fn locations(platform: Platform, environment: &Environment) -> Vec<Root> {
    let mut roots = vscode::locations(platform, environment);
    roots.extend(copilot_cli::locations(platform, environment));
    roots.extend(claude::locations(platform, environment));
    roots.extend(codex::locations(platform, environment));
    roots.extend(pi::locations(platform, environment));
    roots.extend(gemini::locations(platform, environment));
    roots.extend(opencode::locations(platform, environment));
    roots
}
