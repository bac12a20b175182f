//! The tables `[hooks.NAME]` of `grove.toml`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use grove_host::hooks::HookKind;
use toml::Value;

use crate::agents::config_table::{command, texts};

/// One table `[hooks.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookConfig {
    /// The events that call the hook.
    pub(crate) events: Vec<HookKind>,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// How long the hook may take.
    pub(crate) timeout: Duration,
}

const KEYS: &[&str] = &["events", "command", "timeout"];
/// The default timeout of a hook.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum timeout, since people wait for hooks.
pub(crate) const LONGEST: u64 = 3_600;

/// Reads the key `hooks` of a file. Errors name the file, the hook and the key.
pub(crate) fn read(file: &Path, hooks: Option<&Value>) -> Result<BTreeMap<String, HookConfig>> {
    let Some(hooks) = hooks else { return Ok(BTreeMap::new()) };
    let file = file.display();
    let hooks = hooks.as_table().ok_or_else(|| anyhow!("{file}: `hooks` must be tables [hooks.NAME]"))?;
    let one = |(name, table): (&String, &Value)| match one(table) {
        Ok(hook) => Ok((name.clone(), hook)),
        Err(error) => Err(anyhow!("{file}: [hooks.{name}] {error}")),
    };
    hooks.iter().map(one).collect()
}

fn one(table: &Value) -> Result<HookConfig> {
    let table = table.as_table().ok_or_else(|| anyhow!("must be a table"))?;
    if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        bail!("has no `{unknown}`; there are: {}", KEYS.join(", "));
    }
    let events = table.get("events").and_then(texts).filter(|events| !events.is_empty());
    let events = events.ok_or_else(|| anyhow!("events must be a list of these: {}", names()))?;
    let known = |name: &String| {
        HookKind::named(name).ok_or_else(|| anyhow!("events: there is no `{name}`; there are: {}", names()))
    };
    let program = table.get("command").ok_or_else(|| anyhow!("command must be a list of texts, the program first"))?;
    let timeout = match table.get("timeout") {
        None => TIMEOUT,
        Some(Value::Integer(seconds)) => match u64::try_from(*seconds) {
            Ok(seconds @ 1..=LONGEST) => Duration::from_secs(seconds),
            _ => bail!("timeout must be from 1 to {LONGEST} seconds"),
        },
        Some(_) => bail!("timeout must be a number of seconds"),
    };
    let (events, command) = (events.iter().map(known).collect::<Result<_>>()?, command(program)?);
    Ok(HookConfig { events, command, timeout })
}

fn names() -> String {
    HookKind::ALL.map(HookKind::as_str).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(toml: &str) -> Result<BTreeMap<String, HookConfig>> {
        let table: toml::Table = toml.parse().unwrap();
        read(Path::new("/etc/grove.toml"), table.get("hooks"))
    }

    #[test]
    fn a_table_says_everything_of_a_hook() {
        let all = HookKind::ALL.map(|kind| format!("{:?}", kind.as_str())).join(", ");
        let hooks = parse(&format!("[hooks.guard]\nevents = [{all}]\ncommand = ['guard', '-v']\ntimeout = 5")).unwrap();
        let command = vec!["guard".to_owned(), "-v".to_owned()];
        let guard = HookConfig { events: HookKind::ALL.to_vec(), command, timeout: Duration::from_secs(5) };
        assert_eq!(hooks["guard"], guard);
        assert_eq!(parse("").unwrap(), BTreeMap::new());
    }

    #[test]
    fn a_mistake_is_named_with_file_hook_and_key() {
        let with = |more: &str| format!("[hooks.x]\nevents = ['session_tree']\ncommand = ['y']\n{more}");
        for (toml, words) in [
            ("hooks = 1".to_owned(), "`hooks` must be tables"),
            ("hooks.x = 1".to_owned(), "[hooks.x] must be a table"),
            ("[hooks.x]\ncommand = ['y']".to_owned(), "[hooks.x] events must be a list of these: session_before_tree"),
            ("[hooks.x]\nevents = []\ncommand = ['y']".to_owned(), "[hooks.x] events must be a list"),
            ("[hooks.x]\nevents = ['tree']\ncommand = ['y']".to_owned(), "there is no `tree`"),
            ("[hooks.x]\nevents = ['session_tree']".to_owned(), "[hooks.x] command must be a list"),
            ("[hooks.x]\nevents = ['session_tree']\ncommand = ['./y']".to_owned(), "`./y` is neither"),
            (with("timeout = 0"), "[hooks.x] timeout must be from 1"),
            (with("timeout = 'long'"), "[hooks.x] timeout must be a number"),
            (with("time = 1"), "[hooks.x] has no `time`"),
        ] {
            let error = parse(&toml).unwrap_err().to_string();
            assert!(error.starts_with("/etc/grove.toml: ") && error.contains(words), "{error}");
        }
    }
}
