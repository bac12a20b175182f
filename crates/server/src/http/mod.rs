//! HTTP and WebSocket, on any number of listeners.

mod access;
mod admission;
pub(crate) mod attended;
mod client_activity;
mod host_names;
pub(crate) mod lease_api;
mod metrics;
mod page;
pub(crate) mod page_access;
pub(crate) mod pairing;
pub mod sdk;
pub(crate) mod ticket;
pub(crate) mod tls;
mod unix;
mod upgrade;
pub(crate) mod wrong_tokens;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Extension, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use grove_checks::Check;
use grove_host::sequencer::HostStopped;
use grove_host::tokens::TokenPublicId;
use grove_host::{Env, Host};
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;

pub use access::{AccessPolicy, TransportSecurity};
pub use host_names::HostNames;
pub use page::{Asset, Caching, WebPage};
pub use tls::{Certificate, CertificateFileError, TlsListener};
pub use unix::UnixSocket;

use access::{AccessError, TokenHolder, check_content_type, check_length, check_site};
pub(crate) use admission::{Admission, PendingStream, Rejected, TokenId};
use admission::{Authentication, ConnectionSlots, PendingConnections};
use attended::AttendedSessions;
use client_activity::ClientActivity;
use page_access::{ChallengeResponse, Nonce, PageLogin, ProofRate, named_token};
use ticket::Tickets;
pub(crate) use wrong_tokens::WrongTokens;
use wrong_tokens::{gives_token, refuses_token};

use crate::connection::{EditorService, FrameLog};
use crate::copilot::Feeds;
use crate::listener::{AcceptedStream, Listener, PeerAddress};
use crate::origin::PeerProcess;
use crate::principal::Principal;

/// The time in which a client must send a request's head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// The largest head of a request.
pub const HEAD_BYTES: usize = 16 << 10;
/// The pause after `accept` failed, as it does when the process has too many files open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone)]
struct ListenerState {
    host: Host,
    access: Arc<AccessPolicy>,
    page: Option<Arc<WebPage>>,
    tickets: Arc<Tickets<TokenHolder>>,
    /// Challenges that pages answer to open a WebSocket, each for one token, and the rate of proofs, for this listener.
    challenges: Arc<Tickets<Option<TokenPublicId>>>,
    proofs: Arc<ProofRate>,
    /// The wrong tokens that all listeners were given.
    wrong_tokens: Arc<WrongTokens>,
    client_activity: Arc<ClientActivity>,
    programs: Arc<sdk::ProgramEndpoints>,
    feeds: Arc<Feeds>,
    editors: Option<Arc<dyn EditorService>>,
    frame_log: Option<FrameLog>,
    places: ConnectionSlots,
}

/// Serves a host to clients, on any number of listeners.
pub struct HostServer {
    host: Host,
    page: Option<Arc<WebPage>>,
    tickets: Arc<Tickets<TokenHolder>>,
    client_activity: Arc<ClientActivity>,
    programs: Arc<sdk::ProgramEndpoints>,
    /// The event feeds of all SDK endpoints.
    feeds: Arc<Feeds>,
    wrong_tokens: Arc<WrongTokens>,
    editors: Option<Arc<dyn EditorService>>,
    frame_log: Option<FrameLog>,
    places: ConnectionSlots,
}

impl std::fmt::Debug for HostServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HostServer").field("places", &self.places).finish_non_exhaustive()
    }
}

impl HostServer {
    /// A server without listeners.
    pub fn new(host: Host) -> Self {
        let places = ConnectionSlots::new({
            let host = host.clone();
            move |token| host.connection_limits(token)
        });
        Self {
            page: None,
            tickets: Tickets::new(host.env().clone()),
            client_activity: Arc::default(),
            programs: Arc::default(),
            feeds: Arc::default(),
            wrong_tokens: Arc::default(),
            editors: None,
            frame_log: None,
            places,
            host,
        }
    }

    /// Serves a web page to browsers, on listeners from now on.
    pub fn with_page(self, page: WebPage) -> Self {
        Self { page: Some(Arc::new(page)), ..self }
    }

    /// Serves editors, on listeners from now on.
    pub fn with_editors(self, editors: Arc<dyn EditorService>) -> Self {
        Self { editors: Some(editors), ..self }
    }

    /// Records the frames of WebSockets, on listeners from now on.
    pub fn with_frame_log(self, log: FrameLog) -> Self {
        Self { frame_log: Some(log), ..self }
    }

    /// Accepts connections on another listener, in a task of its own.
    ///
    /// All listeners share the limit of connections, and tickets of one are valid at another. Unauthenticated
    /// connections are bounded for each listener.
    pub fn listen(&self, access: AccessPolicy, mut listener: Box<dyn Listener>) {
        let access = Arc::new(access);
        let server = ListenerState {
            host: self.host.clone(),
            access: access.clone(),
            page: self.page.clone(),
            tickets: self.tickets.clone(),
            challenges: Tickets::new(self.host.env().clone()),
            proofs: Arc::new(ProofRate::new(self.host.env().clock.now())),
            wrong_tokens: self.wrong_tokens.clone(),
            client_activity: self.client_activity.clone(),
            programs: self.programs.clone(),
            feeds: self.feeds.clone(),
            editors: self.editors.clone(),
            frame_log: self.frame_log.clone(),
            places: self.places.clone(),
        };
        let (router, places, pending_connections) = (router(server), self.places.clone(), self.pending_connections());
        let env = self.host.env().clone();
        let spawn = env.spawn.clone();
        spawn.spawn(Box::pin(async move {
            while let Some(accepted) = accepted(listener.as_mut(), &env).await {
                let Some((client_admission, rejected)) = arrived(&places, &pending_connections, access.proof()) else {
                    continue;
                };
                env.spawn.spawn(Box::pin(serve_stream(accepted, router.clone(), client_admission, rejected)));
                pending_connections.settled().await;
            }
        }));
    }

    /// The pending connections of a listener.
    fn pending_connections(&self) -> PendingConnections {
        PendingConnections::new(self.host.config().limits.unauthenticated_connections)
    }

    /// Waits until no authenticated connection is left.
    pub async fn drained(&self) {
        self.places.all_free().await;
    }

    /// Waits until the host has had no client and no turn for this long.
    pub async fn idle(&self, patience: Duration) -> Result<(), HostStopped> {
        self.client_activity.over(&self.host, patience).await
    }
}

/// The next connection; `None` when the listener has ended.
async fn accepted(listener: &mut dyn Listener, env: &Env) -> Option<AcceptedStream> {
    loop {
        match listener.accept().await {
            Ok(accepted) => return Some(accepted),
            Err(error) if error.kind() == io::ErrorKind::NotConnected => return None,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                env.clock.sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// The admission of a new connection; `None` if there is no slot for it.
fn arrived(
    places: &ConnectionSlots,
    pending_connections: &PendingConnections,
    proof: Authentication,
) -> Option<(Admission, Rejected)> {
    match proof {
        Authentication::Required => Some(Admission::pending_connection(places.clone(), pending_connections)),
        Authentication::NotRequired => Admission::admitted(places.clone())
            .inspect_err(|error| tracing::warn!(%error, "the newest connection is dropped"))
            .ok(),
    }
}

/// Serves a host on one listener, in a task of its own.
pub fn serve(host: Host, access: AccessPolicy, listener: Box<dyn Listener>) -> HostServer {
    let server = HostServer::new(host);
    server.listen(access, listener);
    server
}

async fn serve_stream(accepted: AcceptedStream, router: Router, client_admission: Admission, mut rejected: Rejected) {
    let AcceptedStream { stream, peer } = accepted;
    let stream = client_admission.watch(stream);
    // One for all requests of the connection: it is looked up once.
    let process = Arc::new(PeerProcess::new(peer));
    let service = hyper::service::service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
        request.extensions_mut().insert(client_admission.clone());
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(process.clone());
        TowerToHyperService::new(router.clone()).call(request)
    });
    let serving = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(if Check::HeadSize.is_enforced() { HEAD_BYTES } else { 1 << 30 })
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
    tokio::select! {
        served = serving => if let Err(error) = served {
            tracing::debug!(%error, "an HTTP connection ended early");
        },
        () = rejected.signaled() => {}
    }
}

impl ListenerState {
    /// Records a wrong token, and waits before it is answered.
    async fn delay_wrong_token(&self, source: RequestSource, operation: &str) {
        if let Some(admission) = source.admission {
            admission.refuse();
        }
        let from = source.peer.unwrap_or(PeerAddress::InProcess);
        self.wrong_tokens.delay(&self.host, from, operation).await;
    }

    /// The party behind a connection that was admitted.
    fn principal(&self, holder: TokenHolder, process: Arc<PeerProcess>) -> Arc<Principal> {
        process.admitted(&self.host);
        let principal = holder.principal(process.peer()).with_process(process);
        Arc::new(principal)
    }

    /// The holder of a request's token, which comes as a bearer or in its query.
    fn token_holder(&self, request: &Request) -> Result<TokenHolder, AccessError> {
        self.access.check_token(request.headers(), request.uri().query(), self.host.tokens())
    }

    /// The holder of a request's bearer token.
    fn bearer_holder(&self, headers: &HeaderMap) -> Result<TokenHolder, AccessError> {
        self.access.check_bearer(headers, self.host.tokens())
    }

    /// The holder of a ticket, which is used up. Its token may have ended since the ticket was issued.
    fn ticket_holder(&self, ticket: &str) -> Result<TokenHolder, AccessError> {
        let now = self.host.env().clock.now();
        let is_alive = |holder: &TokenHolder| match holder {
            TokenHolder::Owner => true,
            TokenHolder::Token(token) => token.is_alive(now),
        };
        self.tickets.redeem(ticket).filter(is_alive).ok_or(AccessError::Ticket)
    }

    /// Checks a page's answer, and uses up its challenge.
    fn answered(
        &self,
        headers: &HeaderMap,
        token: Option<TokenPublicId>,
        page: &ChallengeResponse,
    ) -> Result<PageLogin, AccessError> {
        let login = self.access.page_login(headers, token, self.host.tokens())?;
        let is_right = (!Check::PageAnswer.is_enforced() || login.key.accepts(page))
            && self.challenges.redeem(&page.challenge) == Some(token);
        if is_right { Ok(login) } else { Err(AccessError::ChallengeResponse) }
    }
}

/// The connection behind a request.
struct RequestSource {
    peer: Option<PeerAddress>,
    admission: Option<Admission>,
}

impl RequestSource {
    fn of(request: &Request) -> Self {
        let extensions = request.extensions();
        Self { peer: extensions.get().copied(), admission: extensions.get().cloned() }
    }
}

fn router(server: ListenerState) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics::answer))
        .route("/ticket", post(issue_ticket))
        .route("/proof", post(prove))
        .route("/pair", post(pairing::pair))
        .route("/ws", get(upgrade::client))
        .route("/acp", get(upgrade::editor))
        .route("/x-grove", post(lease_api::answer))
        .route("/copilot", get(sdk::carry))
        .route("/", get(page_or_upgrade))
        .fallback(page)
        .layer(middleware::from_fn_with_state(server.clone(), check))
        .with_state(server)
}

/// Rejects requests whose `Host`, `Origin` or site is not ours, whose content type is missing, or whose end is ambiguous.
///
/// It is a layer over all routes, so that no route can be without it.
async fn check(State(server): State<ListenerState>, request: Request, next: Next) -> Response {
    // Only a wrong token needs them afterwards.
    let guess = gives_token(&request)
        .then(|| (RequestSource::of(&request), format!("{} {}", request.method(), request.uri().path())));
    let (method, headers) = (request.method(), request.headers());
    let checked = check_length(headers);
    let source = || {
        check_site(method, headers)?;
        server.access.check_source(headers)?;
        check_content_type(method, headers)
    };
    let mut response = match checked.and_then(|()| source()) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    };
    if checked.is_err() {
        // The next bytes may be part of it.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some((source, operation)) = guess.filter(|_| refuses_token(&response)) {
        server.delay_wrong_token(source, &operation).await;
    }
    if Check::PageHeaders.is_enforced() && response.status() != StatusCode::SWITCHING_PROTOCOLS {
        page::restrict(&mut response);
    }
    response
}

/// A file of the page, if there is one of that name.
async fn page(State(server): State<ListenerState>, request: Request) -> Response {
    let page = server.page.filter(|_| matches!(*request.method(), Method::GET | Method::HEAD));
    let answer = page.and_then(|page| page.answer(request.uri().path(), request.headers()));
    answer.unwrap_or_else(|| (StatusCode::NOT_FOUND, "there is nothing here\n").into_response())
}

/// The page for browsers, the protocol for WebSocket requests.
async fn page_or_upgrade(
    state: State<ListenerState>,
    client_admission: Extension<Admission>,
    process: Extension<Arc<PeerProcess>>,
    request: Request,
) -> Response {
    if state.page.is_some() && !request.headers().contains_key(header::UPGRADE) {
        page(state, request).await
    } else {
        upgrade::client(state, client_admission, process, request).await
    }
}

/// Issues a ticket to a client with the token.
async fn issue_ticket(
    State(server): State<ListenerState>,
    Extension(process): Extension<Arc<PeerProcess>>,
    request: Request,
) -> Response {
    let holder = match server.bearer_holder(request.headers()) {
        Ok(holder) => holder,
        Err(refusal) => return refusal.into_response(),
    };
    // Another process could use the ticket, which would not be known for an agent's.
    let principal = server.principal(holder.clone(), process);
    if let Err(forbidden) = principal.refuse_agents(&server.host, "POST /ticket", None, None).await {
        return (StatusCode::FORBIDDEN, format!("{forbidden}\n")).into_response();
    }
    let ticket = match server.tickets.issue(holder) {
        Ok(ticket) => ticket,
        Err(error) => {
            tracing::error!(%error, "no randomness for a ticket");
            return (StatusCode::SERVICE_UNAVAILABLE, "there is no randomness for a ticket: try again\n")
                .into_response();
        }
    };
    server.client_activity.announced();
    let answer = serde_json::json!({"ticket": ticket, "expiresInMs": ticket::TICKET_LIFETIME.as_millis() as u64});
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(answer)).into_response()
}

/// Proves to a page that this host knows the token, and issues the challenge that the page has to answer.
///
/// It needs no token. It is a `POST` so that a browser sends the page's origin.
async fn prove(State(server): State<ListenerState>, request: Request) -> Response {
    let token = named_token(request.uri().query());
    let login = |token| server.access.page_login(request.headers(), token, server.host.tokens());
    let (token, key) = match token.and_then(|token| Ok((token, login(token)?.key))) {
        Ok(found) => found,
        Err(refusal) => return refusal.into_response(),
    };
    let Some(nonce) = Nonce::from_query(request.uri().query()) else {
        return (StatusCode::BAD_REQUEST, "`?nonce=` must be 32 bytes in lower-case hexadecimal\n").into_response();
    };
    if !server.proofs.allows(server.host.env().clock.now()) {
        let wait = [(header::RETRY_AFTER, HeaderValue::from_static("1"))];
        return (StatusCode::TOO_MANY_REQUESTS, wait, "too many proofs were asked for: try again\n").into_response();
    }
    match server.challenges.issue(token) {
        Ok(challenge) => {
            let answer = serde_json::json!({"proof": key.prove(&nonce, &challenge), "challenge": challenge});
            ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], Json(answer)).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "no randomness for a challenge");
            (StatusCode::SERVICE_UNAVAILABLE, "there is no randomness for a challenge: try again\n").into_response()
        }
    }
}

/// The items of damage at the start that are reported individually.
pub const MAX_DAMAGE_REPORTED: usize = 50;
/// How many sessions in which everything is allowed are named.
pub const ALLOW_ALL_TOLD: usize = 50;

/// Says that the host is alive; to holders of a token with the scope `read`, also its status.
async fn healthz(State(server): State<ListenerState>, request: Request) -> Response {
    let holder = server.token_holder(&request);
    if !holder.as_ref().is_ok_and(TokenHolder::may_read) {
        // Otherwise this would be the fast way to try tokens.
        if holder.is_err() && gives_token(&request) {
            server.delay_wrong_token(RequestSource::of(&request), "GET /healthz").await;
        }
        return Json(serde_json::json!({"status": "ok"})).into_response();
    }
    let attended = AttendedSessions::of(&server.host);
    match server.host.status().await {
        Ok(status) => Json(serde_json::json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "sessions": status.sessions,
            "loadedSessions": status.loaded,
            "runningTurns": status.running_turns,
            "connections": status.connections,
            "serverSeq": status.server_seq,
            "storageProblem": server.host.storage_problem(),
            "damage": server.host.damage().iter().take(MAX_DAMAGE_REPORTED).collect::<Vec<_>>(),
            "damageCount": server.host.damage().len(),
            "allowAllSessions": status.allow_all.iter().take(ALLOW_ALL_TOLD).collect::<Vec<_>>(),
            "allowAllCount": status.allow_all.len(),
            "attendedSessions": attended.sessions,
            "attendedCount": attended.count,
        }))
        .into_response(),
        Err(stopped) => (StatusCode::SERVICE_UNAVAILABLE, stopped.to_string()).into_response(),
    }
}
