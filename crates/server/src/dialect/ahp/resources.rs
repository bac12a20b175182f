//! Reading and watching files and contents, as far as the host permits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use futures_util::future::{AbortHandle, abortable};
use grove_core::{ContentId, SessionId, Timestamp};
use grove_host::sequencer::{ConnectionId, DirectReply};
use grove_host::{FolderReach, Host, LimitReached, UsageSlot};
use grove_wire::ahp::{self, error_code};
use grove_wire::jsonrpc::{ErrorObject, code};
use grove_wire::refusal::LIMIT_REACHED;
use grove_wire::v1::project::parse_content_uri;
use grove_work::{
    FileAccess, FileError, FileKind, PathChangeKind, SymlinkMode, Watch, WatchError, WatchEvent, WatchRequest,
};
use serde_json::value::RawValue;

use super::{Peer, not_found};
use crate::dialect::answer::{limit_reached, read_params, stopped};

impl Peer {
    pub(super) async fn read(&self, params: Option<&RawValue>) -> Result<ahp::ResourceReadResult, ErrorObject> {
        let params: ahp::ResourceReadParams = read_params(params)?;
        let (bytes, content_type) = match parse_content_uri(&params.uri) {
            Some((session, content)) => self.stored(&params.uri, &session, &content).await?,
            None => {
                let path = grove_work::local_path(&params.uri).map_err(|error| file_error(&error, &params.uri))?;
                let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
                let read = grove_work::read(&policy, &path, self.host.config().limits.fetch_bytes).await;
                let content = read.map_err(|error| file_error(&error, &params.uri))?;
                (content.bytes, content.content_type.map(ToOwned::to_owned))
            }
        };
        // Text is sent as text unless the client asks for bytes; other files cannot be.
        let wants_bytes = params.encoding == Some(ahp::ContentEncoding::Base64);
        let text = if wants_bytes { Err(bytes) } else { String::from_utf8(bytes).map_err(|error| error.into_bytes()) };
        let (data, encoding) = match text {
            Ok(text) => (text, ahp::ContentEncoding::Utf8),
            Err(bytes) => (BASE64_STANDARD.encode(bytes), ahp::ContentEncoding::Base64),
        };
        Ok(ahp::ResourceReadResult { data, encoding, content_type })
    }

    /// A body that is stored beside a session.
    async fn stored(
        &self,
        uri: &str,
        session: &SessionId,
        id: &ContentId,
    ) -> Result<(Vec<u8>, Option<String>), ErrorObject> {
        let mime_type = self.host.content_type(session, id).await.map_err(stopped)?.ok_or_else(|| not_found(uri))?;
        match self.host.content(session, id).await {
            Ok(bytes) => Ok((bytes, mime_type)),
            Err(error) => Err(ErrorObject::new(error_code::NOT_FOUND, error.to_string())),
        }
    }

    pub(super) async fn list(&self, params: Option<&RawValue>) -> Result<ahp::ResourceListResult, ErrorObject> {
        let params: ahp::ResourceListParams = read_params(params)?;
        let refused = |error: FileError| file_error(&error, &params.uri);
        let path = grove_work::local_path(&params.uri).map_err(refused)?;
        let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
        let entries =
            grove_work::list(&policy, &path, self.host.config().limits.folder_entries).await.map_err(refused)?;
        let entry = |entry: grove_work::FolderEntry| ahp::DirectoryEntry {
            name: entry.name,
            kind: match entry.kind {
                FileKind::Folder => ahp::DirectoryEntryType::Directory,
                FileKind::File | FileKind::Link => ahp::DirectoryEntryType::File,
            },
        };
        Ok(ahp::ResourceListResult { entries: entries.into_iter().map(entry).collect() })
    }

    pub(super) async fn resolve(&self, params: Option<&RawValue>) -> Result<ahp::ResourceResolveResult, ErrorObject> {
        let mut params: ahp::ResourceResolveParams = read_params(params)?;
        params.uri = self.host.config().folders.expand(params.uri);
        let refused = |error: FileError| file_error(&error, &params.uri);
        let path = grove_work::local_path(&params.uri).map_err(refused)?;
        let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
        let links = if params.follow_symlinks == Some(false) { SymlinkMode::NoFollow } else { SymlinkMode::Follow };
        let found = grove_work::resolve(&policy, &path, links).await.map_err(refused)?;
        Ok(ahp::ResourceResolveResult {
            uri: grove_work::file_uri(&found.path),
            kind: match found.kind {
                FileKind::File => ahp::ResourceType::File,
                FileKind::Folder => ahp::ResourceType::Directory,
                FileKind::Link => ahp::ResourceType::Symlink,
            },
            size: found.size,
            mtime: found.modified.and_then(time_text),
            ctime: found.created.and_then(time_text),
            content_type: found.content_type.map(ToOwned::to_owned),
            etag: Some(found.etag),
        })
    }

    /// Says whether something may be read, and grants changes of it to this connection.
    pub(super) async fn ask_for(&mut self, params: Option<&RawValue>) -> Result<ahp::EmptyResult, ErrorObject> {
        let params: ahp::ResourceRequestParams = read_params(params)?;
        let writes = params.write == Some(true);
        if params.read == Some(true) || !writes {
            match self.may_read(&params).await {
                // A file to be created is missing yet.
                Err(FileError::NotFound { .. }) if writes => {}
                seen => seen.map_err(|error| file_error(&error, &params.uri))?,
            }
        }
        if writes {
            self.grant(&params.uri).await?;
        }
        Ok(ahp::EmptyResult {})
    }

    async fn may_read(&self, params: &ahp::ResourceRequestParams) -> Result<(), FileError> {
        let path = grove_work::local_path(&params.uri)?;
        let policy = self.host.policy(self.principal.folder_reach()).await;
        let policy =
            policy.map_err(|error| FileError::Io { path: path.clone(), error: std::io::Error::other(error) })?;
        let found = grove_work::resolve(&policy, &path, SymlinkMode::Follow).await?;
        if params.read == Some(true) {
            // To read a folder is to list it.
            let access = if found.kind == FileKind::Folder { FileAccess::Browse } else { FileAccess::Read };
            policy.allowed(&path, access).await?;
        }
        Ok(())
    }

    pub(super) async fn watch(
        &mut self,
        params: Option<&RawValue>,
    ) -> Result<ahp::CreateResourceWatchResult, ErrorObject> {
        let params: ahp::CreateResourceWatchParams = read_params(params)?;
        let path = grove_work::local_path(&params.uri).map_err(|error| file_error(&error, &params.uri))?;
        let globs = |globs: &Option<ahp::Globs>| globs.clone().unwrap_or_default().items;
        let request = WatchRequest {
            path,
            recursive: params.recursive.unwrap_or(false),
            includes: globs(&params.includes),
            excludes: globs(&params.excludes),
        };
        let state = ahp::ResourceWatchState {
            root: params.uri.clone(),
            recursive: request.recursive,
            excludes: params.excludes,
            includes: params.includes,
        };
        let policy = self.host.policy(self.principal.folder_reach()).await.map_err(stopped)?;
        let watcher = self.host.watcher().map_err(|error| watch_error(&error, &params.uri))?;
        let most = self.queue.usage().limits().watches;
        if self.watches.all.len() >= most {
            return Err(limit_reached(&LimitReached::watches(most)));
        }
        let slot = self.queue.usage().subscription().map_err(|reached| limit_reached(&reached))?;
        let watch = watcher.watch(&policy, request).await.map_err(|error| watch_error(&error, &params.uri))?;
        Ok(ahp::CreateResourceWatchResult { channel: self.watches.add(state, watch, slot) })
    }
}

/// The watches of a connection. They end with it.
pub(super) struct Watches {
    host: Host,
    connection: ConnectionId,
    reach: FolderReach,
    all: HashMap<String, WatchEntry>,
    count: u64,
}

struct WatchEntry {
    state: ahp::ResourceWatchState,
    /// Buffers the events until a client subscribes.
    watch: Option<Watch>,
    telling: Option<AbortHandle>,
    /// Counts the watch for its token.
    _slot: UsageSlot,
}

impl Watches {
    pub(super) fn new(host: Host, connection: ConnectionId, reach: FolderReach) -> Self {
        Self { host, connection, reach, all: HashMap::new(), count: 0 }
    }

    /// Adds a watch and returns its channel.
    fn add(&mut self, state: ahp::ResourceWatchState, watch: Watch, slot: UsageSlot) -> String {
        self.count += 1;
        let id = format!("{}-{}", self.connection.0, self.count);
        let channel = format!("ahp-resource-watch:/{id}");
        self.all.insert(id, WatchEntry { state, watch: Some(watch), telling: None, _slot: slot });
        channel
    }

    /// Starts sending the events of a watch.
    pub(super) async fn subscribe(&mut self, id: &str, channel: &str) -> Option<ahp::SubscribeResult> {
        let watching = self.all.get_mut(id)?;
        let from_seq = self.host.sequencer().read(|published| published.seq);
        if let Some(watch) = watching.watch.take() {
            let tell = tell(self.host.clone(), self.reach, self.connection, channel.to_owned(), watch);
            let (telling, abort) = abortable(tell);
            watching.telling = Some(abort);
            self.host.env().spawn.spawn(Box::pin(async move {
                // It is over, stopped or ended by itself.
                telling.await.ok();
            }));
        }
        let state = ahp::SnapshotState::ResourceWatch(Box::new(watching.state.clone()));
        let snapshot = ahp::Snapshot { resource: channel.to_owned(), state, from_seq };
        Some(ahp::SubscribeResult { snapshot: Some(snapshot) })
    }

    pub(super) fn drop(&mut self, id: &str) {
        if let Some(watching) = self.all.remove(id) {
            watching.stop();
        }
    }
}

impl WatchEntry {
    fn stop(self) {
        if let Some(telling) = self.telling {
            telling.abort();
        }
    }
}

impl Drop for Watches {
    fn drop(&mut self) {
        self.all.drain().for_each(|(_, watching)| watching.stop());
    }
}

/// Sends the events of a watch to a client, as long as the host may show them.
async fn tell(host: Host, reach: FolderReach, connection: ConnectionId, channel: String, mut watch: Watch) {
    while let Some(Ok(notice)) = watch.next().await {
        let Ok(policy) = host.policy(reach).await else { return };
        if policy.allowed(watch.path(), FileAccess::See).await.is_err() {
            return;
        }
        let change = |path: &std::path::Path, kind| ahp::ResourceChange { uri: grove_work::file_uri(path), kind };
        let items = match notice {
            WatchEvent::Changes(changes) => changes
                .iter()
                .map(|seen| {
                    let kind = match seen.kind {
                        PathChangeKind::Added => ahp::ResourceChangeType::Added,
                        PathChangeKind::Changed => ahp::ResourceChangeType::Updated,
                        PathChangeKind::Deleted => ahp::ResourceChangeType::Deleted,
                    };
                    change(&seen.path, kind)
                })
                .collect(),
            // Events were dropped: the client must read everything again.
            WatchEvent::Overflow => vec![change(watch.path(), ahp::ResourceChangeType::Updated)],
        };
        let changed = ahp::ResourceWatchChanged { changes: ahp::ResourceChanges { items } };
        let action = ahp::ResourceWatchAction::Changed(changed);
        let channel = channel.clone();
        let frame = move |seq| ahp::encode::direct_reply(&channel, &action, seq, None, None).map(Arc::from);
        let direct_reply = DirectReply { connection, frame: Box::new(frame), answer: None, permit: None };
        if host.sequencer().send_direct(direct_reply).await.is_err() {
            return;
        }
    }
}

fn time_text(time: SystemTime) -> Option<String> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    Some(ahp::time::text(Timestamp(u64::try_from(since.as_millis()).ok()?)))
}

pub(super) fn file_error(error: &FileError, uri: &str) -> ErrorObject {
    let code = match error {
        FileError::NotAFileUri(_) | FileError::LongPath { .. } => code::INVALID_PARAMS,
        FileError::NotFound { .. } => error_code::NOT_FOUND,
        FileError::Outside { .. }
        | FileError::PermissionDenied { .. }
        | FileError::ReadOnly { .. }
        | FileError::NotGranted { .. }
        | FileError::Protected { .. }
        | FileError::Landmark { .. } => error_code::PERMISSION_DENIED,
        FileError::Exists { .. } => error_code::ALREADY_EXISTS,
        FileError::Conflict { .. } => error_code::CONFLICT,
        FileError::TooManyGrants { .. } => LIMIT_REACHED,
        FileError::NotAFolder { .. }
        | FileError::NotAFile { .. }
        | FileError::TooManyEntries { .. }
        | FileError::TooLarge { .. }
        | FileError::NotEmpty { .. }
        | FileError::PastEnd { .. }
        | FileError::TooDeep { .. }
        | FileError::OtherFileSystem { .. }
        | FileError::InsideItself { .. } => code::INVALID_PARAMS,
        FileError::Io { .. } => code::INTERNAL,
    };
    tracing::debug!(%error, %uri, "a client may not see this");
    ErrorObject::new(code, error.to_string())
}

fn watch_error(error: &WatchError, uri: &str) -> ErrorObject {
    match error {
        WatchError::File(error) => file_error(error, uri),
        WatchError::BadPattern { .. } | WatchError::TooManyPatterns { .. } | WatchError::TooManyFolders { .. } => {
            ErrorObject::invalid_params(error.to_string())
        }
        WatchError::SystemLimit | WatchError::TooManyInstances | WatchError::Start(_) | WatchError::Stopped => {
            ErrorObject::internal(error.to_string())
        }
    }
}
