//! Claude Code's `permissions`.
//!
//! | entry | rule |
//! |---|---|
//! | `Bash`, `Bash(*)` | shell |
//! | `Bash(npm test)` | the command, exactly |
//! | `Bash(npm run test:*)`, `Bash(npm run test *)` | the command with any further words |
//! | `Bash(git * main)` | `*` is any number of words |
//! | `Read(x)`, `Grep`, `Glob`, `LS` | read |
//! | `Edit(x)`, `Write(x)`, `MultiEdit`, `NotebookEdit` | edit; a rule that denies reading also denies editing |
//! | `//x` in a path | absolute; `/x` is relative to the project, `~/x` to the home folder |
//! | `WebFetch(domain:x)` | fetch of the host |
//! | `mcp__server`, `mcp__server__tool` | MCP tool `server/*`, `server/tool` |

use serde_json::Value;

use super::*;

/// Reads a `settings.json` of Claude Code.
pub fn import_claude(text: &str) -> Result<Import, ImportError> {
    let settings = read_json(text)?;
    let permissions = settings.get("permissions").filter(|permissions| permissions.is_object());
    let permissions = permissions.ok_or(ImportError::Missing("\"permissions\""))?;
    let mut import = Import::default();
    import.lists(permissions, entry);
    for folder in permissions.get("additionalDirectories").and_then(Value::as_array).into_iter().flatten() {
        let Some(folder) = folder.as_str().filter(|folder| folder.starts_with(['/', '~'])) else {
            import.skip(folder.to_string(), "a folder relative to the project is outside of it: write the whole path");
            continue;
        };
        let pattern = format!("{}/**", folder.trim_end_matches('/'));
        import.add(folder, path(Verdict::Allow, &[Kind::Read], &pattern));
    }
    match permissions.get("defaultMode").and_then(Value::as_str) {
        None | Some("default") => {}
        Some("acceptEdits") => import.add("acceptEdits", path(Verdict::Allow, &[Kind::Edit], "**")),
        Some(mode @ ("bypassPermissions" | "auto")) => {
            import
                .skip(format!("defaultMode: {mode}"), "everything would be allowed: allow it for one session instead");
        }
        Some(mode) => import.skip(format!("defaultMode: {mode}"), "it is a mode of the agent: choose it there"),
    }
    const READ: [&str; 5] = ["allow", "ask", "deny", "additionalDirectories", "defaultMode"];
    for (name, value) in
        permissions.as_object().into_iter().flatten().filter(|(name, _)| !READ.contains(&name.as_str()))
    {
        import.skip(format!("{name}: {value}"), "it has no equal here");
    }
    Ok(import)
}

fn entry(text: &str, verdict: Verdict) -> Result<Rule, String> {
    if let Some(name) = text.strip_prefix("mcp__") {
        return mcp(name, verdict);
    }
    let (name, argument) = split(text);
    let argument = argument.filter(|argument| *argument != "*" && !argument.is_empty());
    match name {
        "*" => Ok(whole(verdict, &Kind::ALL)),
        "Bash" => match argument {
            None => Ok(whole(verdict, &[Kind::Shell])),
            Some(argument) => bash(argument, verdict),
        },
        "Read" | "Grep" | "Glob" | "LS" | "NotebookRead" => {
            // Denied files are not edited either.
            let kinds: &[Kind] = if verdict == Verdict::Deny { &[Kind::Read, Kind::Edit] } else { &[Kind::Read] };
            file(kinds, argument, verdict)
        }
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => file(&[Kind::Edit], argument, verdict),
        "WebFetch" => match argument {
            None => Ok(whole(verdict, &[Kind::Fetch])),
            Some(argument) => match argument.strip_prefix("domain:") {
                Some(domain) => host(verdict, domain),
                None => Err("only \"domain:\" is known in WebFetch".to_owned()),
            },
        },
        "WebSearch" => Err("a search is not a kind of its own here".to_owned()),
        "Task" | "Agent" | "Skill" | "SlashCommand" | "TodoWrite" | "ExitPlanMode" | "KillShell" | "BashOutput" => {
            Err(format!("{name} is a part of the agent, which does not ask for it"))
        }
        _ => Err(format!("{name:?} is no tool that is known here")),
    }
}

fn bash(argument: &str, verdict: Verdict) -> Result<Rule, String> {
    if let Some(prefix) = argument.strip_suffix(":*") {
        return command(verdict, &format!("{prefix} *"));
    }
    // "ls*" matches every command that begins so, with its arguments.
    let is_open = argument.ends_with('*') && !argument.ends_with(" *");
    match is_open {
        true => command(verdict, &format!("{argument} *")),
        false => command(verdict, argument),
    }
}

fn file(kinds: &[Kind], argument: Option<&str>, verdict: Verdict) -> Result<Rule, String> {
    let Some(argument) = argument else { return Ok(whole(verdict, kinds)) };
    let pattern = match argument.strip_prefix('/') {
        // Two slashes are the root, one is the project.
        Some(rest) => {
            if rest.starts_with('/') {
                rest.to_owned()
            } else {
                format!("./{rest}")
            }
        }
        None => argument.to_owned(),
    };
    if pattern.starts_with('!') || pattern.contains(['[', '{']) {
        return Err("only * and ** are known in paths here".to_owned());
    }
    path(verdict, kinds, &pattern)
}

fn mcp(name: &str, verdict: Verdict) -> Result<Rule, String> {
    match name.split_once("__") {
        Some((server, name)) => tool(verdict, &format!("{server}/{name}")),
        None => tool(verdict, &format!("{name}/*")),
    }
}
