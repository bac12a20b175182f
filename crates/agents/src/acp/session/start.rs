//! Starting an agent, and attaching to one that an earlier host has started.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grove_shim::{ShimError, ShimOptions, ShimStream};
use grove_work::Program;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::chat::Chat;
use super::choices::Choices;
use super::kept::Kept;
use super::process::{Beginning, Origin, Process, Running};
use super::reader::{Past, Reader};
use crate::acp::connection::{Frames, Link};
use crate::acp::fleet::{Place, end_what_runs_in};
use crate::acp::random;
use crate::acp::serve::Served;
use crate::agent::*;

/// How long whoever hears an agent may take beside the agent's grace.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often a folder is tried in which another shim has not quite ended.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// An agent's process at work, and who hears it.
#[derive(Debug)]
pub(super) struct Alive {
    pub(super) process: Arc<Process>,
    pub(super) place: Place,
    reader: JoinHandle<()>,
    grace: Duration,
}

/// Where an earlier host's turn stands.
#[derive(Debug)]
pub(super) enum Attached {
    /// It goes on.
    Running(Box<Going>),
    /// The agent never heard of it: it can be given it.
    NeverSent,
}

/// An agent that works on a turn of an earlier host's.
#[derive(Debug)]
pub(super) struct Going {
    stream: ShimStream,
    kept: Kept,
    past: Past,
}

/// Starts the agent's program. Nothing was said to it yet.
pub(super) async fn launch(chat: &Arc<Chat>, place: Place) -> Result<Alive, AgentError> {
    let command = chat.program.find()?;
    chat.make_room()?;
    Kept::forget(chat.folder());
    let agent = Program { command, args: chat.program.args.clone(), env: chat.program.env.clone(), cwd: chat.cwd() };
    let fleet = chat.fleet.options();
    let options = ShimOptions { folder: chat.folder.clone(), agent, limits: fleet.shim_limits };
    let mut tries = 0;
    let stream = loop {
        match ShimStream::start(&fleet.shim, &options).await {
            Ok(stream) => break stream,
            Err(ShimError::InUse { .. }) if tries < TRIES => {
                // One of an earlier host, or one that is about to end.
                end_what_runs_in(chat.folder(), fleet.shim_limits.grace).await.ok();
                tokio::time::sleep(PAUSE).await;
                tries += 1;
            }
            Err(error) => return Err(AgentError::Start(error.to_string())),
        }
    };
    let process = u64::from(random::number().max(1));
    let beginning = Beginning::fresh(Frames::new(process, 0));
    Ok(Alive::new(chat, stream, place, beginning, Past::default()))
}

/// Attaches to the agent that works on a turn of an earlier host's.
pub(super) async fn attach(chat: &Chat, kept: Kept, from: Resumption) -> Result<Attached, ShimError> {
    let began = kept.turn.frame;
    // A mark of another process, or of an earlier turn, says nothing of this one.
    let is_of_turn = |mark: &Mark| mark.is_plausible() && mark.process == kept.process && mark.frame >= began;
    let mark = from.mark.filter(is_of_turn);
    let mark = mark.unwrap_or(Mark { process: kept.process, frame: began, open: Vec::new() });
    let open: BTreeSet<u64> = mark.open.into_iter().filter(|frame| *frame > began).collect();
    let first = open.first().copied().unwrap_or(mark.frame.saturating_add(1));
    let stream = match ShimStream::attach(chat.folder(), first).await {
        // What was acknowledged was stored.
        Err(ShimError::Forgotten { oldest, .. }) => ShimStream::attach(chat.folder(), oldest).await?,
        other => other?,
    };
    if stream.taken() < kept.turn.line {
        stream.end(chat.fleet.options().shim_limits.grace).await.ok();
        return Ok(Attached::NeverSent);
    }
    let waiting = from.waiting.into_iter().map(|waiting| (waiting.request, waiting.awaits)).collect();
    let past = Past { upto: mark.frame, open, waiting };
    Ok(Attached::Running(Box::new(Going { stream, kept, past })))
}

impl Going {
    pub(super) fn origin(&self) -> Origin {
        Origin::Earlier { agent_runs: self.stream.agent().is_some_and(is_there) }
    }

    /// Goes on with the turn.
    pub(super) fn on(self, chat: &Arc<Chat>, turn: Running) -> Alive {
        let Self { stream, kept, past } = self;
        let beginning = Beginning {
            frames: Frames::new(kept.process, past.upto),
            session: Some(kept.session),
            capabilities: kept.capabilities,
            choices: Choices::again(kept.said),
            turn: Some(turn),
        };
        Alive::new(chat, stream, chat.fleet.places().take_anyway(), beginning, past)
    }
}

/// Whether a process is there. Its number may be somebody else's by now, which costs the right word for an end.
fn is_there(id: u32) -> bool {
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    id.is_some_and(|id| rustix::process::test_kill_process(id).is_ok())
}

impl Alive {
    fn new(chat: &Arc<Chat>, stream: ShimStream, place: Place, beginning: Beginning, past: Past) -> Self {
        let (taken, (reader, writer)) = (stream.taken(), stream.split());
        let tag = random::tag();
        let served = Served::new(chat.ground(), tag.clone());
        let tap = chat.fleet.tap(&chat.program.provider, &chat.session, chat.program.env.values());
        let link = Link::new(writer, taken, tag, tap);
        let process = Arc::new(Process::new(link, served, chat.folder.clone(), beginning));
        let reader = Reader::new(Arc::clone(chat), Arc::clone(&process), reader, past);
        let reader = tokio::spawn(reader.run());
        Self { process, place, reader, grace: chat.fleet.options().shim_limits.grace }
    }

    /// Ends the agent with all that it started.
    pub(super) async fn end(self) {
        let Self { process, place, mut reader, grace } = self;
        // Whatever waits to be stored is not waited for.
        process.let_go();
        let ended = async {
            process.link.shim().end(grace).await.ok();
            (&mut reader).await.ok();
        };
        let longest = grace.saturating_mul(2).saturating_add(LAST_WORDS);
        if timeout(longest, ended).await.is_err() {
            // The shim was told, and ends it without us.
            reader.abort();
        }
        drop(place);
    }

    /// Leaves the agent to the next host.
    pub(super) fn detach(self) {
        self.reader.abort();
    }
}

impl Kept {
    /// What was kept of an earlier process says nothing of the next.
    fn forget(folder: &Path) {
        std::fs::remove_file(Self::path(folder)).ok();
    }
}
