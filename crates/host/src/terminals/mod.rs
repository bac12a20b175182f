//! Terminals of clients: commands on real pseudo-terminals of the host.
//!
//! A terminal belongs to the host and not to a connection: other clients can subscribe to it and claim it. It ends with
//! [`ClientTerminals::dispose`], or with the host. Nothing of it is stored.
//!
//! - `screen`: its newest output, which subscribers read at their own pace.
//! - `delivery`: a subscription. A client that reads slowly slows down the command; one that does not read for a while is
//!   not waited for, and its connection is closed once the output that it needs is dropped.

mod delivery;
pub(crate) mod screen;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_checks::Check;
use grove_core::{ClientId, RefusalKind};
use grove_wire::ahp::{
    self, ActionOrigin, TerminalAction, TerminalClaim, TerminalContentPart, TerminalExited, TerminalInfo,
    TerminalLifecycle, TerminalState, TerminalUnclassifiedPart,
};
use grove_work::{Program, Terminal, TerminalError, TerminalLimits, TerminalRequest, TerminalSize, Terminals};
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, watch};

pub use self::delivery::{SubscriptionStart, TerminalSubscription};
use self::screen::{Screen, ScreenAction, TextDecoder};
use crate::Host;
use crate::env::Env;
use crate::refusal::Refusal;
use crate::sequencer::{ConnectionId, SequencerHandle, ToSequencer};

/// The terminals of clients that a host has. An ended one that nobody watches makes room for a new one.
pub const MAX_TERMINALS: usize = 64;
/// Those that one connection has created.
pub const MAX_CONNECTION_TERMINALS: usize = 16;
/// The bytes of one piece of input.
pub const MAX_INPUT_BYTES: usize = 64 << 10;
/// The bytes of an action that is passed on to others.
pub const MAX_ACTION_BYTES: usize = 128 << 10;
/// The bytes of a title.
pub const MAX_TITLE_BYTES: usize = 1_000;
/// The rows and the columns.
pub const MAX_SIDE: u64 = 4_096;
/// The time without progress after which a command waits for a subscriber no longer.
pub const STALL_TIME: Duration = Duration::from_secs(5);
/// The chunks of output between a terminal and its screen.
const CHUNKS: usize = 4;
/// The time that a command may take after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);
/// The shell, if the environment names none.
const SHELL: &str = "/bin/sh";

/// A terminal to be created.
#[derive(Clone, Debug)]
pub struct NewTerminal {
    /// The name of its channel.
    pub uri: String,
    pub title: Option<String>,
    pub claim: TerminalClaim,
    pub cwd: PathBuf,
    pub columns: Option<u64>,
    pub rows: Option<u64>,
    /// The connection that asks for it.
    pub connection: ConnectionId,
}

/// The reason why a request about a terminal is refused.
#[derive(Debug, thiserror::Error)]
pub enum ClientTerminalError {
    #[error("there is a terminal of this name already: choose another id")]
    Exists,
    #[error("there is no terminal of this name: it was disposed, or ended with an earlier host")]
    Unknown,
    #[error("{whose} has {limit} terminals: dispose of one first")]
    TooMany {
        whose: &'static str,
        limit: usize,
        /// The name of the limit in `docs/limits.md`.
        name: &'static str,
    },
    #[error("a terminal has 1 to {MAX_SIDE} rows and columns")]
    Size,
    #[error("a title has {MAX_TITLE_BYTES} bytes at most")]
    LongTitle,
    #[error("another client has claimed this terminal: claim it first (`terminal/claimed`)")]
    NotClaimed,
    #[error("a client claims a terminal for itself, and one that it has claimed for a session")]
    ForeignClaim,
    #[error("input has {MAX_INPUT_BYTES} bytes at most: send it in parts")]
    LongInput,
    #[error("the action is larger than {MAX_ACTION_BYTES} bytes")]
    LongAction,
    #[error("clients do not dispatch this action on a terminal")]
    HostAction,
    #[error(transparent)]
    Terminal(#[from] TerminalError),
}

impl Refusal for ClientTerminalError {
    fn kind(&self) -> RefusalKind {
        match self {
            Self::Exists => RefusalKind::Exists,
            Self::Unknown => RefusalKind::NotFound,
            Self::TooMany { .. } | Self::Terminal(TerminalError::TooMany { .. }) => RefusalKind::LimitReached,
            Self::Size | Self::LongTitle | Self::LongInput | Self::LongAction | Self::HostAction => {
                RefusalKind::InvalidParams
            }
            Self::NotClaimed | Self::ForeignClaim => RefusalKind::NotPermitted,
            Self::Terminal(TerminalError::Process(_)) => RefusalKind::InvalidParams,
            Self::Terminal(_) => RefusalKind::Failed,
        }
    }
}

/// The terminals of a host's clients.
#[derive(Debug)]
pub struct ClientTerminals {
    terminals: Terminals,
    table: Mutex<BTreeMap<String, Arc<ClientTerminal>>>,
    /// Changes with every change of the list.
    changed: watch::Sender<u64>,
}

/// A terminal of a client.
#[derive(Debug)]
struct ClientTerminal {
    uri: String,
    terminal: Terminal,
    created_by: ConnectionId,
    cwd: PathBuf,
    view: Mutex<View>,
    /// Changes when there is something to read.
    grown: watch::Sender<()>,
    /// A subscriber has read something.
    read: Notify,
}

/// The state of a terminal that its subscribers see.
#[derive(Debug)]
struct View {
    title: String,
    claim: TerminalClaim,
    size: TerminalSize,
    lifecycle: TerminalLifecycle,
    screen: Screen,
    /// The terminal was disposed of: nothing more happens on it.
    is_over: bool,
}

impl Default for ClientTerminals {
    fn default() -> Self {
        let limits = TerminalLimits { terminals: MAX_TERMINALS, output_bytes: 0, grace: GRACE };
        Self { terminals: Terminals::new(limits), table: Mutex::default(), changed: watch::Sender::new(0) }
    }
}

impl Host {
    /// The terminals of clients.
    pub fn terminals(&self) -> &Arc<ClientTerminals> {
        &self.0.terminals
    }
}

impl ClientTerminals {
    /// Starts the user's shell on a new terminal.
    pub async fn create(self: &Arc<Self>, host: &Host, new: NewTerminal) -> Result<(), ClientTerminalError> {
        let size = size(new.columns, new.rows)?;
        let title = new.title.unwrap_or_else(|| "Terminal".to_owned());
        if title.len() > MAX_TITLE_BYTES {
            return Err(ClientTerminalError::LongTitle);
        }
        self.make_room(&new.uri, new.connection).await?;
        let shell = host.config().shell.clone().or_else(|| std::env::var("SHELL").ok());
        let shell = shell.filter(|shell| !shell.is_empty()).unwrap_or_else(|| SHELL.to_owned());
        let program = Program::new(shell, &new.cwd);
        let (terminal, driver) = self.terminals.create(&TerminalRequest { program, output_bytes: Some(0), size })?;
        let (chunks, output) = mpsc::channel(CHUNKS);
        let (id, driver) = (terminal.id().to_owned(), driver.with_listener(chunks));
        let created = Arc::new(ClientTerminal {
            uri: new.uri.clone(),
            terminal,
            created_by: new.connection,
            cwd: new.cwd,
            view: Mutex::new(View {
                title,
                claim: new.claim,
                size,
                lifecycle: TerminalLifecycle::Running,
                screen: Screen::default(),
                is_over: false,
            }),
            grown: watch::Sender::new(()),
            read: Notify::new(),
        });
        let is_new = {
            let mut table = self.table();
            let is_new = !table.contains_key(&new.uri);
            if is_new {
                table.insert(new.uri, created.clone());
            }
            is_new
        };
        let env = host.env();
        env.spawn.spawn(Box::pin(driver.run()));
        if !is_new {
            // Another connection created it meanwhile.
            self.terminals.release(&id).await.ok();
            return Err(ClientTerminalError::Exists);
        }
        env.spawn.spawn(Box::pin(created.show(output, env.clone(), self.clone())));
        self.publish_list(host);
        Ok(())
    }

    /// Ends a terminal, with every process on it.
    pub async fn dispose(&self, uri: &str) -> Result<(), ClientTerminalError> {
        let disposed = self.table().remove(uri).ok_or(ClientTerminalError::Unknown)?;
        disposed.end();
        self.terminals.release(disposed.terminal.id()).await.ok();
        self.list_changed();
        Ok(())
    }

    /// Ends all terminals: the host stops.
    pub(crate) async fn end(&self) {
        std::mem::take(&mut *self.table()).values().for_each(|terminal| terminal.end());
        self.terminals.release_all().await;
    }

    /// Carries out a client's action, and echoes it to the subscribers. Returns whether the client's own connection is one of
    /// them: any other one has to be answered by the caller.
    pub fn act(
        &self,
        uri: &str,
        action: &TerminalAction,
        raw: Arc<RawValue>,
        (origin, connection): (ActionOrigin, ConnectionId),
    ) -> Result<bool, ClientTerminalError> {
        let terminal = self.get(uri)?;
        if raw.get().len() > MAX_ACTION_BYTES {
            return Err(ClientTerminalError::LongAction);
        }
        let (only, is_subscriber) = {
            let mut view = terminal.view();
            let only = view.act(&terminal.terminal, action, &ClientId::from(origin.client_id.as_str()))?;
            let clears = matches!(action, TerminalAction::Cleared(_));
            let only = only.then_some(connection);
            let is_subscriber = view.screen.is_read_by(connection);
            if only.is_none() || is_subscriber {
                view.screen.push_action(ScreenAction { action: raw, origin: Some(origin), only, clears });
            }
            (only, is_subscriber)
        };
        terminal.grown.send_replace(());
        if only.is_none() {
            self.list_changed();
        }
        Ok(is_subscriber)
    }

    /// Says whether there is a terminal of this name.
    pub fn has(&self, uri: &str) -> bool {
        self.table().contains_key(uri)
    }

    /// The rows of all terminals.
    fn list(&self) -> Vec<TerminalInfo> {
        let table = self.table();
        let rows = table.values().map(|terminal| {
            let view = terminal.view();
            let (title, claim, lifecycle) = (view.title.clone(), view.claim.clone(), view.lifecycle.clone());
            TerminalInfo { resource: terminal.uri.clone(), title, claim, lifecycle }
        });
        rows.collect()
    }

    fn get(&self, uri: &str) -> Result<Arc<ClientTerminal>, ClientTerminalError> {
        self.table().get(uri).cloned().ok_or(ClientTerminalError::Unknown)
    }

    /// Refuses one terminal too many. An ended one without a subscriber is dropped instead.
    async fn make_room(&self, uri: &str, connection: ConnectionId) -> Result<(), ClientTerminalError> {
        let dropped = {
            let mut table = self.table();
            if table.contains_key(uri) {
                return Err(ClientTerminalError::Exists);
            }
            let own = table.values().filter(|terminal| terminal.created_by == connection).count();
            if own >= MAX_CONNECTION_TERMINALS && Check::TerminalCount.is_enforced() {
                let limit = MAX_CONNECTION_TERMINALS;
                return Err(ClientTerminalError::TooMany {
                    whose: "this connection",
                    limit,
                    name: "connection-terminals",
                });
            }
            if table.len() < MAX_TERMINALS {
                return Ok(());
            }
            let is_over = |terminal: &&Arc<ClientTerminal>| {
                let view = terminal.view();
                view.lifecycle != TerminalLifecycle::Running && !view.screen.is_watched()
            };
            let over = table.values().find(is_over).map(|terminal| terminal.uri.clone());
            over.and_then(|uri| table.remove(&uri))
        };
        let full = ClientTerminalError::TooMany { whose: "this host", limit: MAX_TERMINALS, name: "client-terminals" };
        let dropped = dropped.ok_or(full)?;
        dropped.end();
        self.terminals.release(dropped.terminal.id()).await.ok();
        Ok(())
    }

    fn list_changed(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    /// Publishes the list with every change. One task does so, so that the newest list is the last one.
    fn publish_list(self: &Arc<Self>, host: &Host) {
        let is_published = self.changed.receiver_count() > 0;
        let mut changed = self.changed.subscribe();
        self.list_changed();
        if is_published {
            return;
        }
        let (terminals, sequencer): (_, SequencerHandle) = (Arc::downgrade(self), host.sequencer().clone());
        host.env().spawn.spawn(Box::pin(async move {
            while changed.changed().await.is_ok() {
                let Some(rows) = terminals.upgrade().map(|terminals| terminals.list()) else { return };
                if sequencer.tell(ToSequencer::SetTerminals(rows)).await.is_err() {
                    return;
                }
            }
        }));
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<String, Arc<ClientTerminal>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientTerminal {
    // Nothing in here can panic half-way, so a poisoned lock still guards a valid view.
    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the subscriptions. The command waits for none of them.
    fn end(&self) {
        self.view().is_over = true;
        self.grown.send_replace(());
        self.read.notify_one();
    }

    /// Shows the output of the command until it ends, and then its exit.
    async fn show(self: Arc<Self>, mut output: mpsc::Receiver<Vec<u8>>, env: Env, terminals: Arc<ClientTerminals>) {
        let mut decoder = TextDecoder::default();
        while let Some(chunk) = output.recv().await {
            let text = decoder.read(&chunk);
            if !text.is_empty() {
                self.view().screen.push_text(&text);
                self.grown.send_replace(());
            }
            self.wait_for_subscribers(&env).await;
        }
        let exit = self.terminal.wait_for_exit().await;
        let exit_code = exit.code.map(i64::from);
        {
            let mut view = self.view();
            view.lifecycle = TerminalLifecycle::Exited { exit_code };
            let rest = decoder.end();
            if !rest.is_empty() {
                view.screen.push_text(rest);
            }
            if let Some(exited) = ScreenAction::of_host(&TerminalAction::Exited(TerminalExited { exit_code })) {
                view.screen.push_action(exited);
            }
        }
        self.grown.send_replace(());
        terminals.list_changed();
    }

    /// Waits while a subscriber is too far behind, unless it does not read at all.
    async fn wait_for_subscribers(&self, env: &Env) {
        loop {
            let read = self.read.notified();
            let waits = {
                let view = self.view();
                !view.is_over && view.screen.must_wait()
            };
            if !waits {
                return;
            }
            tokio::select! {
                () = read => {}
                () = env.clock.sleep(STALL_TIME) => self.view().screen.give_up(),
            }
        }
    }
}

impl View {
    /// Carries out a client's action. Returns whether it changes nothing that others see.
    fn act(
        &mut self,
        terminal: &Terminal,
        action: &TerminalAction,
        client: &ClientId,
    ) -> Result<bool, ClientTerminalError> {
        if let TerminalAction::Claimed(claimed) = action {
            let is_own = match &claimed.claim {
                TerminalClaim::Client(claim) => claim.client_id == client.as_str(),
                TerminalClaim::Session(_) => self.is_claimed_by(client),
            };
            if !is_own && Check::TerminalClaim.is_enforced() {
                return Err(ClientTerminalError::ForeignClaim);
            }
            self.claim = claimed.claim.clone();
            return Ok(false);
        }
        if !self.is_claimed_by(client) && Check::TerminalClaim.is_enforced() {
            return Err(ClientTerminalError::NotClaimed);
        }
        match action {
            TerminalAction::Input(input) if input.data.len() > MAX_INPUT_BYTES => {
                return Err(ClientTerminalError::LongInput);
            }
            TerminalAction::Input(input) => {
                terminal.write(input.data.as_bytes().to_vec())?;
                return Ok(true);
            }
            TerminalAction::Resized(resized) => {
                let size = size(Some(resized.cols), Some(resized.rows))?;
                terminal.resize(size)?;
                self.size = size;
            }
            TerminalAction::TitleChanged(changed) if changed.title.len() > MAX_TITLE_BYTES => {
                return Err(ClientTerminalError::LongTitle);
            }
            TerminalAction::TitleChanged(changed) => self.title.clone_from(&changed.title),
            TerminalAction::Cleared(_) => {}
            _ => return Err(ClientTerminalError::HostAction),
        }
        Ok(false)
    }

    fn is_claimed_by(&self, client: &ClientId) -> bool {
        matches!(&self.claim, TerminalClaim::Client(claim) if claim.client_id == client.as_str())
    }

    /// The state, as a new subscriber gets it.
    fn state(&self, cwd: &std::path::Path) -> TerminalState {
        let text = self.screen.text();
        let part = TerminalContentPart::Unclassified(TerminalUnclassifiedPart { value: text.clone() });
        TerminalState {
            title: self.title.clone(),
            cwd: Some(grove_work::file_uri(cwd)),
            cols: Some(u64::from(self.size.columns)),
            rows: Some(u64::from(self.size.rows)),
            content: if text.is_empty() { Vec::new() } else { vec![part] },
            lifecycle: self.lifecycle.clone(),
            claim: self.claim.clone(),
            supports_command_detection: None,
            is_pty: Some(true),
        }
    }
}

fn size(columns: Option<u64>, rows: Option<u64>) -> Result<TerminalSize, ClientTerminalError> {
    let default = TerminalSize::default();
    let side = |side: Option<u64>, default: u16| match side {
        None => Ok(default),
        Some(side @ 1..=MAX_SIDE) => u16::try_from(side).map_err(|_| ClientTerminalError::Size),
        Some(_) => Err(ClientTerminalError::Size),
    };
    Ok(TerminalSize { rows: side(rows, default.rows)?, columns: side(columns, default.columns)? })
}

/// The frame of an action on a terminal.
fn frame(channel: &str, action: &ScreenAction, seq: u64) -> Option<Arc<str>> {
    ahp::encode::action_frame(channel, &action.action, seq, action.origin.clone(), None).map(Arc::from)
}
