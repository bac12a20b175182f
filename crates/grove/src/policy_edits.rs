//! Adding permission rules to files: `grove.toml`, and `.grove/policy.toml` of a repository. Comments stay.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use grove_policy::{Rule, RuleSet, SourcedRule};
use toml_edit::{ArrayOfTables, DocumentMut, Item, Table, TableLike};

use crate::settings_file;

/// The mode of a repository's file, which other people read too.
const SHARED: u32 = 0o644;

/// Adds rules to the table `[[policy.rules]]` of `grove.toml`.
pub(crate) fn add_to_settings(file: &Path, rules: &[Rule]) -> Result<()> {
    let mut document = settings_file::read(file)?;
    let mut none = Table::new();
    // An empty `[policy]` would only be noise.
    none.set_implicit(true);
    let policy = document.entry("policy").or_insert(Item::Table(none));
    let policy = policy.as_table_like_mut().ok_or_else(|| anyhow!("{}: `policy` is not a table", file.display()))?;
    append(policy, rules).with_context(|| file.display().to_string())?;
    RuleSet::parse_settings(&document.to_string(), &file.display().to_string())?;
    settings_file::write(file, &document)
}

/// The reason why a rule was not removed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoveRuleError {
    #[error("line {line} of {} has another rule by now: look at the rules again", .file.display())]
    Changed { file: PathBuf, line: usize },
    #[error("{0:#}")]
    File(#[from] anyhow::Error),
}

/// Removes the rule that begins at a line of `grove.toml`, if it is still the one of this text, and returns it.
pub(crate) fn remove_from_settings(file: &Path, line: usize, toml: &str) -> Result<Rule, RemoveRuleError> {
    let mut document = settings_file::read(file)?;
    let name = file.display().to_string();
    let present = RuleSet::parse_settings(&document.to_string(), &name).map_err(anyhow::Error::from)?.rules;
    let is_it = |rule: &SourcedRule| rule.origin.line == Some(line) && rule.rule.to_toml("policy.rules") == toml;
    let changed = || RemoveRuleError::Changed { file: file.to_owned(), line };
    let index = present.iter().position(is_it).ok_or_else(changed)?;
    let rules = document.get_mut("policy").and_then(Item::as_table_like_mut).and_then(|policy| policy.get_mut("rules"));
    match rules {
        Some(Item::ArrayOfTables(tables)) if index < tables.len() => drop(tables.remove(index)),
        Some(Item::Value(value)) => {
            let array = value.as_array_mut().filter(|array| index < array.len()).ok_or_else(changed)?;
            array.remove(index);
        }
        _ => return Err(changed()),
    }
    let mut left =
        RuleSet::parse_settings(&document.to_string(), &name).map_err(anyhow::Error::from)?.rules.into_iter();
    let mut expected = present.iter().enumerate().filter(|(at, _)| *at != index).map(|(_, rule)| &rule.rule);
    // Nothing else may have changed by the edit.
    if !left.by_ref().map(|rule| rule.rule).eq(expected.by_ref().cloned()) {
        return Err(anyhow!("{name}: the rule cannot be removed from this notation: edit the file").into());
    }
    settings_file::write(file, &document)?;
    present.into_iter().nth(index).map(|rule| rule.rule).ok_or_else(changed)
}

/// The content of a repository's file with further rules.
pub(crate) fn with_rules(content: &str, rules: &[Rule], file: &Path) -> Result<String> {
    let mut document: DocumentMut = content.parse().with_context(|| format!("{} is not valid TOML", file.display()))?;
    append(document.as_table_mut(), rules).with_context(|| file.display().to_string())?;
    let text = document.to_string();
    RuleSet::parse_repository(&text, &file.display().to_string())?;
    Ok(text)
}

/// Writes a repository's file atomically. Agents can put links there, so none is followed.
pub(crate) fn write_repository_file(file: &Path, text: &str) -> Result<()> {
    let folder = file.parent().context("the file has no folder")?;
    let failed = || format!("{} cannot be written", file.display());
    for path in [folder, file] {
        match fs::symlink_metadata(path) {
            Ok(found) if found.is_symlink() => bail!("{} is a symbolic link: replace it by a file", path.display()),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error).with_context(failed),
            Ok(_) | Err(_) => {}
        }
    }
    match fs::create_dir(folder) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error).with_context(failed),
        Ok(()) | Err(_) => {}
    }
    let mut written = tempfile::NamedTempFile::new_in(folder).with_context(failed)?;
    written.write_all(text.as_bytes()).and_then(|()| written.as_file().sync_all()).with_context(failed)?;
    written.as_file().set_permissions(fs::Permissions::from_mode(SHARED)).with_context(failed)?;
    written.persist(file).with_context(failed)?;
    Ok(())
}

fn append(table: &mut dyn TableLike, rules: &[Rule]) -> Result<()> {
    let list = table.entry("rules").or_insert(Item::ArrayOfTables(ArrayOfTables::new()));
    for rule in rules {
        let written: DocumentMut = rule.to_toml("rules").parse()?;
        let written = written.get("rules").and_then(Item::as_array_of_tables).and_then(|tables| tables.get(0));
        let mut table = Table::new();
        for (key, value) in written.context("the rule has no written form")?.iter() {
            table.insert(key, value.clone());
        }
        match list {
            Item::ArrayOfTables(tables) => tables.push(table),
            Item::Value(value) => {
                let array = value.as_array_mut().context("`rules` is not a list")?;
                array.push(table.into_inline_table());
            }
            Item::None | Item::Table(_) => bail!("`rules` is not a list"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Vec<Rule> {
        let set = RuleSet::parse_repository(text, "p").unwrap();
        set.rules.into_iter().map(|rule| rule.rule).collect()
    }

    const NEW: &str = "[[rules]]\nallow = \"shell\"\ncommand = \"cargo test *\"\n";

    #[test]
    fn rules_are_added_behind_the_others_and_comments_stay() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grove.toml");
        let before = "# Mine.\n[[policy.rules]] # first\ndeny = \"shell\"\ncommand = \"rm *\"\n\n[agents.x]\n# Only mine.\ncommand = [\"x\"]\n";
        fs::write(&file, before).unwrap();
        add_to_settings(&file, &rules(NEW)).unwrap();
        let after = fs::read_to_string(&file).unwrap();
        let added = "\n[[policy.rules]]\nallow = \"shell\"\ncommand = \"cargo test *\"\n";
        assert_eq!(after.replace(added, ""), before, "{after}");
        let read = RuleSet::parse_settings(&after, "g").unwrap().rules;
        assert_eq!(
            read.iter().map(|rule| rule.rule.to_string()).collect::<Vec<_>>(),
            ["deny shell \"rm *\"", "allow shell \"cargo test *\""]
        );
    }

    #[test]
    fn a_rule_is_removed_by_its_line_and_its_text_and_the_rest_stays() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("grove.toml");
        let other =
            "\n[[policy.rules]]\ndeny = \"shell\"\ncommand = \"rm *\"\n\n[agents.x] # mine\ncommand = [\"x\"]\n";
        let rule = "[[policy.rules]]\nallow = \"shell\"\ncommand = \"ls *\"\n";
        fs::write(&file, format!("# Mine.\nreplay-actions = 5\n\n{rule}{other}")).unwrap();
        for (line, text) in [(5, rule), (4, "[[policy.rules]]\nallow = \"shell\"\ncommand = \"ls\"\n"), (8, rule)] {
            let refused = remove_from_settings(&file, line, text).unwrap_err();
            assert!(matches!(refused, RemoveRuleError::Changed { .. }), "{refused}");
        }
        assert_eq!(remove_from_settings(&file, 4, rule).unwrap().to_string(), "allow shell \"ls *\"");
        assert_eq!(fs::read_to_string(&file).unwrap(), format!("# Mine.\nreplay-actions = 5\n{other}"));

        fs::write(&file, "policy.rules = [{ deny = \"read\", path = \".env\" }, { allow = \"any\" }]\n").unwrap();
        remove_from_settings(&file, 1, "[[policy.rules]]\nallow = \"any\"\n").unwrap();
        let left = RuleSet::parse_settings(&fs::read_to_string(&file).unwrap(), "g").unwrap().rules;
        assert_eq!(left.iter().map(|rule| rule.rule.to_string()).collect::<Vec<_>>(), ["deny read \".env\""]);
    }

    #[test]
    fn rules_of_a_new_file_and_of_a_list_in_one_line_are_read_back() {
        let folder = tempfile::tempdir().unwrap();
        for (name, before) in [("a", ""), ("b", "policy.rules = [{ deny = \"read\", path = \".env\" }]\n")] {
            let file = folder.path().join(name);
            fs::write(&file, before).unwrap();
            add_to_settings(&file, &rules(NEW)).unwrap();
            let text = fs::read_to_string(&file).unwrap();
            let read = RuleSet::parse_settings(&text, "g").unwrap().rules;
            assert_eq!(read.last().unwrap().rule, rules(NEW)[0], "{text}");
        }
        let file = folder.path().join("c");
        fs::write(&file, "policy = 1\n").unwrap();
        assert!(add_to_settings(&file, &rules(NEW)).is_err());
        assert_eq!(fs::read_to_string(&file).unwrap(), "policy = 1\n");
        assert_eq!(with_rules("", &rules(NEW), &file).unwrap(), NEW);
    }

    #[test]
    fn no_link_is_followed_in_a_repository() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("target");
        fs::write(&target, "kept").unwrap();
        let file = folder.path().join("work/.grove/policy.toml");
        fs::create_dir_all(folder.path().join("work")).unwrap();
        write_repository_file(&file, NEW).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), NEW);
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(&target, &file).unwrap();
        assert!(write_repository_file(&file, NEW).is_err());
        let other = folder.path().join("other");
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(folder.path(), other.join(".grove")).unwrap();
        assert!(write_repository_file(&other.join(".grove/policy.toml"), NEW).is_err());
        assert_eq!(fs::read_to_string(&target).unwrap(), "kept");
    }
}
