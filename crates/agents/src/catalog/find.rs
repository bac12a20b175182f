//! Searching for programs.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::AgentEntry;
use super::installed::InstalledAgent;

/// The result of searching for an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Installation {
    /// `grove agents install` has installed it.
    Own(InstalledAgent),
    /// It is in `PATH`.
    InPath {
        program: PathBuf,
    },
    Missing,
}

/// Searches for an agent among those that Grove has installed, then in the folders of a `PATH` value.
pub fn find(entry: &AgentEntry, programs: &Path, path: &OsStr) -> Installation {
    if let Some(installed) = InstalledAgent::read(programs, &entry.id).filter(|found| is_program(&found.program)) {
        return Installation::Own(installed);
    }
    match entry.commands.iter().find_map(|name| look_up(name, path)) {
        Some(program) => Installation::InPath { program },
        None => Installation::Missing,
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
    use super::super::AgentCatalog;
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
        let catalog = AgentCatalog::built_in();
        let (claude, programs) = (catalog.get("claude").unwrap(), place.path().join("programs"));
        let find = || find(claude, &programs, &path);
        assert_eq!(find(), Installation::Missing);

        let old = put(&one, "claude-code-acp", 0o755);
        assert_eq!(find(), Installation::InPath { program: old });
        let new = put(&two, "claude-agent-acp", 0o755);
        assert_eq!(find(), Installation::InPath { program: new });
        let first = put(&one, "claude-agent-acp", 0o755);
        assert_eq!(find(), Installation::InPath { program: first.clone() });

        let own = put(&programs.join("claude/1"), "claude-agent-acp", 0o755);
        let record = InstalledAgent { program: own.clone(), kind: "npm".into(), version: "1.0".into() };
        record.write(&programs, "claude").unwrap();
        assert_eq!(find(), Installation::Own(record), "the agent that Grove has installed comes first");
        fs::remove_file(own).unwrap();
        assert_eq!(find(), Installation::InPath { program: first }, "a record without a program is none");
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
