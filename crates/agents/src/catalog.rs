//! The catalog of agents that Grove knows by name: how each is found, started and installed.
//!
//! [`AGENTS`] is the only source of these facts. Finding takes a `PATH` value as an argument, so that it also works for
//! another environment, and in tests. Only [`version`] runs a program.

mod agent_entry;
mod find;
mod version;

use std::collections::BTreeMap;
use std::path::PathBuf;

use grove_core::AgentId;

use crate::acp::{AcpProgram, FileScope};

pub use agent_entry::AGENTS;
pub use find::{Installation, find, look_up};
pub use version::version;

/// An agent that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentEntry {
    pub id: &'static str,
    pub display_name: &'static str,
    pub description: &'static str,
    /// Possible names of its program, the best first.
    pub commands: &'static [&'static str],
    /// The arguments that make it speak the protocol.
    pub args: &'static [&'static str],
    /// Environment variables that it gets by default.
    pub env: &'static [(&'static str, &'static str)],
    /// The user's variables that it gets beside those that every program does: for signing in, and for the location of
    /// its own settings. A `*` at the end stands for anything.
    pub pass: &'static [&'static str],
    /// The ways to sign in without asking anybody, the best first.
    pub auth: &'static [SignIn],
    /// An instruction for a person to log in.
    pub log_in: &'static str,
    pub install: Install,
}

/// A way to authenticate that works if a variable is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignIn {
    pub variable: &'static str,
    /// The agent's name of it.
    pub method: &'static str,
}

/// The way to install an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Install {
    /// An npm package.
    Npm(&'static str),
    /// An npm package whose program runs under bun.
    Bun(&'static str),
    /// Instructions in words.
    Words(&'static str),
}

impl Install {
    /// Instructions for the person.
    pub fn words(&self) -> String {
        match self {
            Install::Npm(package) => format!("npm install -g {package}"),
            Install::Bun(package) => format!("bun install -g {package}"),
            Install::Words(words) => (*words).to_owned(),
        }
    }

    /// The package that contains it, if any.
    pub fn package(&self) -> Option<&'static str> {
        match self {
            Install::Npm(package) | Install::Bun(package) => Some(package),
            Install::Words(_) => None,
        }
    }
}

impl AgentEntry {
    /// The command that starts a program that was found. Of the user's environment it gets only what it needs.
    pub fn program(&self, program: PathBuf, environment: &BTreeMap<String, String>) -> AcpProgram {
        let mut env: BTreeMap<String, String> =
            self.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        env.extend(passed(self.pass, environment));
        AcpProgram {
            id: AgentId::from(self.id),
            display_name: self.display_name.to_owned(),
            description: self.description.to_owned(),
            program,
            args: self.args.iter().map(|arg| (*arg).to_owned()).collect(),
            auth: self.sign_in(&env).map(str::to_owned),
            files: FileScope::default(),
            mcp_servers: Vec::new(),
            env,
        }
    }

    /// The way to authenticate whose variable is set.
    pub fn sign_in(&self, env: &BTreeMap<String, String>) -> Option<&'static str> {
        let set = |sign_in: &&SignIn| env.get(sign_in.variable).is_some_and(|value| !value.is_empty());
        self.auth.iter().find(set).map(|sign_in| sign_in.method)
    }
}

/// The agent of this name.
pub fn agent_entry(id: &str) -> Option<&'static AgentEntry> {
    AGENTS.iter().find(|agent_entry| agent_entry.id == id)
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

    #[test]
    fn an_agent_sees_the_keys_that_are_meant_for_it_and_no_others() {
        let person = environment(&[
            ("ANTHROPIC_API_KEY", "a"),
            ("CLAUDE_CONFIG_DIR", "/c"),
            ("OPENAI_API_KEY", "o"),
            ("AWS_SECRET_ACCESS_KEY", "s"),
            ("GROVE_DATA_DIR", "/d"),
        ]);
        let program = agent_entry("claude").unwrap().program("/bin/claude-agent-acp".into(), &person);
        assert_eq!(program.env, environment(&[("ANTHROPIC_API_KEY", "a"), ("CLAUDE_CONFIG_DIR", "/c")]));
        assert_eq!((program.id.as_str(), program.args.len()), ("claude", 0));
    }

    #[test]
    fn what_the_person_says_comes_before_what_the_catalog_says() {
        let opencode = agent_entry("opencode").unwrap();
        let quiet = opencode.program("/o".into(), &environment(&[]));
        assert_eq!(quiet.env, environment(&[("OPENCODE_DISABLE_AUTOUPDATE", "1")]));
        let loud = opencode.program("/o".into(), &environment(&[("OPENCODE_DISABLE_AUTOUPDATE", "0")]));
        assert_eq!(loud.env, environment(&[("OPENCODE_DISABLE_AUTOUPDATE", "0")]));
    }

    #[test]
    fn a_way_to_sign_in_is_taken_where_its_variable_is_set() {
        let codex = agent_entry("codex").unwrap();
        let auth = |variables: &[(&str, &str)]| codex.program("/c".into(), &environment(variables)).auth;
        assert_eq!(auth(&[]), None);
        assert_eq!(auth(&[("OPENAI_API_KEY", "")]), None, "an empty one is none");
        assert_eq!(auth(&[("OPENAI_API_KEY", "x")]).as_deref(), Some("openai-api-key"));
        assert_eq!(auth(&[("CODEX_API_KEY", "x"), ("OPENAI_API_KEY", "x")]).as_deref(), Some("codex-api-key"));
    }

    #[test]
    fn names_in_the_catalog_are_fit_to_be_names_and_differ() {
        for (at, agent_entry) in AGENTS.iter().enumerate() {
            let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            assert!(agent_entry.id.chars().all(fit) && !agent_entry.commands.is_empty(), "{}", agent_entry.id);
            assert!(AGENTS[..at].iter().all(|other| other.id != agent_entry.id), "{}", agent_entry.id);
            assert!(agent_entry.auth.iter().all(|sign_in| {
                let variable = environment(&[(sign_in.variable, "x")]);
                passed(agent_entry.pass, &variable).count() == 1
            }));
        }
    }
}
