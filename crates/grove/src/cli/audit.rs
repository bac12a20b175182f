//! `grove audit`.

use clap::Args;
use grove_host::audit::{AuditAction, AuditOutcome};

pub(super) const AUDIT_HELP: &str = "\
Examples:
  grove audit                          the newest records
  grove audit --action approve --since 7d
  grove audit --action agent-attempt   processes of agents that tried to approve
  grove audit --outcome refused --json";

#[derive(Debug, Args)]
pub(crate) struct AuditArgs {
    /// Show records from this time on: 30m, 12h, 7d, or a time in ISO 8601
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Show records up to this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Show records of this token
    #[arg(long, value_name = "NAME")]
    pub(crate) token: Option<String>,
    /// Show records of this client
    #[arg(long, value_name = "ID")]
    pub(crate) client: Option<String>,
    /// Show records of sessions whose name contains this text
    #[arg(long, value_name = "TEXT")]
    pub(crate) session: Option<String>,
    /// Show records of one kind: log-in, prompt, approve, deny, answer, create, change, delete, policy, token, manage,
    /// agent-attempt
    #[arg(long, value_name = "ACTION")]
    pub(crate) action: Option<AuditAction>,
    /// Show records with one outcome: done, unchanged, refused, unanswered
    #[arg(long, value_name = "OUTCOME")]
    pub(crate) outcome: Option<AuditOutcome>,
    /// Show at most this many of the newest records
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) limit: usize,
    /// Continue with new records until Ctrl-C
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
