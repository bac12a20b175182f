//! Agents that a command starts for a moment, beside those of a host.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use grove_agents::acp::{NoDocuments, ProcessPool, ProcessPoolOptions};
use grove_shim::ShimLimits;
use tempfile::TempDir;

use super::backends::{TIMEOUT, relay_program, shim_program};
use crate::settings::Settings;

/// The time that an agent lives on after a command that was killed.
const ALONE: Duration = Duration::from_secs(10);

/// The processes of one command. Their folder is removed with it.
pub(crate) struct OneShotPool {
    pool: Arc<ProcessPool>,
    _folder: TempDir,
}

impl OneShotPool {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("grove-agent-").tempdir();
        let folder = folder.context("cannot create a temporary folder: set TMPDIR to one with space")?;
        let pool = ProcessPool::new(ProcessPoolOptions {
            folder: folder.path().to_owned(),
            shim: shim_program()?,
            shim_limits: ShimLimits { alone: ALONE, linger: ALONE, ..ShimLimits::default() },
            processes: 1,
            idle: TIMEOUT,
            patience: TIMEOUT,
            // A program that was just installed may prepare itself at its first start.
            start: TIMEOUT,
            cancel: Duration::from_secs(settings.agent_cancel.value.get()),
            capture: None,
            private: Vec::new(),
            documents: Arc::new(NoDocuments),
            relay: relay_program()?,
        });
        Ok(Self { pool, _folder: folder })
    }

    pub(crate) fn pool(&self) -> Arc<ProcessPool> {
        Arc::clone(&self.pool)
    }
}
