//! The catalog of agents that Grove knows by name: how each is installed, found, started and signed in to.
//!
//! The facts are data: `agents.toml` beside this crate's `Cargo.toml`, which is compiled in, or the newer file that
//! `grove agents update` has put into the data folder. [`AgentCatalog::parse`] reads either, [`AgentCatalog::changes_to`]
//! compares two.
//!
//! **To add a fact about agents**: add a field with `#[serde(default)]` to [`AgentEntry`], set it in `agents.toml` where
//! it differs from the default, check it in `validate.rs` if a wrong value could do harm, and describe it in
//! `docs/agents.md`. A running agent reads it from [`AcpProgram::known`]. Versions of Grove that do not know the field
//! ignore it, so a field must not change the meaning of another one. Only a change that older versions must not read
//! raises [`FORMAT`].
//!
//! Finding takes a `PATH` value as an argument, so that it also works for another environment, and in tests. Only
//! [`version`] runs a program.

mod changes;
mod find;
mod hook_support;
pub(crate) mod installed;
pub(crate) mod validate;
mod version;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use grove_core::AgentId;
use serde::Deserialize;

use crate::acp::{AcpProgram, FileScope};

pub use changes::CatalogChange;
pub use find::{Installation, find, look_up};
pub use hook_support::HookSupport;
pub use installed::InstalledAgent;
pub use validate::{CatalogError, is_safe_address};
pub use version::version;

/// The format of catalog files that this version reads.
pub const FORMAT: i64 = 1;
/// The largest catalog file.
pub const CATALOG_BYTES: u64 = 1 << 20;
/// The agents of a catalog.
pub const CATALOG_AGENTS: usize = 256;

/// The known agents, in the order of lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCatalog {
    /// The date of its facts (`2026-11-18`).
    pub date: String,
    pub agents: Vec<Arc<AgentEntry>>,
}

/// An agent that is known by name.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AgentEntry {
    pub id: String,
    /// Its id in the registry of the Agent Client Protocol, if it is there.
    #[serde(default)]
    pub registry_id: Option<String>,
    #[serde(rename = "name")]
    pub display_name: String,
    pub description: String,
    #[serde(default)]
    pub website: Option<String>,
    /// Possible names of its program, the best first.
    pub commands: Vec<String>,
    /// The arguments that make it speak the protocol.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables that it gets by default.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The user's variables that it gets beside those that every program does: for signing in, and for the location of
    /// its own settings. A `*` at the end stands for anything. After parsing, the vendors' keys are among them.
    #[serde(default)]
    pub pass_env: Vec<String>,
    /// It also gets the keys of all model vendors.
    #[serde(default)]
    vendor_keys: bool,
    /// The ways to sign in without asking anybody, the best first.
    #[serde(default)]
    pub sign_in: Vec<SignIn>,
    /// An instruction for a person to log in.
    pub log_in: String,
    /// The arguments with which its program logs a person in, in a terminal; `None` if it has no such call.
    #[serde(default)]
    pub log_in_args: Option<Vec<String>>,
    pub package: AgentPackage,
    /// Sentences that a person should know before using it.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// A way to authenticate that works if a variable is set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SignIn {
    pub variable: String,
    /// The agent's name of it.
    pub method: String,
}

/// The package that an agent comes in.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum AgentPackage {
    /// A package of the npm registry.
    Npm {
        name: String,
        version: String,
        /// The oldest version of Node.js that runs it.
        #[serde(default)]
        node: Option<String>,
    },
    /// An npm package whose program runs under bun.
    Bun { name: String, version: String },
    /// A package of PyPI.
    Pypi {
        name: String,
        version: String,
        /// The oldest version of Python that runs it.
        #[serde(default)]
        python: Option<String>,
    },
    /// A file for each platform (`linux-x86_64`, `darwin-aarch64`).
    Binary { version: String, targets: BTreeMap<String, BinaryTarget> },
    /// Grove cannot install it.
    Manual { instructions: String },
    /// A kind that only newer versions of Grove know.
    #[serde(other)]
    Unknown,
}

/// The download of a program for one platform: an archive (`.tar.gz`, `.tar.bz2`, `.tar.xz`, `.zip`), or the program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct BinaryTarget {
    pub url: String,
    pub sha256: String,
    /// The path of the program in the archive.
    pub program: String,
}

impl AgentPackage {
    /// The name of its kind.
    pub fn kind(&self) -> &'static str {
        match self {
            AgentPackage::Npm { .. } => "npm",
            AgentPackage::Bun { .. } => "bun",
            AgentPackage::Pypi { .. } => "pypi",
            AgentPackage::Binary { .. } => "binary",
            AgentPackage::Manual { .. } => "manual",
            AgentPackage::Unknown => "unknown",
        }
    }

    /// The name of the npm package that contains it, in whose `package.json` the version of a program is.
    pub fn npm_name(&self) -> Option<&str> {
        match self {
            AgentPackage::Npm { name, .. } | AgentPackage::Bun { name, .. } => Some(name),
            AgentPackage::Pypi { .. }
            | AgentPackage::Binary { .. }
            | AgentPackage::Manual { .. }
            | AgentPackage::Unknown => None,
        }
    }

    /// The newest version that the catalog knows.
    pub fn version(&self) -> Option<&str> {
        match self {
            AgentPackage::Npm { version, .. }
            | AgentPackage::Bun { version, .. }
            | AgentPackage::Pypi { version, .. }
            | AgentPackage::Binary { version, .. } => Some(version),
            AgentPackage::Manual { .. } | AgentPackage::Unknown => None,
        }
    }

    /// The download for this machine.
    pub fn target(&self) -> Option<&BinaryTarget> {
        match self {
            AgentPackage::Binary { targets, .. } => targets.get(&platform()),
            _ => None,
        }
    }
}

/// This machine, as a catalog names it.
pub fn platform() -> String {
    let system = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    format!("{system}-{}", std::env::consts::ARCH)
}

impl AgentCatalog {
    /// The catalog that this version of Grove includes.
    pub fn built_in() -> Arc<Self> {
        static BUILT_IN: LazyLock<Arc<AgentCatalog>> = LazyLock::new(|| {
            // A test parses the file, so this is never empty.
            let empty = AgentCatalog { date: String::new(), agents: Vec::new() };
            Arc::new(AgentCatalog::parse(AgentCatalog::BUILT_IN_TEXT).unwrap_or(empty))
        });
        Arc::clone(&BUILT_IN)
    }

    /// The text of the included catalog.
    pub const BUILT_IN_TEXT: &str = include_str!("../agents.toml");

    /// The agent of this name.
    pub fn get(&self, id: &str) -> Option<&Arc<AgentEntry>> {
        self.agents.iter().find(|entry| entry.id == id)
    }
}

impl AgentEntry {
    /// The command that starts a program that was found. Of the user's environment it gets only what it needs.
    pub fn program(self: &Arc<Self>, program: PathBuf, environment: &BTreeMap<String, String>) -> AcpProgram {
        let mut env = self.env.clone();
        env.extend(passed(&self.pass_env, environment));
        AcpProgram {
            id: AgentId::from(self.id.as_str()),
            display_name: self.display_name.clone(),
            description: self.description.clone(),
            program,
            args: self.args.clone(),
            auth: self.sign_in(&env),
            files: FileScope::default(),
            mcp_servers: Vec::new(),
            env,
            known: Some(Arc::clone(self)),
        }
    }

    /// The methods to authenticate whose variables are set, the best first.
    pub fn sign_in(&self, env: &BTreeMap<String, String>) -> Vec<String> {
        let set = |sign_in: &&SignIn| env.get(&sign_in.variable).is_some_and(|value| !value.is_empty());
        self.sign_in.iter().filter(set).map(|sign_in| sign_in.method.clone()).collect()
    }
}

/// The variables of an environment that match these names. A `*` at a name's end stands for anything.
pub fn passed<'a>(
    names: &'a [impl AsRef<str>],
    environment: &'a BTreeMap<String, String>,
) -> impl Iterator<Item = (String, String)> + 'a {
    let is_named = |variable: &str| {
        names.iter().map(AsRef::as_ref).any(|name| match name.strip_suffix('*') {
            Some(beginning) => variable.starts_with(beginning),
            None => variable == name,
        })
    };
    let named = environment.iter().filter(move |(variable, _)| is_named(variable));
    named.map(|(variable, value)| (variable.clone(), value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(variables: &[(&str, &str)]) -> BTreeMap<String, String> {
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn entry(id: &str) -> Arc<AgentEntry> {
        Arc::clone(AgentCatalog::built_in().get(id).unwrap())
    }

    #[test]
    fn the_included_catalog_is_valid_and_names_the_agents_of_today() {
        let catalog = AgentCatalog::parse(AgentCatalog::BUILT_IN_TEXT).unwrap();
        let versions: Vec<(&str, &str)> = catalog
            .agents
            .iter()
            .filter_map(|entry| Some((entry.package.npm_name()?, entry.package.version()?)))
            .collect();
        for (package, version) in [
            ("@agentclientprotocol/claude-agent-acp", "0.100.0"),
            ("@agentclientprotocol/codex-acp", "2.6.0"),
            ("@google/gemini-cli", "0.61.0"),
            ("@qwen-code/qwen-code", "0.24.4"),
        ] {
            assert!(versions.contains(&(package, version)), "{package} in {versions:?}");
        }
        assert!(catalog.agents.iter().all(|entry| entry.package != AgentPackage::Unknown));
    }

    #[test]
    fn an_agent_sees_the_keys_that_are_meant_for_it_and_no_others() {
        let person = environment(&[
            ("ANTHROPIC_API_KEY", "a"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("OPENAI_API_KEY", "o"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("GROVE_DATA_DIR", "/d"),
        ]);
        let program = entry("claude").program("/bin/claude-agent-acp".into(), &person);
        assert_eq!(program.env, environment(&[("ANTHROPIC_API_KEY", "a"), ("CLAUDE_CONFIG_DIR", "/c")]));
        assert_eq!((program.id.as_str(), program.args.len()), ("claude", 0));
        let kilo = entry("kilo").program("/bin/kilo".into(), &person);
        assert_eq!(
            kilo.env,
            environment(&[("ANTHROPIC_API_KEY", "a"), ("OPENAI_API_KEY", "o")]),
            "keys of all vendors"
        );
    }

    #[test]
    fn what_the_person_says_comes_before_what_the_catalog_says() {
        let opencode = entry("opencode");
        let quiet = opencode.program("/o".into(), &environment(&[]));
        assert_eq!(quiet.env, environment(&[("OPENCODE_DISABLE_AUTOUPDATE", "1")]));
        let loud = opencode.program("/o".into(), &environment(&[("OPENCODE_DISABLE_AUTOUPDATE", "0")]));
        assert_eq!(loud.env, environment(&[("OPENCODE_DISABLE_AUTOUPDATE", "0")]));
    }

    #[test]
    fn the_ways_to_sign_in_are_those_whose_variable_is_set() {
        let codex = entry("codex");
        let auth = |variables: &[(&str, &str)]| codex.program("/c".into(), &environment(variables)).auth;
        assert!(auth(&[]).is_empty());
        assert!(auth(&[("OPENAI_API_KEY", "")]).is_empty(), "an empty one is none");
        assert_eq!(auth(&[("OPENAI_API_KEY", "x")]), ["api-key", "openai-api-key"]);
        assert_eq!(
            auth(&[("CODEX_API_KEY", "x"), ("OPENAI_API_KEY", "x")]),
            ["api-key", "api-key", "codex-api-key", "openai-api-key"]
        );
    }
}
