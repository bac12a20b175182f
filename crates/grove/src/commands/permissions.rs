//! `grove permissions`

use grove_core::{PermissionKind, PermissionRule};
use grove_wire::x_grove::{PermissionsParams, PermissionsResult};
use serde_json::json;

use super::{Failure, command_runtime, print_line};
use crate::chat_client::tree::TreeClient;
use crate::cli::{Common, SessionPermissionsArgs};
use crate::connect::{HostConnector, id_of};
use crate::show::style::sanitize;

pub(crate) fn run(common: &Common, args: &SessionPermissionsArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let tree = TreeClient::of_session(&connector, &args.session.reference, args.connect.protocol).await?;
        let permissions = tree.permissions(&PermissionsParams { revoke: args.revoke }).await?;
        if args.json {
            let mut output = serde_json::to_value(&permissions)?;
            output["session"] = json!(tree.session());
            output["revoked"] = json!(args.revoke);
            return Ok(print_line(output)?);
        }
        let id = id_of(tree.session());
        if args.revoke {
            print_line(format!("{id} asks about everything again"))?;
        }
        for line in lines(&permissions) {
            print_line(sanitize(&line))?;
        }
        if permissions.allows_anything() {
            anstream::eprintln!("`grove permissions {id} --revoke` makes the session ask again");
        }
        Ok(())
    })
}

fn lines(permissions: &PermissionsResult) -> Vec<String> {
    let mut lines = Vec::new();
    if permissions.allow_all {
        lines.push("allow  everything".to_owned());
    }
    lines.extend(permissions.approved.iter().map(|rule| format!("allow  {}", words(rule))));
    // Each is a table of one rule, which its second line begins.
    lines.extend(permissions.policy_rules.iter().map(|rule| rule.lines().skip(1).collect::<Vec<_>>().join("; ")));
    lines.extend(permissions.directories.iter().map(|folder| format!("allow  read below {folder}")));
    lines.extend(permissions.denied.iter().map(|rule| format!("deny   {}", words(rule))));
    lines.extend(permissions.remembered.iter().map(|known| {
        let word = if known.option.allows { "allow" } else { "deny " };
        format!("{word}  {} {} (remembered: {})", kind(known.kind), known.about, known.option.label)
    }));
    if lines.is_empty() {
        lines.push("nothing is allowed without asking".to_owned());
    }
    lines
}

fn words(rule: &PermissionRule) -> String {
    match &rule.argument {
        Some(argument) => format!("{} {argument}", kind(rule.kind)),
        None => format!("{} of any kind", kind(rule.kind)),
    }
}

fn kind(kind: PermissionKind) -> &'static str {
    match kind {
        PermissionKind::Shell => "command",
        PermissionKind::Write => "write",
        PermissionKind::Read => "read",
        PermissionKind::Url => "address",
        PermissionKind::Mcp => "tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_allowed_is_listed() {
        assert_eq!(lines(&PermissionsResult::default()), ["nothing is allowed without asking"]);
        let rule = |argument: Option<&str>| PermissionRule {
            kind: PermissionKind::Shell,
            argument: argument.map(ToOwned::to_owned),
        };
        let permissions = PermissionsResult {
            allow_all: true,
            approved: vec![rule(Some("git:*"))],
            denied: vec![rule(None)],
            directories: vec!["/w".to_owned()],
            policy_rules: vec!["[[rules]]\nallow = \"shell\"\ncommand = \"ls\"\n".to_owned()],
            remembered: vec![],
        };
        let expected = [
            "allow  everything",
            "allow  command git:*",
            "allow = \"shell\"; command = \"ls\"",
            "allow  read below /w",
            "deny   command of any kind",
        ];
        assert_eq!(lines(&permissions), expected);
    }
}
