//! The interpreters that an agent's package needs.

use std::ffi::OsStr;
use std::path::PathBuf;

use grove_agents::catalog::{look_up, version};

/// A needed interpreter is missing or too old.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequirementError {
    #[error("{agent} needs Node.js {needed} or newer, and `node` is not in PATH: install Node.js, then try again")]
    NoNode { agent: String, needed: String },
    #[error(
        "{agent} needs Node.js {needed} or newer, and `node` in PATH is {found}: put a newer one first in PATH, then try again"
    )]
    OldNode { agent: String, needed: String, found: String },
    #[error(
        "{agent} needs Python {needed} or newer: install it, or install uv, which brings one along; then try again"
    )]
    NoPython { agent: String, needed: String },
}

/// Checks that Node.js is new enough.
pub(super) async fn node(agent: &str, needed: &str, path: &OsStr) -> Result<(), RequirementError> {
    let (agent, needed) = (agent.to_owned(), needed.to_owned());
    let Some(node) = look_up("node", path) else { return Err(RequirementError::NoNode { agent, needed }) };
    match version(&node, None).await {
        Some(found) if !is_enough(&found, &needed) => Err(RequirementError::OldNode { agent, needed, found }),
        // One that does not tell its version is tried.
        Some(_) | None => Ok(()),
    }
}

/// The first Python in PATH that is new enough.
pub(super) async fn python(agent: &str, needed: Option<&str>, path: &OsStr) -> Result<PathBuf, RequirementError> {
    let minor = |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    let from = needed.and_then(minor).unwrap_or(8);
    let exact = (from..from + 8).rev().map(|minor| format!("python3.{minor}"));
    for name in ["python3".to_owned()].into_iter().chain(exact).chain(["python".to_owned()]) {
        let Some(python) = look_up(&name, path) else { continue };
        let found = version(&python, None).await;
        // A name alone can be a version manager's placeholder, which fails.
        if found.is_some_and(|found| needed.is_none_or(|needed| is_enough(&found, needed))) {
            return Ok(python);
        }
    }
    Err(RequirementError::NoPython { agent: agent.to_owned(), needed: needed.unwrap_or("3").to_owned() })
}

fn is_enough(found: &str, needed: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> { version.split('.').map_while(|part| part.parse().ok()).collect() };
    numbers(found) >= numbers(needed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_enough_by_its_numbers() {
        assert!(is_enough("22.19.0", "22") && is_enough("22.19.0", "22.19") && is_enough("3.13.1", "3.12"));
        assert!(!is_enough("20.20.2", "22") && !is_enough("22.9.0", "22.19") && !is_enough("3.9.18", "3.12"));
    }
}
