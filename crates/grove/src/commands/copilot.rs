//! `grove copilot`: what the GitHub Copilot SDK takes for its CLI.
//!
//! It carries the SDK's bytes to the host of the data folder, and starts one where none is running. So sessions outlive the
//! program that made them, and everybody else sees them too.

use std::env::VarError;
use std::net::{Ipv4Addr, SocketAddr};

use anyhow::{Context, Result, bail};
use grove_host::SystemRandom;
use grove_host::copilot::{QuickAckListener, QuickAckStream};
use grove_host::server::sdk;
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

/// The variable in which the SDK says the secret that it will send over TCP.
const SECRET: &str = "COPILOT_CONNECTION_TOKEN";
/// The variables that keep temporary files when one is `true`: the SDK's own, and ours.
const KEEPS_TEMP_FILES: [&str; 2] = ["COPILOT_KEEP_TEMP_FILES", "GROVE_KEEP_TEMP_FILES"];
/// How much is carried at once.
const PIECE: usize = 64 << 10;
/// How many connections are carried at a time. Others are not taken until one ends.
const MOST: usize = 256;

pub(crate) fn run(common: &Common, args: &CopilotArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let runtime = command_runtime()?;
    let ended = runtime.block_on(carry(&settings, args));
    // A reader that still waits for the other program is not waited for.
    runtime.shutdown_background();
    ended
}

async fn carry(settings: &Settings, args: &CopilotArgs) -> Result<(), Failure> {
    let host = find_or_start_host(settings).await?.endpoint;
    let program = new_id()?.replace('-', "");
    if args.stdio {
        let carrier = CopilotRelay { host, program, secret: None };
        let stream = carrier.open(Transport::Pipes).await?;
        return Ok(exchange(stream, tokio::io::stdin(), tokio::io::stdout()).await?);
    }
    let secret = secret(settings)?;
    let carrier = CopilotRelay { host, program, secret: Some(secret) };
    // The endpoint must be there while no client is.
    let keeper = carrier.open(Transport::Pipes).await?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port.unwrap_or(0)));
    let mut listener =
        QuickAckListener::bind(address).await.with_context(|| format!("{address} cannot be listened on"))?;
    let port = listener.local_addr().context("the listener has no address")?.port();
    print_line(format!("Grove listening on port {port}"))?;
    let serving = serve(&carrier, &mut listener);
    let gone = host_gone(keeper);
    tokio::select! {
        served = serving => Ok(served?),
        () = gone => Err(anyhow::anyhow!("the host has ended: start the program again").into()),
    }
}

/// The secret that clients of the port must send. A program that set it in the environment knows it; another one reads the
/// file that is named here.
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
            stream = listener.accept(), if carried.len() < MOST => {
                let stream = stream.context("no more connections can be accepted")?;
                let carrier = carrier.clone();
                carried.spawn(async move { carrier.carry(stream).await });
            }
            Some(done) = carried.join_next(), if !carried.is_empty() => {
                if let Ok(Err(error)) = done {
                    anstream::eprintln!("grove: a connection ended: {error:#}");
                }
            }
        }
    }
}

/// The origin of the bytes of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transport {
    /// The pipes of the program that started this one, or nobody: nothing has to be sent first.
    Pipes,
    /// A port that others can reach: clients must send the secret.
    Port,
}

/// The way to an endpoint of this program at the host.
#[derive(Clone)]
struct CopilotRelay {
    host: HostEndpoint,
    program: String,
    secret: Option<String>,
}

impl CopilotRelay {
    async fn carry(&self, stream: QuickAckStream) -> Result<()> {
        let (reading, writing) = tokio::io::split(stream);
        exchange(self.open(Transport::Port).await?, reading, writing).await
    }

    async fn open(&self, transport: Transport) -> Result<TokioIo<Upgraded>> {
        let address = self.host.address()?;
        let stream = TcpStream::connect(address).await.context("the host does not answer")?;
        let stream = QuickAckStream::new(stream).context("the host's socket cannot be set up")?;
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
        if transport == Transport::Pipes {
            request = request.header(sdk::TRANSPORT, sdk::PIPES);
        }
        if KEEPS_TEMP_FILES.iter().any(|name| std::env::var_os(name).is_some_and(|value| value == "true")) {
            request = request.header(sdk::KEEPS_TEMP_FILES, "true");
        }
        tokio::spawn(connection.with_upgrades());
        let response = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
        if response.status() != hyper::StatusCode::SWITCHING_PROTOCOLS {
            bail!("the host answered {}: it may be of another version; `grove stop` ends it", response.status());
        }
        Ok(TokioIo::new(hyper::upgrade::on(response).await?))
    }
}

/// Waits for the end of a connection on which nothing is said. What is told on it is for nobody.
async fn host_gone(mut keeper: TokioIo<Upgraded>) {
    let mut nothing = [0; 1 << 10];
    while keeper.read(&mut nothing).await.is_ok_and(|read| read > 0) {}
}

/// Carries bytes both ways until the host ends the connection. The client's end is passed on, so that what it asked for
/// last is answered.
async fn exchange(
    host: TokioIo<Upgraded>,
    from_client: impl AsyncRead + Unpin + Send + 'static,
    to_client: impl AsyncWrite + Unpin,
) -> Result<()> {
    let (from_host, to_host) = tokio::io::split(host);
    // On its own: a read of stdin cannot be given up, and must not be waited for.
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
