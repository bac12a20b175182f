//! Settings, each with the source of its value.
//!
//! Flags override the environment, which overrides `grove.toml`, which overrides defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use etcetera::BaseStrategy;
use grove_agents::catalog::AgentCatalog;
use grove_checks::Check;
use grove_core::StoreName;
use serde::Serialize;

use crate::agents::catalog_file::LoadedCatalog;
use crate::agents::{AgentConfig, config_table};
use crate::cli::{Common, ServeArgs};
use crate::copilot_table::{self, CopilotConfig};
use crate::history::{self, HistoryConfig};
use crate::hooks::{self, HookConfig};
use crate::limits_table::{self, LimitsConfig};
use crate::mcp_table::{self, ConfiguredServer};
use crate::notify::{self, NotifySettings};
use crate::secret_files;
use crate::stores::{self, StoreConfig};
use crate::telemetry::{self, TelemetryConfig};

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "name")]
pub(crate) enum SettingSource {
    Default,
    File(PathBuf),
    Environment(String),
    Flag(String),
}

impl fmt::Display for SettingSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingSource::Default => f.write_str("default"),
            SettingSource::File(path) => write!(f, "{}", path.display()),
            SettingSource::Environment(name) => write!(f, "environment ({name})"),
            SettingSource::Flag(name) => write!(f, "flag ({name})"),
        }
    }
}

/// A value and its source.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Setting<T> {
    pub(crate) value: T,
    pub(crate) source: SettingSource,
}

/// The event that a confirmed action survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Durability {
    /// A power cut
    #[default]
    Power,
    /// The end of the process
    Process,
}

impl std::str::FromStr for Durability {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        clap::ValueEnum::from_str(text, false).map_err(|_| "it must be `power` or `process`".to_owned())
    }
}

impl From<Durability> for grove_host::Durability {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Power => Self::Power,
            Durability::Process => Self::Process,
        }
    }
}

/// The port of a data folder's first host, if `listen` is not set.
pub(crate) const DEFAULT_PORT: u16 = 4747;
/// The idle limit of a background host, in seconds without client and turn.
pub(crate) const IDLE_EXIT: u64 = 600;
/// The maximum number of agent processes.
pub(crate) const MAX_AGENTS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(15);
/// The idle limit of an agent's process, in seconds without a turn.
pub(crate) const AGENT_IDLE: u64 = 600;
/// The time that an agent may take to answer `initialize`, in seconds. Some are interpreters that load for seconds.
pub(crate) const AGENT_START: NonZeroU64 = NonZeroU64::MIN.saturating_add(14);
/// The time that an agent may take to stop a cancelled turn, in seconds.
pub(crate) const AGENT_CANCEL: NonZeroU64 = NonZeroU64::MIN.saturating_add(4);
/// The time after which an idle session is evicted from memory, in seconds.
const SESSION_IDLE: u64 = 600;
/// The size above which output and messages are written to files, in bytes.
const SPILL_BYTES: NonZeroUsize = NonZeroUsize::MIN.saturating_add((64 << 10) - 1);
/// The duration above which an operation is logged as slow, in milliseconds.
const SLOW_MS: u64 = 500;
/// The agent of sessions that name none. It needs no model and no account.
const DEFAULT_AGENT: &str = "scripted";

/// Every setting of Grove.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Settings {
    pub(crate) data_dir: Setting<PathBuf>,
    pub(crate) listen: Setting<SocketAddr>,
    /// The certificate and its key: both or none.
    pub(crate) tls_cert: Setting<Option<PathBuf>>,
    pub(crate) tls_key: Setting<Option<PathBuf>>,
    /// Other machines may connect without TLS.
    pub(crate) insecure: Setting<bool>,
    /// The names under which other machines reach the host; none means those of the certificate.
    pub(crate) host_names: Setting<Vec<String>>,
    /// Other machines may give a token in the address.
    pub(crate) query_token: Setting<bool>,
    /// The address of the Copilot SDK server, if there is one.
    pub(crate) copilot_listen: Setting<Option<SocketAddr>>,
    pub(crate) replay_actions: Setting<usize>,
    pub(crate) replay_bytes: Setting<usize>,
    pub(crate) turn_silence: Setting<u64>,
    /// Seconds; 0 means never. For a host in the foreground only the flag counts.
    pub(crate) idle_exit: Setting<u64>,
    pub(crate) durability: Setting<Durability>,
    pub(crate) default_directory: Setting<PathBuf>,
    pub(crate) browse_roots: Setting<Vec<PathBuf>>,
    pub(crate) read_roots: Setting<Vec<PathBuf>>,
    /// The agent of sessions that name none.
    pub(crate) default_agent: Setting<String>,
    pub(crate) max_agents: Setting<NonZeroUsize>,
    /// Seconds.
    pub(crate) agent_idle: Setting<u64>,
    /// Seconds until an agent has to answer `initialize`.
    pub(crate) agent_start: Setting<NonZeroU64>,
    /// Seconds until an agent has to stop a cancelled turn.
    pub(crate) agent_cancel: Setting<NonZeroU64>,
    pub(crate) session_idle: Setting<u64>,
    pub(crate) spill_bytes: Setting<NonZeroUsize>,
    /// Operations that take longer are logged, in milliseconds; 0 means none.
    pub(crate) slow_ms: Setting<u64>,
    /// Percent of the model's window; 0 means never.
    pub(crate) compact_at: Setting<u8>,
    /// Tokens.
    pub(crate) compact_keep: Setting<u64>,
    /// The store of sessions that name none.
    pub(crate) store: Setting<String>,
    /// A folder for the logs of new sessions, which overrides `store`.
    pub(crate) log_dir: Setting<Option<PathBuf>>,
    /// Folders that sessions can be stored in.
    #[serde(serialize_with = "names")]
    pub(crate) stores: Setting<BTreeMap<String, StoreConfig>>,
    /// Programs that are called before and after changes of sessions' trees.
    #[serde(serialize_with = "names")]
    pub(crate) hooks: Setting<BTreeMap<String, HookConfig>>,
    /// Other tools' sessions: whether to scan for them, whether to keep copies, and further folders.
    pub(crate) history: Setting<HistoryConfig>,
    /// The limits of connections and tokens that the file sets.
    pub(crate) limits: Setting<LimitsConfig>,
    /// The export of spans to an OpenTelemetry collector.
    pub(crate) telemetry: Setting<TelemetryConfig>,
    /// The addresses to tell when an agent needs a person.
    pub(crate) notify: Setting<NotifySettings>,
    /// Model names of the Copilot SDK's programs.
    pub(crate) copilot: Setting<CopilotConfig>,
    /// The MCP servers of the file. They may contain secrets: only their names are shown.
    #[serde(serialize_with = "names")]
    pub(crate) mcp: Setting<BTreeMap<String, ConfiguredServer>>,
    /// The agents of the file. They may contain secrets: only their names are shown.
    #[serde(serialize_with = "names")]
    pub(crate) agents: Setting<BTreeMap<String, AgentConfig>>,
    /// The agents that are known by name.
    #[serde(skip)]
    pub(crate) catalog: LoadedCatalog,
    /// The path of the configuration file, whether it exists or not.
    #[serde(skip)]
    pub(crate) config_file: PathBuf,
    /// The user named the file (`--config`).
    #[serde(skip)]
    pub(crate) config_is_named: bool,
    /// Grove's folder among the platform's configuration folders.
    #[serde(skip)]
    pub(crate) config_dir: PathBuf,
    /// The user's home folder.
    #[serde(skip)]
    pub(crate) home: PathBuf,
}

/// The meaning of a missing configuration file that the user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MissingFile {
    /// An error.
    Refused,
    /// An empty file: it is about to be written.
    Empty,
}

impl Settings {
    /// Combines the layers.
    pub(crate) fn load(common: &Common, serve: &ServeArgs) -> Result<Self> {
        Self::load_with(common, serve, MissingFile::Refused)
    }

    /// The same for a command that writes the configuration file, and creates it if it is missing.
    pub(crate) fn load_to_change(common: &Common) -> Result<Self> {
        Self::load_with(common, &ServeArgs::default(), MissingFile::Empty)
    }

    fn load_with(common: &Common, serve: &ServeArgs, missing: MissingFile) -> Result<Self> {
        let platform = etcetera::choose_base_strategy().context("the home folder cannot be found: set HOME")?;
        let config_dir = platform.config_dir().join("grove");
        let config_file = common.config.clone().unwrap_or_else(|| config_dir.join("grove.toml"));
        if common.config.is_some() && missing == MissingFile::Refused && !config_file.exists() {
            bail!("the configuration file {} does not exist: create it, or leave out --config", config_file.display());
        }
        let layers = Layers::read(config_file, environment())?;
        let home = platform.home_dir().to_path_buf();
        let limits = grove_host::Limits::default();
        let compaction = grove_host::Compaction::default();

        let data_dir = layers.one("data-dir", common.data_dir.clone(), || platform.data_dir().join("grove"))?;
        let catalog = LoadedCatalog::load(&data_dir.value);
        let default_directory = layers.one("default-directory", serve.default_directory.clone(), || home.clone())?;
        let browse_default = || {
            let mut roots = vec![home.clone(), default_directory.value.clone()];
            roots.dedup();
            roots
        };
        let settings = Self {
            listen: layers.one("listen", serve.listen, || SocketAddr::from(([127, 0, 0, 1], DEFAULT_PORT)))?,
            tls_cert: layers.optional("tls-cert", serve.tls_cert.clone())?,
            tls_key: layers.optional("tls-key", serve.tls_key.clone())?,
            insecure: layers.one("insecure", serve.insecure.then_some(true), || false)?,
            host_names: layers.names("host-names", "--host-name", &serve.host_names)?,
            query_token: layers.one("query-token", None, || false)?,
            copilot_listen: layers.optional("copilot-listen", serve.copilot_listen)?,
            replay_actions: layers.one("replay-actions", serve.replay_actions, || limits.replay_actions)?,
            replay_bytes: layers.one("replay-bytes", serve.replay_bytes, || limits.replay_bytes)?,
            turn_silence: layers.one("turn-silence", serve.turn_silence, || limits.turn_silence.as_secs())?,
            idle_exit: layers.one("idle-exit", serve.idle_exit, || IDLE_EXIT)?,
            durability: layers.one("durability", serve.durability, Durability::default)?,
            browse_roots: layers.paths("browse-roots", "--browse-root", &serve.browse_roots, browse_default)?,
            read_roots: layers.paths("read-roots", "--read-root", &serve.read_roots, Vec::new)?,
            default_agent: layers.one("default-agent", serve.default_agent.clone(), || DEFAULT_AGENT.to_owned())?,
            max_agents: layers.one("max-agents", serve.max_agents, || MAX_AGENTS)?,
            agent_idle: layers.one("agent-idle", serve.agent_idle, || AGENT_IDLE)?,
            agent_start: layers.one("agent-start", None, || AGENT_START)?,
            agent_cancel: layers.one("agent-cancel", None, || AGENT_CANCEL)?,
            session_idle: layers.one("session-idle", serve.session_idle, || SESSION_IDLE)?,
            spill_bytes: layers.one("spill-bytes", serve.spill_bytes, || SPILL_BYTES)?,
            slow_ms: layers.one("slow-ms", serve.slow_ms, || SLOW_MS)?,
            compact_at: layers.one("compact-at", serve.compact_at, || compaction.at_percent)?,
            compact_keep: layers.one("compact-keep", serve.compact_keep, || compaction.keep_tokens)?,
            store: layers.one("store", serve.store.clone(), || StoreName::LOCAL.to_owned())?,
            log_dir: layers.optional("log-dir", serve.log_dir.clone())?,
            stores: layers.stores()?,
            hooks: layers.hooks()?,
            history: layers.history()?,
            limits: layers.limits()?,
            telemetry: layers.telemetry()?,
            notify: layers.notify()?,
            copilot: layers.copilot()?,
            mcp: layers.mcp()?,
            agents: layers.agents(&catalog.catalog)?,
            catalog,
            data_dir,
            default_directory,
            config_file: layers.file.clone(),
            config_is_named: common.config.is_some(),
            config_dir,
            home,
        };
        settings.check_listening()?;
        Ok(settings)
    }

    /// Checks that an address for other machines has TLS, or `--insecure`.
    fn check_listening(&self) -> Result<()> {
        match (&self.tls_cert, &self.tls_key) {
            (Setting { value: Some(_), source }, Setting { value: None, .. }) => {
                bail!("a certificate needs its key: give --tls-key too (tls-cert is from {source})")
            }
            (Setting { value: None, .. }, Setting { value: Some(_), source }) => {
                bail!("a key needs its certificate: give --tls-cert too (tls-key is from {source})")
            }
            _ => {}
        }
        let Setting { value: address, source } = &self.listen;
        let is_open = !address.ip().is_loopback() && self.tls_cert.value.is_none() && !self.insecure.value;
        if Check::ListenWithTls.is_enforced() && is_open {
            bail!(
                "{address} is not a loopback address (from {source}): other machines are served with --tls-cert and \
                 --tls-key, or with --insecure on a network where everybody may read everything; from elsewhere \
                 `grove hosts add NAME ssh://this-machine` needs neither"
            );
        }
        let Setting { value: copilot, source } = &self.copilot_listen;
        if let Some(address) =
            copilot.filter(|address| Check::CopilotLoopback.is_enforced() && !address.ip().is_loopback())
        {
            bail!(
                "{address} is not a loopback address (from {source}): the Copilot SDK is served on this machine only; use \
                 127.0.0.1 or [::1]"
            );
        }
        Ok(())
    }
}

/// The layers below the flags.
struct Layers {
    file: PathBuf,
    values: toml::Table,
    environment: BTreeMap<String, String>,
}

/// A value that may be missing.
struct OptionalValue<T>(Option<T>);

impl<T: std::str::FromStr> std::str::FromStr for OptionalValue<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        text.parse().map(Some).map(Self)
    }
}

/// The settings of `grove.toml`.
const KEYS: &[&str] = &[
    "data-dir",
    "listen",
    "tls-cert",
    "tls-key",
    "insecure",
    "host-names",
    "query-token",
    "copilot-listen",
    "replay-actions",
    "replay-bytes",
    "turn-silence",
    "idle-exit",
    "durability",
    "default-directory",
    "browse-roots",
    "read-roots",
    "default-agent",
    "max-agents",
    "agent-idle",
    "agent-start",
    "agent-cancel",
    "session-idle",
    "spill-bytes",
    "slow-ms",
    "compact-at",
    "compact-keep",
    "store",
    "log-dir",
    "stores",
    "hooks",
    "history",
    "limits",
    "telemetry",
    "notify",
    "copilot",
    "mcp",
    "agents",
    // Read by `PolicyFiles`, again whenever the file changes.
    "policy",
];

impl Layers {
    fn read(file: PathBuf, environment: BTreeMap<String, String>) -> Result<Self> {
        if file.exists() {
            // It names programs to run, and may contain keys.
            secret_files::check_named(&file)?;
        }
        let values = match std::fs::read_to_string(&file) {
            Ok(text) => text.parse::<toml::Table>().with_context(|| format!("{} is not valid TOML", file.display()))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => toml::Table::new(),
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", file.display())),
        };
        if let Some(unknown) = values.keys().find(|key| !KEYS.contains(&key.as_str())) {
            bail!("{}: there is no setting `{unknown}`; there are: {}", file.display(), KEYS.join(", "));
        }
        Ok(Self { file, values, environment })
    }

    /// A setting with one value.
    fn one<T>(&self, key: &str, flag: Option<T>, default: impl FnOnce() -> T) -> Result<Setting<T>>
    where
        T: std::str::FromStr,
        T::Err: fmt::Display,
    {
        if let Some(value) = flag {
            return Ok(Setting { value, source: SettingSource::Flag(format!("--{key}")) });
        }
        let parse = |text: &str, source: SettingSource| match text.parse() {
            Ok(value) => Ok(Setting { value, source }),
            Err(error) => Err(anyhow!("`{text}` is not a valid value of {key} (from {source}): {error}")),
        };
        let name = variable(key);
        if let Some(text) = self.environment.get(&name) {
            return parse(text, SettingSource::Environment(name));
        }
        match self.values.get(key) {
            None => Ok(Setting { value: default(), source: SettingSource::Default }),
            Some(toml::Value::String(text)) => parse(text, SettingSource::File(self.file.clone())),
            Some(value) => parse(&value.to_string(), SettingSource::File(self.file.clone())),
        }
    }

    /// An optional setting. An empty value means none.
    fn optional<T>(&self, key: &str, flag: Option<T>) -> Result<Setting<Option<T>>>
    where
        T: std::str::FromStr,
        T::Err: fmt::Display,
    {
        let written = self.environment.get(&variable(key)).map(String::as_str);
        let written = written.or_else(|| self.values.get(key).map(|value| value.as_str().unwrap_or("a value")));
        if flag.is_none() && written.is_none_or(str::is_empty) {
            return Ok(Setting { value: None, source: SettingSource::Default });
        }
        let Setting { value, source } = self.one(key, flag.map(Some).map(OptionalValue), || OptionalValue(None))?;
        Ok(Setting { value: value.0, source })
    }

    /// A setting with a list of names. In the environment they are separated by commas.
    fn names(&self, key: &str, flag_name: &str, flags: &[String]) -> Result<Setting<Vec<String>>> {
        if !flags.is_empty() {
            return Ok(Setting { value: flags.to_vec(), source: SettingSource::Flag(flag_name.to_owned()) });
        }
        let name = variable(key);
        if let Some(text) = self.environment.get(&name) {
            let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
            return Ok(Setting { value: names.map(str::to_owned).collect(), source: SettingSource::Environment(name) });
        }
        let Some(value) = self.values.get(key) else {
            return Ok(Setting { value: Vec::new(), source: SettingSource::Default });
        };
        let names =
            value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(str::to_owned)).collect());
        match names {
            Some(value) => Ok(Setting { value, source: SettingSource::File(self.file.clone()) }),
            None => Err(anyhow!("{}: {key} must be a list of names", self.file.display())),
        }
    }

    /// A setting with a list of folders. In the environment they are separated as in PATH.
    fn paths(
        &self,
        key: &str,
        flag_name: &str,
        flags: &[PathBuf],
        default: impl FnOnce() -> Vec<PathBuf>,
    ) -> Result<Setting<Vec<PathBuf>>> {
        if !flags.is_empty() {
            return Ok(Setting { value: flags.to_vec(), source: SettingSource::Flag(flag_name.to_owned()) });
        }
        let name = variable(key);
        if let Some(text) = self.environment.get(&name) {
            let value = std::env::split_paths(text).filter(|path| path != Path::new("")).collect();
            return Ok(Setting { value, source: SettingSource::Environment(name) });
        }
        let Some(value) = self.values.get(key) else {
            return Ok(Setting { value: default(), source: SettingSource::Default });
        };
        let paths =
            value.as_array().and_then(|items| items.iter().map(|item| item.as_str().map(PathBuf::from)).collect());
        match paths {
            Some(value) => Ok(Setting { value, source: SettingSource::File(self.file.clone()) }),
            None => Err(anyhow!("{}: {key} must be a list of folders", self.file.display())),
        }
    }

    /// The hooks of the file. No flag and no variable sets them.
    fn hooks(&self) -> Result<Setting<BTreeMap<String, HookConfig>>> {
        let value = hooks::read(&self.file, self.values.get("hooks"))?;
        let source = if value.is_empty() { SettingSource::Default } else { SettingSource::File(self.file.clone()) };
        Ok(Setting { value, source })
    }

    /// The stores of the file. No flag and no variable sets them.
    fn stores(&self) -> Result<Setting<BTreeMap<String, StoreConfig>>> {
        let value = stores::read(&self.file, self.values.get("stores"))?;
        let source = if value.is_empty() { SettingSource::Default } else { SettingSource::File(self.file.clone()) };
        Ok(Setting { value, source })
    }

    /// The settings of the file for other tools' sessions. No flag and no variable sets them.
    fn history(&self) -> Result<Setting<HistoryConfig>> {
        let table = self.values.get("history");
        let source = if table.is_some() { SettingSource::File(self.file.clone()) } else { SettingSource::Default };
        Ok(Setting { value: history::read(&self.file, table)?, source })
    }

    /// The limits of the file. No flag and no variable sets them.
    fn limits(&self) -> Result<Setting<LimitsConfig>> {
        let value = limits_table::read(&self.file, self.values.get("limits"))?;
        let source = if value.is_empty() { SettingSource::Default } else { SettingSource::File(self.file.clone()) };
        Ok(Setting { value, source })
    }

    fn telemetry(&self) -> Result<Setting<TelemetryConfig>> {
        let table = self.values.get("telemetry");
        let source = if table.is_some() { SettingSource::File(self.file.clone()) } else { SettingSource::Default };
        Ok(Setting { value: telemetry::read(&self.file, table)?, source })
    }

    /// The settings of the file for notifications. No flag and no variable sets them.
    fn notify(&self) -> Result<Setting<NotifySettings>> {
        let table = self.values.get("notify");
        let source = if table.is_some() { SettingSource::File(self.file.clone()) } else { SettingSource::Default };
        Ok(Setting { value: notify::read(&self.file, table)?, source })
    }

    /// The settings of the file for programs of the Copilot SDK. No flag and no variable sets them.
    fn copilot(&self) -> Result<Setting<CopilotConfig>> {
        let table = self.values.get("copilot");
        let source = if table.is_some() { SettingSource::File(self.file.clone()) } else { SettingSource::Default };
        Ok(Setting { value: copilot_table::read(&self.file, table)?, source })
    }

    /// The MCP servers of the file. No flag and no variable sets them.
    fn mcp(&self) -> Result<Setting<BTreeMap<String, ConfiguredServer>>> {
        let value = mcp_table::read(&self.file, self.values.get("mcp"))?;
        let source = if value.is_empty() { SettingSource::Default } else { SettingSource::File(self.file.clone()) };
        Ok(Setting { value, source })
    }

    /// The agents of the file. No flag and no variable sets them.
    fn agents(&self, catalog: &AgentCatalog) -> Result<Setting<BTreeMap<String, AgentConfig>>> {
        let value = config_table::read(&self.file, self.values.get("agents"), catalog)?;
        let source = if value.is_empty() { SettingSource::Default } else { SettingSource::File(self.file.clone()) };
        Ok(Setting { value, source })
    }
}

/// The environment of the process. Values that are not text are left out.
pub(crate) fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// Serializes only the names of tables.
fn names<T, S: serde::Serializer>(named: &Setting<BTreeMap<String, T>>, serializer: S) -> Result<S::Ok, S::Error> {
    let names: Vec<&String> = named.value.keys().collect();
    Setting { value: names, source: named.source.clone() }.serialize(serializer)
}

/// The environment variable of a setting.
fn variable(key: &str) -> String {
    format!("GROVE_{}", key.to_ascii_uppercase().replace('-', "_"))
}

#[cfg(test)]
mod tests;
