//! The tables `[agents.NAME]` of `grove.toml`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use grove_agents::acp::FileScope;
use grove_agents::catalog::AgentCatalog;
use toml::Value;

/// One table `[agents.NAME]`. It may hold secrets in `env`, which its `Debug` leaves out.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct AgentConfig {
    /// Program and arguments, which override the catalog's. Required for an agent that is not in the catalog.
    pub(crate) command: Option<Vec<String>>,
    pub(crate) env: BTreeMap<String, String>,
    /// Variables of the host's environment that the agent gets; a `*` at the end matches anything.
    pub(crate) pass_env: Vec<String>,
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    /// The authentication method, as the agent names it.
    pub(crate) auth: Option<String>,
    /// The files that the agent may use through Grove.
    pub(crate) files: FileScope,
    pub(crate) enabled: bool,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            command: None,
            env: BTreeMap::new(),
            pass_env: Vec::new(),
            name: None,
            description: None,
            auth: None,
            files: FileScope::default(),
            enabled: true,
        }
    }
}

impl fmt::Debug for AgentConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentConfig")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("pass_env", &self.pass_env)
            .field("auth", &self.auth)
            .field("files", &self.files)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}

const KEYS: &[&str] = &["command", "env", "pass-env", "name", "description", "auth", "files", "enabled"];

/// The maximum length of an agent's name. It is part of every session's address.
pub(crate) const NAME_BYTES: usize = 32;

/// Names that have another meaning in place of an agent's name.
const TAKEN: &[&str] = &["scripted", "agenthost", "file", "http", "https"];

/// Checks the name of an agent. It is the scheme of its sessions' addresses.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(fits) || name.len() > NAME_BYTES {
        bail!(
            "{name:?} cannot be the name of an agent: use small letters, digits and `-`, a letter first, \
             {NAME_BYTES} at most"
        );
    }
    if TAKEN.contains(&name) || name.starts_with("ahp-") {
        bail!("{name:?} cannot be the name of an agent, since it has another meaning: choose another");
    }
    Ok(())
}

/// Checks the name of a variable.
pub(crate) fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Reads the key `agents` of a file. Errors name the file, the agent and the key.
pub(crate) fn read(
    file: &Path,
    agents: Option<&Value>,
    catalog: &AgentCatalog,
) -> Result<BTreeMap<String, AgentConfig>> {
    let Some(agents) = agents else { return Ok(BTreeMap::new()) };
    let file = file.display();
    let agents = agents.as_table().ok_or_else(|| anyhow!("{file}: `agents` must be tables [agents.NAME]"))?;
    agents
        .iter()
        .map(|(name, table)| {
            check_name(name).map_err(|error| anyhow!("{file}: [agents.{name}]: {error}"))?;
            let config = one(name, table, catalog).map_err(|error| anyhow!("{file}: [agents.{name}] {error}"))?;
            Ok((name.clone(), config))
        })
        .collect()
}

fn one(name: &str, table: &Value, catalog: &AgentCatalog) -> Result<AgentConfig> {
    let table = table.as_table().ok_or_else(|| anyhow!("must be a table"))?;
    let mut config = AgentConfig::default();
    for (key, value) in table {
        match key.as_str() {
            "command" => config.command = Some(command(value)?),
            "env" => config.env = variables(value)?,
            "pass-env" => config.pass_env = passed(value)?,
            "name" => config.name = Some(text("name", value)?),
            "description" => config.description = Some(text("description", value)?),
            "auth" => config.auth = Some(text("auth", value)?),
            "files" => config.files = files(value)?,
            "enabled" => config.enabled = value.as_bool().ok_or_else(|| anyhow!("enabled must be true or false"))?,
            unknown => bail!("has no `{unknown}`; there are: {}", KEYS.join(", ")),
        }
    }
    if config.command.is_none() && catalog.get(name).is_none() {
        let known: Vec<&str> = catalog.agents.iter().map(|known| known.id.as_str()).collect();
        bail!("needs a command = [\"PROGRAM\", \"ARGUMENT\", …], since only these are known: {}", known.join(", "));
    }
    Ok(config)
}

fn files(value: &Value) -> Result<FileScope> {
    match value.as_str() {
        Some("workspace") => Ok(FileScope::Workspace),
        Some("ask") => Ok(FileScope::Ask),
        Some("all") => Ok(FileScope::All),
        _ => bail!("files must be \"workspace\", \"ask\" or \"all\""),
    }
}

fn text(key: &str, value: &Value) -> Result<String> {
    match value.as_str() {
        Some(text) if !text.is_empty() && !text.contains(char::is_control) => Ok(text.to_owned()),
        _ => bail!("{key} must be a text of one line"),
    }
}

/// Reads a list of strings.
pub(crate) fn texts(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|item| item.as_str().map(ToOwned::to_owned)).collect()
}

/// Reads a program and its arguments.
pub(crate) fn command(value: &Value) -> Result<Vec<String>> {
    let command = texts(value).ok_or_else(|| anyhow!("command must be a list of texts, the program first"))?;
    match command.first().map(String::as_str) {
        None | Some("") => bail!("command must name a program"),
        // A relative path would depend on the folder in which the host was started.
        Some(program) if program.contains('/') && !program.starts_with('/') => {
            bail!("command must begin with a name in PATH or a whole path, and `{program}` is neither")
        }
        Some(_) => {}
    }
    if command.iter().any(|part| part.contains('\0')) {
        bail!("command must not hold a zero character");
    }
    Ok(command)
}

fn variables(value: &Value) -> Result<BTreeMap<String, String>> {
    let wrong = || anyhow!("env must be a table of texts, such as {{ NAME = \"value\" }}");
    let table = value.as_table().ok_or_else(wrong)?;
    let variable = |(name, value): (&String, &Value)| match value.as_str() {
        Some(_) if !is_variable(name) => Err(anyhow!("env: `{name}` cannot be the name of a variable")),
        Some(value) if value.contains('\0') => Err(anyhow!("env: {name} must not hold a zero character")),
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(wrong()),
    };
    table.iter().map(variable).collect()
}

fn passed(value: &Value) -> Result<Vec<String>> {
    let names = texts(value).ok_or_else(|| anyhow!("pass-env must be a list of names of variables"))?;
    match names.iter().find(|name| !is_variable(name.strip_suffix('*').unwrap_or(name))) {
        Some(name) => bail!("pass-env: `{name}` cannot be the name of a variable"),
        None => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<BTreeMap<String, AgentConfig>> {
        let table: toml::Table = toml.parse().unwrap();
        read(Path::new("/etc/grove.toml"), table.get("agents"), &AgentCatalog::built_in())
    }

    #[test]
    fn a_table_says_everything_of_an_agent() {
        let toml = r#"
            [agents.mine]
            command = ["/opt/mine", "--acp"]
            env = { KEY = "v" }
            pass-env = ["TOKEN", "MINE_*"]
            name = "Mine"
            description = "does it"
            auth = "key"
            files = "all"
            [agents.claude]
            enabled = false
        "#;
        let agents = parse(toml).unwrap();
        let mine = AgentConfig {
            command: Some(vec!["/opt/mine".into(), "--acp".into()]),
            env: [("KEY".into(), "v".into())].into(),
            pass_env: vec!["TOKEN".into(), "MINE_*".into()],
            name: Some("Mine".into()),
            description: Some("does it".into()),
            auth: Some("key".into()),
            files: FileScope::All,
            enabled: true,
        };
        assert_eq!(agents["mine"], mine);
        assert_eq!(agents["claude"], AgentConfig { enabled: false, ..AgentConfig::default() });
        assert_eq!(read(Path::new("x"), None, &AgentCatalog::built_in()).unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_mistake_is_named_with_file_agent_and_key() {
        for (toml, words) in [
            ("agents = 1", &["`agents` must be tables"][..]),
            ("agents.x = 1", &["[agents.x] must be a table"]),
            ("[agents.x]", &["[agents.x] needs a command", "claude, codex"]),
            ("[agents.x]\ncommand = 'y'", &["[agents.x] command must be a list"]),
            ("[agents.x]\ncommand = []", &["[agents.x] command must name a program"]),
            ("[agents.x]\ncommand = ['']", &["[agents.x] command must name a program"]),
            ("[agents.x]\ncommand = ['./y']", &["[agents.x] command", "`./y` is neither"]),
            ("[agents.x]\ncommand = [1]", &["[agents.x] command"]),
            ("[agents.claude]\ncomand = ['y']", &["[agents.claude] has no `comand`", "pass-env"]),
            ("[agents.claude]\nenv = ['A=b']", &["[agents.claude] env must be a table"]),
            ("[agents.claude]\nenv = { A = 1 }", &["[agents.claude] env must be a table"]),
            ("[agents.claude]\nenv = { 'A=' = 'b' }", &["[agents.claude] env: `A=`"]),
            ("[agents.claude]\npass-env = 'A'", &["[agents.claude] pass-env must be a list"]),
            ("[agents.claude]\npass-env = ['A*B']", &["[agents.claude] pass-env: `A*B`"]),
            ("[agents.claude]\npass-env = ['*']", &["[agents.claude] pass-env: `*`"]),
            ("[agents.claude]\nenabled = 'no'", &["[agents.claude] enabled must be true or false"]),
            ("[agents.claude]\nfiles = 'some'", &["[agents.claude] files must be \"workspace\", \"ask\" or \"all\""]),
            ("[agents.claude]\nname = ''", &["[agents.claude] name must be a text"]),
            ("[agents.scripted]\nenabled = false", &["[agents.scripted]", "choose another"]),
            ("[agents.Mine]\ncommand = ['y']", &["[agents.Mine]", "small letters"]),
        ] {
            let error = parse(toml).unwrap_err().to_string();
            assert!(error.starts_with("/etc/grove.toml: "), "{error}");
            for word in words {
                assert!(error.contains(word), "no {word} in {error}");
            }
        }
    }

    #[test]
    fn what_is_logged_of_an_agent_shows_no_values_of_its_environment() {
        let agents = parse("[agents.claude]\nenv = { KEY = 'hunter2' }").unwrap();
        let shown = format!("{agents:?}");
        assert!(shown.contains("KEY") && !shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn names_are_fit_to_stand_in_an_address() {
        for good in ["a", "mine", "my-agent-2"] {
            check_name(good).unwrap();
        }
        for bad in ["", "-a", "2a", "a_b", "a b", "ä", "A", "a/b", "scripted", "ahp-x", &"a".repeat(33)] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
