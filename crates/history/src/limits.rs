//! What is held in memory at once, whatever a file says. Past each of these what is too large is left out, its place is
//! listed in the session's damage, and reading goes on behind it.

/// One line of a log, or one request of a flat file, as text; read, it takes several times as much. VS Code itself cuts a session at 100 MiB, so nothing that it wrote
/// is lost to this.
pub const MAX_JSON_ITEM: usize = 128 * 1024 * 1024;
/// What a mutation log may come to when it is replayed, and what the lines of one turn may come to, as JSON text.
pub const MAX_STATE: usize = 128 * 1024 * 1024;
/// A small file that is read whole: a manifest, `workspace.json`, the text of a snapshot.
pub const MAX_SMALL_FILE: u64 = 16 * 1024 * 1024;
/// `state.json` of an editing session.
pub const MAX_EDITING_STATE: u64 = 128 * 1024 * 1024;
/// A database that is copied to be looked at. A larger one is not looked at: it holds hints alone.
pub const MAX_DATABASE: u64 = 256 * 1024 * 1024;
/// How many bad places a session lists. Further ones are counted.
pub const MAX_DAMAGE_LOCATIONS: usize = 100;
/// How many different models and tools a session lists.
pub const MAX_NAMES: usize = 1_000;
/// How far behind the end of an array a log may write. JavaScript would fill the gap, however wide.
pub const MAX_GAP: usize = 1_024;
/// How deep a tree of a tool's result, or a chain of renamed files, is followed.
pub const MAX_DEPTH: usize = 256;
/// How many entries of a session that is a tree are known at once. A turn that hangs from one beyond is taken to follow the
/// turn before it.
pub const MAX_ENTRIES: usize = 1_000_000;
