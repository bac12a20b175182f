//! The exit of a program.

use std::fmt;

use rustix::process::WaitIdStatus;
use serde::{Deserialize, Serialize};

/// The exit of a program: a code, or a signal. Neither is known if another process waited for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Exit {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl Exit {
    pub fn success(self) -> bool {
        self.code == Some(0)
    }

    /// The common name of the signal, if it has one.
    pub fn signal_name(self) -> Option<&'static str> {
        Some(match self.signal? {
            1 => "SIGHUP",
            2 => "SIGINT",
            3 => "SIGQUIT",
            4 => "SIGILL",
            5 => "SIGTRAP",
            6 => "SIGABRT",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            13 => "SIGPIPE",
            14 => "SIGALRM",
            15 => "SIGTERM",
            _ => return None,
        })
    }
}

impl From<&WaitIdStatus> for Exit {
    fn from(status: &WaitIdStatus) -> Self {
        Self { code: status.exit_status(), signal: status.terminating_signal() }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "ended with code {code}"),
            (None, Some(signal)) => match self.signal_name() {
                Some(name) => write!(f, "was ended by {name}"),
                None => write!(f, "was ended by signal {signal}"),
            },
            (None, None) => f.write_str("ended with an unknown status"),
        }
    }
}
