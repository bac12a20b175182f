//! Files and other contents. Either side may send these requests.

use serde::{Deserialize, Serialize};

use crate::ahp::macros::{records, words};
use crate::ahp::state::Globs;
use crate::ahp::{Object, Uri};

records! {
    #[derive(Default)]
    pub struct ResourceReadParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub encoding: Option<ContentEncoding>,
    }

    #[derive(Eq)]
    pub struct ResourceReadResult {
        pub data: String,
        pub encoding: ContentEncoding,
        pub content_type: Option<String>,
    }

    pub struct ResourceWriteParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub data: String,
        pub encoding: ContentEncoding,
        pub content_type: Option<String>,
        pub create_only: Option<bool>,
        pub mode: Option<ResourceWriteMode>,
        /// In bytes; the position for `insert`.
        pub position: Option<u64>,
        /// The `etag` that the resource must still have.
        pub if_match: Option<String>,
    }

    #[derive(Default)]
    pub struct ResourceListParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
    }

    #[derive(Default, Eq)]
    pub struct ResourceListResult {
        pub entries: Vec<DirectoryEntry>,
    }

    #[derive(Eq)]
    pub struct DirectoryEntry {
        pub name: String,
        #[serde(rename = "type")]
        pub kind: DirectoryEntryType,
    }

    #[derive(Default)]
    pub struct ResourceResolveParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub follow_symlinks: Option<bool>,
    }

    #[derive(Eq)]
    pub struct ResourceResolveResult {
        /// The resolved location, without links.
        pub uri: Uri,
        #[serde(rename = "type")]
        pub kind: ResourceType,
        pub size: Option<u64>,
        pub mtime: Option<String>,
        pub ctime: Option<String>,
        pub content_type: Option<String>,
        pub etag: Option<String>,
    }

    #[derive(Default)]
    pub struct ResourceMkdirParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
    }

    #[derive(Default)]
    pub struct ResourceDeleteParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub recursive: Option<bool>,
    }

    #[derive(Default)]
    pub struct ResourceCopyParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub source: Uri,
        pub destination: Uri,
        pub fail_if_exists: Option<bool>,
    }

    #[derive(Default)]
    pub struct ResourceMoveParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub source: Uri,
        pub destination: Uri,
        pub fail_if_exists: Option<bool>,
    }

    /// Asks for access.
    #[derive(Default)]
    pub struct ResourceRequestParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub read: Option<bool>,
        pub write: Option<bool>,
    }

    #[derive(Default)]
    pub struct CreateResourceWatchParams {
        pub channel: Uri,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub recursive: Option<bool>,
        pub excludes: Option<Globs>,
        pub includes: Option<Globs>,
    }

    /// The URI to subscribe to. The watch ends with its last subscriber.
    #[derive(Default, Eq)]
    pub struct CreateResourceWatchResult {
        pub channel: Uri,
    }
}

words! {
    pub enum ResourceType {
        File = "file",
        Directory = "directory",
        Symlink = "symlink",
    }

    /// The protocol distinguishes only files and directories.
    pub enum DirectoryEntryType {
        File = "file",
        Directory = "directory",
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ContentEncoding {
    #[serde(rename = "base64")]
    Base64,
    #[serde(rename = "utf-8")]
    Utf8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ResourceWriteMode {
    Truncate,
    Append,
    Insert,
}
