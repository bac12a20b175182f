//! The sessions of the host: finding, measuring and deleting them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{ListFilter, SessionContext, SessionMetadata};
use crate::ahp::macros::records;

/// The largest number of sessions that one request names; more are refused.
pub const MAX_NAMED_SESSIONS: usize = 10_000;

records! {
    #[derive(Default, Eq)]
    pub struct SessionsListParams {
        /// `local`, `remote` or `all`. Grove's sessions are local.
        pub source: Option<String>,
        pub filter: Option<ListFilter>,
    }

    #[derive(Eq)]
    pub struct FindByPrefixParams {
        pub prefix: String,
    }

    #[derive(Default, Eq)]
    pub struct LastForContextParams {
        pub context: Option<SessionContext>,
    }

    /// The result of `findByPrefix` and `getLastForContext`.
    #[derive(Default, Eq)]
    pub struct FoundSession {
        pub session_id: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SessionSizesResult {
        pub sizes: BTreeMap<String, u64>,
    }

    #[derive(Default, Eq)]
    pub struct SessionIdsParams {
        pub session_ids: Vec<String>,
    }

    #[derive(Default, Eq)]
    pub struct SessionIdsResult {
        pub session_ids: Vec<String>,
    }

    #[derive(Default, Eq)]
    pub struct InUseResult {
        pub in_use: Vec<String>,
    }

    #[derive(Default, Eq)]
    pub struct BulkDeleteResult {
        pub freed_bytes: BTreeMap<String, u64>,
    }

    #[derive(Default, Eq)]
    pub struct PruneParams {
        pub older_than_days: u64,
        pub dry_run: Option<bool>,
        pub include_named: Option<bool>,
        pub exclude_session_ids: Option<Vec<String>>,
    }

    #[derive(Default, Eq)]
    pub struct PruneResult {
        pub deleted: Vec<String>,
        pub candidates: Vec<String>,
        pub skipped: Vec<String>,
        pub freed_bytes: u64,
        pub dry_run: bool,
    }

    #[derive(Default, Eq)]
    pub struct EnrichParams {
        pub sessions: Vec<SessionMetadata>,
    }

    #[derive(Eq)]
    pub struct EventFilePathResult {
        pub file_path: String,
    }

    #[derive(Default)]
    pub struct AdditionalPluginsParams {
        pub plugins: Vec<Value>,
    }
}
