//! `grove serve`

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_fs::LocalFs;
use grove_host::server::{self, Access};
use grove_host::{Config, Env, FileJournal, Folders, Host, Limits, recover};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use super::{Failure, say};
use crate::cli::{Common, ServeArgs};
use crate::data_folder::DataFolder;
use crate::endpoint::Endpoint;
use crate::settings::Settings;

/// How long connections may take to hear that the host stops.
const FAREWELL: Duration = Duration::from_secs(2);

pub(crate) fn run(common: &Common, args: &ServeArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, args)?;
    log_to_stderr();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime.block_on(serve(&settings, args.json))
}

async fn serve(settings: &Settings, json: bool) -> Result<(), Failure> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be heard")?;

    let folder = DataFolder::take(&settings.data_dir.value)?;
    let listener = TcpListener::bind(settings.listen.value)
        .await
        .with_context(|| format!("{} cannot be listened on", settings.listen.value))?;
    let address = listener.local_addr().context("the listener has no address")?;
    let env = Env { sessions: Arc::new(LocalFs::new(folder.path().join("session-state"))), ..Env::in_memory() };
    let token = folder.token(env.random.as_ref())?;

    let agents: Vec<Arc<dyn Agent>> = vec![Arc::new(ScriptedAgent)];
    let config = config(settings);
    let (journal, contents) = FileJournal::open(&folder.path().join("journal"))?;
    let recovered = recover(contents, env.sessions.as_ref(), &config.limits).await?;
    for damage in &recovered.damage {
        tracing::warn!(%damage, "something cannot be read; the rest is there");
    }
    let host = Host::start(env, config, agents, Box::new(journal), recovered).await?;
    let serving = server::serve(host.clone(), Access::loopback(token.clone(), address), Box::new(listener));

    let endpoint = Endpoint {
        ws: format!("ws://{address}/ws"),
        http: format!("http://{address}"),
        token: token.reveal().to_owned(),
        pid: std::process::id(),
    };
    folder.announce(&endpoint)?;
    if json {
        say(serde_json::to_string(&endpoint)?)?;
    } else {
        say(format!("Grove is running at {} (data in {})", endpoint.http, settings.data_dir.value.display()))?;
        say(format!("Connect to {}?tkn={}", endpoint.ws, endpoint.token))?;
        say("Ctrl-C stops it.")?;
    }

    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("stopping: running turns get a few seconds");
    let orderly = async {
        host.stop().await;
        tokio::time::timeout(FAREWELL, serving.drained()).await.ok();
    };
    tokio::select! {
        () = orderly => {}
        // Whoever asks twice means it.
        _ = interrupt.recv() => tracing::warn!("stopped at once"),
    }
    folder.retract();
    Ok(())
}

fn config(settings: &Settings) -> Config {
    // The file may lie anywhere, beside other things: it is private, its folder only where that is Grove's own.
    let private = vec![settings.data_dir.value.clone(), settings.config_dir.clone(), settings.config_file.clone()];
    Config {
        limits: Limits {
            replay_actions: settings.replay_actions.value,
            replay_bytes: settings.replay_bytes.value,
            turn_silence: Duration::from_secs(settings.turn_silence.value),
            ..Limits::default()
        },
        folders: Folders {
            default_directory: Some(settings.default_directory.value.clone()),
            browse: settings.browse_roots.value.clone(),
            read: settings.read_roots.value.clone(),
            private,
        },
        durability: settings.durability.value.into(),
        ..Config::default()
    }
}

/// Logs go to stderr, since stdout belongs to the command's own words. `GROVE_LOG` says how much.
fn log_to_stderr() {
    let filter = tracing_subscriber::EnvFilter::try_from_env("GROVE_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colours).init();
}
