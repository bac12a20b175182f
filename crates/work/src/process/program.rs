//! The command line of a program, and the part of our environment that it inherits.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use grove_checks::Check;
use serde::{Deserialize, Serialize};

use super::ProcessError;

/// A program with its arguments and environment. `Debug` leaves out `env`, which may hold secrets.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// A path, or a name to search in `PATH`.
    pub command: String,
    #[serde(default)]
    pub args: Vec<String>,
    /// Added to the [`inherited_environment`], and stronger than it.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub cwd: PathBuf,
}

/// The inherited variables: the user and the home folder, the language, and the network settings. Other variables may
/// hold secrets, so all of them are left out.
const ALLOWED: [&str; 29] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "SSH_AUTH_SOCK",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    // A proxy that inspects traffic has its own certificate.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "DBUS_SESSION_BUS_ADDRESS",
];
const ALLOWED_PREFIXES: [&str; 2] = ["LC_", "XDG_"];

/// The part of our environment that a started program inherits.
pub fn inherited_environment() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| is_inherited(name))
}

fn is_inherited(name: &OsStr) -> bool {
    !Check::Environment.is_enforced()
        || name.to_str().is_some_and(|name| {
            ALLOWED.contains(&name) || ALLOWED_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        })
}

impl Program {
    /// A program without arguments, with only the inherited environment.
    pub fn new(command: impl Into<String>, cwd: impl Into<PathBuf>) -> Self {
        Self { command: command.into(), args: Vec::new(), env: BTreeMap::new(), cwd: cwd.into() }
    }

    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    pub(crate) fn command(&self) -> Result<Command, ProcessError> {
        // The system's own error does not distinguish a missing folder from a missing program.
        if !self.cwd.is_dir() {
            return Err(ProcessError::NoFolder { path: self.cwd.clone() });
        }
        let mut command = Command::new(&self.command);
        command.args(&self.args).env_clear().envs(inherited_environment()).envs(&self.env).current_dir(&self.cwd);
        Ok(command)
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_in_our_environment_are_not_handed_on() {
        for allowed in ["HOME", "PATH", "LC_ALL", "XDG_RUNTIME_DIR", "https_proxy"] {
            assert!(is_inherited(OsStr::new(allowed)), "{allowed}");
        }
        for secret in ["AWS_SECRET_ACCESS_KEY", "GROVE_DATA_DIR", "LD_PRELOAD", "PATHS", "lc_all", ""] {
            assert!(!is_inherited(OsStr::new(secret)), "{secret}");
        }
    }

    #[test]
    fn a_program_that_is_logged_shows_no_values_of_its_environment() {
        let shown = format!("{:?}", Program::new("agent", "/").env("API_KEY", "hunter2"));
        assert!(shown.contains("API_KEY") && !shown.contains("hunter2"), "{shown}");
    }
}
