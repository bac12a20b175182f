//! Following the changes that other tools make while a host runs.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, StreamExt};
use grove_host::Host;
use grove_work::{Policy, Roots, Watch, WatchError, WatchEvent, WatchRequest};

use super::ForeignStores;

/// The minimum interval between scans while stores change.
const PAUSE: Duration = Duration::from_secs(2);
/// The interval of looking for new folders, which tools create at their first use.
///
/// Stores that cannot be watched are scanned as often.
const NEW_FOLDERS: Duration = Duration::from_secs(60);

/// Folders without sessions that may be numerous.
///
/// They are VS Code's file history, storage of extensions, and contents of edited files.
const EXCLUDED: &[&str] = &[
    "History/**",
    "globalStorage/*.*/**",
    "workspaceStorage/*/*.*/**",
    "**/chatEditingSessions/**",
    "**/node_modules/**",
];

/// Scans the stores once, and again whenever they change. Runs until the host ends.
pub(crate) async fn watch_stores(host: Host, stores: ForeignStores) {
    stores.refresh();
    let mut watched: HashSet<PathBuf> = HashSet::new();
    let mut watches = FuturesUnordered::new();
    let mut is_first = true;
    let mut has_unwatched = false;
    loop {
        let mut is_new = false;
        for root in stores.roots() {
            if watched.contains(&root.folder) || !root.folder.is_dir() {
                continue;
            }
            watched.insert(root.folder.clone());
            match watch(&host, &root.folder).await {
                Ok(watch) => {
                    is_new = true;
                    watches.push(next(watch));
                }
                Err(error) => {
                    has_unwatched = true;
                    let folder = root.folder.display();
                    tracing::warn!(%error, %folder, "cannot watch a store: it is scanned once a minute");
                }
            }
        }
        if is_new && !std::mem::take(&mut is_first) {
            stores.refresh();
        }
        tokio::select! {
            Some((watch, notice)) = watches.next(), if !watches.is_empty() => match notice {
                Some(Ok(WatchEvent::Changes(_) | WatchEvent::Overflow)) => {
                    tokio::time::sleep(PAUSE).await;
                    stores.refresh();
                    watches.push(next(watch));
                }
                Some(Err(WatchError::Stopped)) => return,
                Some(Err(_)) | None => {
                    // The folder was removed; it may be created again.
                    watched.remove(watch.path());
                    stores.refresh();
                }
            },
            () = tokio::time::sleep(NEW_FOLDERS) => {
                if has_unwatched {
                    stores.refresh();
                }
            }
        }
    }
}

async fn next(mut watch: Watch) -> (Watch, Option<Result<WatchEvent, WatchError>>) {
    let notice = watch.next().await;
    (watch, notice)
}

async fn watch(host: &Host, folder: &Path) -> Result<Watch, WatchError> {
    // Only the host uses this watch: the clients' policy does not apply, and they are not notified.
    let policy = Policy::new(Roots::default(), vec![folder.to_owned()]);
    let request = WatchRequest {
        path: folder.to_owned(),
        recursive: true,
        includes: vec!["**/*.jsonl".to_owned(), "**/*.json".to_owned()],
        excludes: EXCLUDED.iter().map(|pattern| (*pattern).to_owned()).collect(),
    };
    host.watcher()?.watch(&policy, request).await
}
