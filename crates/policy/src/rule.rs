//! Rules, their sources, and policies.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::pattern::*;
use crate::request::Kind;

/// The maximum number of rules in one file.
pub const MAX_RULES: usize = 1_000;
/// The maximum number of patterns in one rule.
pub const MAX_PATTERNS: usize = 1_000;

/// A verdict, in the order of precedence from last to first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

impl Verdict {
    /// The name in the grammar.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The requests that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// Everything of these kinds.
    Kinds(Vec<Kind>),
    Commands(Vec<CommandPattern>),
    /// Paths that are read or edited: the kinds are among these two.
    Paths {
        kinds: Vec<Kind>,
        patterns: Vec<PathPattern>,
    },
    Hosts(Vec<HostPattern>),
    Tools(Vec<NamePattern>),
}

/// A rule: a verdict for the requests that it selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    pub verdict: Verdict,
    pub selector: Selector,
    /// The agents that it is about; all if there is none.
    pub agents: Vec<NamePattern>,
    /// The reason for people, and for the agent where the rule denies.
    pub reason: Option<String>,
}

/// The kind of place where a rule stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// `grove.toml`.
    Settings,
    /// `.grove/policy.toml` of a repository.
    Repository,
    /// The session: an answer that holds for later requests, or a rule that a client has set.
    Session,
}

/// The place where a rule stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleOrigin {
    pub source: Source,
    /// The file, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line of the file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// A rule with its place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SourcedRule {
    pub rule: Rule,
    pub origin: RuleOrigin,
}

/// The rules of one source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSet {
    pub rules: Vec<SourcedRule>,
}

/// The rules of all sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    pub(crate) rules: Vec<SourcedRule>,
    pub(crate) allows_all: bool,
}

impl Rule {
    /// A rule for every agent.
    pub fn new(verdict: Verdict, selector: Selector) -> Self {
        Self { verdict, selector, agents: Vec::new(), reason: None }
    }

    /// The kinds of requests that it is about.
    pub fn kinds(&self) -> Vec<Kind> {
        match &self.selector {
            Selector::Kinds(kinds) | Selector::Paths { kinds, .. } => kinds.clone(),
            Selector::Commands(_) => vec![Kind::Shell],
            Selector::Hosts(_) => vec![Kind::Fetch],
            Selector::Tools(_) => vec![Kind::Mcp],
        }
    }

    pub(crate) fn is_for(&self, agent: &str) -> bool {
        self.agents.is_empty() || self.agents.iter().any(|pattern| pattern.matches(agent))
    }
}

impl fmt::Display for Rule {
    /// The rule in one line, such as `allow shell "cargo test *"`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds = self.kinds();
        let kinds = match kinds.len() == Kind::ALL.len() {
            true => "any".to_owned(),
            false => kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join("/"),
        };
        write!(f, "{} {kinds}", self.verdict)?;
        for pattern in self.patterns() {
            write!(f, " {pattern:?}")?;
        }
        for agent in &self.agents {
            write!(f, " for {}", agent.as_str())?;
        }
        Ok(())
    }
}

impl Rule {
    /// The texts of its patterns.
    pub fn patterns(&self) -> Vec<&str> {
        match &self.selector {
            Selector::Kinds(_) => Vec::new(),
            Selector::Commands(patterns) => patterns.iter().map(CommandPattern::as_str).collect(),
            Selector::Paths { patterns, .. } => patterns.iter().map(PathPattern::as_str).collect(),
            Selector::Hosts(patterns) => patterns.iter().map(HostPattern::as_str).collect(),
            Selector::Tools(patterns) => patterns.iter().map(NamePattern::as_str).collect(),
        }
    }
}

impl fmt::Display for RuleOrigin {
    /// The place, such as `grove.toml:12` or `this session`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_deref().unwrap_or(match self.source {
            Source::Settings => "grove.toml",
            Source::Repository => ".grove/policy.toml",
            Source::Session => "this session",
        });
        match self.line {
            Some(line) => write!(f, "{file}:{line}"),
            None => f.write_str(file),
        }
    }
}

impl RuleSet {
    /// The rules of a session.
    pub fn of_session(rules: impl IntoIterator<Item = Rule>) -> Self {
        let origin = || RuleOrigin { source: Source::Session, file: None, line: None };
        Self { rules: rules.into_iter().map(|rule| SourcedRule { rule, origin: origin() }).collect() }
    }

    /// The rules that deny or ask: all that a source may say that nobody trusts.
    pub fn tightening(self) -> Self {
        Self { rules: self.rules.into_iter().filter(|rule| rule.rule.verdict != Verdict::Allow).collect() }
    }
}

impl FromIterator<RuleSet> for Policy {
    fn from_iter<T: IntoIterator<Item = RuleSet>>(sets: T) -> Self {
        Self { rules: sets.into_iter().flat_map(|set| set.rules).collect(), allows_all: false }
    }
}

impl Policy {
    /// The same policy with a person's word that everything is allowed that no rule denies or asks.
    pub fn allowing_all(self, allows_all: bool) -> Self {
        Self { allows_all, ..self }
    }

    /// The same policy with further rules.
    pub fn with(mut self, set: RuleSet) -> Self {
        self.rules.extend(set.rules);
        self
    }

    pub fn rules(&self) -> &[SourcedRule] {
        &self.rules
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && !self.allows_all
    }
}

/// The name of a file's content, by which a person trusts it.
pub fn content_hash(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}
