//! A fake model for real agents: it speaks the formats of their services, and answers from a script.
//!
//! [`FakeModel`] listens on loopback, needs no key, and accepts any model name. A [`Script`] has a [`Turn`] for each
//! prompt, and each turn an answer for each request that the agent makes until the prompt is done: the first to the
//! prompt, the next to the tools' results, and so on.
//!
//! Agents also ask for titles, summaries and the like. Those requests get a short text (or JSON, if they require a
//! schema) and use up nothing of the script. They are recognized by offering no tools, or by a system prompt that
//! begins with titles.
//!
//! | format | path |
//! |---|---|
//! | OpenAI chat completions | `POST /v1/chat/completions` |
//! | OpenAI responses | `POST /v1/responses` |
//! | Anthropic messages | `POST /v1/messages`, `POST /v1/messages/count_tokens` |
//! | Gemini | `POST /v1beta/models/MODEL:generateContent`, `:streamGenerateContent?alt=sse`, `:countTokens` |
//! | models | `GET /v1/models`, `GET /v1beta/models` |
//! | for programs outside | `GET /grove/requests`, `PUT /grove/script` |

mod model_request;
mod plan;
mod record;
mod reply;
mod schema;
mod script;
mod script_player;
mod server;
mod shell;
mod wire;

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use record::{RecordedRequest, RequestPurpose};
pub use script::{COMMAND, PromptMatch, ReplyStep, ReplySteps, Script, TokenUsage, Turn};
pub use server::MODEL;

/// A model on loopback. It stops when it is dropped, and its connections break.
#[derive(Debug)]
pub struct FakeModel {
    address: SocketAddr,
    shared: Arc<server::ServerState>,
    serving: JoinHandle<()>,
}

impl FakeModel {
    /// Starts on any free port.
    pub async fn start(script: Script) -> Self {
        Self::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), script).await
    }

    /// Starts at an address.
    pub async fn listen(address: SocketAddr, script: Script) -> Self {
        let listener = TcpListener::bind(address).await.expect("the fake model has its address");
        let address = listener.local_addr().expect("a listener has an address");
        let shared = Arc::new(server::ServerState {
            player: Mutex::new(script_player::ScriptPlayer::new(script)),
            records: Mutex::new(record::RequestLog::default()),
        });
        let serving = tokio::spawn(server::serve(listener, shared.clone()));
        Self { address, shared, serving }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL for agents. Those that speak OpenAI's formats need `/v1` after it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far: the newest thousand, or fewer if they are long.
    pub fn requests(&self) -> Vec<Arc<RecordedRequest>> {
        server::lock(&self.shared.records).all()
    }

    /// Waits until the requests meet a condition.
    ///
    /// # Panics
    ///
    /// After [`PATIENCE`](crate::PATIENCE).
    pub async fn until(&self, is_so: impl Fn(&[Arc<RecordedRequest>]) -> bool) -> Vec<Arc<RecordedRequest>> {
        let waiting = async {
            loop {
                let requests = self.requests();
                if is_so(&requests) {
                    return requests;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(crate::PATIENCE, waiting).await.expect("the model is asked in time")
    }

    /// Replaces the script. Prompts that are being answered go on with the old one.
    pub fn set_script(&self, script: Script) {
        server::lock(&self.shared.player).replace(script);
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
