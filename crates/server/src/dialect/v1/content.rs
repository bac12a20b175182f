//! Contents of sessions, files and folders.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_wire::jsonrpc::{self, ErrorObject};
use grove_wire::v1::{self, error_code, project};
use grove_work::{FileError, local_path};
use serde_json::value::RawValue;

use super::Peer;
use crate::dialect::answer::{read_params, stopped};

impl Peer {
    pub(super) async fn fetch_content(&self, params: Option<&RawValue>) -> Result<v1::FetchContentResult, ErrorObject> {
        let params: v1::FetchContentParams = read_params(params)?;
        let not_found = |message: String| ErrorObject::new(error_code::CONTENT_NOT_FOUND, message);
        let Some((session, id)) = project::parse_content_uri(&params.uri) else {
            let path = local_path(&params.uri).map_err(file_error)?;
            let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
            let most = self.host.config().limits.fetch_bytes;
            let content = grove_work::read(&policy, &path, most).await.map_err(file_error)?;
            return Ok(content_result(content.bytes, None));
        };
        let known = self.host.content_type(&session, &id).await.map_err(stopped)?;
        let mime_type = known.ok_or_else(|| not_found(format!("there is no content {}", params.uri)))?;
        match self.host.content(&session, &id).await {
            Ok(bytes) => Ok(content_result(bytes, mime_type)),
            Err(error) => Err(not_found(error.to_string())),
        }
    }

    pub(super) async fn browse_directory(
        &self,
        params: Option<&RawValue>,
    ) -> Result<v1::BrowseDirectoryResult, ErrorObject> {
        let params: v1::BrowseDirectoryParams = read_params(params)?;
        let path = local_path(&params.uri).map_err(file_error)?;
        let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
        let most = self.host.config().limits.folder_entries;
        let entries = grove_work::list(&policy, &path, most).await.map_err(file_error)?;
        let entries = entries.into_iter().map(|grove_work::FolderEntry { name, kind }| {
            let kind = match kind {
                grove_work::FileKind::Folder => v1::EntryKind::Directory,
                grove_work::FileKind::File | grove_work::FileKind::Link => v1::EntryKind::File,
            };
            v1::DirectoryEntry { name, kind }
        });
        Ok(v1::BrowseDirectoryResult { entries: entries.collect() })
    }
}

fn file_error(error: FileError) -> ErrorObject {
    let code = match &error {
        FileError::NotAFileUri(_) | FileError::LongPath { .. } => jsonrpc::code::INVALID_PARAMS,
        // Version 1 has one code for all others.
        _ => error_code::CONTENT_NOT_FOUND,
    };
    ErrorObject::new(code, error.to_string())
}

fn content_result(bytes: Vec<u8>, mime_type: Option<String>) -> v1::FetchContentResult {
    match String::from_utf8(bytes) {
        Ok(data) => v1::FetchContentResult { data, encoding: v1::Encoding::Utf8, mime_type },
        Err(not_text) => v1::FetchContentResult {
            data: BASE64_STANDARD.encode(not_text.as_bytes()),
            encoding: v1::Encoding::Base64,
            mime_type,
        },
    }
}
