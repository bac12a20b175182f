//! The versions of installed agents.

use std::path::PathBuf;

use futures_util::StreamExt;
use grove_agents::catalog;

use super::{AgentState, InstalledBy, Offer};

/// How many programs are asked for their versions at a time.
const ASKED_AT_ONCE: usize = 4;

/// How the version of an agent is found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum VersionQuestion {
    Known(String),
    /// Look into the metadata of the package, else run the program.
    Ask {
        program: PathBuf,
        package: Option<String>,
    },
    None,
}

impl VersionQuestion {
    pub(crate) fn of(offer: &Offer) -> Self {
        match &offer.state {
            AgentState::Installed { by: InstalledBy::Grove { version }, .. } => Self::Known(version.clone()),
            AgentState::Installed { program, by } => {
                // Another command may not be the one of the package.
                let package = offer.entry.as_ref().filter(|_| *by == InstalledBy::Path);
                let package = package.and_then(|entry| entry.package.npm_name()).map(ToOwned::to_owned);
                Self::Ask { program: program.program.clone(), package }
            }
            AgentState::BuiltIn | AgentState::Missing { .. } | AgentState::Disabled => Self::None,
        }
    }
}

/// The versions of the installed agents, in the order of the offers.
pub(crate) async fn versions(offers: &[Offer]) -> Vec<Option<String>> {
    ask_all(offers.iter().map(VersionQuestion::of).collect()).await
}

/// The answers, in the order of the questions.
pub(crate) async fn ask_all(questions: Vec<VersionQuestion>) -> Vec<Option<String>> {
    let answers = questions.into_iter().map(|question| async move {
        match question {
            VersionQuestion::Known(version) => Some(version),
            VersionQuestion::Ask { program, package } => catalog::version(&program, package.as_deref()).await,
            VersionQuestion::None => None,
        }
    });
    futures_util::stream::iter(answers).buffered(ASKED_AT_ONCE).collect().await
}

/// Compares versions by their numbers, so far as both have them.
pub(crate) fn is_older(installed: &str, known: &str) -> bool {
    let numbers = |version: &str| -> Vec<u64> {
        let number = version.split(['-', '+']).next().unwrap_or_default();
        number.split('.').map_while(|part| part.parse().ok()).collect()
    };
    let (installed, known) = (numbers(installed), numbers(known));
    !installed.is_empty() && installed < known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_older_by_its_numbers_and_an_unknown_one_is_not() {
        for (installed, known) in [("0.99.0", "0.100.0"), ("1.2", "1.2.1"), ("1.9.9-beta", "2.0.0")] {
            assert!(is_older(installed, known) && !is_older(known, installed), "{installed} {known}");
        }
        for (installed, known) in [("1.0.0", "1.0.0"), ("build", "1.0"), ("1.0.0", "1.0.0-rc1")] {
            assert!(!is_older(installed, known), "{installed} {known}");
        }
    }
}
