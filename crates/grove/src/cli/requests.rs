//! Commands about permission requests and questions: approve, deny, answer and permissions.

use clap::{Args, ValueEnum};

use super::{ConnectArgs, SessionArg};

pub(super) const APPROVE_HELP: &str = "\
Examples:
  grove approve
  grove approve 1f0c
  grove approve 1f0c --option always
  grove approve 1f0c --always session           list the rules on offer
  grove approve 1f0c --always session --rule 1  store the first of them

Without a session, the command answers the only pending permission request of
all sessions; `grove ls --waiting` lists the sessions with pending requests.

If a session has several pending requests, they are listed: name one after the
session.";

pub(super) const ANSWER_HELP: &str = "\
Examples:
  grove answer 1f0c \"the second one\"
  grove answer \"the second one\"
  grove answer --decline

Without a session, the only question that waits in any session is meant. Name
the session where a request has several questions.";

pub(super) const PERMISSIONS_HELP: &str = "\
Examples:
  grove permissions 7d3f           list rules and remembered answers
  grove permissions 7d3f --revoke  ask a person about everything again";

/// The permission request.
#[derive(Debug, Args)]
pub(crate) struct PermissionArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host [default: the only one
    /// waiting]
    pub(crate) session: Option<String>,
    /// The permission request, if several are pending
    pub(crate) request: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) permission: PermissionArgs,
    /// Choose one of the other answers that the agent offers
    #[arg(long, value_name = "ID", conflicts_with = "always")]
    pub(crate) option: Option<String>,
    /// Store a rule that allows this request and later ones: in the session, in the repository's .grove/policy.toml, or in grove.toml
    #[arg(long, value_enum, value_name = "WHERE")]
    pub(crate) always: Option<AlwaysTarget>,
    /// The number of the rule to store; without it, the rules on offer are listed
    #[arg(long, value_name = "N", requires = "always")]
    pub(crate) rule: Option<usize>,
}

/// The sessions that a stored rule counts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AlwaysTarget {
    Session,
    Repository,
    Everywhere,
}

#[derive(Debug, Args)]
pub(crate) struct DenyArgs {
    #[command(flatten)]
    pub(crate) permission: PermissionArgs,
    /// Choose one of the other answers that the agent offers
    #[arg(long, value_name = "ID")]
    pub(crate) option: Option<String>,
    /// Tell the agent why
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The session's id, the beginning of it, its URI, or @last; NAME/ID at another host [default: the only one with a question]
    #[arg(required_unless_present = "decline")]
    pub(crate) session: Option<String>,
    /// The answers, in the order of the questions: a text, a number, y or n, an option's number or name
    pub(crate) text: Vec<String>,
    /// Answer this request, if several are pending
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,
    /// Decline to answer; the agent goes on without
    #[arg(long, conflicts_with = "text")]
    pub(crate) decline: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SessionPermissionsArgs {
    #[command(flatten)]
    pub(crate) session: SessionArg,
    /// Revoke everything that is allowed, so that a person is asked again; denials stay
    #[arg(long)]
    pub(crate) revoke: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
