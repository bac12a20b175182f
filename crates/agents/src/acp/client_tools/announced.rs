//! The calls of clients' tools that an agent announces itself.

use serde_json::Value;

use crate::agent::ToolUpdate;
use crate::setup::CLIENT_TOOLS_SERVER;

/// The characters between the names of a server and of its tool, in the agents' spellings.
const SEPARATORS: [char; 6] = ['_', '-', '/', '.', ':', ' '];

/// The tool of ours that an agent's call is about, among these names.
pub(super) fn tool_of<'a>(update: &ToolUpdate, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // A call of a kind of its own is a command or an edit, whatever its title says.
    if update.kind.is_some() {
        return None;
    }
    let input = update.input.as_deref().and_then(|input| serde_json::from_str::<Value>(input).ok());
    let of_input = |member: &str| input.as_ref()?.get(member)?.as_str();
    let by_input = (of_input("server") == Some(CLIENT_TOOLS_SERVER)).then(|| of_input("tool")).flatten();
    let meta = update
        .extra
        .as_ref()
        .and_then(|extra| extra.get("acp")?.get("_meta")?.get("claudeCode")?.get("toolName")?.as_str());
    let texts = [update.name.as_deref(), update.title.as_deref(), meta];
    let mut names: Vec<&str> = names.collect();
    // Of two names of which one ends the other, the longer one is meant.
    names.sort_unstable_by_key(|name| std::cmp::Reverse(name.len()));
    names.into_iter().find(|name| by_input == Some(*name) || texts.iter().flatten().any(|text| names_tool(text, name)))
}

/// Returns whether a text ends with the names of our server and of a tool: `mcp__grove__add`, `grove_add`, `Tool: grove/add`.
fn names_tool(text: &str, tool: &str) -> bool {
    let text = text.trim_end();
    let text = text.strip_suffix(" (MCP Server)").or_else(|| text.strip_suffix("()")).unwrap_or(text);
    let Some(before) = text.strip_suffix(tool) else { return false };
    let server = before.trim_end_matches(SEPARATORS);
    if server.len() == before.len() {
        return false;
    }
    let Some(before) = server.strip_suffix(CLIENT_TOOLS_SERVER) else { return false };
    before.is_empty() || before.ends_with(SEPARATORS)
}

#[cfg(test)]
mod tests {
    use grove_core::ToolKind;

    use super::*;

    fn titled(title: &str) -> ToolUpdate {
        ToolUpdate { title: Some(title.to_owned()), ..ToolUpdate::of("c".into()) }
    }

    #[test]
    fn a_call_of_our_tool_is_recognized_in_every_agents_spelling() {
        let names = || ["add", "get_weather"].into_iter();
        for title in [
            "grove_get_weather",
            "mcp__grove__get_weather",
            "Tool: grove/get_weather",
            "grove-get_weather",
            "mcp.grove.get_weather",
        ] {
            assert_eq!(tool_of(&titled(title), names()), Some("get_weather"), "{title}");
        }
        let input = Some(r#"{"server":"grove","tool":"add","arguments":{}}"#.to_owned());
        assert_eq!(tool_of(&ToolUpdate { input, ..titled("a call") }, names()), Some("add"));
        for title in ["get_weather", "mygrove_add", "grove", "groveadd", "echo grove_add now", "other/add"] {
            assert_eq!(tool_of(&titled(title), names()), None, "{title}");
        }
    }

    #[test]
    fn a_command_is_never_taken_for_a_call_of_our_tool() {
        let command = ToolUpdate { kind: Some(ToolKind::Terminal), ..titled("grove_add") };
        assert_eq!(tool_of(&command, ["add"].into_iter()), None);
    }
}
