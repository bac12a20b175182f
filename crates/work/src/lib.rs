//! The working directory: what may be seen of the file system, looking at it, watching it, and running programs in it.
//!
//! # What this crate owns
//!
//! - [`Policy`]: which paths may be seen. It is made of [`Roots`] (what is configured) and the sessions' working
//!   directories, and gives the real path, links followed, where that lies inside a root and is not private.
//! - [`list`], [`read`], [`resolve`]: looking at a folder, a file, a path, each with its bound.
//! - [`Watcher`], [`Watch`]: being told what changes, in a file, a folder or everything below it, within the policy.
//! - [`local_path`], [`file_uri`]: from `file:` URIs to paths and back.
//! - [`FileError`]: why something is not shown. Of what lies outside the roots it never tells whether it exists.
//!
//! - [`Process`]: a program in a process group of its own, which is ended for sure, with all that it started.
//! - [`Terminals`], [`Terminal`]: commands on pseudo-terminals, with the newest of their output.
//!
//! - [`GitRepository`]: which git repository a folder belongs to, and what its files say of branch, remote and pull request.
//! - [`GitConfig`]: what a configuration of git's says.
//!
//! # What it never does
//!
//! It knows no protocol and no session, writes no file, and starts no task: what has to run is given to the caller.
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
mod content_type;
mod error;
mod policy;
mod process;
mod repository;
mod terminal;
mod uri;
mod watch;

pub use browse::{FileContent, FileKind, FileMetadata, FolderEntry, SymlinkMode, list, read, resolve};
pub use error::FileError;
pub use policy::{FileAccess, Policy, Roots};
pub use process::{Exit, Process, ProcessError, Program, inherit_nothing, inherited_environment};
pub use repository::{GitConfig, GitRepository, pull_request_address, remote_name};
pub use terminal::{
    Terminal, TerminalDriver, TerminalError, TerminalLimits, TerminalOutput, TerminalRequest, TerminalSize, Terminals,
};
pub use uri::{MAX_PATH_BYTES, file_uri, local_path};
pub use watch::{
    PathChange, PathChangeKind, Watch, WatchError, WatchEvent, WatchLimits, WatchReader, WatchRequest, Watcher,
    can_watch,
};
