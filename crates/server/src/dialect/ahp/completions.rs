//! Completions: of file references, and of settings.

use std::path::Path;

use grove_core::AgentId;
use grove_host::sequencer::{PublishedState, ResolvedTarget, SubscriptionTarget};
use grove_wire::ahp;
use grove_wire::jsonrpc::ErrorObject;
use serde_json::value::RawValue;

use super::{Peer, not_found};
use crate::dialect::answer::{read_params, stopped};

/// The completions that are offered.
pub const MAX_COMPLETIONS: usize = 50;

/// A file reference that is being typed: the position of its `@`, and the text after it.
struct FileReference {
    start: u64,
    end: u64,
    path: String,
}

impl FileReference {
    /// The reference that ends at an offset in UTF-16 units.
    fn at(text: &str, offset: u64) -> Option<Self> {
        let mut before = String::new();
        let mut units = 0;
        for character in text.chars() {
            if units >= offset {
                break;
            }
            units += character.len_utf16() as u64;
            before.push(character);
        }
        let word = before.rsplit(char::is_whitespace).next()?;
        let path = word.strip_prefix('@')?.to_owned();
        let length = word.encode_utf16().count() as u64;
        Some(Self { start: units - length, end: units, path })
    }
}

impl Peer {
    /// Completes `@path` with files in the session's folder.
    pub(super) async fn completions(&self, params: Option<&RawValue>) -> Result<ahp::CompletionsResult, ErrorObject> {
        let params: ahp::CompletionsParams = read_params(params)?;
        let wanted = self.wanted(&params.channel).await;
        let wanted = wanted.filter(|wanted| matches!(wanted, SubscriptionTarget::Chat(_)));
        let wanted = wanted.ok_or_else(|| not_found(&params.channel))?;
        let look = move |published: &PublishedState| match published.find(&wanted)? {
            ResolvedTarget::Chat(session, _) => Some(session.working_directories.first().cloned()),
            ResolvedTarget::Root | ResolvedTarget::SessionWithMainChat(_) | ResolvedTarget::Session(_) => None,
        };
        let folder = self.host.sequencer().read(look);
        let folder = folder.ok_or_else(|| not_found(&params.channel))?;
        let none = ahp::CompletionsResult::default();
        let (Some(folder), Some(word)) = (folder, FileReference::at(&params.text, params.offset)) else {
            return Ok(none);
        };
        let Ok(folder) = grove_work::local_path(&folder) else { return Ok(none) };
        let (inside, begins) = word.path.rsplit_once('/').unwrap_or(("", &word.path));
        let looked_in = folder.join(inside);
        let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
        let most = self.host.config().limits.folder_entries;
        // A folder that cannot be listed has no completions.
        let entries = grove_work::list(&policy, &looked_in, most).await.unwrap_or_default();
        let fitting = entries.into_iter().filter(|entry| entry.name.starts_with(begins)).take(MAX_COMPLETIONS);
        let items = fitting.map(|entry| completion(&word, inside, &looked_in, &entry));
        Ok(ahp::CompletionsResult { items: items.collect() })
    }

    pub(super) async fn config_completions(
        &self,
        params: Option<&RawValue>,
    ) -> Result<ahp::SessionConfigCompletionsResult, ErrorObject> {
        let params: ahp::SessionConfigCompletionsParams = read_params(params)?;
        if let Some(agent_id) = params.provider.map(AgentId::from) {
            self.must_have(&agent_id).await?;
        }
        Ok(ahp::SessionConfigCompletionsResult::default())
    }
}

fn completion(
    word: &FileReference,
    inside: &str,
    folder: &Path,
    entry: &grove_work::FolderEntry,
) -> ahp::CompletionItem {
    let is_folder = entry.kind == grove_work::FileKind::Folder;
    let parent = if inside.is_empty() { String::new() } else { format!("{inside}/") };
    let slash = if is_folder { "/" } else { "" };
    ahp::CompletionItem {
        insert_text: format!("@{parent}{}{slash}", entry.name),
        range_start: Some(word.start),
        range_end: Some(word.end),
        attachment: ahp::MessageAttachment::Resource(ahp::MessageResourceAttachment {
            label: entry.name.clone(),
            range: None,
            display_kind: Some(if is_folder { "directory" } else { "document" }.to_owned()),
            meta: None,
            uri: grove_work::file_uri(&folder.join(&entry.name)),
            size_hint: None,
            content_type: None,
            nonce: None,
            selection: None,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_ends_where_the_cursor_is_and_counts_in_utf16() {
        let word = |text: &str, offset| FileReference::at(text, offset).map(|word| (word.start, word.end, word.path));
        assert_eq!(word("see @src/ma", 11), Some((4, 11, "src/ma".into())));
        assert_eq!(word("see @src/ma please", 11), Some((4, 11, "src/ma".into())));
        assert_eq!(word("😀 @a", 5), Some((3, 5, "a".into())));
        assert_eq!(word("see src", 7), None);
        assert_eq!(word("", 0), None);
        assert_eq!(word("@", 99), Some((0, 1, String::new())));
    }
}
