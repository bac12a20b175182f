//! Imported sessions, in every dialect: the imports in progress of a connection.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core::Timestamp;
use grove_host::Host;
use grove_host::import::{ImportJob, ImportRequest};
use grove_host::sequencer::ReplySink;
use grove_host::subscriber::Encode;
use grove_wire::ahp::error_code;
use grove_wire::jsonrpc::{self, ErrorObject, Id};
use grove_wire::x_grove::import::*;
use serde_json::value::RawValue;

use super::answer::{encode, read_params, refuse, refused};

/// The imports in progress of a connection. They are discarded with it.
pub(super) struct ImportJobs {
    host: Host,
    open: BTreeMap<u64, ImportJob>,
    /// The imports that may be open.
    most: usize,
    last: u64,
}

impl ImportJobs {
    pub(super) fn new(host: Host, most: usize) -> Self {
        Self { host, most, open: BTreeMap::new(), last: 0 }
    }

    /// Handles a request. Files are stored in the order in which they arrive.
    pub(super) async fn handle(&mut self, id: Id, method: ImportMethod, params: Option<&RawValue>, reply: ReplySink) {
        let answer = match method {
            ImportMethod::Begin => self.begin(params).await.map(|result| encode(&id, &result)),
            ImportMethod::Put => self.put(params).await.map(|result| encode(&id, &result)),
            ImportMethod::Commit => match self.take(params) {
                Ok(import) => return self.commit(id, import, reply),
                Err(error) => Err(error),
            },
            ImportMethod::Abort => self.abort(params).await.map(|result| encode(&id, &result)),
        };
        let answer = answer.unwrap_or_else(|error| refuse(&self.host, &id, &error));
        reply(Encode::Text(answer));
    }

    /// Ends the connection.
    pub(super) fn ended(self) {
        let Self { host, open, .. } = self;
        if !open.is_empty() {
            host.env().spawn.spawn(Box::pin(async move {
                for import in open.into_values() {
                    import.discard().await;
                }
            }));
        }
    }

    async fn begin(&mut self, params: Option<&RawValue>) -> Result<BeginResult, ErrorObject> {
        let params: BeginParams = read_params(params)?;
        let BeginParams { id, provider, preferred_provider, store, title, .. } = params;
        let BeginParams { working_directory, created_at, modified_at, from, seal, imported_from, .. } = params;
        let most = self.most;
        if self.open.len() >= most {
            let why = format!("{most} imports are open on this connection: commit or abort one of them first");
            return Err(ErrorObject::invalid_params(why));
        }
        let wanted = ImportRequest {
            id: id.map(Into::into),
            agent: provider.map(Into::into),
            preferred_agent: preferred_provider.map(Into::into),
            store: store.map(Into::into),
            title,
            working_directory,
            created_at: created_at.map(Timestamp),
            modified_at: modified_at.map(Timestamp),
            from: from.map(super::handover::to_core),
            seal,
            imported_from,
        };
        let import = self.host.begin_import(wanted).await.map_err(|error| refused(&error))?;
        let session = import.session().to_string();
        self.last += 1;
        self.open.insert(self.last, import);
        Ok(BeginResult { import: self.last, session })
    }

    async fn put(&mut self, params: Option<&RawValue>) -> Result<PutResult, ErrorObject> {
        let PutParams { import, path, offset, data } = read_params(params)?;
        let import = self.open.get_mut(&import).ok_or_else(|| unknown(import))?;
        let bytes = STANDARD
            .decode(data)
            .map_err(|error| ErrorObject::invalid_params(format!("`data` is not base64: {error}")))?;
        if bytes.len() > MAX_PUT_BYTES {
            return Err(ErrorObject::invalid_params(format!("at most {MAX_PUT_BYTES} bytes can be put at once")));
        }
        let size = import.put(&path, offset, &bytes).await.map_err(|error| refused(&error))?;
        Ok(PutResult { size })
    }

    fn take(&mut self, params: Option<&RawValue>) -> Result<ImportJob, ErrorObject> {
        let CommitParams { import } = read_params(params)?;
        self.open.remove(&import).ok_or_else(|| unknown(import))
    }

    /// Commits in a task of its own, so that a lost connection does not leave half an import.
    fn commit(&self, id: Id, import: ImportJob, reply: ReplySink) {
        self.host.env().spawn.spawn(Box::pin(async move {
            let answer = match import.commit().await {
                Ok(imported) => encode(
                    &id,
                    &CommitResult {
                        session: imported.session.to_string(),
                        entries: imported.entries as u64,
                        damage: imported.damage,
                    },
                ),
                Err(error) => jsonrpc::error(Some(&id), &refused(&error)),
            };
            reply(Encode::Text(answer));
        }));
    }

    async fn abort(&mut self, params: Option<&RawValue>) -> Result<AbortResult, ErrorObject> {
        let AbortParams { import } = read_params(params)?;
        let import = self.open.remove(&import);
        let aborted = import.is_some();
        if let Some(import) = import {
            import.discard().await;
        }
        Ok(AbortResult { aborted })
    }
}

fn unknown(import: u64) -> ErrorObject {
    ErrorObject::new(error_code::NOT_FOUND, format!("there is no import {import} on this connection: begin one"))
}
