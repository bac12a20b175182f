//! The storage of a session behind one small filesystem interface.
//!
//! # What this crate owns
//!
//! - [`SessionFs`]: the interface of a store. Everything that is stored of a session (a log, its side files) goes
//!   through this trait, so that a local folder, memory and a client's own storage are the same to the code above.
//! - [`LocalFs`]: a folder on this machine. Files are created with mode 0600 and folders with 0700, and a file is
//!   replaced atomically.
//! - [`MemoryFs`]: the same in memory, for tests and for sessions that are not kept. A clone is another handle on the
//!   same files.
//! - [`RpcFs`]: a session at a storage client at the other end of a connection ([`rpc`]), over a small trait for calls;
//!   [`ClientStore`]: all sessions of a storage client.
//! - [`StorageClient`]: the client's side ([`storage_client`]), which serves any store to a host.
//! - [`Confined`]: a folder of a store in which others choose the names ([`names`]) and write files. Nothing leads out
//!   of it.
//! - [`Backend`]: the kinds of store. The host decides which store holds a session.
//! - [`FsError`]: the errors, each with its path and its code on the wire.
//!
//! These build on any store:
//!
//! - [`workspace`]: manifest, plan, checkpoints, files, research; and a database with the todo list, if the store is a
//!   folder on this machine or a storage client that has one.
//! - [`spill`] and [`temp_files`]: output that is too large to be shown goes to a temporary file, and a notice takes
//!   its place.
//! - [`copy`]: a session's state from one place to another, for forks and for moving a session to another store. It can
//!   be interrupted anywhere and run again; [`copy::compare`] tells whether two sessions are the same.
//!
//! # Paths
//!
//! A path is a name inside the store's root, its parts separated by `/`: `session-state/s1/events.jsonl`. The empty
//! path is the root itself. A path that could lead out of the root (absolute, with `.` or `..` as a part) or that no
//! file can have (with NUL, with an empty part, too long) is refused as [`FsError::BadPath`] before the store is asked.
//! [`SessionFs::location`] gives the spelling of a path on the store's machine, by its [`Conventions`].
//!
//! # What it never does
//!
//! Of the meaning of a log it only knows the place of a checkpoint's path ([`copy::ForkLogRewriter`]): the caller of a
//! copy supplies the hook that knows more. It holds no lock across an await except for those of [`Locks`], and never
//! writes outside its root and the folder for temporary files. A store does follow symbolic links in its root, since
//! the root is Grove's own folder. [`Confined`], for folders in which others write too, follows none, and neither does
//! a copy.
//!
//! # Example
//!
//! ```
//! use grove_fs::{BadName, Confined, FsError, MemoryFs, SessionFs};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let store = MemoryFs::default();
//! store.append_file("s1/events.jsonl", b"one\n").await?;
//! store.append_file("s1/events.jsonl", b"two\n").await?;
//! assert_eq!(store.read_range("s1/events.jsonl", 4, 100).await?, b"two\n");
//!
//! let missing = store.read_file("s1/session.json").await.unwrap_err();
//! assert_eq!(missing, FsError::NotFound { path: "s1/session.json".into() });
//!
//! let files = Confined::new(&store, "s1/files")?;
//! files.write_text("notes/x.md", "what an agent wrote").await?;
//! let out = files.read_file("../events.jsonl").await.unwrap_err();
//! assert_eq!(out, FsError::BadName { path: "../events.jsonl".into(), reason: BadName::Dots });
//! # Ok::<(), FsError>(()) }).unwrap();
//! ```

mod backend;
mod confined;
mod conventions;
pub mod copy;
mod error;
pub mod limits;
mod lines;
mod local;
mod locks;
mod memory;
pub mod names;
mod path;
pub mod rpc;
mod session_fs;
pub mod spill;
pub mod storage_client;
pub mod temp_files;
pub mod workspace;

pub use backend::{Backend, UnknownBackend};
pub use confined::Confined;
pub use conventions::Conventions;
pub use error::{BadPath, FsError};
pub use lines::{Chunks, FileLine, FileLines};
pub use local::LocalFs;
pub use locks::{LockGuard, Locks};
pub use memory::MemoryFs;
pub use names::{BadName, RelativeName};
pub use rpc::{ClientStore, RpcFs};
pub use session_fs::{DirEntry, FileKind, Removal, SessionFs, Stat};
pub use storage_client::StorageClient;

pub type Result<T> = std::result::Result<T, FsError>;
