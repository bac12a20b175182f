//! `grove serve`

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use grove_core::{AgentId, ChatId, ScopeSet, SessionId, State, StoreName};
use grove_fs::LocalFs;
use grove_fs::temp_files::TempFilePolicy;
use grove_host::tokens::{HostToken, TokenRegistry};
use grove_host::{Compaction, Config, Env, Folders, Host, HostStopped, Limits};
use grove_metrics::Metrics;
use grove_server::copilot::{EndpointConfig, EndpointSecret, QuickAckListener};
use grove_server::{FrameLog, HostServer, InProcessHost};
use grove_session_hub::{HistorySource, SessionHub, SessionSources};
use grove_storage::{ClientStorageRegister, FileJournal, recover};
use grove_work::Roots;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::{Failure, print_line, print_page_url};
use crate::administration::{ProgramAdministration, SettingsLoader};
use crate::agents::backends::{Backends, ConfiguredAgentFinder};
use crate::audit::{self, AuditFiles};
use crate::cli::{Common, ServeArgs};
use crate::damage_file;
use crate::data_folder::DataFolder;
use crate::editor_sockets::EditorSockets;
use crate::endpoint::HostEndpoint;
use crate::file_memory::FileMemory;
use crate::history::{ForeignStores, watch_stores};
use crate::hooks;
use crate::hosts::HostsFile;
use crate::listeners::HostListeners;
use crate::notify;
use crate::open_files;
use crate::page::page;
use crate::policy_files::PolicyFiles;
use crate::settings::{SettingSource, Settings};
use crate::stores;
use crate::telemetry::{self, SpanExporter};
use crate::tokens_file::TokensFile;
use crate::trust::TrustedFolders;

/// The variable that keeps temporary files if it is `true`.
const KEEP_TEMP_FILES: &str = "GROVE_KEEP_TEMP_FILES";
/// The file with the client-stored sessions: ids, times and counters.
const REGISTER: &str = "entrusted.jsonl";
/// The parts of the heap that threads share, at least. Threads that read and write files must not each keep their own.
const MIN_ARENAS: usize = 2;
/// A block of this size has its own pages, in bytes: glibc's default before it grows.
const MMAP_THRESHOLD: usize = 128 << 10;
/// How long agents may take to end that would be left behind when the host stops. Then their shims end them.
const LEAVING: Duration = Duration::from_secs(5);
/// How long connections may take to be closed when the host stops.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(common: &Common, args: &ServeArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, args)?;
    if args.detached {
        // Signals of the terminal and of its job control no longer reach the host.
        rustix::process::setsid().context("the host cannot leave its terminal: use `grove start`")?;
    }
    let exporter = log_to_stderr(&settings);
    open_files::raise_limit();
    let is_limited = grove_allocator::limit_arenas(workers().max(MIN_ARENAS));
    if !(grove_allocator::fix_mmap_threshold(MMAP_THRESHOLD) && is_limited) {
        tracing::debug!("the allocator's memory for threads and of large blocks is not limited");
    }
    let runtime = Builder::new_multi_thread().worker_threads(workers()).enable_all().build().context("no runtime")?;
    if let Some(exporter) = exporter {
        runtime.spawn(exporter.run());
    }
    runtime.block_on(serve(common, &settings, args))
}

/// The threads that run the host's tasks: half of the processors.
///
/// The agents need the others. Waking another thread for each event costs more than it brings: on two processors a message
/// takes 30 % less processor time with one thread (`bench/fanout`, 100 subscribers, paced), and arrives no later. Files are
/// read and sessions encoded on other threads.
fn workers() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (processors / 2).max(1)
}

async fn serve(common: &Common, settings: &Settings, args: &ServeArgs) -> Result<(), Failure> {
    let mut signals = HostSignals::listen()?;
    adopt_orphans();
    let folder = DataFolder::take(&settings.data_dir.value)?;
    let listeners = HostListeners::begin(settings, &folder).await?;
    let found = listeners.find()?;
    let address = found.local;
    let StartedHost { host, backends, frame_log, tokens } = start(settings, args, &folder).await?;
    let storage_lost = tokio::spawn(watch_storage(host.clone(), folder.deletion_check()));
    let (its_common, its_args) = (common.clone(), args.clone());
    let load: SettingsLoader = Arc::new(move || Settings::load(&its_common, &its_args));
    let finder_load = load.clone();
    host.set_agent_finder(Arc::new(ConfiguredAgentFinder::new(backends.clone(), move || finder_load())));
    if let Some(endpoint) = &settings.telemetry.value.otlp_endpoint {
        tokio::spawn(telemetry::export_metrics(host.clone(), endpoint.clone()));
    }
    let serving = server(&host, frame_log.as_ref());
    let rules = set_session_sources(&host, frame_log.as_ref(), &folder, settings);
    host.set_administration(Arc::new(ProgramAdministration::new(&host, backends.clone(), rules, load)));
    notify::start(&host, &tokens, folder.path(), &settings.notify.value);
    let token = tokens.host_token();
    listeners.serve(&serving, token, settings)?;
    let copilot = match settings.copilot_listen.value {
        Some(address) => Some(serve_sdks(&serving, address, token.clone()).await?),
        None => None,
    };

    hooks::add_all(settings, &host, &format!("http://{address}"));

    let endpoint = HostEndpoint {
        ws: format!("ws://{address}/ws"),
        http: format!("http://{address}"),
        token: token.current().reveal().to_owned(),
        pid: std::process::id(),
        copilot: copilot.map(|address| address.to_string()),
        unix: found.socket,
        remote: found.remote,
    };
    folder.announce(&endpoint)?;
    greet(&endpoint, &tokens, settings, args)?;

    let idle_exit = idle_exit(settings, args);
    let idle = async {
        match idle_exit {
            Some(patience) => serving.idle(patience).await,
            None => std::future::pending().await,
        }
    };
    let reread = async || match Settings::load(common, args) {
        Ok(settings) => {
            host.set_usage_limits(config(&settings).usage_limits());
            backends.reread(&settings, &host).await
        }
        Err(error) => {
            tracing::warn!("cannot read the configuration again: {error:#}");
            Ok(())
        }
    };
    let reason = tokio::select! {
        Ok(reason) = storage_lost => StopReason::StorageLost(reason),
        reason = signals.stop(reread) => reason,
        _ = idle => StopReason::Idle,
    };
    reason.log();
    if matches!(reason, StopReason::Idle) {
        // Commands that look for a host from now on start another one.
        folder.retract();
    }
    let stops = async {
        stop(&host, &serving, &reason).await;
        sweep_left(&backends, &host).await;
    };
    tokio::select! {
        () = stops => {}
        // A second Ctrl-C stops at once.
        _ = signals.interrupt.recv() => tracing::warn!("stopped at once"),
    }
    folder.retract();
    if let Some(log) = frame_log {
        tokio::time::timeout(FAREWELL, log.written()).await.ok();
    }
    tokio::time::timeout(FAREWELL, backends.captured()).await.ok();
    match reason {
        StopReason::StorageLost(reason) => Err(anyhow::anyhow!("{reason}: start the host again").into()),
        StopReason::Idle | StopReason::Signal | StopReason::TerminalGone => Ok(()),
    }
}

/// Ends the agents that the stopped host would leave behind, beside those whose turns go on.
async fn sweep_left(backends: &Backends, host: &Host) {
    let running = host.running_chats();
    if tokio::time::timeout(LEAVING, backends.sweep_left(&running)).await.is_err() {
        tracing::warn!("some agents are still ending; their shims see to it");
    }
}

/// The time after which an ended child of the host is an orphan that nobody waits for.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(30);

/// Keeps the processes of agents below the host, also if they fork twice or outlive their shim.
fn adopt_orphans() {
    match grove_work::adopt_orphans() {
        Ok(()) => drop(tokio::spawn(grove_work::reap_orphans(ORPHAN_PATIENCE))),
        Err(error) => tracing::warn!(%error, "a process that outlives its agent is not recognized as the agent's"),
    }
}

/// A host on its data folder, before it listens.
struct StartedHost {
    host: Host,
    backends: Arc<Backends>,
    frame_log: Option<FrameLog>,
    tokens: TokenRegistry,
}

/// Recovers the state from the data folder, and starts the host with its agents.
async fn start(settings: &Settings, args: &ServeArgs, folder: &DataFolder) -> Result<StartedHost, Failure> {
    let metrics = Arc::new(Metrics::default());
    metrics.slow_threshold.set(Duration::from_millis(settings.slow_ms.value));
    let stores = stores::open(settings)?.with_register(register(folder).await?).with_metrics(&metrics);
    let env = Env { stores, metrics, ..Env::in_memory() };
    let token = folder.token(env.random.as_ref())?;
    let config = config(settings);
    let private = config.folders.roots.private.clone();
    let backends = Arc::new(Backends::new(settings, args.log_agent_frames.clone(), private)?);
    let frame_log = match &args.log_frames {
        Some(file) => Some(FrameLog::append_to(file).with_context(|| format!("{} cannot be written", file.display()))?),
        None => None,
    };
    let (journal, contents) = FileJournal::open(&folder.path().join("journal"))?;
    let journal = journal.with_metrics(env.metrics.clone());
    let recovered = recover(contents, &env.stores, config.limits.snapshot()).await?;
    for damage in &recovered.damage {
        tracing::warn!("damage found: {damage}");
    }
    damage_file::append(folder.path(), env.clock.now(), &recovered.damage);
    backends.sweep(&running_chats(&recovered.state)).await;
    let host = Host::start(env, config, backends.agents.clone(), Box::new(journal), recovered).await?;
    backends.attend(&host);
    let audit_folder = audit::folder(folder.path());
    let unwritable = || format!("the audit log in {} cannot be written", audit_folder.display());
    host.set_audit_log(Arc::new(AuditFiles::open(audit_folder.clone()).with_context(unwritable)?));
    host.set_storage_check(folder.check());
    let storage = Box::new(TokensFile::of(folder.path()));
    let tokens = TokenRegistry::open(host.env().clone(), token.into(), storage).context("cannot read the tokens")?;
    host.set_tokens(tokens.clone());
    Ok(StartedHost { host, backends, frame_log, tokens })
}

/// A server with the page and for editors, which records its frames if that is wanted.
fn server(host: &Host, frame_log: Option<&FrameLog>) -> HostServer {
    let serving = HostServer::new(host.clone()).with_page(page()).with_editors(Arc::new(EditorSockets));
    match frame_log {
        Some(log) => serving.with_frame_log(log.clone()),
        None => serving,
    }
}

/// Gives the host its trusted folders, permission rules, other tools' sessions, and the hub that lists the sessions of all sources.
///
/// Returns the permission rules.
fn set_session_sources(
    host: &Host,
    frame_log: Option<&FrameLog>,
    folder: &DataFolder,
    settings: &Settings,
) -> Arc<PolicyFiles> {
    let this_host = InProcessHost::new(host);
    let trust = Arc::new(TrustedFolders::of(folder.path()));
    host.set_trust(trust.clone());
    let rules = Arc::new(PolicyFiles::new(&settings.config_file, folder.path(), &settings.home));
    host.set_permission_rules(rules.clone());
    let sources = SessionSources {
        this_host: match frame_log {
            Some(log) => this_host.with_frame_log(log.clone()),
            None => this_host,
        },
        hosts: Arc::new(HostsFile::of(folder.path())),
        history: show_history(host, folder, settings),
        memory: Arc::new(FileMemory::open(folder.path(), trust.clone())),
        trust: Some(trust),
    };
    host.set_session_hub(Arc::new(SessionHub::new(sources)));
    rules
}

/// The signals that a host handles.
struct HostSignals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
    is_on_terminal: bool,
}

impl HostSignals {
    fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot handle SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot handle SIGINT")?,
            hangup: signal(SignalKind::hangup()).context("cannot handle SIGHUP")?,
            is_on_terminal: std::io::stdin().is_terminal(),
        })
    }

    /// Waits for a signal to stop. On SIGHUP the configuration is read again, unless the terminal is gone.
    async fn stop(&mut self, reread: impl AsyncFn() -> Result<(), HostStopped>) -> StopReason {
        let hung_up = async {
            while self.hangup.recv().await.is_some() {
                if self.is_on_terminal && !std::io::stdin().is_terminal() {
                    break;
                }
                if reread().await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            () = hung_up => StopReason::TerminalGone,
            _ = self.terminate.recv() => StopReason::Signal,
            _ = self.interrupt.recv() => StopReason::Signal,
        }
    }
}

/// The reason why a host stops.
enum StopReason {
    /// Its data folder was deleted; this says how.
    StorageLost(String),
    TerminalGone,
    Signal,
    Idle,
}

impl StopReason {
    fn log(&self) {
        match self {
            StopReason::StorageLost(reason) => tracing::error!("stopping: {reason}"),
            StopReason::TerminalGone => tracing::info!("stopping: the terminal is gone"),
            StopReason::Signal => tracing::info!("stopping: running turns get a few seconds"),
            StopReason::Idle => tracing::info!("stopping: the host was not used for a while (idle-exit)"),
        }
    }
}

/// Stops the host, and waits for a while until its connections are closed.
async fn stop(host: &Host, serving: &HostServer, reason: &StopReason) {
    match reason {
        StopReason::StorageLost(_) => host.stop_without_storage().await,
        StopReason::TerminalGone | StopReason::Signal | StopReason::Idle => host.stop().await,
    }
    tokio::time::timeout(FAREWELL, serving.drained()).await.ok();
}

/// The pause between checks of the storage.
const STORAGE_PAUSE: Duration = Duration::from_secs(2);

/// Says in the log when nothing can be stored any more, and when it can again. Requests find that out by themselves; a host
/// that nobody uses would say nothing. Ends, with the reason, when what the host stores on was deleted.
async fn watch_storage(host: Host, deletion: impl Fn() -> Option<String> + Send + Sync + 'static) -> String {
    let mut known = None;
    let deletion = Arc::new(deletion);
    loop {
        tokio::time::sleep(STORAGE_PAUSE).await;
        let (looked, deletion) = (host.clone(), deletion.clone());
        let look = move || (looked.storage_problem(), deletion());
        // A look that panicked is made again.
        let Ok((problem, deleted)) = tokio::task::spawn_blocking(look).await else { continue };
        if let Some(reason) = deleted {
            return reason;
        }
        match (&known, &problem) {
            (None, Some(problem)) => tracing::error!("{problem}"),
            (Some(_), None) => tracing::info!("the data folder is there again"),
            _ => {}
        }
        known = problem;
    }
}

/// The register of client-stored sessions.
async fn register(folder: &DataFolder) -> anyhow::Result<ClientStorageRegister> {
    let files = Arc::new(LocalFs::inside(folder.path(), folder.path()));
    ClientStorageRegister::open(files, REGISTER).await.with_context(|| format!("{REGISTER} cannot be read"))
}

/// Starts the source of other tools' sessions. The host works without it.
fn show_history(host: &Host, folder: &DataFolder, settings: &Settings) -> Option<HistorySource> {
    if !settings.history.value.enabled {
        return None;
    }
    match ForeignStores::open(folder.path(), settings) {
        Ok(stores) => {
            host.set_history(Arc::new(stores.clone()));
            let found = stores.found();
            tokio::spawn(watch_stores(host.clone(), stores));
            Some(found)
        }
        Err(error) => {
            tracing::warn!("other tools' sessions are not shown: {error:#}");
            None
        }
    }
}

/// Serves Copilot SDKs on an address, and returns the address in use.
async fn serve_sdks(serving: &HostServer, address: SocketAddr, token: HostToken) -> anyhow::Result<SocketAddr> {
    let listener =
        QuickAckListener::bind(address).await.with_context(|| format!("{address} cannot be used to listen on"))?;
    let address = listener.local_addr().context("the listener has no address")?;
    let secret = Some(EndpointSecret::Token(token));
    let config = EndpointConfig {
        store: StoreName::from("copilot"),
        secret,
        keeps_temp_files: false,
        default_folder: None,
        allows_all: false,
    };
    serving.serve_sdks(config, Box::new(listener));
    Ok(address)
}

/// The chats with a running turn, whose agents must not be ended.
fn running_chats(state: &State) -> Vec<(SessionId, ChatId)> {
    let chats = state.sessions.values().flat_map(|session| session.chats.iter().map(move |chat| (session, chat)));
    let running = chats.filter(|(_, chat)| chat.active.is_some());
    running.map(|(session, chat)| (session.id.clone(), chat.id.clone())).collect()
}

/// Prints the addresses of the host. Nothing that gives access is printed except on a terminal, or on request.
fn greet(
    endpoint: &HostEndpoint,
    tokens: &TokenRegistry,
    settings: &Settings,
    args: &ServeArgs,
) -> Result<(), Failure> {
    if args.json {
        let mut output = serde_json::to_value(endpoint)?;
        let code = tokens.issue_code(ScopeSet::ALL);
        output["page"] = code.map_or_else(|_| endpoint.page(), |code| endpoint.page_with_code(code.reveal())).into();
        return Ok(print_line(output)?);
    }
    print_line(format!("Grove is running at {} (data in {})", endpoint.http, settings.data_dir.value.display()))?;
    if std::io::stdout().is_terminal() {
        let code = tokens.issue_code(ScopeSet::ALL).context("cannot issue a code for the page")?;
        print_line(format!("page: {}", endpoint.page_with_code(code.reveal())))?;
        print_line("      (this address is good once, for a minute; `grove open` gives another one)")?;
    } else {
        print_page_url(endpoint)?;
    }
    print_line(format!("clients: {} (the token is in {}/token)", endpoint.ws, settings.data_dir.value.display()))?;
    if let Some(remote) = &endpoint.remote {
        let certificate = remote.certificate.as_deref().map(|shown| format!(" with the certificate {shown}"));
        print_line(format!("other machines: {}{}", remote.ws, certificate.as_deref().unwrap_or(", without TLS")))?;
    }
    if let Some(copilot) = &endpoint.copilot {
        print_line(format!("Copilot SDKs: {copilot}"))?;
    }
    print_line(if args.detached { "`grove stop` stops it." } else { "Ctrl-C stops it." })?;
    Ok(())
}

/// The idle limit of the host. In the foreground only the flag sets it, no file.
fn idle_exit(settings: &Settings, args: &ServeArgs) -> Option<Duration> {
    let is_requested = args.detached || matches!(settings.idle_exit.source, SettingSource::Flag(_));
    (is_requested && settings.idle_exit.value > 0).then(|| Duration::from_secs(settings.idle_exit.value))
}

/// The configuration of a host with these settings.
pub(crate) fn config(settings: &Settings) -> Config {
    // The file may be anywhere, beside other files: it is private, its folder only if it is Grove's own.
    let mut private = vec![settings.data_dir.value.clone(), settings.config_dir.clone(), settings.config_file.clone()];
    private.extend(stores::folders(settings).into_iter().map(|store| store.folder));
    let limits = settings.limits.value.apply(Limits::default());
    Config {
        token_limits: settings.limits.value.of_tokens(&limits),
        limits: Limits {
            replay_actions: settings.replay_actions.value,
            replay_bytes: settings.replay_bytes.value,
            turn_silence: Duration::from_secs(settings.turn_silence.value),
            spill_bytes: settings.spill_bytes.value.get(),
            session_idle: Duration::from_secs(settings.session_idle.value),
            ..limits
        },
        folders: Folders {
            default_directory: Some(settings.default_directory.value.clone()),
            home: Some(settings.home.clone()),
            roots: Roots {
                browse: settings.browse_roots.value.clone(),
                read: settings.read_roots.value.clone(),
                private,
            },
        },
        durability: settings.durability.value.into(),
        compaction: Compaction { at_percent: settings.compact_at.value, keep_tokens: settings.compact_keep.value },
        temp_files: temp_files(),
        default_agent: Some(AgentId::from(settings.default_agent.value.as_str())),
        model_names: settings.copilot.value.models.clone(),
        client_hooks: settings.copilot.value.hooks.into(),
        ..Config::default()
    }
}

/// Temporary files are deleted with their sessions, unless the user wants to inspect them.
fn temp_files() -> TempFilePolicy {
    match std::env::var_os(KEEP_TEMP_FILES).is_some_and(|value| value == "true") {
        true => TempFilePolicy::Kept,
        false => TempFilePolicy::Removed,
    }
}

/// Logs to stderr, since stdout belongs to the command's output. `GROVE_LOG` sets the level.
///
/// Returns the exporter of spans, if they are exported.
fn log_to_stderr(settings: &Settings) -> Option<SpanExporter> {
    let filter = tracing_subscriber::EnvFilter::try_from_env("GROVE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    let endpoint = settings.telemetry.value.otlp_endpoint.as_deref();
    let Some((layer, exporter)) = endpoint.and_then(telemetry::exporter) else {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).init();
        return None;
    };
    // Each has a filter of its own: spans are exported whatever the log shows.
    let log = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colours).with_filter(filter);
    let spans = layer.with_filter(filter_fn(telemetry::is_exported));
    tracing_subscriber::registry().with(log).with(spans).init();
    Some(exporter)
}
