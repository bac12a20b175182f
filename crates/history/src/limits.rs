//! Memory limits, whatever a file contains. A larger value is left out, its place is listed in the session's damage,
//! and reading continues after it.

/// A line of a log, or a request of a flat file, as text; parsed, it takes several times as much. VS Code itself cuts a
/// session at 100 MiB, so none of its data are lost.
pub const MAX_JSON_ITEM: usize = 128 * 1024 * 1024;
/// The state of a replayed mutation log, and the lines of one turn, as JSON text.
pub const MAX_STATE: usize = 128 * 1024 * 1024;
/// A small file that is read completely: a manifest, `workspace.json`, the text of a snapshot.
pub const MAX_SMALL_FILE: u64 = 16 * 1024 * 1024;
/// `state.json` of an editing session.
pub const MAX_EDITING_STATE: u64 = 128 * 1024 * 1024;
/// A database that is copied for reading. A larger one is skipped: it has only hints.
pub const MAX_DATABASE: u64 = 256 * 1024 * 1024;
/// The distance from the end of an array at which a log may write. JavaScript would fill any gap.
pub const MAX_GAP: usize = 1_024;
/// The depth of a tool result's tree, or of a chain of renamed files.
pub const MAX_DEPTH: usize = 256;
/// The number of indexed entries of a session that is a tree. A turn with a parent beyond them is taken to follow the
/// previous turn.
pub const MAX_ENTRIES: usize = 1_000_000;

pub use crate::catalog::backup::MAX_BESIDE as COPIED_FILES;
pub use crate::catalog::lookup::MAX_MATCHES as MATCHES;
pub use crate::changes::MAX_CHANGES as CHANGED_FILES;
