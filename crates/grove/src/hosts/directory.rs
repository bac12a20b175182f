//! The known hosts of a data folder, for the session hub.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_session_hub::{HostDirectoryError, HostList, RemoteHost, RemoteHosts};
use grove_sessions::providers::hosts::SessionListCache;

use super::session_cache::SessionCacheFile;
use super::{KnownHost, KnownHosts, UnusableHost, file, known_hosts};

/// The list of hosts of a data folder, and the cached sessions of each.
#[derive(Clone, Debug)]
pub(crate) struct HostsFile {
    data_dir: PathBuf,
}

impl HostsFile {
    pub(crate) fn of(data_dir: &Path) -> Self {
        Self { data_dir: data_dir.to_owned() }
    }
}

impl grove_session_hub::HostDirectory for HostsFile {
    fn mark(&self) -> Option<String> {
        Some(format!("{:?}", file::mark(&self.data_dir)?))
    }

    fn all(&self) -> Result<RemoteHosts, HostDirectoryError> {
        let KnownHosts { hosts, unusable } = known_hosts(&self.data_dir)?;
        let broken = |host: UnusableHost| grove_session_hub::UnusableHost { name: host.name, error: host.error.into() };
        let (hosts, unusable) = (hosts.iter().map(KnownHost::remote), unusable.into_iter().map(broken));
        Ok(RemoteHosts { hosts: hosts.collect(), unusable: unusable.collect() })
    }

    fn list_cache(&self, host: &RemoteHost) -> Arc<dyn SessionListCache> {
        let RemoteHost { name, address, access } = host.clone();
        Arc::new(SessionCacheFile::of(&self.data_dir, &KnownHost { name, address, access }))
    }
}

/// The sessions of all other hosts, current or cached.
pub(crate) async fn lists(data_dir: &Path) -> anyhow::Result<Vec<HostList>> {
    grove_session_hub::list_hosts(&HostsFile::of(data_dir)).await.map_err(|error| anyhow::anyhow!(error))
}
