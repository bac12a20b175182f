//! A session's log: an append-only tree of entries, in the version-3 format of pi and oh-my-pi.
//!
//! A log is a file of lines. The first is the header, each further one an entry with an `id` and a `parentId`; the
//! *leaf* is the parent of the next entry, and the path from the root to it is the *branch*. `docs/format.md` describes
//! the format and Grove's additions.
//!
//! # Contents
//!
//! - [`open`]: opens a log from a file's bytes, as [`Log`]: its [`LogIndex`], its lines, the [`Context`] of a model.
//! - [`Indexer`] and [`LogIndex`]: the position and the parent of each entry, found in one pass over chunks of any
//!   size. No body is kept, so that memory depends on the number of entries and not on their size. [`LogIndex::append`]
//!   adds a line that is written to the log, if it fits there.
//! - [`Damage`]: problems in a log. Damage is data and never an error: everything readable is read.
//! - [`migrate`](migrate::migrate): versions 1 and 2 to version 3. [`repair`](repair::repair): a copy without damage.
//!   [`restoration`]: a damaged log, completed from elsewhere.
//! - [`rows`](rows()): the tree as flat rows, with filters, search and pages.
//! - [`tree_edit`]: leaf moves, labels and compactions as plans, made of the lines in [`entries`]. [`navigate`]: the
//!   abandoned branch and the new leaf of a move. [`branch_log`](branch_log()) and [`fork_log`]: new logs from existing
//!   ones.
//! - [`Context`]: a model's context at an entry, by the rules of pi, of oh-my-pi, or of Grove. [`conversation`]: the
//!   same for any agent, and as a transcript. [`compaction`]: plans for shortening it.
//! - [`settings`]: model, thinking level and mode along a branch.
//! - [`LogSource`]: the lines behind an index. A log on a disk is read by ranges.
//! - [`turns`]: converts `grove-core`'s turns to entries and back.
//! - [`side_index`] and [`store`]: an index kept beside the log, and the readers on a
//!   [`SessionFs`](grove_fs::SessionFs).
//!
//! # Limits
//!
//! No line is decoded without need: lines are bytes, unknown types and fields survive byte for byte, and a lone
//! surrogate escape is legal. The crate never recurses over a tree, reads no clock and makes no ids. Outside [`store`]
//! it does no I/O, and nothing here changes a log.
//!
//! # Example
//!
//! ```
//! use grove_tree::{DamageKind, Rules, open};
//!
//! let file = br#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/"}
//! {"type":"message","id":"a","parentId":null,"timestamp":"2026-01-02","message":{"role":"user","content":"Hi"}}
//! {"type":"message","id":"b","parentId":"a","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assi"#;
//! let log = open(file.to_vec(), &mut || unreachable!("only version 1 lacks ids")).unwrap();
//!
//! let leaf = log.index().leaf().unwrap();
//! assert_eq!(log.index().id(leaf), "a");
//! assert_eq!(log.context(Rules::Grove, Some(leaf)).messages[0].json.get(), r#"{"role":"user","content":"Hi"}"#);
//! let damage: Vec<_> = log.index().damage().iter().map(|damage| (damage.line, damage.kind)).collect();
//! assert_eq!(damage, [(3, DamageKind::TornTail)]);
//! ```

mod append;
mod branch_log;
mod children;
pub mod compaction;
mod context;
pub mod conversation;
mod damage;
pub mod entries;
mod error;
mod fields;
mod header;
mod ids;
mod index;
mod indexer;
mod kind;
pub mod limits;
mod links;
mod log;
pub mod migrate;
pub mod navigate;
pub mod object;
mod preview;
pub mod repair;
pub mod restoration;
mod role;
mod rows;
pub mod scan;
pub mod settings;
pub mod side_index;
mod source;
pub mod store;
mod time;
pub mod tree_edit;
pub mod turns;

pub use append::AppendError;
pub use branch_log::{
    LineChange, LogChunk, NewHeader, NewLog, NewLogError, branch_log, empty_log, fork_index, fork_log,
};
pub use children::Children;
pub use context::{Context, ContextMessage, ContextModel, Json, Rules};
pub use damage::{Damage, DamageKind, MAX_DAMAGE};
pub use error::LogError;
pub use header::{Header, VERSION};
pub use index::{Ending, EntryNo, LogIndex, Owner};
pub use indexer::{GROVE_PREFIX, Indexer, LEAF_MARK, MAX_LINE};
pub use kind::EntryType;
pub use log::{Log, open};
pub use preview::{EntryPreview, MAX_PREVIEW_CHARS};
pub use role::Role;
pub use rows::{Cursor, EntryRow, MAX_ROWS, Outline, RowFilter, RowPage, RowsError, RowsRequest, UnknownFilter, rows};
pub use source::LogSource;
