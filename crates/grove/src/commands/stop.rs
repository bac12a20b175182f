//! `grove stop`

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use grove_agents::Agent;
use grove_agents::scripted::ScriptedAgent;
use grove_client::{Ahp, Client, DispatchOutcome};
use grove_wire::ahp::{Action, ChatAction, ChatTurnCancelled, status};
use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, command_runtime, ls, print_line};
use crate::background::find_host;
use crate::cli::{Common, ConnectArgs, Protocol, ServeArgs, StopArgs};
use crate::connect::HostConnector;
use crate::data_folder;
use crate::settings::Settings;

/// How long a host may take to stop: the grace period of its turns, and some more.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How long the host may take to list its running turns, and to cancel them.
const ANSWER: Duration = Duration::from_secs(10);

/// The running turns of a host that is about to stop.
#[derive(Clone, Copy, Debug, Default)]
struct RunningTurns {
    cancelled: usize,
    /// Turns of agents that keep working without the host.
    go_on: usize,
    /// Turns of agents that end with the host: they wait for a person, and the next host asks again.
    waiting: usize,
}

pub(crate) fn run(common: &Common, args: &StopArgs) -> Result<(), Failure> {
    let settings = Settings::load(common, &ServeArgs::default())?;
    let data_dir = &settings.data_dir.value;
    let none = || Failure::NoHost(format!("no host is running for {}", data_dir.display()));
    // Process ids are reused: only a process that answers with our token is signalled.
    let health = command_runtime()?.block_on(find_host(data_dir))?.ok_or_else(none)?.health;
    let turns = match health.running_turns {
        0 => RunningTurns::default(),
        _ => settle_turns(common, args)?,
    };
    let pid = i32::try_from(health.pid).ok().and_then(Pid::from_raw).context("the host's process id is invalid")?;
    kill_process(pid, Signal::TERM).with_context(|| format!("process {} cannot be signalled", health.pid))?;

    let since = Instant::now();
    while data_folder::is_taken(data_dir) {
        if since.elapsed() > TIMEOUT {
            return Err(anyhow!("process {} has not stopped after {} s", health.pid, TIMEOUT.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    if args.json {
        return Ok(print_line(serde_json::json!({
            "stopped": true,
            "pid": health.pid,
            "turnsCancelled": turns.cancelled,
            "turnsGoOn": turns.go_on,
            "turnsWaiting": turns.waiting,
        }))?);
    }
    print_line(format!("stopped process {}", health.pid))?;
    if turns.cancelled > 0 {
        print_line(format!("cancelled {}", count(turns.cancelled, "turn")))?;
    }
    if turns.go_on > 0 {
        let verb = if turns.go_on == 1 { "goes" } else { "go" };
        print_line(format!(
            "{} {verb} on without the host: `grove start` continues them, `grove cancel SESSION` cancels one; \
             `grove stop --turns` cancels them all",
            count(turns.go_on, "turn")
        ))?;
    }
    if turns.waiting > 0 {
        let verb = if turns.waiting == 1 { "waits" } else { "wait" };
        print_line(format!(
            "{} {verb} for your answer: `grove start` asks again, `grove ls` shows the question",
            count(turns.waiting, "turn")
        ))?;
    }
    Ok(())
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Cancels running turns if requested, and counts those that go on.
///
/// A host that does not answer is stopped anyway, unless turns were to be cancelled.
fn settle_turns(common: &Common, args: &StopArgs) -> Result<RunningTurns, Failure> {
    let answer = command_runtime()?.block_on(async {
        let ask = async {
            let connector =
                HostConnector::new(common, &ConnectArgs { host: None, no_start: true, protocol: Protocol::Ahp })?;
            let client = connector.ahp(None).await?;
            let cancelled = if args.turns { cancel_all(&client).await? } else { 0 };
            let busy = busy_chats(&client).await?;
            let go_on = busy.iter().filter(|chat| chat.outlives_host).count();
            let waiting = busy.iter().filter(|chat| !chat.outlives_host && chat.waits).count();
            Ok::<RunningTurns, Failure>(RunningTurns { cancelled, go_on, waiting })
        };
        tokio::time::timeout(ANSWER, ask).await
    });
    match answer {
        Ok(Ok(turns)) => Ok(turns),
        _ if !args.turns => Ok(RunningTurns::default()),
        Ok(Err(failure)) => Err(failure),
        Err(_) => Err(anyhow!(
            "the host has not cancelled its turns within {} s, so it was not stopped: leave out --turns to stop it anyway",
            ANSWER.as_secs()
        )
        .into()),
    }
}

/// A chat with a running turn.
struct BusyChat {
    chat: String,
    outlives_host: bool,
    /// The turn waits for a person.
    waits: bool,
}

async fn busy_chats(client: &Client<Ahp>) -> Result<Vec<BusyChat>, Failure> {
    let is_busy = |bits: u32| bits & status::IN_PROGRESS != 0;
    // Every other agent is a separate program, held by a shim.
    let scripted = ScriptedAgent.info().id;
    let mut busy = Vec::new();
    for session in ls::fetch(client).await?.into_iter().filter(|session| is_busy(session.status)) {
        let outlives_host = session.provider != scripted.as_str();
        let subscribed = client.subscribe(&session.resource).await?;
        busy.extend(subscribed.read(|state| {
            let chats = state.session().map(|session| session.chats.as_slice()).unwrap_or_default();
            let busy = chats.iter().filter(|chat| is_busy(chat.status)).map(|chat| BusyChat {
                chat: chat.resource.clone(),
                outlives_host,
                waits: chat.status & status::ACTIVITY == status::INPUT_NEEDED,
            });
            busy.collect::<Vec<_>>()
        }));
    }
    Ok(busy)
}

/// Cancels every running turn, and returns their number.
async fn cancel_all(client: &Client<Ahp>) -> Result<usize, Failure> {
    let mut cancelled = 0;
    for BusyChat { chat, .. } in busy_chats(client).await? {
        let chat = client.subscribe(&chat).await?;
        let active = chat.read(|state| state.chat()?.active_turn.as_ref().map(|turn| turn.id.clone()));
        let Some(turn_id) = active else { continue };
        // The host measures the duration itself.
        let cancel = ChatAction::TurnCancelled(ChatTurnCancelled { turn_id, duration: 0, meta: None });
        match chat.dispatch(Action::Chat(cancel))?.await {
            DispatchOutcome::Confirmed(_) => cancelled += 1,
            // The turn had already ended.
            DispatchOutcome::Rejected(_) => {}
            DispatchOutcome::Lost => return Err(anyhow!("the host has ended before it cancelled its turns").into()),
        }
    }
    Ok(cancelled)
}
