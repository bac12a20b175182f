//! The paths of tools' stores, as a function of platform and environment, so that each platform can be tested on any.

use std::path::PathBuf;

/// A system's layout of a person's folders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    /// The platform of this build.
    pub fn current() -> Self {
        if cfg!(windows) {
            Self::Windows
        } else if cfg!(target_os = "macos") {
            Self::MacOs
        } else {
            Self::Linux
        }
    }
}

/// The variables that decide the paths of stores. The caller reads the environment: nothing here does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreEnvironment {
    pub home: String,
    /// `APPDATA`, on Windows.
    pub app_data: Option<String>,
    /// `XDG_CONFIG_HOME`, on Linux.
    pub config_home: Option<String>,
    /// `XDG_STATE_HOME`.
    pub state_home: Option<String>,
    /// `COPILOT_HOME`.
    pub copilot_home: Option<String>,
    /// `XDG_DATA_HOME`.
    pub data_home: Option<String>,
    /// `CLAUDE_CONFIG_DIR`; it may list several folders, separated by commas.
    pub claude_config: Option<String>,
    /// `CODEX_HOME`.
    pub codex_home: Option<String>,
    /// `PI_CODING_AGENT_DIR`.
    pub pi_home: Option<String>,
    /// `GEMINI_CLI_HOME`: the folder that has `.gemini` in it.
    pub gemini_home: Option<String>,
    /// `VSCODE_AGENT_FOLDER`: the data folder of a VS Code server.
    pub vscode_server: Option<String>,
    /// True if `REMOTE_CONTAINERS` or `CODESPACES` is set: VS Code created this container, and its server may be
    /// outside the home folder.
    pub in_container: bool,
}

impl StoreEnvironment {
    /// Reads an environment; `variable` looks up a variable.
    pub fn of(home: String, variable: impl Fn(&str) -> Option<String>) -> Self {
        Self {
            home,
            app_data: variable("APPDATA"),
            config_home: variable("XDG_CONFIG_HOME"),
            state_home: variable("XDG_STATE_HOME"),
            copilot_home: variable("COPILOT_HOME"),
            data_home: variable("XDG_DATA_HOME"),
            claude_config: variable("CLAUDE_CONFIG_DIR"),
            codex_home: variable("CODEX_HOME"),
            pi_home: variable("PI_CODING_AGENT_DIR"),
            gemini_home: variable("GEMINI_CLI_HOME"),
            vscode_server: variable("VSCODE_AGENT_FOLDER"),
            in_container: ["REMOTE_CONTAINERS", "CODESPACES"].iter().any(|name| set(variable(name).as_ref()).is_some()),
        }
    }
}

/// A path below a folder, in the platform's spelling.
pub(crate) fn below(platform: Platform, folder: &str, names: &[&str]) -> PathBuf {
    let separator = match platform {
        Platform::Linux | Platform::MacOs => '/',
        Platform::Windows => '\\',
    };
    let mut path = folder.trim_end_matches(separator).to_owned();
    for name in names {
        path.push(separator);
        path.push_str(name);
    }
    path.into()
}

/// A variable that is set and not empty.
pub(crate) fn set(variable: Option<&String>) -> Option<&str> {
    variable.map(String::as_str).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{TranscriptSource, store_roots_below};

    #[test]
    fn a_home_that_was_copied_from_any_platform_is_recognised() {
        let roots = store_roots_below(Path::new("/mnt/old"));
        for folder in [
            "/mnt/old/.config/Code/User",
            "/mnt/old/Library/Application Support/Code/User",
            "/mnt/old/AppData/Roaming/Code - Insiders/User",
            "/mnt/old/.vscode-server/data/User",
        ] {
            let found = roots.iter().filter(|root| root.folder == Path::new(folder));
            assert_eq!(found.map(|root| root.source).collect::<Vec<_>>(), [TranscriptSource::VsCode], "{folder}");
        }
        assert_eq!(
            roots.iter().filter(|root| root.source == TranscriptSource::Gemini).count(),
            1,
            "it is the same everywhere"
        );
        assert!(roots.iter().all(|root| root.folder.starts_with("/mnt/old")));
    }
}
