//! Ending the agents that an earlier host left behind.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use grove_shim::{ShimError, ShimStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::is_shim_name;

/// The number of agents that are ended at a time.
const AT_ONCE: usize = 16;
/// The time that a shim may take beside the grace period of its agent.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Ends every shim in the folders below this one and removes the folders, except for those in `kept`.
pub(super) async fn sweep(folder: &Path, folders_to_keep: HashSet<PathBuf>, grace: Duration) {
    let Ok(found) = fs::read_dir(folder) else { return };
    let mut ending = JoinSet::new();
    for path in found.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let ours = path.file_name().and_then(|name| name.to_str()).is_some_and(is_shim_name);
        if !ours || folders_to_keep.contains(&path) {
            continue;
        }
        if ending.len() >= AT_ONCE {
            ending.join_next().await;
        }
        ending.spawn(async move {
            match end_processes_in(&path, grace).await {
                Ok(()) => {
                    if let Err(error) = fs::remove_dir_all(&path) {
                        tracing::warn!(folder = %path.display(), %error, "cannot remove an agent's folder");
                    }
                }
                Err(error) => {
                    tracing::warn!(folder = %path.display(), %error, "cannot end an agent of an earlier host");
                }
            }
        });
    }
    while ending.join_next().await.is_some() {}
}

/// Ends every shim in the folders below this one that is not used.
pub(super) async fn end_unused(folder: &Path, is_used: impl Fn(&Path) -> bool, grace: Duration) {
    let Ok(found) = fs::read_dir(folder) else { return };
    let mut ending = JoinSet::new();
    for path in found.filter_map(|entry| entry.ok().map(|entry| entry.path())) {
        let ours = path.file_name().and_then(|name| name.to_str()).is_some_and(is_shim_name);
        // A chat marks its folder before it starts a shim: a shim that is there, in a folder that is not marked, is
        // nobody's.
        if !ours || ShimStream::find(&path).await.is_none() || is_used(&path) {
            continue;
        }
        if ending.len() >= AT_ONCE {
            ending.join_next().await;
        }
        tracing::info!(folder = %path.display(), "ends an agent that no session uses");
        ending.spawn(async move {
            if let Err(error) = end_processes_in(&path, grace).await {
                tracing::warn!(folder = %path.display(), %error, "cannot end an agent that no session uses");
            }
        });
    }
    while ending.join_next().await.is_some() {}
}

/// Ends the agent in a folder, if one runs, and waits until it and its shim are gone.
pub(crate) async fn end_processes_in(folder: &Path, grace: Duration) -> Result<(), ShimError> {
    let attached = match ShimStream::attach(folder, 1).await {
        Err(ShimError::Forgotten { oldest, .. }) => ShimStream::attach(folder, oldest).await,
        other => other,
    };
    let stream = match attached {
        Ok(stream) => stream,
        Err(ShimError::Gone { .. }) => return Ok(()),
        Err(error) => return Err(error),
    };
    let late = || ShimError::ConnectionClosed("it does not end; its process may be stopped".to_owned());
    match timeout(grace.saturating_mul(2).saturating_add(LAST_WORDS), stream.end(grace)).await {
        // A connection that breaks here broke because the shim has ended.
        Ok(Ok(_) | Err(ShimError::Broken)) => {}
        Ok(Err(error)) => return Err(error),
        Err(_) => return Err(late()),
    }
    for _ in 0..200 {
        match ShimStream::attach(folder, 1).await {
            Err(ShimError::Gone { .. }) => return Ok(()),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    Err(late())
}
