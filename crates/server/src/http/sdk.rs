//! SDKs that connect to the host through another program of Grove's, which carries their bytes.
//!
//! `grove copilot` is that program: to the SDK it is the server itself. It opens an endpoint of its own here, which
//! exists as long as one of its connections.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_checks::Check;
use grove_core::StoreName;
use hyper_util::rt::TokioIo;

use super::admission::{Authentication, PendingConnections};
use super::{Admission, HostServer, ListenerState, accepted, arrived};
use crate::copilot::{CopilotEndpoint, EndpointConfig, EndpointSecret, UnauthenticatedClient};
use crate::listener::{Listener, PeerAddress};
use crate::origin::PeerProcess;
use crate::principal::Principal;

/// The protocol that the connection is upgraded to.
pub const PROTOCOL: &str = "grove-copilot";
/// The header with the connection's program: 1 to 40 letters and digits.
pub const PROGRAM: &str = "x-grove-program";
/// The header with the secret that clients must send. Every connection needs one, except with [`TRANSPORT`].
pub const SECRET: &str = "x-grove-secret";
/// Says that the program itself, or the one at the other end of its pipes, uses the connection: [`PIPES`].
pub const TRANSPORT: &str = "x-grove-transport";
/// The addresses of a port's client: its own, a space, and that of the port. The client's process is judged by them.
pub const CLIENT: &str = "x-grove-client";
/// The one value of [`TRANSPORT`].
pub const PIPES: &str = "pipes";

/// Says that the temporary files of its sessions are kept.
pub const KEEPS_TEMP_FILES: &str = "x-grove-keeps-temp-files";
/// The working directory of the program, as a URI: the folder of sessions that name none.
pub const FOLDER: &str = "x-grove-folder";
/// Says that new sessions allow everything that no rule denies.
pub const ALLOWS_ALL: &str = "x-grove-allows-all";

impl HostServer {
    /// Serves SDKs at an address of their own, in a task of its own.
    pub fn serve_sdks(&self, config: EndpointConfig, mut listener: Box<dyn Listener>) {
        let endpoint = CopilotEndpoint::new(self.host.clone(), self.feeds.clone(), self.wrong_tokens.clone(), config);
        let env = self.host.env().clone();
        let (places, client_activity, pending_connections) =
            (self.places.clone(), self.client_activity.clone(), self.pending_connections());
        let spawn = env.spawn.clone();
        spawn.spawn(Box::pin(async move {
            while let Some(accepted) = accepted(listener.as_mut(), &env).await {
                let Some((client_admission, rejected)) =
                    arrived(&places, &pending_connections, Authentication::Required)
                else {
                    continue;
                };
                let (endpoint, visit) = (endpoint.clone(), client_activity.begin());
                env.spawn.spawn(Box::pin(async move {
                    let stream = client_admission.watch(accepted.stream);
                    let client =
                        UnauthenticatedClient { address: accepted.peer, carrier: None, admission: client_admission };
                    endpoint.serve_guest(stream, client, rejected).await;
                    drop(visit);
                }));
                pending_connections.settled().await;
            }
        }));
    }
}

/// The endpoints of programs.
#[derive(Default)]
pub(super) struct ProgramEndpoints(Mutex<HashMap<String, Weak<ProgramEndpoint>>>);

/// An endpoint that exists until this is dropped.
struct ProgramEndpoint {
    endpoint: CopilotEndpoint,
    pending_connections: PendingConnections,
    program: String,
    programs: Arc<ProgramEndpoints>,
}

impl Drop for ProgramEndpoint {
    fn drop(&mut self) {
        let endpoint = self.endpoint.clone();
        endpoint.close();
        let mut all = self.programs.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another one may have been opened under its name meanwhile.
        if all.get(&self.program).is_some_and(|opened| opened.strong_count() == 0) {
            all.remove(&self.program);
        }
    }
}

/// The options with which a program was started.
struct ProgramOptions {
    keeps_temp_files: bool,
    default_folder: Option<String>,
    allows_all: bool,
}

fn opened(
    server: &ListenerState,
    program: &str,
    secret: Option<String>,
    options: ProgramOptions,
) -> Arc<ProgramEndpoint> {
    let mut all = server.programs.0.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(opened) = all.get(program).and_then(Weak::upgrade) {
        return opened;
    }
    let store = StoreName::from(format!("copilot-{program}"));
    let secret = secret.map(EndpointSecret::Text);
    let ProgramOptions { keeps_temp_files, default_folder, allows_all } = options;
    let config = EndpointConfig { store, secret, keeps_temp_files, default_folder, allows_all };
    let endpoint = CopilotEndpoint::new(server.host.clone(), server.feeds.clone(), server.wrong_tokens.clone(), config);
    let pending_connections = PendingConnections::new(server.host.config().limits.unauthenticated_connections);
    let opened = Arc::new(ProgramEndpoint {
        endpoint,
        pending_connections,
        program: program.to_owned(),
        programs: server.programs.clone(),
    });
    all.insert(program.to_owned(), Arc::downgrade(&opened));
    opened
}

/// Serves a connection that carries an SDK's bytes. A silent one keeps its endpoint open.
pub(super) async fn carry(
    State(server): State<ListenerState>,
    Extension(client_admission): Extension<Admission>,
    Extension(process): Extension<Arc<PeerProcess>>,
    mut request: Request,
) -> Response {
    let holder = match server.bearer_holder(request.headers()) {
        Ok(holder) => holder,
        Err(refusal) => return refusal.into_response(),
    };
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let fits = |name: &String| (1..=40).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let (Some(program), true) = (header(PROGRAM).filter(fits), asks(request.headers())) else {
        let help = format!("this address speaks {PROTOCOL}: name the program in {PROGRAM}\n");
        return (StatusCode::UPGRADE_REQUIRED, help).into_response();
    };
    let secret = header(SECRET).filter(|secret| !secret.is_empty());
    let options = ProgramOptions {
        keeps_temp_files: header(KEEPS_TEMP_FILES).is_some(),
        default_folder: header(FOLDER).filter(|folder| folder.starts_with("file://")),
        allows_all: header(ALLOWS_ALL).is_some(),
    };
    let client = header(CLIENT).and_then(|addresses| {
        let (peer, local) = addresses.split_once(' ')?;
        Some(PeerAddress::Tcp { peer: peer.parse().ok()?, local: local.parse().ok()? })
    });
    let pipes = header(TRANSPORT).is_some_and(|transport| transport == PIPES);
    if Check::CarrierSecret.is_enforced() && secret.is_none() && !pipes {
        let help = format!("clients of a port must send a secret: give it in {SECRET}\n");
        return (StatusCode::BAD_REQUEST, help).into_response();
    }
    let place = match client_admission.admit(holder.token_id(), holder.token_name()) {
        Ok(place) => place,
        Err(full) => return full.into_response(),
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let visit = server.client_activity.begin();
    let opened = opened(&server, &program, secret, options);
    let principal = match client {
        Some(client) => Arc::new(Principal::clone(&server.principal(holder, process)).relaying(client)),
        None => server.principal(holder, process),
    };
    let address = client.unwrap_or_else(|| principal.address());
    let places = server.places.clone();
    server.host.env().spawn.spawn(Box::pin(async move {
        match upgraded.await {
            Ok(stream) if pipes => opened.endpoint.serve_pipes(TokioIo::new(stream), principal).await,
            Ok(stream) => {
                let (admission, rejected) = Admission::carried(places, place.clone(), &opened.pending_connections);
                let stream = admission.watch(TokioIo::new(stream));
                let client = UnauthenticatedClient { address, carrier: Some(principal), admission };
                opened.endpoint.serve_guest(stream, client, rejected).await;
            }
            Err(error) => tracing::debug!(%error, "the upgrade of an SDK's connection failed"),
        }
        drop((opened, place, visit));
    }));
    let headers = [
        (header::CONNECTION, HeaderValue::from_static("Upgrade")),
        (header::UPGRADE, HeaderValue::from_static(PROTOCOL)),
    ];
    (StatusCode::SWITCHING_PROTOCOLS, headers).into_response()
}

fn asks(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).and_then(|value| value.to_str().ok()) == Some(PROTOCOL)
}
