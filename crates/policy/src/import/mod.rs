//! Rules from the configuration of other tools.
//!
//! | tool | file | part |
//! |---|---|---|
//! | Claude Code | `settings.json`, `settings.local.json`, `managed-settings.json` | `permissions` |
//! | Copilot CLI | `managed-settings.json`, or the `managedSettings` of its SDK | `permissions` |
//! | Copilot CLI | `config.json`, `settings.json` | `allowedUrls`, `deniedUrls` |
//! | Copilot CLI | `permissions-config.json` | `locations`, as a list of rules for one folder |
//! | Copilot CLI | a command line | `--allow-tool`, `--deny-tool` |
//!
//! Everything that has no equal here is listed with the reason, and left out. A rule that denies or asks is never
//! left out silently, and no imported rule allows more than the original.

mod claude;
mod copilot;

use serde_json::Value;

pub use claude::import_claude;
pub use copilot::{import_copilot, import_copilot_pattern};

use crate::pattern::*;
use crate::request::Kind;
use crate::rule::{Rule, Selector, Verdict};

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Import {
    pub rules: Vec<Rule>,
    pub skipped: Vec<SkippedEntry>,
}

/// An entry that was not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedEntry {
    /// The entry as it stands in the file.
    pub entry: String,
    pub reason: String,
}

/// A configuration that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    #[error("the file is no JSON: {0}")]
    Json(String),
    #[error("the file has no {0}: is it the right one?")]
    Missing(&'static str),
}

const MAX_ENTRIES: usize = 10_000;

impl Import {
    fn skip(&mut self, entry: impl Into<String>, reason: impl Into<String>) {
        self.skipped.push(SkippedEntry { entry: entry.into(), reason: reason.into() });
    }

    fn add(&mut self, entry: &str, rule: Result<Rule, String>) {
        match rule {
            Ok(rule) if self.rules.contains(&rule) => {}
            Ok(rule) => self.rules.push(rule),
            Err(reason) => self.skip(entry, reason),
        }
    }

    /// Reads the lists `allow`, `ask` and `deny` of an object.
    fn lists(&mut self, permissions: &Value, read: impl Fn(&str, Verdict) -> Result<Rule, String>) {
        for verdict in [Verdict::Deny, Verdict::Ask, Verdict::Allow] {
            let entries = permissions.get(verdict.name()).and_then(Value::as_array).into_iter().flatten();
            for entry in entries.take(MAX_ENTRIES) {
                match entry.as_str() {
                    Some(text) => self.add(text, read(text.trim(), verdict)),
                    None => self.skip(entry.to_string(), "it is no text"),
                }
            }
        }
    }
}

fn read_json(text: &str) -> Result<Value, ImportError> {
    serde_json::from_str(text).map_err(|error| ImportError::Json(error.to_string()))
}

/// Splits `Name(argument)`.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.split_once('(').and_then(|(name, rest)| Some((name, rest.strip_suffix(')')?))) {
        Some((name, argument)) => (name.trim(), Some(argument.trim())),
        None => (entry, None),
    }
}

fn whole(verdict: Verdict, kinds: &[Kind]) -> Rule {
    Rule::new(verdict, Selector::Kinds(kinds.to_vec()))
}

fn command(verdict: Verdict, pattern: &str) -> Result<Rule, String> {
    let pattern = CommandPattern::parse(pattern).map_err(|error| error.to_string())?;
    Ok(Rule::new(verdict, Selector::Commands(vec![pattern])))
}

fn path(verdict: Verdict, kinds: &[Kind], pattern: &str) -> Result<Rule, String> {
    let pattern = PathPattern::parse(pattern).map_err(|error| error.to_string())?;
    Ok(Rule::new(verdict, Selector::Paths { kinds: kinds.to_vec(), patterns: vec![pattern] }))
}

fn host(verdict: Verdict, pattern: &str) -> Result<Rule, String> {
    let pattern = HostPattern::parse(pattern).map_err(|error| error.to_string())?;
    Ok(Rule::new(verdict, Selector::Hosts(vec![pattern])))
}

fn tool(verdict: Verdict, pattern: &str) -> Result<Rule, String> {
    let pattern = NamePattern::parse(pattern).map_err(|error| error.to_string())?;
    Ok(Rule::new(verdict, Selector::Tools(vec![pattern])))
}
