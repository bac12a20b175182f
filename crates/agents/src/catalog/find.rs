//! Searching for programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{AgentEntry, Install};

/// The result of searching for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installation {
    Installed { program: PathBuf },
    Missing { looked_for: &'static [&'static str], install: Install },
}

/// Searches for an agent in the folders of a `PATH` value.
pub fn find(agent_entry: &AgentEntry, path: &OsStr) -> Installation {
    match agent_entry.commands.iter().find_map(|name| look_up(name, path)) {
        Some(program) => Installation::Installed { program },
        None => Installation::Missing { looked_for: agent_entry.commands, install: agent_entry.install },
    }
}

/// Finds a program: a path as it is, any other name in the folders of a `PATH` value. `None` if nothing executable is
/// there.
pub fn look_up(name: &str, path: &OsStr) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(PathBuf::from(name)).filter(|program| is_program(program));
    }
    // A relative folder depends on the current directory, which nobody has chosen.
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|program| is_program(program))
}

fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::super::agent_entry;
    use super::*;

    fn put(folder: &Path, name: &str, mode: u32) -> PathBuf {
        let path = folder.join(name);
        fs::create_dir_all(folder).unwrap();
        fs::write(&path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    #[test]
    fn an_agent_is_found_by_its_best_name_in_the_first_folder_that_has_it() {
        let place = tempfile::tempdir().unwrap();
        let (one, two) = (place.path().join("one"), place.path().join("two"));
        let path = std::env::join_paths([&one, &two, &place.path().join("gone")]).unwrap();
        let claude = agent_entry("claude").unwrap();
        let missing = Installation::Missing { looked_for: claude.commands, install: claude.install };
        assert_eq!(find(claude, &path), missing);

        let old = put(&one, "claude-code-acp", 0o755);
        assert_eq!(find(claude, &path), Installation::Installed { program: old });
        let new = put(&two, "claude-agent-acp", 0o755);
        assert_eq!(find(claude, &path), Installation::Installed { program: new });
        let first = put(&one, "claude-agent-acp", 0o755);
        assert_eq!(find(claude, &path), Installation::Installed { program: first });
    }

    #[test]
    fn what_cannot_be_run_is_no_program() {
        let place = tempfile::tempdir().unwrap();
        put(place.path(), "gemini", 0o644);
        fs::create_dir(place.path().join("goose")).unwrap();
        for name in ["gemini", "goose", "", ".", ".."] {
            assert_eq!(look_up(name, place.path().as_os_str()), None, "{name:?}");
        }
    }

    #[test]
    fn a_path_means_itself_and_folders_that_depend_on_where_we_are_are_passed_over() {
        let place = tempfile::tempdir().unwrap();
        let program = put(place.path(), "mine", 0o755);
        assert_eq!(look_up(program.to_str().unwrap(), OsStr::new("")), Some(program));
        assert_eq!(look_up("/nowhere/mine", place.path().as_os_str()), None);
        for path in ["", ".", ":", "src", "::src:."] {
            assert_eq!(look_up("sh", OsStr::new(path)), None, "{path:?}");
        }
    }
}
