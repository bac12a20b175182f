//! `grove copilot`: a replacement for the Copilot CLI that the GitHub Copilot SDK starts.
//!
//! It relays the SDK's bytes to the host of the data folder, and starts one if none is running. So sessions outlive the
//! program that created them, and all other clients see them too.

use std::env::VarError;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;

use anyhow::{Context, Result, bail};
use grove_host::SystemRandom;
use grove_server::copilot::{QuickAckListener, QuickAckStream};
use grove_server::sdk;
use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::{Failure, command_runtime, print_line};
use crate::background::find_or_start_host;
use crate::cli::{Common, CopilotArgs, ServeArgs};
use crate::connect::new_id;
use crate::data_folder;
use crate::endpoint::HostEndpoint;
use crate::settings::Settings;

/// The variable that holds the SDK's secret for TCP connections.
const SECRET: &str = "COPILOT_CONNECTION_TOKEN";
/// The variables that keep temporary files if one is `true`: the SDK's own, and Grove's.
const KEEPS_TEMP_FILES: [&str; 2] = ["COPILOT_KEEP_TEMP_FILES", "GROVE_KEEP_TEMP_FILES"];
/// The size of the relay's buffer.
const PIECE: usize = 64 << 10;
/// The maximum number of connections. Further ones are accepted once one ends.
const MOST: usize = 256;

pub(crate) fn run(common: &Common, args: &CopilotArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let runtime = command_runtime()?;
    let ended = runtime.block_on(carry(&settings, args));
    // Do not wait for a reader that is blocked by the other program.
    runtime.shutdown_background();
    ended
}

async fn carry(settings: &Settings, args: &CopilotArgs) -> Result<(), Failure> {
    let host = find_or_start_host(settings).await?.endpoint;
    let program = new_id()?.replace('-', "");
    if args.stdio {
        let carrier = CopilotRelay { host, program, secret: None, allows_all: args.allow_all };
        let stream = carrier.open(Transport::Pipes).await?;
        return Ok(exchange(stream, tokio::io::stdin(), unbuffered_stdout()?).await?);
    }
    let secret = secret(settings)?;
    let carrier = CopilotRelay { host, program, secret: Some(secret), allows_all: args.allow_all };
    // This connection keeps the endpoint open while no client is connected.
    let keeper = carrier.open(Transport::Pipes).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0)));
    let mut listener =
        QuickAckListener::bind(address).await.with_context(|| format!("{address} cannot be used to listen on"))?;
    let port = listener.local_addr().context("the listener has no address")?.port();
    print_line(format!("Grove listening on port {port}"))?;
    let serving = serve(&carrier, &mut listener);
    let gone = host_gone(keeper);
    tokio::select! {
        served = serving => Ok(served?),
        () = gone => Err(anyhow::anyhow!("the host has ended: start the program again").into()),
    }
}

/// Stdout, without the line buffer of the standard library.
///
/// The head of a frame ends with a line break: the buffer would write it alone, and the SDK would wait for the rest of a
/// frame whose program was ended in between.
fn unbuffered_stdout() -> Result<tokio::fs::File> {
    let stdout = std::io::stdout().as_fd().try_clone_to_owned().context("cannot open stdout")?;
    Ok(tokio::fs::File::from_std(stdout.into()))
}

/// The secret that clients of the port must send.
///
/// A program that set it in the environment has it; others read the file that is named here.
fn secret(settings: &Settings) -> Result<String> {
    match std::env::var(SECRET) {
        Ok(secret) if HeaderValue::from_str(&secret).is_err() => {
            bail!("{SECRET} must consist of visible ASCII characters: choose another one")
        }
        Ok(secret) if !secret.is_empty() => Ok(secret),
        Err(VarError::NotUnicode(_)) => bail!("{SECRET} must consist of visible ASCII characters: choose another one"),
        Ok(_) | Err(VarError::NotPresent) => {
            let data_dir = &settings.data_dir.value;
            let token = data_folder::copilot_token(data_dir, &SystemRandom)?;
            let path = data_folder::copilot_token_path(data_dir);
            anstream::eprintln!("grove: {SECRET} is not set: clients must send the token in {}", path.display());
            Ok(token.reveal().to_owned())
        }
    }
}

async fn serve(carrier: &CopilotRelay, listener: &mut QuickAckListener) -> Result<()> {
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if carried.len() < MOST => {
                let (stream, peer) = accepted.context("no more connections can be accepted")?;
                let (carrier, local) = (carrier.clone(), listener.local_addr()?);
                carried.spawn(async move { carrier.carry(stream, peer, local).await });
            }
            Some(done) = carried.join_next(), if !carried.is_empty() => {
                if let Ok(Err(error)) = done {
                    anstream::eprintln!("grove: a connection ended: {error:#}");
                }
            }
        }
    }
}

/// The kind of a client's connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// The pipes of the parent process, or none: no secret is needed.
    Pipes,
    /// A port that other programs can reach: clients must send the secret.
    Port { peer: SocketAddr, local: SocketAddr },
}

/// The host's endpoint for this program.
#[derive(Clone)]
struct CopilotRelay {
    host: HostEndpoint,
    program: String,
    secret: Option<String>,
    /// Says whether its new sessions allow everything.
    allows_all: bool,
}

impl CopilotRelay {
    async fn carry(&self, stream: QuickAckStream, peer: SocketAddr, local: SocketAddr) -> Result<()> {
        let (reading, writing) = tokio::io::split(stream);
        exchange(self.open(Transport::Port { peer, local }).await?, reading, writing).await
    }

    async fn open(&self, transport: Transport) -> Result<TokioIo<Upgraded>> {
        let address = self.host.address()?;
        let stream = TcpStream::connect(address).await.context("the host does not answer")?;
        let stream = QuickAckStream::new(stream).context("cannot set up the host's socket")?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let mut request = hyper::Request::get("/copilot")
            .header(HOST, address)
            .header(AUTHORIZATION, format!("Bearer {}", self.host.token))
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, sdk::PROTOCOL)
            .header(sdk::PROGRAM, &self.program);
        if let Some(secret) = &self.secret {
            request = request.header(sdk::SECRET, secret);
        }
        request = match transport {
            Transport::Pipes => request.header(sdk::TRANSPORT, sdk::PIPES),
            Transport::Port { peer, local } => request.header(sdk::CLIENT, format!("{peer} {local}")),
        };
        if KEEPS_TEMP_FILES.iter().any(|name| std::env::var_os(name).is_some_and(|value| value == "true")) {
            request = request.header(sdk::KEEPS_TEMP_FILES, "true");
        }
        if self.allows_all {
            request = request.header(sdk::ALLOWS_ALL, "true");
        }
        if let Ok(folder) = std::env::current_dir() {
            request = request.header(sdk::FOLDER, grove_work::file_uri(&folder));
        }
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
        if response.status() != hyper::StatusCode::SWITCHING_PROTOCOLS {
            bail!("the host answered {}: it may be of another version; `grove stop` ends it", response.status());
        }
        Ok(TokioIo::new(hyper::upgrade::on(response).await?))
    }
}

/// Waits for the end of an idle connection, and ignores all data on it.
async fn host_gone(mut keeper: TokioIo<Upgraded>) {
    let mut nothing = [0; 1 << 10];
    while keeper.read(&mut nothing).await.is_ok_and(|read| read > 0) {}
}

/// Relays bytes in both directions until the host ends the connection.
///
/// The client's end of file is passed on, so that its last requests are still answered.
async fn exchange(
    host: TokioIo<Upgraded>,
    from_client: impl AsyncRead + Unpin + Send + 'static,
    to_client: impl AsyncWrite + Unpin,
) -> Result<()> {
    let (from_host, to_host) = tokio::io::split(host);
    // A separate task, since a read of stdin cannot be interrupted and must not be waited for.
    let sending = tokio::spawn(copy(from_client, to_host));
    let received = copy(from_host, to_client).await;
    sending.abort();
    received.context("the connection broke")
}

async fn copy(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> std::io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
        to.flush().await?;
    }
}
