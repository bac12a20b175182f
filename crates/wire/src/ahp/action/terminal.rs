//! Actions on a terminal.

use crate::ahp::Uri;
use crate::ahp::macros::records;
use crate::ahp::state::TerminalClaim;

actions! {
    pub enum TerminalAction {
        "terminal/data" Host => Data(TerminalData),
        "terminal/input" Client => Input(TerminalInput),
        "terminal/resized" Client => Resized(TerminalResized),
        "terminal/claimed" Client => Claimed(TerminalClaimed),
        "terminal/titleChanged" Client => TitleChanged(TerminalTitleChanged),
        "terminal/cwdChanged" Host => CwdChanged(TerminalCwdChanged),
        "terminal/exited" Host => Exited(TerminalExited),
        "terminal/cleared" Client => Cleared(TerminalCleared),
        "terminal/commandDetectionAvailable" Host => CommandDetectionAvailable(TerminalCommandDetectionAvailable),
        "terminal/commandExecuted" Host => CommandExecuted(TerminalCommandExecuted),
        "terminal/commandFinished" Host => CommandFinished(TerminalCommandFinished),
    }
}

records! {
    pub struct TerminalData {
        pub data: String,
    }

    /// Typed input. It changes no state; the process's output does.
    pub struct TerminalInput {
        pub data: String,
    }

    pub struct TerminalResized {
        pub cols: u64,
        pub rows: u64,
    }

    pub struct TerminalClaimed {
        pub claim: TerminalClaim,
    }

    pub struct TerminalTitleChanged {
        pub title: String,
    }

    pub struct TerminalCwdChanged {
        pub cwd: Uri,
    }

    pub struct TerminalExited {
        pub exit_code: Option<i64>,
    }

    pub struct TerminalCleared {}

    pub struct TerminalCommandDetectionAvailable {}

    pub struct TerminalCommandExecuted {
        pub command_id: String,
        pub command_line: String,
        /// Milliseconds since 1970.
        pub timestamp: u64,
    }

    pub struct TerminalCommandFinished {
        pub command_id: String,
        pub exit_code: Option<i64>,
        pub duration_ms: Option<u64>,
    }
}
