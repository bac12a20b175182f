//! The stores of other tools, and the catalog of their sessions.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result};
use async_trait::async_trait;
use grove_core::SessionId;
use grove_history::catalog::{BackupStore, Catalog, CatalogCursor, CatalogError, CatalogFilter, ScanProgress};
use grove_history::{Platform, StoreEnvironment, StoreRoot, store_roots, store_roots_below};
use grove_host::history::{
    self, History, HistoryOpenError, HistoryQuery, HistoryRow, HistorySelection, HistoryTranscript, HistoryUnavailable,
    PreparedHistory,
};
use grove_host::{Clock, SystemClock};
use grove_session_hub::HistorySource;
use grove_wire::x_grove::history::{ScanReport, ScanResult};
use tokio::sync::{Semaphore, watch};

use super::{HistoryConfig, summary, transcript};
use crate::import_export::prepared_import::{ImportId, prepare_located_import};
use crate::settings::{Settings, environment};

/// The catalog's file in the data folder.
pub(crate) const DATABASE: &str = "history.db";
/// The folder of copies that were made before tools deleted their sessions.
const KEPT: &str = "history";

/// The number of sessions read at once for clients; more requests wait. Some formats are held in memory completely.
pub(crate) const MAX_READINGS: usize = 4;

/// The folders that are scanned for sessions of other tools.
pub(crate) fn roots(settings: &Settings) -> Vec<StoreRoot> {
    if settings.history.value.enabled { possible_roots(settings) } else { Vec::new() }
}

/// The folders that may contain sessions of other tools, scanned or not.
pub(crate) fn possible_roots(settings: &Settings) -> Vec<StoreRoot> {
    let configured = &settings.history.value;
    let variables = environment();
    let mut roots = store_roots(Platform::current(), &own(&variables));
    for home in &configured.roots {
        // Environment variables of tools apply to the user's own home only.
        roots.extend(store_roots_below(home));
    }
    roots
}

fn own(variables: &BTreeMap<String, String>) -> StoreEnvironment {
    let variable = |name: &str| variables.get(name).cloned();
    let home = variable("HOME").or_else(|| variable("USERPROFILE")).unwrap_or_default();
    StoreEnvironment::of(home, variable)
}

/// Other tools' stores as the host shows them. Clones share one state.
#[derive(Clone, Debug)]
pub(crate) struct ForeignStores(Arc<ForeignStoresInner>);

#[derive(Debug)]
struct ForeignStoresInner {
    catalog: Arc<Catalog>,
    /// Counts finished scans.
    scanned: watch::Sender<u64>,
    roots: Vec<StoreRoot>,
    keeps: bool,
    copies: PathBuf,
    state: Mutex<ScanState>,
    readings: Arc<Semaphore>,
}

/// The progress of scanning.
#[derive(Debug, Default)]
struct ScanState {
    summary: ScanResult,
    /// Something changed during the scan: another one follows.
    is_stale: bool,
}

impl ForeignStores {
    /// Opens the catalog in a data folder.
    pub(crate) fn open(data_dir: &Path, settings: &Settings) -> Result<Self> {
        let catalog = Catalog::open(&data_dir.join(DATABASE)).context("the catalog of other tools' sessions")?;
        let (catalog, scanned) = (Arc::new(catalog), watch::Sender::new(0));
        let HistoryConfig { keep, .. } = settings.history.value;
        let (roots, copies) = (roots(settings), data_dir.join(KEPT));
        let readings = Arc::new(Semaphore::new(MAX_READINGS));
        Ok(Self(Arc::new(ForeignStoresInner {
            catalog,
            scanned,
            roots,
            keeps: keep,
            copies,
            state: Mutex::default(),
            readings,
        })))
    }

    /// The catalog, and the number of scans.
    pub(crate) fn found(&self) -> HistorySource {
        HistorySource { catalog: self.0.catalog.clone(), scanned: self.0.scanned.subscribe() }
    }

    pub(super) fn roots(&self) -> &[StoreRoot] {
        &self.0.roots
    }

    /// Scans the stores in the background. A request during a scan causes another one.
    pub(super) fn refresh(&self) {
        let mut state = self.0.state();
        if state.summary.running {
            state.is_stale = true;
            return;
        }
        state.summary = ScanResult { running: true, report: state.summary.report.take(), ..ScanResult::default() };
        drop(state);
        let inner = self.0.clone();
        tokio::task::spawn_blocking(move || inner.scan());
    }

    /// Runs a function that may block on the disk.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&ForeignStoresInner) -> Result<T, HistoryUnavailable> + Send + 'static,
    ) -> Result<T, HistoryUnavailable> {
        let inner = self.0.clone();
        let answer = tokio::task::spawn_blocking(move || ask(&inner)).await;
        answer.unwrap_or_else(|_| Err(HistoryUnavailable("the host is stopping".to_owned())))
    }
}

impl ForeignStoresInner {
    fn state(&self) -> MutexGuard<'_, ScanState> {
        // A panic leaves no partial state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn scan(&self) {
        loop {
            let start = Instant::now();
            let keep = BackupStore { folder: self.copies.clone(), now: self.keeps.then(|| SystemClock.now()) };
            let scan = grove_history::catalog::ScanRequest { roots: self.roots.clone(), keep: Some(keep) };
            let result = self.catalog.scan(&scan, &mut |progress: ScanProgress| {
                let mut state = self.state();
                (state.summary.read, state.summary.of) = (progress.read, progress.of);
            });
            self.scanned.send_modify(|scanned| *scanned += 1);
            let mut state = self.state();
            match result {
                Ok(report) => {
                    let milliseconds = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    state.summary.error = None;
                    state.summary.report = Some(summarize(report, milliseconds));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot scan other tools' sessions");
                    state.summary.error = Some(error.to_string());
                }
            }
            if !std::mem::take(&mut state.is_stale) {
                state.summary.running = false;
                return;
            }
        }
    }
}

fn summarize(report: grove_history::catalog::ScanReport, milliseconds: u64) -> ScanReport {
    let mut problems = report.problems;
    if report.omitted_problems > 0 {
        problems.push(format!("and {} more", report.omitted_problems));
    }
    ScanReport {
        sessions: report.sessions,
        read: report.read,
        continued: report.continued,
        removed: report.removed,
        gone: report.gone,
        copied: report.copied,
        moved: report.moved,
        recovered: report.recovered,
        milliseconds,
        problems,
    }
}

fn unavailable(error: CatalogError) -> HistoryUnavailable {
    HistoryUnavailable(error.to_string())
}

#[async_trait]
impl History for ForeignStores {
    async fn list(&self, query: HistoryQuery) -> Result<Vec<HistoryRow>, HistoryUnavailable> {
        self.ask(move |inner| {
            let HistoryQuery { source, repository, since, text, after, limit } = query;
            let filter = CatalogFilter { source, repository, since, text, ..CatalogFilter::default() };
            let after = after.map(|(modified_at, id)| CatalogCursor { modified_at, id: id.to_string() });
            let page = inner.catalog.list(&filter, after.as_ref(), limit).map_err(unavailable)?;
            Ok(page.entries.iter().map(summary::row).collect())
        })
        .await
    }

    async fn find(&self, id: &SessionId) -> Result<Option<HistoryRow>, HistoryUnavailable> {
        let id = id.clone();
        self.ask(move |inner| {
            let found = inner.catalog.named(id.as_str()).map_err(unavailable)?;
            Ok(found.map(|entry| summary::row(&entry)))
        })
        .await
    }

    async fn open(
        &self,
        id: &SessionId,
        look: HistorySelection,
    ) -> Result<Option<HistoryTranscript>, HistoryOpenError> {
        let permit = self.0.readings.clone().acquire_owned().await;
        let permit = permit.map_err(|error| HistoryUnavailable(error.to_string()))?;
        let id = id.clone();
        let transcript = self.ask(move |inner| {
            let Some(entry) = inner.catalog.named(id.as_str()).map_err(unavailable)? else { return Ok(None) };
            let transcript = transcript::open(&entry, &look, || inner.catalog.tail_index(&entry).unwrap_or_default());
            // The requester may be gone; the session is read to its end anyway.
            drop(permit);
            Ok(Some(transcript))
        });
        transcript.await?.transpose()
    }

    async fn prepare_import(
        &self,
        id: &SessionId,
        new_id: Option<SessionId>,
    ) -> Result<Option<PreparedHistory>, HistoryUnavailable> {
        let permit = self.0.readings.clone().acquire_owned().await;
        let permit = permit.map_err(|error| HistoryUnavailable(error.to_string()))?;
        let id = id.clone();
        self.ask(move |inner| {
            let Some(entry) = inner.catalog.named(id.as_str()).map_err(unavailable)? else { return Ok(None) };
            let id = new_id.map_or(ImportId::Own, |id| ImportId::New(id.to_string()));
            let prepared = prepare_located_import(entry.location(), &id);
            drop(permit);
            let prepared = prepared.map_err(|error| HistoryUnavailable(error.to_string()))?;
            Ok(Some(prepared.into_history()))
        })
        .await
    }

    fn scan(&self, scan: history::Scan) -> ScanResult {
        match scan {
            history::Scan::Start => self.refresh(),
            history::Scan::Poll => {}
        }
        self.0.state().summary.clone()
    }
}
