//! The calls between a host and a storage client on the wire.
//!
//! Both sides use these types: the backend that calls, and the client that answers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::StorageCapabilities;

/// The methods that a host calls on a storage client. The names on the wire have the prefix `sessionFs.`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SessionFsMethod {
    ReadFile,
    ReadFileBytes,
    ReadFileRange,
    WriteFile,
    WriteFileBytes,
    AppendFile,
    Exists,
    Stat,
    Mkdir,
    Readdir,
    ReaddirWithTypes,
    Rm,
    Rename,
    SqliteQuery,
    SqliteTransaction,
    SqliteExists,
}

impl SessionFsMethod {
    pub const ALL: [SessionFsMethod; 16] = [
        SessionFsMethod::ReadFile,
        SessionFsMethod::ReadFileBytes,
        SessionFsMethod::ReadFileRange,
        SessionFsMethod::WriteFile,
        SessionFsMethod::WriteFileBytes,
        SessionFsMethod::AppendFile,
        SessionFsMethod::Exists,
        SessionFsMethod::Stat,
        SessionFsMethod::Mkdir,
        SessionFsMethod::Readdir,
        SessionFsMethod::ReaddirWithTypes,
        SessionFsMethod::Rm,
        SessionFsMethod::Rename,
        SessionFsMethod::SqliteQuery,
        SessionFsMethod::SqliteTransaction,
        SessionFsMethod::SqliteExists,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            SessionFsMethod::ReadFile => "sessionFs.readFile",
            SessionFsMethod::ReadFileBytes => "sessionFs.readFileBytes",
            SessionFsMethod::ReadFileRange => "sessionFs.readFileRange",
            SessionFsMethod::WriteFile => "sessionFs.writeFile",
            SessionFsMethod::WriteFileBytes => "sessionFs.writeFileBytes",
            SessionFsMethod::AppendFile => "sessionFs.appendFile",
            SessionFsMethod::Exists => "sessionFs.exists",
            SessionFsMethod::Stat => "sessionFs.stat",
            SessionFsMethod::Mkdir => "sessionFs.mkdir",
            SessionFsMethod::Readdir => "sessionFs.readdir",
            SessionFsMethod::ReaddirWithTypes => "sessionFs.readdirWithTypes",
            SessionFsMethod::Rm => "sessionFs.rm",
            SessionFsMethod::Rename => "sessionFs.rename",
            SessionFsMethod::SqliteQuery => "sessionFs.sqliteQuery",
            SessionFsMethod::SqliteTransaction => "sessionFs.sqliteTransaction",
            SessionFsMethod::SqliteExists => "sessionFs.sqliteExists",
        }
    }

    /// Returns whether a client with these abilities has the method.
    pub fn is_offered(self, capabilities: StorageCapabilities) -> bool {
        match self {
            SessionFsMethod::ReadFileBytes | SessionFsMethod::WriteFileBytes => capabilities.binary,
            SessionFsMethod::ReadFileRange => capabilities.ranges,
            SessionFsMethod::SqliteQuery | SessionFsMethod::SqliteTransaction | SessionFsMethod::SqliteExists => {
                capabilities.sqlite
            }
            SessionFsMethod::ReadFile
            | SessionFsMethod::WriteFile
            | SessionFsMethod::AppendFile
            | SessionFsMethod::Exists
            | SessionFsMethod::Stat
            | SessionFsMethod::Mkdir
            | SessionFsMethod::Readdir
            | SessionFsMethod::ReaddirWithTypes
            | SessionFsMethod::Rm
            | SessionFsMethod::Rename => true,
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        SessionFsMethod::ALL.into_iter().find(|method| method.name() == name)
    }
}

/// The params of `readFile`, `readFileBytes`, `exists`, `stat`, `readdir` and `readdirWithTypes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PathParams {
    pub session_id: String,
    pub path: String,
}

/// The params of `readFileRange`. Its result is that of `readFileBytes`, with fewer bytes if the file ends before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RangeParams {
    pub session_id: String,
    pub path: String,
    pub offset: u64,
    pub length: u64,
}

/// The params of `sqliteExists`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SqliteExistsParams {
    pub session_id: String,
}

/// The params of `sqliteQuery`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueryParams {
    pub session_id: String,
    #[serde(flatten)]
    pub statement: WireStatement,
}

/// The params of `sqliteTransaction`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionParams {
    pub session_id: String,
    pub statements: Vec<WireStatement>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WireStatement {
    pub query: String,
    pub query_type: QueryType,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryType {
    Exec,
    Query,
    Run,
}

/// The params of `writeFile`, `writeFileBytes` and `appendFile`. Bytes are in base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WriteParams {
    pub session_id: String,
    pub path: String,
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MkdirParams {
    pub session_id: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RmParams {
    pub session_id: String,
    pub path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recursive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RenameParams {
    pub session_id: String,
    pub src: String,
    pub dest: String,
}

/// An error, beside a result or in its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireError {
    pub code: WireCode,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The error codes: there are only two. An unknown code of a newer client counts as `UNKNOWN`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WireCode {
    #[serde(rename = "ENOENT")]
    NotFound,
    #[serde(rename = "UNKNOWN", other)]
    Unknown,
}

/// The result of `readFile` and `readFileBytes`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadResult {
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExistsResult {
    pub exists: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StatResult {
    pub is_file: bool,
    pub is_directory: bool,
    pub size: u64,
    pub mtime: String,
    pub birthtime: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaddirResult {
    pub entries: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReaddirWithTypesResult {
    pub entries: Vec<WireEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireEntry {
    pub name: String,
    #[serde(rename = "type")]
    pub kind: WireKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WireKind {
    File,
    Directory,
}

/// The result of `sqliteQuery`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct QueryResult {
    pub rows: Vec<Map<String, Value>>,
    pub columns: Vec<String>,
    pub rows_affected: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_insert_rowid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<WireError>,
}

/// The result of `sqliteTransaction`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TransactionResult {
    pub results: Vec<QueryResult>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<TransactionError>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TransactionError {
    pub error_class: ErrorClass,
    #[serde(default)]
    pub message: String,
}

/// The class of a transaction's failure. An unknown class of a newer client only says that it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ErrorClass {
    BusyOrLocked,
    PostCommitAmbiguous,
    #[serde(other)]
    Fatal,
}

/// The mode of a file on the wire: 0600.
pub const FILE_MODE: u32 = 0o600;

/// The mode of a folder on the wire: 0700.
pub const FOLDER_MODE: u32 = 0o700;
