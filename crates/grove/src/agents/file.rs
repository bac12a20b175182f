//! The tables of agents in `grove.toml`, added and removed for the user.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use super::AgentConfig;
use crate::settings_file::{read, write};

/// Writes the table of a new agent.
pub(crate) fn add(file: &Path, name: &str, config: &AgentConfig) -> Result<()> {
    let mut document = read(file)?;
    put(&mut document, name, config).with_context(|| file.display().to_string())?;
    write(file, &document)
}

/// Removes the table of an agent, and returns whether there was one.
pub(crate) fn remove(file: &Path, name: &str) -> Result<bool> {
    let mut document = read(file)?;
    if !take(&mut document, name) {
        return Ok(false);
    }
    write(file, &document)?;
    Ok(true)
}

fn put(document: &mut DocumentMut, name: &str, config: &AgentConfig) -> Result<()> {
    let mut none = Table::new();
    // An empty `[agents]` would only be noise.
    none.set_implicit(true);
    let agents = document.entry("agents").or_insert(Item::Table(none));
    let agents = agents.as_table_like_mut().ok_or_else(|| anyhow!("`agents` must be tables [agents.NAME]"))?;
    if agents.contains_key(name) {
        bail!("[agents.{name}] exists already: change it there, or `grove agents rm {name}` first");
    }
    agents.insert(name, Item::Table(table(config)));
    Ok(())
}

fn take(document: &mut DocumentMut, name: &str) -> bool {
    let Some(agents) = document.get_mut("agents").and_then(Item::as_table_like_mut) else { return false };
    let removed = agents.remove(name).is_some();
    if removed && agents.is_empty() {
        document.remove("agents");
    }
    removed
}

fn table(config: &AgentConfig) -> Table {
    let mut table = Table::new();
    let mut text = |key: &str, text: &Option<String>| {
        if let Some(text) = text {
            table.insert(key, value(text));
        }
    };
    text("name", &config.name);
    text("description", &config.description);
    text("auth", &config.auth);
    if let Some(command) = &config.command {
        table.insert("command", value(command.iter().collect::<Array>()));
    }
    if !config.env.is_empty() {
        table.insert("env", value(config.env.iter().collect::<InlineTable>()));
    }
    if !config.pass_env.is_empty() {
        table.insert("pass-env", value(config.pass_env.iter().collect::<Array>()));
    }
    if !config.enabled {
        table.insert("enabled", value(false));
    }
    table
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn read_table(table: &toml::Table) -> Result<std::collections::BTreeMap<String, AgentConfig>> {
        let catalog = grove_agents::catalog::AgentCatalog::built_in();
        super::super::config_table::read(Path::new("f"), table.get("agents"), &catalog)
    }

    const BEFORE: &str = "\
# My settings.
listen = \"127.0.0.1:7070\" # fixed

[agents.claude]
# Only mine.
env = { ANTHROPIC_API_KEY = \"x\" }   # secret
";

    fn mine() -> AgentConfig {
        AgentConfig {
            command: Some(vec!["mine".into(), "a \"b\"".into()]),
            env: [("K".into(), "v=1".into())].into(),
            pass_env: vec!["T".into()],
            name: Some("Mine".into()),
            ..AgentConfig::default()
        }
    }

    const MINE: &str = "
[agents.mine]
name = \"Mine\"
command = [\"mine\", 'a \"b\"']
env = { K = \"v=1\" }
pass-env = [\"T\"]
";

    #[test]
    fn adding_and_removing_leaves_everything_else_as_it_was() {
        let mut document: DocumentMut = BEFORE.parse().unwrap();
        put(&mut document, "mine", &mine()).unwrap();
        assert_eq!(document.to_string(), format!("{BEFORE}{MINE}"));
        assert!(take(&mut document, "mine"));
        assert_eq!(document.to_string(), BEFORE);
        assert!(!take(&mut document, "mine"));
    }

    #[test]
    fn what_is_written_is_read_as_it_was_meant() {
        let mut document = DocumentMut::new();
        let config = AgentConfig { enabled: false, auth: Some("k".into()), description: Some("d".into()), ..mine() };
        put(&mut document, "mine", &config).unwrap();
        let table: toml::Table = document.to_string().parse().unwrap();
        let read = read_table(&table).unwrap();
        assert_eq!(read, [("mine".to_owned(), config)].into());
    }

    #[test]
    fn what_is_there_is_not_written_over() {
        let mut document: DocumentMut = BEFORE.parse().unwrap();
        let error = put(&mut document, "claude", &mine()).unwrap_err().to_string();
        assert!(error.contains("[agents.claude] exists already"), "{error}");
        let mut odd: DocumentMut = "agents = 1".parse().unwrap();
        assert!(put(&mut odd, "mine", &mine()).is_err() && !take(&mut odd, "mine"));
    }

    #[test]
    fn agents_that_stand_in_one_line_stay_in_reach() {
        let mut document: DocumentMut = "agents = { claude = { enabled = false } }\n".parse().unwrap();
        put(&mut document, "mine", &mine()).unwrap();
        let table: toml::Table = document.to_string().parse().unwrap();
        assert_eq!(read_table(&table).unwrap().len(), 2);
    }

    #[test]
    fn a_new_file_is_private_and_a_link_stays_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config/grove.toml");
        add(&file, "mine", &mine()).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&file).unwrap().trim_start(), MINE.trim_start());

        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        let link = folder.path().join("grove.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(remove(&link, "mine").unwrap());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o644);
        assert!(!remove(&folder.path().join("none.toml"), "mine").unwrap());
        assert!(!folder.path().join("none.toml").exists(), "nothing to remove, nothing to write");
    }
}
