//! The sessions of every source in one list, for those who are connected to the host: this host's own, those of other hosts,
//! and what other tools left.
//!
//! - [`Layer`]: what the host is given. It begins with the first connection that uses it and ends a while after the last, so
//!   that a host which nobody needs can end: its own connection to itself would keep it.
//! - `running`: the providers, their management, and those who look. A client has one view, however often it connects.
//!   `hosts`: which hosts are among them.
//! - `visit`: what a connection may do. `refusal`: why something is not done.
//! - `telling`: what changed, encoded once for all who hear of it. `rows`: how sessions look on the wire; `groups`: when
//!   headings are others.
//! - `remembered`: what outlives the host, in a file of the data folder.

mod groups;
mod hosts;
mod refusal;
mod remembered;
mod rows;
mod running;
mod telling;
mod visit;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_client::Endpoint;
use grove_core::ClientId;
use grove_history::catalog::Catalog;
use grove_host::FolderTrust;
use grove_host::sessions::{Refusal, SessionsLayer, Visit};
use tokio::sync::watch;

use self::remembered::FileMemory;
use self::running::Running;
use self::visit::Visitor;

/// How long all of it goes on when nobody uses it any more: a page that is loaded anew finds it as it was.
const LINGER: Duration = Duration::from_secs(5);

/// Where sessions come from, and what belongs to them.
pub(crate) struct Sources {
    /// The host that shows them, for its own sessions.
    pub(crate) this_host: Endpoint,
    /// The data folder: what is remembered, and which other hosts are known by name.
    pub(crate) data_dir: PathBuf,
    /// What other tools left, where it is shown.
    pub(crate) history: Option<FoundHistory>,
    /// The list of this host's trusted folders.
    pub(crate) trust: Arc<dyn FolderTrust>,
}

/// The catalog of what other tools left, and how often it was looked at.
#[derive(Clone, Debug)]
pub(crate) struct FoundHistory {
    pub(crate) catalog: Arc<Catalog>,
    pub(crate) scanned: watch::Receiver<u64>,
}

/// All sessions, for as long as somebody wants to see them. Clones are the same.
#[derive(Clone)]
pub(crate) struct Layer(Arc<Inner>);

struct Inner {
    sources: Sources,
    memory: Arc<FileMemory>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    running: Option<Arc<Running>>,
    visits: usize,
    /// Counts visits that began, so that who waits for the end sees that somebody came meanwhile.
    begun: u64,
}

impl Layer {
    pub(crate) fn new(sources: Sources) -> Self {
        let memory = Arc::new(FileMemory::open(&sources.data_dir, sources.trust.clone()));
        Self(Arc::new(Inner { sources, memory, state: Mutex::default() }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing under the lock leaves it half changed.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What runs, begun where nothing does. It is counted until [`Layer::leave`].
    fn enter(&self) -> anyhow::Result<Arc<Running>> {
        let mut state = self.state();
        let running = match &state.running {
            Some(running) => {
                running.hosts.keep_up()?;
                running.clone()
            }
            None => {
                let running = Arc::new(Running::begin(&self.0.sources, self.0.memory.clone())?);
                state.running = Some(running.clone());
                running
            }
        };
        state.visits += 1;
        state.begun += 1;
        Ok(running)
    }

    fn leave(&self) {
        let begun = {
            let mut state = self.state();
            state.visits = state.visits.saturating_sub(1);
            if state.visits > 0 {
                return;
            }
            state.begun
        };
        let layer = self.clone();
        let end = async move {
            tokio::time::sleep(LINGER).await;
            let ended = {
                let mut state = layer.state();
                if state.begun == begun { state.running.take() } else { None }
            };
            // Connections are closed outside the lock.
            drop(ended);
        };
        // Without a runtime the host has ended, and everything with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(end);
        }
    }
}

impl SessionsLayer for Layer {
    fn visit(&self, client: &ClientId) -> Result<Arc<dyn Visit>, Refusal> {
        let running = self.enter().map_err(|error| refusal::failed(format!("sessions cannot be listed: {error:#}")))?;
        Ok(Arc::new(Visitor::new(self.clone(), running, client.clone())))
    }
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Layer").finish_non_exhaustive()
    }
}
