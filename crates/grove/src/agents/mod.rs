//! The agents: the scripted one, those of the catalog, and those of `grove.toml`.
//!
//! [`config_table`] reads the tables of the file, [`mod@file`] edits them for commands. This module combines them with
//! the catalog, for a given `PATH` and environment; [`backends`] creates a host's agents from the result.

pub(crate) mod backends;
pub(crate) mod catalog_file;
pub(crate) mod config_table;
pub(crate) mod download;
pub(crate) mod file;
pub(crate) mod install;
pub(crate) mod one_shot;
pub(crate) mod versions;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grove_agents::Agent;
use grove_agents::acp::AcpProgram;
use grove_agents::catalog::{self, AgentCatalog, AgentEntry, AgentPackage, Installation};
use grove_agents::scripted::ScriptedAgent;

pub(crate) use config_table::{AgentConfig, check_name};

use crate::data_folder;
use crate::settings::Settings;

/// An agent that sessions can be started with, or could be once it is installed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) id: String,
    pub(crate) display_name: String,
    pub(crate) description: String,
    pub(crate) known_from: AgentSource,
    pub(crate) state: AgentState,
    /// The facts of the catalog about it, if it is there.
    pub(crate) entry: Option<Arc<AgentEntry>>,
}

/// The origin of an agent's definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AgentSource {
    /// Built into Grove.
    Grove,
    Catalog,
    /// `grove.toml`, in addition to the catalog or alone.
    File,
}

/// An agent's availability.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentState {
    BuiltIn,
    Installed {
        program: Box<AcpProgram>,
        by: InstalledBy,
    },
    Missing {
        looked_for: Vec<String>,
        /// The next step for the user.
        advice: String,
    },
    /// `enabled = false` in `grove.toml`.
    Disabled,
}

/// The origin of an agent's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InstalledBy {
    /// `grove agents install`, with this version.
    Grove { version: String },
    /// Somebody else; it was found in `PATH`.
    Path,
    /// A `command` of `grove.toml` names it.
    Command,
}

/// The sources of agents.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AgentSources<'a> {
    pub(crate) config_table: &'a BTreeMap<String, AgentConfig>,
    pub(crate) catalog: &'a AgentCatalog,
    /// The folder of the agents that Grove has installed.
    pub(crate) programs: &'a Path,
}

/// Every agent that these settings lead to, for a `PATH` and an environment.
pub(crate) fn offers_of(settings: &Settings, path: &OsStr, environment: &BTreeMap<String, String>) -> Vec<Offer> {
    let data_dir = &settings.data_dir.value;
    // A program is started in another folder.
    let data_dir = std::path::absolute(data_dir).unwrap_or_else(|_| data_dir.clone());
    let programs = data_folder::programs_path(&data_dir);
    let sources =
        AgentSources { config_table: &settings.agents.value, catalog: &settings.catalog.catalog, programs: &programs };
    offers(sources, path, environment)
}

/// The next step to install an agent of the catalog.
pub(crate) fn install_advice(entry: &AgentEntry) -> String {
    match &entry.package {
        AgentPackage::Manual { instructions } => instructions.clone(),
        AgentPackage::Unknown => "update Grove, which cannot install this kind of package yet".to_owned(),
        AgentPackage::Npm { .. }
        | AgentPackage::Bun { .. }
        | AgentPackage::Pypi { .. }
        | AgentPackage::Binary { .. } => format!("grove agents install {}", entry.id),
    }
}

impl Offer {
    /// The program of a usable external agent.
    pub(crate) fn program(&self) -> Option<&AcpProgram> {
        match &self.state {
            AgentState::Installed { program, .. } => Some(program),
            AgentState::BuiltIn | AgentState::Missing { .. } | AgentState::Disabled => None,
        }
    }
}

/// Every agent: the scripted one, the catalog in its order, then those that only the file defines.
pub(crate) fn offers(sources: AgentSources<'_>, path: &OsStr, environment: &BTreeMap<String, String>) -> Vec<Offer> {
    let AgentSources { config_table, catalog, programs } = sources;
    let scripted = ScriptedAgent.info();
    let scripted = Offer {
        id: scripted.id.to_string(),
        display_name: scripted.display_name,
        description: scripted.description,
        known_from: AgentSource::Grove,
        state: AgentState::BuiltIn,
        entry: None,
    };
    let search = ProgramSearch { programs, path };
    let known = catalog.agents.iter().map(|known| match config_table.get(&known.id) {
        None => of_catalog(known, &search, environment),
        Some(config) => of_file(&known.id, config, Some(known), &search, environment),
    });
    let others = config_table.iter().filter(|(name, _)| catalog.get(name).is_none());
    let others = others.map(|(name, config)| of_file(name, config, None, &search, environment));
    std::iter::once(scripted).chain(known).chain(others).collect()
}

/// The places where agents' programs are.
#[derive(Clone, Copy)]
struct ProgramSearch<'a> {
    programs: &'a Path,
    path: &'a OsStr,
}

impl ProgramSearch<'_> {
    /// Finds the program of a known agent; the error is its state without one.
    fn find(&self, known: &AgentEntry) -> Result<(PathBuf, InstalledBy), AgentState> {
        match catalog::find(known, self.programs, self.path) {
            Installation::Own(own) => Ok((own.program, InstalledBy::Grove { version: own.version })),
            Installation::InPath { program } => Ok((program, InstalledBy::Path)),
            Installation::Missing => {
                Err(AgentState::Missing { looked_for: known.commands.clone(), advice: install_advice(known) })
            }
        }
    }
}

fn of_catalog(known: &Arc<AgentEntry>, search: &ProgramSearch<'_>, environment: &BTreeMap<String, String>) -> Offer {
    Offer {
        id: known.id.clone(),
        display_name: known.display_name.clone(),
        description: known.description.clone(),
        known_from: AgentSource::Catalog,
        state: match search.find(known) {
            Ok((program, by)) => AgentState::Installed { program: Box::new(known.program(program, environment)), by },
            Err(missing) => missing,
        },
        entry: Some(Arc::clone(known)),
    }
}

/// Combines an agent's table in the file with its catalog entry.
fn of_file(
    name: &str,
    config: &AgentConfig,
    known: Option<&Arc<AgentEntry>>,
    search: &ProgramSearch<'_>,
    environment: &BTreeMap<String, String>,
) -> Offer {
    let display_name = config.name.clone().or(known.map(|known| known.display_name.clone()));
    let description = config.description.clone().or(known.map(|known| known.description.clone()));
    let mut offer = Offer {
        id: name.to_owned(),
        display_name: display_name.unwrap_or_else(|| name.to_owned()),
        description: description.unwrap_or_else(|| "an agent of grove.toml".to_owned()),
        known_from: AgentSource::File,
        state: AgentState::Disabled,
        entry: known.cloned(),
    };
    if !config.enabled {
        return offer;
    }
    let missing = |looked_for: Vec<String>, advice: String| AgentState::Missing { looked_for, advice };
    let (program, args, by) = match (&config.command, known) {
        (Some(command), _) => {
            let (program, args) = command.split_first().map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
            match catalog::look_up(program, search.path) {
                Some(program) => (program, args.to_vec(), InstalledBy::Command),
                None => {
                    let advice = format!("`{program}` of [agents.{name}] cannot be run: install it, or give its path");
                    offer.state = missing(vec![program.to_owned()], advice);
                    return offer;
                }
            }
        }
        (None, Some(known)) => match search.find(known) {
            Ok((program, by)) => (program, known.args.clone(), by),
            Err(missing) => {
                offer.state = missing;
                return offer;
            }
        },
        (None, None) => {
            offer.state = missing(Vec::new(), format!("[agents.{name}] has no command: give it one"));
            return offer;
        }
    };
    let mut env = known.map(|known| known.program(program.clone(), environment).env).unwrap_or_default();
    env.extend(catalog::passed(&config.pass_env, environment));
    env.extend(config.env.clone());
    let sign_in = known.map(|known| known.sign_in(&env)).unwrap_or_default();
    let program = AcpProgram {
        id: name.into(),
        display_name: offer.display_name.clone(),
        description: offer.description.clone(),
        program,
        args,
        auth: config.auth.clone().map_or(sign_in, |auth| vec![auth]),
        files: config.files,
        mcp_servers: Vec::new(),
        env,
        known: known.cloned(),
    };
    offer.state = AgentState::Installed { program: Box::new(program), by };
    offer
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn put(folder: &Path, name: &str) -> String {
        let path = folder.join(name);
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn all(toml: &str, folder: &Path, environment: &[(&str, &str)]) -> Vec<Offer> {
        let table: toml::Table = toml.parse().unwrap();
        let catalog = AgentCatalog::built_in();
        let config_table = config_table::read(Path::new("grove.toml"), table.get("agents"), &catalog).unwrap();
        let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let programs = folder.join("programs");
        let sources = AgentSources { config_table: &config_table, catalog: &catalog, programs: &programs };
        offers(sources, folder.as_os_str(), &environment)
    }

    fn one<'a>(offers: &'a [Offer], name: &str) -> &'a Offer {
        offers.iter().find(|offer| offer.id == name).unwrap()
    }

    #[test]
    fn the_scripted_agent_is_first_then_the_catalog_then_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let offers = all("[agents.zeta]\ncommand = ['z']\n[agents.alpha]\ncommand = ['a']", folder.path(), &[]);
        let names: Vec<&str> = offers.iter().map(|offer| offer.id.as_str()).collect();
        let catalog = AgentCatalog::built_in();
        let known = catalog.agents.iter().map(|entry| entry.id.as_str());
        let expected: Vec<&str> = std::iter::once("scripted").chain(known).chain(["alpha", "zeta"]).collect();
        assert_eq!(names, expected);
        assert_eq!(names[1..4], ["claude", "codex", "copilot"]);
        assert!(offers.iter().skip(1).all(|offer| matches!(offer.state, AgentState::Missing { .. })));
    }

    #[test]
    fn the_file_says_more_of_a_known_agent_and_keeps_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let gemini = put(folder.path(), "gemini");
        let toml = "[agents.gemini]\nname = 'G'\nenv = { GEMINI_API_KEY = 'mine' }\npass-env = ['MY_*']";
        let offers = all(toml, folder.path(), &[("GEMINI_API_KEY", "theirs"), ("MY_X", "1"), ("OTHER", "2")]);
        let program = one(&offers, "gemini").program().unwrap();
        assert_eq!((program.program.to_str(), &program.args[..]), (Some(gemini.as_str()), &["--acp".to_owned()][..]));
        assert_eq!((program.display_name.as_str(), &program.auth[..]), ("G", &["gemini-api-key".to_owned()][..]));
        let env: Vec<(&str, &str)> = program.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(env, [("GEMINI_API_KEY", "mine"), ("MY_X", "1")]);
    }

    #[test]
    fn another_command_takes_the_place_of_the_catalogs_with_its_arguments() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "claude-agent-acp");
        let mine = put(folder.path(), "mine");
        let offers = all("[agents.claude]\ncommand = ['mine', '-x']\nauth = 'm'", folder.path(), &[]);
        let offer = one(&offers, "claude");
        let AgentState::Installed { program, by } = &offer.state else { panic!("{offer:?}") };
        assert_eq!((program.program.to_str(), &program.args[..]), (Some(mine.as_str()), &["-x".to_owned()][..]));
        assert_eq!((&program.auth[..], by), (&["m".to_owned()][..], &InstalledBy::Command));
        assert_eq!(offer.display_name, "Claude Code");
    }

    #[test]
    fn an_agent_that_is_turned_off_is_not_offered_and_one_that_is_missing_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), "codex-acp");
        let offers = all("[agents.codex]\nenabled = false\n[agents.x]\ncommand = ['/no/x']", folder.path(), &[]);
        assert_eq!(one(&offers, "codex").state, AgentState::Disabled);
        let AgentState::Missing { looked_for, advice } = &one(&offers, "x").state else { panic!() };
        assert_eq!(looked_for, &["/no/x"]);
        assert!(advice.contains("[agents.x]"), "{advice}");
        assert!(offers.iter().all(|offer| offer.program().is_none()));
    }
}
