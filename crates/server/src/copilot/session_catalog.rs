//! The sessions of the host: finding, measuring and deleting them.

use std::collections::BTreeMap;

use grove_core::SessionId;
use grove_wire::ahp::time;
use grove_wire::copilot::methods::*;

use super::history::logged_entries;
use super::peer::{CopilotError, CopilotPeer};

const DAY_MS: u64 = 24 * 60 * 60 * 1_000;
/// The fewest characters of a prefix: fewer name too many sessions.
const MIN_PREFIX: usize = 3;

impl CopilotPeer {
    pub(super) async fn list_catalog(&self, params: SessionsListParams) -> Result<ListResult, CopilotError> {
        match params.source.as_deref() {
            Some("remote") => Ok(ListResult { sessions: Vec::new() }),
            Some("local" | "all") | None => self.list(ListParams { filter: params.filter }).await,
            Some(other) => Err(CopilotError::Failed(format!("{other:?} is not a source: use local, remote or all"))),
        }
    }

    /// The only session whose id begins with a prefix.
    pub(super) async fn find_by_prefix(&self, params: FindByPrefixParams) -> Result<FoundSession, CopilotError> {
        if params.prefix.chars().count() < MIN_PREFIX {
            return Err(CopilotError::Failed(format!("a prefix has at least {MIN_PREFIX} characters")));
        }
        let rows = self.rows().await?;
        let mut found = rows.into_iter().filter(|row| row.session_id.starts_with(&params.prefix));
        let first = found.next().map(|row| row.session_id);
        Ok(FoundSession { session_id: first.filter(|_| found.next().is_none()) })
    }

    /// The session of a context that was changed last, or the last one of all.
    pub(super) async fn last_for_context(&self, params: LastForContextParams) -> Result<FoundSession, CopilotError> {
        let filter = params.context.map(|context| ListFilter {
            cwd: Some(context.cwd),
            git_root: context.git_root,
            repository: context.repository,
            branch: context.branch,
        });
        let sessions = self.list(ListParams { filter }).await?.sessions;
        Ok(FoundSession { session_id: sessions.into_iter().next().map(|row| row.session_id) })
    }

    /// The sessions in which somebody has said something: those with a title.
    pub(super) async fn list_non_empty(&self) -> Result<SessionIdsResult, CopilotError> {
        let rows = self.rows().await?;
        let named = rows.into_iter().filter(|row| row.name.is_some());
        Ok(SessionIdsResult { session_ids: named.map(|row| row.session_id).collect() })
    }

    pub(super) async fn session_sizes(&self) -> Result<SessionSizesResult, CopilotError> {
        let mut sizes = BTreeMap::new();
        for row in self.rows().await? {
            let size = self.log_bytes(&row.session_id).await;
            sizes.insert(row.session_id, size);
        }
        Ok(SessionSizesResult { sizes })
    }

    /// Grove's sessions are open to several programs, so none is ever held by another one.
    pub(super) fn in_use(params: SessionIdsParams) -> Result<InUseResult, CopilotError> {
        named(params).map(|_| InUseResult::default())
    }

    /// Adds what is known about sessions to their rows. Unknown ones stay as they came.
    pub(super) async fn enrich(&self, params: EnrichParams) -> Result<ListResult, CopilotError> {
        if params.sessions.len() > MAX_NAMED_SESSIONS {
            return Err(too_many());
        }
        let known = self.list(ListParams::default()).await?.sessions;
        let mut known: BTreeMap<String, SessionMetadata> =
            known.into_iter().map(|row| (row.session_id.clone(), row)).collect();
        let enriched = params.sessions.into_iter().map(|row| match known.remove(&row.session_id) {
            Some(known) => SessionMetadata {
                name: row.name.or(known.name.clone()),
                summary: row.summary.or(known.summary.clone()),
                context: known.context.clone().or(row.context),
                ..known
            },
            None => row,
        });
        Ok(ListResult { sessions: enriched.collect() })
    }

    pub(super) async fn event_file_path(&self, params: SessionParams) -> Result<EventFilePathResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let log = grove_storage::paths::log(&session.id, &grove_core::Session::MAIN_CHAT.into());
        let store = self.host().store_of(&session.id);
        let path = store.and_then(|store| store.location(&log).ok());
        let file_path = path.ok_or_else(|| CopilotError::Failed(format!("Session not found: {}", session.id)))?;
        Ok(EventFilePathResult { file_path })
    }

    /// Waits until a session's log has everything that has happened.
    pub(super) async fn save(&self, params: SessionParams) -> Result<EmptyResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        logged_entries(self.host(), &session.id).await;
        if self.endpoint().has_storage_client() {
            self.host().flush_client_stored(&session.id).await;
        }
        Ok(EmptyResult {})
    }

    /// Deletes sessions. Unknown ones free nothing.
    pub(super) async fn bulk_delete(&self, params: SessionIdsParams) -> Result<BulkDeleteResult, CopilotError> {
        let mut freed_bytes = BTreeMap::new();
        for session_id in named(params)? {
            let size = self.log_bytes(&session_id).await;
            let deleted = self.delete(SessionParams { session_id: session_id.clone() }).await?.success;
            freed_bytes.insert(session_id, if deleted { size } else { 0 });
        }
        Ok(BulkDeleteResult { freed_bytes })
    }

    /// Deletes sessions that nobody has changed for days. Open ones, and those with a name unless they are included,
    /// are kept.
    pub(super) async fn prune(&self, params: PruneParams) -> Result<PruneResult, CopilotError> {
        let PruneParams { older_than_days, dry_run, include_named, exclude_session_ids } = params;
        let dry_run = dry_run.unwrap_or(false);
        let excluded = exclude_session_ids.unwrap_or_default();
        let now = self.host().env().clock.now();
        let newest = grove_core::Timestamp(now.0.saturating_sub(older_than_days.saturating_mul(DAY_MS)));
        let newest = time::text(newest);
        let open: Vec<String> = self.endpoint().state().open.keys().map(SessionId::to_string).collect();
        let mut result = PruneResult { dry_run, ..PruneResult::default() };
        // Texts of times are ordered like the times.
        for row in self.rows().await?.into_iter().filter(|row| row.modified_time <= newest) {
            let id = row.session_id;
            let is_named = row.name.is_some() && !include_named.unwrap_or(false);
            if excluded.contains(&id) || open.contains(&id) || is_named {
                result.skipped.push(id);
                continue;
            }
            result.freed_bytes += self.log_bytes(&id).await;
            if !dry_run && self.delete(SessionParams { session_id: id.clone() }).await?.success {
                result.deleted.push(id.clone());
            }
            result.candidates.push(id);
        }
        Ok(result)
    }

    /// Takes no plugins: Grove has none.
    pub(super) fn set_plugins(params: AdditionalPluginsParams) -> Result<EmptyResult, CopilotError> {
        match params.plugins.is_empty() {
            true => Ok(EmptyResult {}),
            false => {
                Err(CopilotError::Failed("Grove has no plugins of the Copilot CLI: pass an empty list".to_owned()))
            }
        }
    }

    /// The size of a session's log. Unknown ones have none.
    async fn log_bytes(&self, session: &str) -> u64 {
        let id = SessionId::from(session);
        let Some(store) = self.host().store_of(&id) else { return 0 };
        let log = grove_storage::paths::log(&id, &grove_core::Session::MAIN_CHAT.into());
        store.stat(&log).await.map_or(0, |stat| stat.size)
    }
}

fn named(params: SessionIdsParams) -> Result<Vec<String>, CopilotError> {
    match params.session_ids.len() <= MAX_NAMED_SESSIONS {
        true => Ok(params.session_ids),
        false => Err(too_many()),
    }
}

fn too_many() -> CopilotError {
    CopilotError::Failed(format!("one request names at most {MAX_NAMED_SESSIONS} sessions"))
}
