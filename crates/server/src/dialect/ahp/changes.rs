//! Changes of files, on paths that the client asked for.

use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use grove_core::{Scope, ScopeSet};
use grove_wire::ahp::{self, Method, error_code};
use grove_wire::jsonrpc::{ErrorObject, code};
use grove_wire::refusal::{LIMIT_REACHED, LimitReachedData};
use grove_work::{ChangePolicy, FileError, FileWrite, WriteMode};
use serde_json::value::RawValue;

use super::Peer;
use super::resources::file_error;
use crate::dialect::answer::{not_permitted, read_params, stopped};

/// The name of the limit of a connection's granted paths.
const GRANTS_LIMIT: &str = "write-grants";

/// A change of files.
enum FileChange {
    Write { path: PathBuf, write: FileWrite },
    CreateFolder { path: PathBuf },
    Delete { path: PathBuf, recursive: bool },
    Copy { source: PathBuf, destination: PathBuf, fail_if_exists: bool },
    Move { source: PathBuf, destination: PathBuf, fail_if_exists: bool },
}

impl FileChange {
    /// The change that a request makes; `None` for other requests.
    fn read(method: Method, params: Option<&RawValue>, most: u64) -> Result<Option<Self>, ErrorObject> {
        Ok(Some(match method {
            Method::ResourceWrite => {
                let params: ahp::ResourceWriteParams = read_params(params)?;
                Self::Write { path: local_path(&params.uri)?, write: file_write(params, most)? }
            }
            Method::ResourceMkdir => {
                let params: ahp::ResourceMkdirParams = read_params(params)?;
                Self::CreateFolder { path: local_path(&params.uri)? }
            }
            Method::ResourceDelete => {
                let params: ahp::ResourceDeleteParams = read_params(params)?;
                Self::Delete { path: local_path(&params.uri)?, recursive: params.recursive.unwrap_or(false) }
            }
            Method::ResourceCopy => {
                let params: ahp::ResourceCopyParams = read_params(params)?;
                Self::Copy {
                    source: local_path(&params.source)?,
                    destination: local_path(&params.destination)?,
                    fail_if_exists: params.fail_if_exists.unwrap_or(false),
                }
            }
            Method::ResourceMove => {
                let params: ahp::ResourceMoveParams = read_params(params)?;
                Self::Move {
                    source: local_path(&params.source)?,
                    destination: local_path(&params.destination)?,
                    fail_if_exists: params.fail_if_exists.unwrap_or(false),
                }
            }
            _ => return Ok(None),
        }))
    }

    async fn apply(&self, policy: &ChangePolicy) -> Result<(), FileError> {
        match self {
            Self::Write { path, write } => policy.write(path, write.clone()).await,
            Self::CreateFolder { path } => policy.create_folder(path).await,
            Self::Delete { path, recursive } => policy.delete(path, *recursive).await,
            Self::Copy { source, destination, fail_if_exists } => {
                policy.copy(source, destination, *fail_if_exists).await
            }
            Self::Move { source, destination, fail_if_exists } => {
                policy.rename(source, destination, *fail_if_exists).await
            }
        }
    }
}

impl Peer {
    /// Carries out a change of files.
    pub(super) async fn change_files(
        &self,
        method: Method,
        params: Option<&RawValue>,
    ) -> Result<ahp::EmptyResult, ErrorObject> {
        let most = self.host.config().limits.fetch_bytes;
        let Some(change) = FileChange::read(method, params, most)? else {
            return Err(ErrorObject::unknown_method(method.as_str()));
        };
        let policy = self.change_policy().await?;
        let changed = match change.apply(&policy).await {
            Err(FileError::Protected { path, .. }) => {
                self.authorize_protected(method, &path).await?;
                change.apply(&policy.with_protected()).await
            }
            changed => changed,
        };
        changed.map(|()| ahp::EmptyResult {}).map_err(|error| change_error(&error))
    }

    /// Grants a path for changes by this connection.
    pub(super) async fn grant(&mut self, uri: &str) -> Result<(), ErrorObject> {
        let path = local_path(uri)?;
        let policy = self.change_policy().await?;
        let granted = match policy.grantable(&path).await {
            Err(FileError::Protected { path: protected, .. }) => {
                self.authorize_protected(Method::ResourceRequest, &protected).await?;
                policy.with_protected().grantable(&path).await
            }
            granted => granted,
        };
        granted.and_then(|real| self.grants.add(real)).map_err(|error| change_error(&error))
    }

    async fn change_policy(&self) -> Result<ChangePolicy, ErrorObject> {
        let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
        Ok(ChangePolicy::new(policy, self.grants.clone()))
    }

    /// Refuses a change of a protected file, unless the connection may answer an agent that asks for the same.
    async fn authorize_protected(&self, method: Method, path: &std::path::Path) -> Result<(), ErrorObject> {
        let operation = format!("{} of the protected {}", method.as_str(), path.display());
        let needed = ScopeSet::NONE.with(Scope::Approve);
        let allowed = self.principal.authorize(&self.host, needed, &operation, self.client.as_ref(), None).await;
        allowed.map_err(|forbidden| not_permitted(&forbidden))
    }
}

fn local_path(uri: &str) -> Result<PathBuf, ErrorObject> {
    grove_work::local_path(uri).map_err(|error| file_error(&error, uri))
}

fn file_write(params: ahp::ResourceWriteParams, most: u64) -> Result<FileWrite, ErrorObject> {
    let data = match params.encoding {
        ahp::ContentEncoding::Utf8 => params.data.into_bytes(),
        ahp::ContentEncoding::Base64 => BASE64_STANDARD
            .decode(params.data)
            .map_err(|error| ErrorObject::invalid_params(format!("`data` is not base64: {error}")))?,
    };
    let mode = match params.mode.unwrap_or(ahp::ResourceWriteMode::Truncate) {
        ahp::ResourceWriteMode::Truncate => WriteMode::Truncate,
        ahp::ResourceWriteMode::Append => WriteMode::Append,
        ahp::ResourceWriteMode::Insert => WriteMode::Insert,
    };
    Ok(FileWrite {
        data,
        mode,
        position: params.position.unwrap_or(0),
        create_only: params.create_only.unwrap_or(false),
        if_match: params.if_match,
        most,
    })
}

/// The answer to a refused change. For a path that was not asked for, it has the request that would help.
fn change_error(error: &FileError) -> ErrorObject {
    match error {
        FileError::NotGranted { path } => {
            let uri = grove_work::file_uri(path);
            let request = ahp::ResourceRequestParams {
                channel: ahp::ROOT.to_owned(),
                uri,
                write: Some(true),
                ..Default::default()
            };
            let data = serde_json::to_value(ahp::PermissionDeniedData { request: Some(request) }).ok();
            ErrorObject { data, ..ErrorObject::new(error_code::PERMISSION_DENIED, error.to_string()) }
        }
        FileError::TooManyGrants { .. } => {
            let data =
                serde_json::to_value(LimitReachedData { limit: GRANTS_LIMIT.to_owned(), retry_after_ms: None }).ok();
            ErrorObject { data, ..ErrorObject::new(LIMIT_REACHED, error.to_string()) }
        }
        FileError::Io { .. } => ErrorObject::new(code::INTERNAL, error.to_string()),
        error => file_error(error, ""),
    }
}
