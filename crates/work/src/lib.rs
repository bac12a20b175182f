//! The working directory: access to its files, watching them, and running programs in it.
//!
//! # What this crate owns
//!
//! - [`Policy`]: the paths that may be seen. It consists of [`Roots`] (the configuration) and the sessions' working
//!   directories, and gives the real path, links followed, if that is inside a root and not private.
//! - [`list`], [`read`], [`resolve`]: access to a folder, a file, a path, each with its limit.
//! - [`Watcher`], [`Watch`]: notices of changes, of a file, a folder or everything below it, within the policy.
//! - [`local_path`], [`file_uri`]: from `file:` URIs to paths and back.
//! - [`ChangePolicy`]: changes of files within a policy: inside working directories, on granted paths alone.
//!   [`protection`]: the files that decide what runs.
//! - [`FileError`]: the reason of a refusal. It never reveals whether a path outside the roots exists.
//!
//! - [`Process`]: a program in its own process group, which is ended reliably, with everything that it started.
//!   [`adopt_orphans`]: descendants stay below this process. [`ancestry`]: the processes above one.
//! - [`Terminals`], [`Terminal`]: commands on pseudo-terminals, with the newest part of their output.
//!
//! - [`GitRepository`]: the git repository of a folder, with its branch, remote and pull request.
//! - [`GitConfig`]: a git configuration.
//!
//! # What it never does
//!
//! It knows no protocol and no session, and starts no task: the caller gets the futures to run. Only a [`ChangePolicy`]
//! writes files.
//!
//! # Example
//!
//! ```
//! use grove_work::{FolderEntry, FileError, FileKind, Policy, Roots, list, read};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let project = tempfile::tempdir().unwrap();
//! std::fs::write(project.path().join("notes.md"), "# Notes").unwrap();
//!
//! let policy = Policy::new(Roots::default(), vec![project.path().to_owned()]);
//! let notes = FolderEntry { name: "notes.md".into(), kind: FileKind::File };
//! assert_eq!(list(&policy, project.path(), 100).await.unwrap(), [notes]);
//! let content = read(&policy, &project.path().join("notes.md"), 1024).await.unwrap();
//! assert_eq!(content.content_type, Some("text/markdown"));
//! assert_eq!(content.into_text().unwrap(), "# Notes");
//!
//! let outside = read(&policy, "/etc/passwd".as_ref(), 1024).await;
//! assert!(matches!(outside, Err(FileError::Outside { .. })));
//! # });
//! ```

mod browse;
mod change;
mod content_type;
mod error;
pub mod limits;
mod policy;
mod process;
mod protected;
mod repository;
mod terminal;
mod uri;
mod watch;

pub use browse::{FileContent, FileKind, FileMetadata, FolderEntry, SymlinkMode, list, read, resolve};
pub use change::{ChangePolicy, FileWrite, WriteGrants, WriteMode};
pub use error::FileError;
pub use policy::{FileAccess, Policy, Roots};
pub use process::{
    Ancestry, Exit, ProcFolder, Process, ProcessError, ProcessKey, ProcessStat, ProcessTable, Program, adopt_orphans,
    ancestry, descendants, inherit_nothing, inherited_environment, reap_orphans,
};
pub use protected::protection;
pub use repository::{GitConfig, GitRepository, pull_request_address, remote_name};
pub use terminal::{
    Terminal, TerminalDriver, TerminalError, TerminalLimits, TerminalOutput, TerminalRequest, TerminalSize, Terminals,
};
pub use uri::{MAX_PATH_BYTES, file_uri, local_path};
pub use watch::{
    PathChange, PathChangeKind, Watch, WatchError, WatchEvent, WatchLimits, WatchReader, WatchRequest, Watcher,
    can_watch,
};
