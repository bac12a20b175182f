//! The table `[history]` of `grove.toml`.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use serde::Serialize;
use toml::Value;

/// The configuration of other tools' sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct HistoryConfig {
    /// Scan for sessions of other tools.
    pub(crate) enabled: bool,
    /// Copy sessions to the data folder before their tool deletes them.
    pub(crate) keep: bool,
    /// Further home folders to scan for every tool's store.
    pub(crate) roots: Vec<PathBuf>,
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self { enabled: true, keep: false, roots: Vec::new() }
    }
}

/// Reads the table. Errors name the file and the key.
pub(crate) fn read(file: &Path, table: Option<&Value>) -> Result<HistoryConfig> {
    let mut history = HistoryConfig::default();
    let Some(table) = table else { return Ok(history) };
    let file = file.display();
    let table = table.as_table().ok_or_else(|| anyhow!("{file}: `history` must be a table [history]"))?;
    let switch = |key: &str, value: &Value| {
        value.as_bool().ok_or_else(|| anyhow!("{file}: [history] {key} must be true or false"))
    };
    for (key, value) in table {
        match key.as_str() {
            "enabled" => history.enabled = switch(key, value)?,
            "keep" => history.keep = switch(key, value)?,
            "roots" => {
                let folder = |item: &Value| item.as_str().map(PathBuf::from).filter(|folder| folder.is_absolute());
                let folders = value.as_array().and_then(|items| items.iter().map(folder).collect());
                let wrong = || anyhow!("{file}: [history] roots must be a list of absolute paths: [\"/mnt/old-home\"]");
                history.roots = folders.ok_or_else(wrong)?;
            }
            unknown => bail!("{file}: [history] has no `{unknown}`; there are: enabled, keep, roots"),
        }
    }
    Ok(history)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<HistoryConfig> {
        let table: toml::Table = text.parse()?;
        read(Path::new("grove.toml"), table.get("history"))
    }

    #[test]
    fn history_is_looked_for_unless_the_file_says_otherwise() {
        assert_eq!(of("").unwrap(), HistoryConfig { enabled: true, keep: false, roots: vec![] });
        let config = of("[history]\nenabled = false\nkeep = true\nroots = ['/old']").unwrap();
        assert_eq!(config, HistoryConfig { enabled: false, keep: true, roots: vec!["/old".into()] });
    }

    #[test]
    fn what_is_wrong_is_named_with_its_file_and_key() {
        for (text, named) in [
            ("history = 1", "table"),
            ("[history]\nkeep = 'yes'", "keep"),
            ("[history]\nroots = ['old']", "roots"),
            ("[history]\nenable = true", "`enable`"),
        ] {
            let error = of(text).unwrap_err().to_string();
            assert!(error.starts_with("grove.toml: ") && error.contains(named), "{error}");
        }
    }
}
