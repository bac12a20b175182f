//! Arguments of `grove token`.

use std::time::Duration;

use clap::{Args, Subcommand};
use grove_core::Scope;

use super::ConnectArgs;

pub(super) const TOKEN_HELP: &str = "\
Examples:
  grove token add phone --can read,approve --expires 30d
  grove token ls
  grove token revoke phone
  grove token rotate host

Scopes: read (see sessions, files and history), prompt (create sessions and
send prompts), approve (answer agents, and decide what they may do without
asking), terminal (terminals), folders (work outside the configured roots),
admin (tokens, stores, moving and erasing sessions). The host's own token,
`host`, has all of them.";

#[derive(Debug, Args)]
pub(crate) struct TokenArgs {
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print it; the host keeps no copy
    Add(TokenAddArgs),
    /// List the tokens, their scopes, and when they expire
    Ls(TokenLsArgs),
    /// Revoke a token, and close its connections
    Revoke(TokenNameArgs),
    /// Replace the secret of a token, close its connections, and print the new one; `host` is the host's own
    Rotate(TokenNameArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TokenAddArgs {
    /// The name of the token: letters, digits, `-`, `_` and `.`
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// The scopes: read, prompt, approve, terminal, folders, admin
    #[arg(long, value_name = "SCOPES", value_delimiter = ',', required = true)]
    pub(crate) can: Vec<Scope>,
    /// The time after which it expires: 30d, 12h, 45m or 90s [default: never]
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    pub(crate) expires: Option<Duration>,
    /// Print one JSON object: {"name":…,"token":…}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TokenLsArgs {
    /// Print one JSON object: {"tokens":[…]}
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct TokenNameArgs {
    /// The name of the token, as `grove token ls` lists it
    #[arg(value_name = "NAME")]
    pub(crate) name: String,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// Reads a time such as `30d`.
fn lifetime(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time: write 30d, 12h, 45m or 90s");
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds: u64 = match unit {
        'd' => 24 * 60 * 60,
        'h' => 60 * 60,
        'm' => 60,
        's' => 1,
        _ => return Err(wrong()),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let seconds = number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or_else(wrong)?;
    Ok(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_and_is_not_zero() {
        assert_eq!(lifetime("30d"), Ok(Duration::from_secs(30 * 86_400)));
        assert_eq!(lifetime("90s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "d", "30", "0h", "-1d", "1é", "99999999999999999999d", "18446744073709551615d"] {
            assert!(lifetime(wrong).is_err(), "{wrong}");
        }
    }
}
