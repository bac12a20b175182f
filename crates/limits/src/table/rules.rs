//! Limits of permission rules.

use grove_agents::limits as agents;
use grove_policy::limits as policy;

use crate::{Limit, LimitGroup, bytes, count};

pub(super) fn groups() -> Vec<LimitGroup> {
    vec![rules()]
}

fn rules() -> LimitGroup {
    let rows = vec![
        Limit::new("policy-file", bytes(policy::FILE_BYTES), "file with rules", "the file is refused"),
        Limit::new("policy-rules", count(policy::RULES), "file with rules", "the file is refused"),
        Limit::new("policy-file-patterns", count(policy::FILE_PATTERNS), "file with rules", "the file is refused"),
        Limit::new("policy-rule-patterns", count(policy::RULE_PATTERNS), "rule", "the file is refused"),
        Limit::new("policy-pattern", bytes(policy::PATTERN_BYTES), "pattern", "the file is refused"),
        Limit::new("policy-pattern-words", count(policy::PATTERN_WORDS), "pattern of a command", "the file is refused"),
        Limit::new("policy-reason", bytes(policy::REASON_BYTES), "reason of a rule", "the file is refused"),
        Limit::new("policy-command", bytes(policy::COMMAND_BYTES), "shell command", "the command is asked"),
        Limit::new(
            "policy-commands",
            count(policy::COMMANDS),
            "shell command, inner ones included",
            "the command is asked",
        ),
        Limit::new("policy-words", count(policy::WORDS), "shell command", "the command is asked"),
        Limit::new("policy-depth", count(policy::DEPTH), "shell command, nested", "the command is asked"),
        Limit::new("policy-paths", count(policy::PATHS), "shell command", "the command is asked"),
        Limit::new("policy-folders", count(policy::FOLDERS), "shell command", "the command is asked"),
        Limit::new("permission-paths", count(agents::PERMISSION_PATHS), "tool call", "the call is asked"),
    ];
    LimitGroup {
        subject: "Rules of permissions",
        about: "What a rule cannot judge within these bounds is asked.",
        limits: rows,
    }
}
