//! The host behind the sessions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use grove_client::{Ahp, Client, ConnectionStatus, RequestError, RequestHandler, Subscription};
use grove_wire::ahp::{AgentInfo, error_code};
use grove_wire::jsonrpc::ErrorObject;
use serde_json::{Map, Value};

/// How long a host may be away before open prompts fail.
pub const HOST_PATIENCE: Duration = Duration::from_secs(20);

/// ACP's codes beside those of JSON-RPC.
pub(crate) mod code {
    pub(crate) const AUTH_REQUIRED: i64 = -32000;
    pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
}

/// The client of an editor.
#[derive(Clone, Debug, Default)]
pub struct EditorClient {
    /// The name of the editor, for people.
    pub name: Option<String>,
    /// Answers the host's requests for unsaved versions of files, if the editor has them.
    pub documents: Option<RequestHandler>,
    /// It also writes files for the host.
    pub writes_documents: bool,
}

impl EditorClient {
    /// The offer of documents in `initialize`, which the host reads.
    pub fn meta(&self) -> Option<Map<String, Value>> {
        self.documents.as_ref()?;
        let mut meta = Map::new();
        meta.insert("documents".to_owned(), true.into());
        if self.writes_documents {
            meta.insert("documentWrites".to_owned(), true.into());
        }
        Some(meta)
    }
}

/// Connects to a host, and starts it.
#[async_trait]
pub trait HostAccess: Send + Sync + 'static {
    /// Connects to the host.
    async fn connect(&self, editor: EditorClient) -> Result<Client<Ahp>, String>;

    /// Makes sure that the host runs: an editor asks for something, and the host is away.
    async fn start(&self) -> Result<(), String>;

    /// Says whether a path is the same file for the host and the editor. Otherwise agents see no files of the editor.
    fn shares_files(&self) -> bool;
}

/// The connection to the host.
#[derive(Clone)]
pub(crate) struct HostConnection {
    pub(crate) client: Client<Ahp>,
    /// The agents.
    root: Subscription<Ahp>,
    access: Arc<dyn HostAccess>,
}

impl HostConnection {
    pub(crate) async fn open(access: Arc<dyn HostAccess>, editor: EditorClient) -> Result<Self, ErrorObject> {
        let client = access.connect(editor).await.map_err(ErrorObject::internal)?;
        let root = client.subscribe(grove_wire::ahp::ROOT).await.map_err(|error| refusal(&error))?;
        Ok(Self { client, root, access })
    }

    /// Waits until the host is connected, and starts it if it is away.
    pub(crate) async fn ready(&self) -> Result<(), ErrorObject> {
        if matches!(*self.client.status().borrow(), ConnectionStatus::Connected) {
            return Ok(());
        }
        self.access.start().await.map_err(ErrorObject::internal)?;
        match tokio::time::timeout(HOST_PATIENCE, self.client.connected()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(closed)) => Err(ErrorObject::internal(closed.to_string())),
            Err(_) => Err(ErrorObject::internal("the host cannot be reached: see `grove status`, and try again")),
        }
    }

    /// The host's agents.
    pub(crate) fn agents(&self) -> Vec<AgentInfo> {
        self.root.read_confirmed(|state, _| state.root().map(|root| root.agents.clone()).unwrap_or_default())
    }

    /// The root's subscription, to wait for changes.
    pub(crate) fn root(&self) -> Subscription<Ahp> {
        self.root.clone()
    }
}

/// The error of a request that the host refused, for the editor.
pub(crate) fn refusal(error: &RequestError) -> ErrorObject {
    match error {
        RequestError::Refused { error, .. } => {
            let code = match error.code {
                error_code::SESSION_NOT_FOUND | error_code::NOT_FOUND => code::RESOURCE_NOT_FOUND,
                error_code::AUTH_REQUIRED => code::AUTH_REQUIRED,
                // The others have another meaning in ACP, or none.
                error_code::INVALID_PARAMS | error_code::PROVIDER_NOT_FOUND => error_code::INVALID_PARAMS,
                _ => error_code::INTERNAL_ERROR,
            };
            ErrorObject::new(code, error.message.clone())
        }
        other => ErrorObject::internal(other.to_string()),
    }
}
