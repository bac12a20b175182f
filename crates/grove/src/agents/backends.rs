//! The agents of a host: created when it starts, and updated when its configuration is read again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use async_trait::async_trait;
use grove_agents::Agent;
use grove_agents::acp::client_tools::RelayProgram;
use grove_agents::acp::{AcpAgent, AcpProgram, Documents, ProcessPool, ProcessPoolOptions, ShimProcess};
use grove_agents::scripted::ScriptedAgent;
use grove_core::{AgentId, ChatId, ModelInfo, SessionId};
use grove_host::{AgentFinder, AgentProcesses, AgentRoot, Host, HostStopped};
use grove_shim::{ShimLimits, ShimProgram};
use tokio::sync::watch;

use super::{install_advice, offers_of};
use crate::data_folder;
use crate::mcp_table;
use crate::settings::{Settings, environment};

/// How long an agent may take for requests that need no model. Some are interpreters that load for seconds.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// The pause between two searches for agents' processes that no session uses.
const SWEEP_PAUSE: Duration = Duration::from_secs(60);

/// The agents, and the resources that they share.
pub(crate) struct Backends {
    /// The agents. The first one is the default.
    pub(crate) agents: Vec<Arc<dyn Agent>>,
    pool: Arc<ProcessPool>,
    /// The configuration that the external agents were created from.
    programs: Mutex<Vec<AcpProgram>>,
    models: Vec<watch::Receiver<Vec<ModelInfo>>>,
    editors: Arc<LateEditors>,
}

impl Backends {
    /// Creates the agents. `capture` is the file for frames; `private` are paths that agents never see.
    pub(crate) fn new(settings: &Settings, capture: Option<PathBuf>, private: Vec<PathBuf>) -> Result<Self> {
        let editors = Arc::new(LateEditors::default());
        let pool = ProcessPool::new(ProcessPoolOptions {
            folder: data_folder::agents_path(&absolute(&settings.data_dir.value)?),
            shim: shim_program()?,
            shim_limits: ShimLimits::default(),
            processes: settings.max_agents.value.get(),
            idle: Duration::from_secs(settings.agent_idle.value),
            patience: TIMEOUT,
            start: Duration::from_secs(settings.agent_start.value.get()),
            cancel: Duration::from_secs(settings.agent_cancel.value.get()),
            capture,
            private,
            documents: editors.clone(),
            relay: relay_program()?,
        });
        let mut agents: Vec<Arc<dyn Agent>> = vec![Arc::new(ScriptedAgent)];
        let mut models = Vec::new();
        let programs = usable(settings);
        for program in &programs {
            tracing::info!(agent = %program.id, program = %program.program.display(), "an agent can be used");
            let agent = AcpAgent::new(program.clone(), pool.clone());
            models.push(agent.models());
            agents.push(Arc::new(agent));
        }
        let wanted = AgentId::from(settings.default_agent.value.as_str());
        match agents.iter().position(|agent| agent.info().id == wanted) {
            Some(at) => agents[..=at].rotate_right(1),
            None => tracing::warn!(
                default_agent = %wanted,
                from = %settings.default_agent.source,
                "the default agent cannot be used, the scripted one takes its place: see `grove agents`"
            ),
        }
        Ok(Self { agents, pool, programs: Mutex::new(programs), models, editors })
    }

    /// Updates the agents from the configuration: adds new ones, replaces changed ones, removes missing ones.
    ///
    /// Open sessions keep their agents.
    pub(crate) async fn reread(&self, settings: &Settings, host: &Host) -> Result<(), HostStopped> {
        let now = usable(settings);
        let before = std::mem::replace(&mut *self.programs.lock().unwrap_or_else(PoisonError::into_inner), now.clone());
        for program in now.iter().filter(|program| !before.contains(program)) {
            tracing::info!(agent = %program.id, program = %program.program.display(), "an agent can be used");
            let agent = AcpAgent::new(program.clone(), self.pool.clone());
            announce(agent.models(), host);
            host.add_agent(Arc::new(agent)).await?;
        }
        let is_gone = |gone: &&AcpProgram| now.iter().all(|program| program.id != gone.id);
        for gone in before.iter().filter(is_gone) {
            tracing::info!(agent = %gone.id, "an agent is gone");
            host.remove_agent(&gone.id).await?;
        }
        Ok(())
    }

    /// Ends the processes of an earlier host, except for the agents of these chats, whose turns go on.
    ///
    /// It runs before any agent can be started, so that no agent of this host is mistaken for an earlier one.
    pub(crate) async fn sweep(&self, running: &[(SessionId, ChatId)]) {
        self.pool.sweep(running).await;
    }

    /// Ends the agents that a host leaves behind when it ends, except for those of these chats, whose turns go on.
    pub(crate) async fn sweep_left(&self, running: &[(SessionId, ChatId)]) {
        self.pool.sweep_left(running).await;
    }

    /// Connects the agents to the started host: it recognizes their processes, serves their editor requests, and learns their models.
    pub(crate) fn attend(&self, host: &Host) {
        // It is set only here, so it cannot be set already.
        self.editors.0.set(host.clone()).ok();
        host.set_agent_processes(Arc::new(ShimRoots(self.pool.clone())));
        for models in &self.models {
            announce(models.clone(), host);
        }
        let pool = Arc::downgrade(&self.pool);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_PAUSE).await;
                let Some(pool) = pool.upgrade() else { return };
                pool.sweep_unused().await;
            }
        });
    }

    /// Waits until every frame so far is in the frame file, if there is one.
    pub(crate) async fn captured(&self) {
        self.pool.captured().await;
    }
}

/// Looks for an unknown agent again: it may be new, or in the PATH of commands and not in the host's.
pub(crate) struct ConfiguredAgentFinder {
    backends: Arc<Backends>,
    load: Box<dyn Fn() -> Result<Settings> + Send + Sync>,
}

impl ConfiguredAgentFinder {
    /// `load` reads the current settings.
    pub(crate) fn new(backends: Arc<Backends>, load: impl Fn() -> Result<Settings> + Send + Sync + 'static) -> Self {
        Self { backends, load: Box::new(load) }
    }
}

#[async_trait]
impl AgentFinder for ConfiguredAgentFinder {
    async fn look_again(&self, host: &Host) {
        match (self.load)() {
            // A host that stops needs no agents.
            Ok(settings) => self.backends.reread(&settings, host).await.unwrap_or_default(),
            Err(error) => tracing::warn!("cannot update the agents: {error:#}"),
        }
    }

    fn install_hint(&self, id: &AgentId) -> Option<String> {
        let settings = (self.load)().ok()?;
        let entry = settings.catalog.catalog.get(id.as_str())?;
        let name = &entry.display_name;
        Some(format!(
            "{name} is not installed there, or not in the host's PATH; install it with `{}`, then try again",
            install_advice(entry)
        ))
    }
}

/// The agents that are installed or configured, and enabled. The host's own PATH comes first, then that of commands.
fn usable(settings: &Settings) -> Vec<AcpProgram> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let find = |path: &OsStr| {
        let offers = offers_of(settings, path, &environment());
        offers.iter().filter_map(|offer| offer.program()).cloned().collect::<Vec<_>>()
    };
    let mut programs = find(&path);
    let theirs = data_folder::read_client_path(&settings.data_dir.value).unwrap_or_else(|error| {
        tracing::warn!(%error, "agents are looked for in the host's own PATH alone");
        None
    });
    if let Some(theirs) = theirs {
        for mut program in find(OsStr::new(&theirs)) {
            if programs.iter().all(|known| known.id != program.id) {
                // The program may need that PATH as well, for example for its interpreter.
                program.env.entry("PATH".to_owned()).or_insert_with(|| theirs.clone());
                programs.push(program);
            }
        }
    }
    for program in &mut programs {
        program.mcp_servers = mcp_table::servers_for(&settings.mcp.value, &program.id);
    }
    programs
}

/// Announces an agent's models to clients whenever they change.
fn announce(mut models: watch::Receiver<Vec<ModelInfo>>, host: &Host) {
    let host = host.clone();
    tokio::spawn(async move { while models.changed().await.is_ok() && host.agents_changed().await.is_ok() {} });
}

/// The shims of the agents, as the roots of their processes.
struct ShimRoots(Arc<ProcessPool>);

impl AgentProcesses for ShimRoots {
    fn roots(&self) -> Vec<AgentRoot> {
        let shims = self.0.shims().into_iter();
        shims.map(|ShimProcess { process, session }| AgentRoot { process, session }).collect()
    }
}

/// The editors of a host that starts after its agents were created.
#[derive(Debug, Default)]
struct LateEditors(OnceLock<Host>);

#[async_trait]
impl Documents for LateEditors {
    async fn text(&self, session: &SessionId, path: &Path) -> Option<String> {
        self.0.get()?.document(session, path).await
    }

    async fn write(&self, session: &SessionId, path: &Path, on_disk: Option<&str>, text: &str) -> bool {
        match self.0.get() {
            Some(host) => host.write_document(session, path, on_disk, text).await,
            None => false,
        }
    }
}

/// The program for shims: the running executable, even if a newer version has replaced its file.
pub(super) fn shim_program() -> Result<ShimProgram> {
    let running = Path::new("/proc/self/exe");
    let program = match running.exists() {
        true => running.to_owned(),
        false => std::env::current_exe().context("cannot find this program's file, which runs agents")?,
    };
    Ok(ShimProgram { program, args: vec!["agent-shim".into()] })
}

/// The program that agents start to reach the tools of clients. They keep its path longer than this process lives.
pub(super) fn relay_program() -> Result<RelayProgram> {
    let program = std::env::current_exe().context("cannot find this program's file, which agents start")?;
    Ok(RelayProgram { program, args: vec!["mcp-tools".into()], filter_args: vec!["mcp-filter".into()] })
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is not a valid path", path.display()))
}
