//! The cost of a fork on a host: a process with a real journal and files, and a client on its socket.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use grove_agents::scripted::ScriptedAgent;
use grove_fs::LocalFs;
use grove_host::{Config, Env, Host, Token};
use grove_server::AccessPolicy;
use grove_storage::{FileJournal, Stores, recover};
use grove_testkit::ahp::Client;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use crate::session::{self, URI};

/// The size of the session in bytes.
pub(crate) const BYTES: u64 = 50_000_000;
/// How long storing a session may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// The number of forks in one process after the session is loaded.
const FORKS: usize = 5;

/// The results of one process.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Forked {
    /// Milliseconds until a fork is answered: of an evicted session, and of a loaded one.
    pub(crate) cold: f64,
    pub(crate) answered: f64,
    /// Milliseconds from there until the answer to its first prompt.
    pub(crate) prompted: f64,
    /// Milliseconds from the request until the fork's folder is complete.
    pub(crate) copied: f64,
    /// The growth of the host's peak memory in MiB, while the client sees one turn.
    ///
    /// Measured from before the first fork of a loaded session until its folder is complete.
    pub(crate) memory: f64,
}

/// The folder that every process gets a copy of, and its content.
pub(crate) struct Template {
    folder: tempfile::TempDir,
    pub(crate) entries: usize,
    pub(crate) bytes: u64,
}

impl Template {
    pub(crate) fn make(entries: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let (entries, bytes) = session::write(folder.path(), entries, BYTES)?;
        Ok(Self { folder, entries, bytes })
    }
}

/// Measures one host.
pub(crate) fn measure(template: &Template) -> Result<Forked> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(measured(template))
}

async fn measured(template: &Template) -> Result<Forked> {
    let data = tempfile::tempdir()?;
    copy_all(template.folder.path(), &data.path().join("sessions"))?;
    let mut host = Process::start(data.path()).await?;
    let mut client = host.client().await;
    let (cold, _) = fork(&mut client).await?;
    host.stop().await?;

    let mut host = Process::start(data.path()).await?;
    let mut client = host.client().await;
    let chat = client.follow(URI).await;
    client.run_script(&chat, "first", json!([{"say": "Hello"}])).await;
    look(&mut client, URI).await?;
    let before = host.reset_peak()?;
    let (mut answered, mut prompted, mut copied) = (Vec::new(), Vec::new(), Vec::new());
    let mut memory = 0.0;
    for number in 0..FORKS {
        let began = Instant::now();
        let (milliseconds, forked) = fork(&mut client).await?;
        answered.push(milliseconds);
        let prompt_start = Instant::now();
        let chat = match number {
            // The turns that a client sees cost memory: here it sees only the newest one.
            0 => follow_newest(&mut client, &forked).await?,
            _ => client.follow(&forked).await,
        };
        client.run_script(&chat, &format!("own-{number}"), json!([{"say": "Hello"}])).await;
        prompted.push(prompt_start.elapsed().as_secs_f64() * 1e3);
        stored(data.path(), &forked).await?;
        copied.push(began.elapsed().as_secs_f64() * 1e3);
        if number == 0 {
            memory = host.peak()? - before;
        }
    }
    host.stop().await?;
    let [answered, prompted, copied] = [answered, prompted, copied].map(median);
    Ok(Forked { cold, answered, prompted, copied, memory })
}

pub(crate) fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_unstable_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Forks the session; returns the duration, and the new session.
async fn fork(client: &mut Client) -> Result<(f64, String)> {
    let began = Instant::now();
    let forked = client.ask("x-grove/fork", json!({"channel": URI})).await;
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let forked: Value = forked.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    let session = forked["session"].as_str().context("no session")?;
    Ok((milliseconds, session.to_owned()))
}

/// Subscribes to a fork's chat, to see its newest turn.
async fn follow_newest(client: &mut Client, session: &str) -> Result<String> {
    let id = session.rsplit('/').next().unwrap_or_default();
    let chat = format!("ahp-chat:/{id}");
    let subscribed = client.subscribe_with(json!({"channel": chat, "view": {"turns": 1}})).await;
    subscribed.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok(chat)
}

/// Waits until the session's folder has the complete log.
async fn stored(data: &Path, session: &str) -> Result<()> {
    let id = session.rsplit('/').next().unwrap_or_default();
    let file = data.join("sessions").join(id).join("session.json");
    let began = Instant::now();
    while !file.exists() {
        ensure!(began.elapsed() < PATIENCE, "{session} is not stored");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

/// Reads a session's log, so that it is open.
async fn look(client: &mut Client, session: &str) -> Result<()> {
    let rows = client.ask("x-grove/tree", json!({"channel": session, "limit": 1})).await;
    rows.map_err(|error| anyhow::anyhow!("{error:?}"))?;
    Ok(())
}

/// A host in a process of its own.
struct Process {
    child: Child,
    address: String,
    token: String,
}

impl Process {
    async fn start(data: &Path) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("host").arg(data).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("no stdout")?).lines();
        let mut line = async || lines.next_line().await?.context("the host's output is incomplete");
        let (address, token) = (line().await?, line().await?);
        Ok(Self { child, address, token })
    }

    async fn client(&self) -> Client {
        let mut client = Client::connect(&self.address, &self.token, "bench").await;
        client.initialize(&[]).await;
        client
    }

    /// Resets its peak memory, and returns its current memory in MiB.
    fn reset_peak(&self) -> Result<f64> {
        let pid = self.child.id().context("the host has ended")?;
        fs::write(format!("/proc/{pid}/clear_refs"), "5")?;
        self.memory("VmRSS:")
    }

    fn peak(&self) -> Result<f64> {
        self.memory("VmHWM:")
    }

    fn memory(&self, what: &str) -> Result<f64> {
        let pid = self.child.id().context("the host has ended")?;
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let line = status.lines().find_map(|line| line.strip_prefix(what)).context("no such figure")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes / 1024.0)
    }

    /// Stops it cleanly, so that everything is in its folder.
    async fn stop(&mut self) -> Result<()> {
        drop(self.child.stdin.take());
        ensure!(self.child.wait().await?.success(), "the host failed");
        Ok(())
    }
}

fn copy_all(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy_all(&entry.path(), &target)?,
            false => drop(fs::copy(entry.path(), target)?),
        }
    }
    Ok(())
}

/// The host's process: serves until its stdin is closed.
pub(crate) fn run(data: &Path) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(serve(data.to_owned()))
}

async fn serve(data: PathBuf) -> Result<()> {
    let config = Config::default();
    let env = Env { stores: Stores::new(Arc::new(LocalFs::new(data.join("sessions")))), ..Env::in_memory() };
    let (journal, contents) = FileJournal::open(&data.join("journal"))?;
    let recovered = recover(contents, &env.stores, config.limits.snapshot()).await?;
    ensure!(recovered.damage.is_empty(), "{:?}", recovered.damage);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let token = Token::generate(env.random.as_ref())?;
    let host = Host::start(env, config, vec![Arc::new(ScriptedAgent)], Box::new(journal), recovered).await?;
    grove_server::serve(host.clone(), AccessPolicy::loopback(token.clone(), address), Box::new(listener));
    println!("ws://{address}/ws\n{}", token.reveal());
    tokio::io::copy(&mut tokio::io::stdin(), &mut tokio::io::sink()).await?;
    host.stop().await;
    Ok(())
}
