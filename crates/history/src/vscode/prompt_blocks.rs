//! The model's prompts: text parts and cache directives.

use grove_transcript::{ContextBlock, FileLocation, TranscriptWorkspace};
use serde_json::Value;

use crate::blocks::blocks;

/// The blocks of a rendered message: a list of text parts (type 1) and cache directives (type 3).
pub(crate) fn blocks_of(message: &[Value]) -> Vec<ContextBlock> {
    let texts = message.iter().filter_map(|part| part.get("text")?.as_str());
    texts.flat_map(blocks).collect()
}

/// The workspace that the blocks describe.
pub(crate) fn workspace_of(blocks: &[ContextBlock]) -> TranscriptWorkspace {
    let mut workspace = TranscriptWorkspace::default();
    for block in blocks {
        match block.name.as_str() {
            "environment_info" => {
                workspace.system = after(&block.text, "The user's current OS is: ").map(str::to_owned);
                workspace.shell = after(&block.text, "The user's default shell is: ").map(|value| {
                    let quoted = value.strip_prefix('"').and_then(|value| value.split_once('"'));
                    quoted.map_or_else(|| value.trim_end_matches('.').to_owned(), |(shell, _)| shell.to_owned())
                });
            }
            "workspace_info" => {
                let listed = block.text.lines().skip_while(|line| !line.contains("following folders"));
                let folders = listed.skip(1).map_while(|line| line.strip_prefix("- "));
                workspace.folders = folders.map(|folder| FileLocation::local(folder.trim())).collect();
            }
            "repoContext" => {
                let name = after(&block.text, "Repository name: ");
                let owner = after(&block.text, "Owner: ");
                workspace.repository = match (owner, name) {
                    (Some(owner), Some(name)) => Some(format!("{owner}/{name}")),
                    (None, name) => name.map(str::to_owned),
                    (Some(_), None) => None,
                };
                workspace.branch = after(&block.text, "Current branch: ").map(str::to_owned);
            }
            _ => {}
        }
    }
    workspace
}

/// The rest of a line after its beginning.
fn after<'a>(text: &'a str, head: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim_start().strip_prefix(head)).map(str::trim).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PROMPT: &str = "<environment_info>\nThe user's current OS is: macOS\n\
        The user's default shell is: \"zsh\". When you write commands, write them for it.\n</environment_info>\n\
        <workspace_info>\nI am working in a workspace with the following folders:\n- /Users/me/code/app\n- /Users/me/lib\n\
        It has this structure:\n```\nsrc/\n```\n</workspace_info>\n\
        Said in between.\n\
        <context>\nThe current date is December 11, 2025.\n</context>\n\
        <editorContext>\nThe user's current file is /a.ts.\n</editorContext>\n\
        <repoContext>\nRepository name: app\nOwner: me\nCurrent branch: main\n</repoContext>\n\
        <reminderInstructions>\nBe brief.\n</reminderInstructions>\n\
        <attachments>\n<attachment id=\"x\">\nwords\n</attachment>\n</attachments>\n\
        <somethingNew level=\"2\">\nnew\n</somethingNew>\n\
        <userRequest>\nwhat does </userRequest> mean in <context>?\n</userRequest>";

    #[test]
    fn a_rendered_prompt_is_parsed_into_its_blocks_and_unknown_ones_are_kept() {
        let found = blocks_of(&[json!({"type": 1, "text": PROMPT}), json!({"type": 3, "cacheType": "ephemeral"})]);
        let names: Vec<&str> = found.iter().map(|block| block.name.as_str()).collect();
        let expected = [
            "environment_info",
            "workspace_info",
            "",
            "context",
            "editorContext",
            "repoContext",
            "reminderInstructions",
            "attachments",
            "somethingNew",
            "userRequest",
        ];
        assert_eq!(names, expected);
        assert_eq!(found[2].text, "Said in between.");
        assert_eq!(found[7].text, "<attachment id=\"x\">\nwords\n</attachment>");
        assert_eq!(found[8].attributes, "level=\"2\"");
        assert_eq!(found[9].text, "what does </userRequest> mean in <context>?");
    }

    #[test]
    fn a_rendered_prompt_tells_repository_branch_folder_system_and_shell() {
        let workspace = workspace_of(&blocks(PROMPT));
        let folders: Vec<&str> = workspace.folders.iter().map(FileLocation::shown).collect();
        assert_eq!(folders, ["/Users/me/code/app", "/Users/me/lib"]);
        assert_eq!(workspace.repository.as_deref(), Some("me/app"));
        assert_eq!(workspace.branch.as_deref(), Some("main"));
        assert_eq!((workspace.system.as_deref(), workspace.shell.as_deref()), (Some("macOS"), Some("zsh")));
    }
}
