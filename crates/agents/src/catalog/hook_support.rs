//! The ways in which an agent waits for the hooks of its session.

use crate::acp::hooks::HookFormat;
use crate::setup::{HookAbility, Support};

/// How an agent is started for a session with hooks, and before which calls it then waits for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookSupport {
    /// Nothing is known.
    #[default]
    Unknown,
    /// It asks for permission before everything but reads, as it is.
    AsksButReads,
    /// Settings make it ask before every call.
    Asks {
        /// The variable that holds its settings, as a JSON object.
        variable: &'static str,
        /// The settings, which are added to those that the variable has.
        settings: &'static str,
    },
    /// It has hooks of its own, which run a command before every call.
    Command(HookFormat),
}

impl HookSupport {
    /// The calls before which the agent waits.
    pub fn ability(self) -> HookAbility {
        match self {
            HookSupport::Unknown => HookAbility::Unknown,
            HookSupport::AsksButReads => HookAbility::AllButReads,
            HookSupport::Asks { .. } | HookSupport::Command(_) => HookAbility::EveryCall,
        }
    }

    /// Whether a hook may change the arguments of a call.
    pub fn changed_arguments(self) -> Support {
        match self {
            HookSupport::Command(_) => Support::Yes,
            HookSupport::Unknown | HookSupport::AsksButReads | HookSupport::Asks { .. } => Support::No,
        }
    }
}
