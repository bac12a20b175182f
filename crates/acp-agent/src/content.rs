//! Contents that the host stores beside a chat, fetched for the editor.

use std::collections::HashMap;

use agent_client_protocol_schema::v1 as acp;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_client::{Ahp, Client};
use grove_wire::ahp::{ContentEncoding, ContentRef, ROOT, ResourceReadParams};

use crate::tool_call::DraftContent;

/// The largest content that is shown; of larger ones the editor gets the address.
pub const SHOWN_BYTES: u64 = 1 << 20;
/// The texts that are remembered, since a call's changes are told several times.
const REMEMBERED: usize = 32;

/// Fetches contents, and remembers the last texts.
#[derive(Debug)]
pub(crate) struct ContentLoader {
    client: Client<Ahp>,
    texts: HashMap<String, String>,
}

/// A fetched content.
enum LoadedContent {
    Text(String),
    Bytes(String),
}

impl ContentLoader {
    pub(crate) fn new(client: Client<Ahp>) -> Self {
        Self { client, texts: HashMap::new() }
    }

    /// The contents of a tool call.
    pub(crate) async fn tool_contents(&mut self, drafts: &[DraftContent]) -> Vec<acp::ToolCallContent> {
        let mut contents = Vec::new();
        for draft in drafts {
            contents.push(match draft {
                DraftContent::Text(text) => acp::ToolCallContent::from(text.as_str()),
                DraftContent::Image { data, mime_type } => {
                    let image = acp::ImageContent::new(data.clone(), mime_type.clone());
                    acp::ToolCallContent::Content(acp::Content::new(acp::ContentBlock::Image(image)))
                }
                DraftContent::Stored(stored) => {
                    acp::ToolCallContent::Content(acp::Content::new(self.block(stored).await))
                }
                DraftContent::Edit { path, before, after } => self.diff(path, before.as_ref(), after.as_ref()).await,
            });
        }
        contents
    }

    /// A stored content as a block: a text, a picture, or else a link.
    pub(crate) async fn block(&mut self, stored: &ContentRef) -> acp::ContentBlock {
        let mime_type = stored.content_type.clone().unwrap_or_default();
        match self.load(stored).await {
            Some(LoadedContent::Text(text)) => acp::ContentBlock::from(text),
            Some(LoadedContent::Bytes(data)) if mime_type.starts_with("image/") => {
                acp::ContentBlock::Image(acp::ImageContent::new(data, mime_type))
            }
            Some(LoadedContent::Bytes(_)) | None => {
                let name = stored.uri.rsplit('/').next().unwrap_or(&stored.uri);
                acp::ContentBlock::ResourceLink(acp::ResourceLink::new(name, stored.uri.clone()))
            }
        }
    }

    async fn diff(
        &mut self,
        path: &str,
        before: Option<&ContentRef>,
        after: Option<&ContentRef>,
    ) -> acp::ToolCallContent {
        let (old, new) = (self.side(before).await, self.side(after).await);
        match (old, new) {
            (Ok(old), Ok(new)) => {
                acp::ToolCallContent::Diff(acp::Diff::new(path, new.unwrap_or_default()).old_text(old))
            }
            (Err(NotShown), _) | (_, Err(NotShown)) => {
                acp::ToolCallContent::from(format!("{path} changed; the change is too large to show, or no text"))
            }
        }
    }

    async fn side(&mut self, side: Option<&ContentRef>) -> Result<Option<String>, NotShown> {
        let Some(side) = side else { return Ok(None) };
        match self.load(side).await {
            Some(LoadedContent::Text(text)) => Ok(Some(text)),
            Some(LoadedContent::Bytes(_)) | None => Err(NotShown),
        }
    }

    async fn load(&mut self, stored: &ContentRef) -> Option<LoadedContent> {
        if let Some(text) = self.texts.get(&stored.uri) {
            return Some(LoadedContent::Text(text.clone()));
        }
        if stored.size_hint.is_some_and(|size| size > SHOWN_BYTES) {
            return None;
        }
        let is_image = stored.content_type.as_deref().is_some_and(|kind| kind.starts_with("image/"));
        let encoding = is_image.then_some(ContentEncoding::Base64);
        let read = ResourceReadParams { channel: ROOT.to_owned(), uri: stored.uri.clone(), encoding, meta: None };
        let read = match self.client.request(read).await {
            Ok(read) => read,
            Err(error) => {
                tracing::debug!(%error, uri = stored.uri, "cannot read a content");
                return None;
            }
        };
        match read.encoding {
            ContentEncoding::Utf8 => {
                if self.texts.len() >= REMEMBERED {
                    self.texts.clear();
                }
                self.texts.insert(stored.uri.clone(), read.data.clone());
                Some(LoadedContent::Text(read.data))
            }
            ContentEncoding::Base64 => {
                // Some hosts encode every content.
                let text = BASE64_STANDARD.decode(&read.data).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                Some(match text.filter(|_| !is_image) {
                    Some(text) => LoadedContent::Text(text),
                    None => LoadedContent::Bytes(read.data),
                })
            }
        }
    }
}

/// A side of a change that cannot be shown.
struct NotShown;
