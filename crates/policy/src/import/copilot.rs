//! Copilot CLI's permission patterns.
//!
//! | entry | rule |
//! |---|---|
//! | `shell` | shell |
//! | `shell(git push)` | the command, exactly |
//! | `shell(git:*)`, `shell(git push:*)` | the command with any further words |
//! | `write`, `write(x)`, `read`, `read(x)` | edit, read; with a path |
//! | `url`, `url(x)` | fetch; of the host, if the entry names no path |
//! | `Server`, `Server(tool)` | MCP tool `Server/*`, `Server/tool` |

use serde_json::Value;

use super::*;

/// Reads a configuration of the Copilot CLI: managed settings, its own configuration, or its stored approvals.
pub fn import_copilot(text: &str) -> Result<Import, ImportError> {
    let settings = read_json(text)?;
    let settings = settings.get("managedSettings").unwrap_or(&settings);
    let mut import = Import::default();
    let mut is_known = false;
    if let Some(permissions) = settings.get("permissions").filter(|permissions| permissions.is_object()) {
        is_known = true;
        import.lists(permissions, import_copilot_pattern);
        if let Some(mode) = permissions.get("disableBypassPermissionsMode") {
            import.skip(format!("disableBypassPermissionsMode: {mode}"), "it is a setting of the agent");
        }
    }
    let lists = [(Verdict::Allow, ["allowedUrls", "allowed_urls"]), (Verdict::Deny, ["deniedUrls", "denied_urls"])];
    for (verdict, names) in lists {
        for urls in names.iter().filter_map(|name| settings.get(*name)?.as_array()) {
            is_known = true;
            for url in urls.iter().take(MAX_ENTRIES).filter_map(Value::as_str) {
                import.add(url, address(url, verdict));
            }
        }
    }
    if let Some(locations) = settings.get("locations").and_then(Value::as_object) {
        is_known = true;
        for (folder, stored) in locations.iter().take(MAX_ENTRIES) {
            let approvals = stored.get("tool_approvals").or_else(|| stored.get("toolApprovals"));
            for approval in approvals.and_then(Value::as_array).into_iter().flatten().take(MAX_ENTRIES) {
                stored_approval(folder, approval, &mut import);
            }
        }
    }
    match is_known {
        true => Ok(import),
        false => Err(ImportError::Missing("\"permissions\", \"allowedUrls\" or \"locations\"")),
    }
}

/// Reads one pattern, as after `--allow-tool`.
pub fn import_copilot_pattern(text: &str, verdict: Verdict) -> Result<Rule, String> {
    let (name, argument) = split(text);
    let argument = argument.filter(|argument| *argument != "*" && !argument.is_empty());
    match (name, argument) {
        ("shell", None) => Ok(whole(verdict, &[Kind::Shell])),
        ("shell", Some(argument)) => match argument.strip_suffix(":*") {
            Some(prefix) => command(verdict, &format!("{prefix} *")),
            None if argument.contains('*') => Err("only \":*\" at the end is known in shell(…)".to_owned()),
            None => command(verdict, argument),
        },
        ("write", None) => Ok(whole(verdict, &[Kind::Edit])),
        ("write", Some(argument)) => path(verdict, &[Kind::Edit], argument),
        ("read", None) => Ok(whole(verdict, &[Kind::Read])),
        ("read", Some(argument)) => path(verdict, &[Kind::Read], argument),
        ("url", None) => Ok(whole(verdict, &[Kind::Fetch])),
        ("url", Some(argument)) => address(argument, verdict),
        ("memory", _) => Err("memory is a part of the agent, which has no equal here".to_owned()),
        (server, None) if is_name(server) => tool(verdict, &format!("{server}/*")),
        (server, Some(name)) if is_name(server) => tool(verdict, &format!("{server}/{name}")),
        _ => Err("it is no pattern that is known here".to_owned()),
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_. ".contains(c))
}

fn address(url: &str, verdict: Verdict) -> Result<Rule, String> {
    let name = match url.split_once("://") {
        Some(_) => url.split_once("://").map(|(_, rest)| rest.trim_end_matches('/')).unwrap_or_default(),
        None => url.trim_end_matches('/'),
    };
    let is_narrower = name.contains(['/', '?', ':']);
    match (is_narrower, verdict) {
        // The whole host is more than the original, which is no harm in a rule that does not allow.
        (true, Verdict::Deny | Verdict::Ask) => {
            host(Verdict::Ask, name.split(['/', '?', ':']).next().unwrap_or_default())
        }
        (true, Verdict::Allow) => Err("rules here are about whole hosts, which would be more".to_owned()),
        (false, _) => host(verdict, name),
    }
}

/// Reads an approval that the CLI stored for a folder. Rules here are not bound to a folder, so only relative ones fit.
fn stored_approval(folder: &str, approval: &Value, import: &mut Import) {
    let entry = format!("{folder}: {approval}");
    let text = |name: &str| approval.get(name).and_then(Value::as_str);
    match text("kind") {
        Some("commands") => {
            let names = approval.get("commandIdentifiers").or_else(|| approval.get("command_identifiers"));
            for name in names.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
                // An identifier covers every argument of the command.
                import.add(&entry, command(Verdict::Allow, &format!("{} *", name.trim_end_matches(":*"))));
            }
        }
        Some("write") => import.add(&entry, path(Verdict::Allow, &[Kind::Edit], "**")),
        Some("mcp") => {
            let server = text("serverName").or_else(|| text("server_name")).unwrap_or_default();
            let name = text("toolName").or_else(|| text("tool_name")).unwrap_or("*");
            match is_name(server) {
                true => import.add(&entry, tool(Verdict::Allow, &format!("{server}/{name}"))),
                false => import.skip(entry, "it names no server"),
            }
        }
        _ => import.skip(entry, "its kind is not known here"),
    }
}
