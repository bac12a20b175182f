//! The commands of `grove --help`, under headings.
//!
//! clap lists subcommands in one piece, so the root command gets a template with a list of its own.

use clap::{CommandFactory, FromArgMatches};

use super::Cli;

/// The headings with their commands, the most used first.
pub(super) const GROUPS: [(&str, &[&str]); 9] = [
    ("Work", &["run", "attach", "send", "wait", "approve", "deny", "answer", "cancel"]),
    (
        "Sessions",
        &[
            "ls",
            "show",
            "rename",
            "cd",
            "chats",
            "archive",
            "read",
            "rm",
            "fork",
            "move",
            "export",
            "import",
            "permissions",
        ],
    ),
    ("Tree", &["tree", "goto", "label", "branch", "merge", "compact"]),
    ("Workspace", &["plan", "files", "checkpoints"]),
    ("History", &["history", "doctor"]),
    (
        "Host",
        &[
            "serve", "start", "status", "stop", "open", "token", "logs", "audit", "config", "policy", "du", "gc",
            "debug",
        ],
    ),
    ("Hosts and agents", &["hosts", "agents"]),
    ("Integration", &["acp", "copilot", "ahp-bridge", "completions"]),
    ("Rarely used", &["inspect", "check", "migrate"]),
];

/// The columns that a line of help may have.
const WIDTH: usize = 80;
/// The column at which descriptions begin.
const INDENT: usize = 15;

impl Cli {
    /// Parses a command line; help lists the commands under headings.
    pub(crate) fn parse_grouped(args: Vec<std::ffi::OsString>) -> Result<Self, clap::Error> {
        let mut command = grouped();
        let matches = command.try_get_matches_from_mut(args)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

/// The root command, with its commands under headings.
pub(super) fn grouped() -> clap::Command {
    let root = Cli::command();
    let mut template = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        template.push_str(&format!("\n{heading}:\n"));
        for name in names {
            let about = root.find_subcommand(name).and_then(clap::Command::get_about);
            push_command(&mut template, name, &about.map(ToString::to_string).unwrap_or_default());
        }
    }
    template.push_str("\nOptions:\n{options}\n\n{after-help}");
    root.help_template(template)
}

/// Appends a command and its description, wrapped.
fn push_command(out: &mut String, name: &str, about: &str) {
    let mut line = format!("  {name:width$}", width = INDENT - 2);
    for word in about.split_whitespace() {
        if line.len() > INDENT && line.len() + word.len() + 1 > WIDTH {
            out.push_str(line.trim_end());
            out.push('\n');
            line = " ".repeat(INDENT);
        }
        line.push_str(word);
        line.push(' ');
    }
    out.push_str(line.trim_end());
    out.push('\n');
}
