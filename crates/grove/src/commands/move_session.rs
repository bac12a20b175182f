//! `grove move`: moves a session to another host.
//!
//! 1. The old host lists the files of the session, with a stamp of their content.
//! 2. The files are copied to the new host, which verifies the stamp and creates the session.
//! 3. The old host archives its session, with a pointer to the new one, if the stamp is still the same.
//!
//! The session is complete at the old host until step 3, whatever is killed in between. Before the end of step 2 the
//! new host has no session; after it, it has a copy with the stamp of its origin, by which another run knows how to
//! continue.

use std::path::PathBuf;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_client::{Ahp, Client};
use grove_wire::x_grove::Method;
use grove_wire::x_grove::handover::{
    self, File, FilesResult, LeaveParams, LeaveResult, ReadParams, ReadResult, RemoteSession,
};
use grove_wire::x_grove::import::{
    self, AbortParams, AbortResult, BeginParams, BeginResult, CommitParams, CommitResult, PutParams, PutResult,
};
use grove_wire::x_grove::removal::{self, EraseParams, EraseResult};
use grove_wire::x_grove::workspace::{self, ManifestResult};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::folder::{self, FolderPrompt};
use super::{Failure, command_runtime, print_line};
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, MoveArgs};
use crate::connect::{HostConnector, find_session, id_of};
use crate::hosts::Destination;
use crate::show::style::sanitize;

/// How often copying is retried if the session changes meanwhile.
const TRIES: usize = 3;

/// One of the two hosts.
struct MoveHost {
    name: String,
    address: String,
    client: AnyClient,
}

/// A session at a host.
struct SessionAtHost<'a> {
    side: &'a MoveHost,
    uri: String,
}

/// The settings for copying a session to the new host.
struct CopyPlan<'a> {
    id: &'a str,
    /// The agent that continues the session; by default the one of the same name.
    agent: Option<&'a str>,
    /// The working directory at the new host.
    cwd: Option<PathBuf>,
}

/// The state at the new host before the move.
enum TargetState {
    Nothing,
    /// A complete copy, from an interrupted run.
    Copy,
    /// An unchanged copy of an earlier state of the session, from an earlier move.
    Leftover,
}

pub(crate) fn run(common: &Common, args: &MoveArgs) -> Result<(), Failure> {
    // Verifying a long session takes time.
    let connector = HostConnector::new(common, &args.connect)?.with_summary_timeout();
    command_runtime()?.block_on(async {
        let to = target(&connector, &args.to)?;
        let (from, wanted) = connector.at_session_excluding(&args.session.reference, Some(to.host_name())).await?;
        if from.host_name() == to.host_name() {
            let (reference, host) = (&args.session.reference, to.host_name());
            return Err(Failure::NotFound(format!(
                "no other host has a session {reference:?} that could be moved to {host}: `grove ls --all` lists them"
            )));
        }
        let (from, to) = (MoveHost::open(&from).await?, MoveHost::open(&to).await?);
        let uri = find_session(from.ahp()?, &wanted).await?;
        relocate(&connector, &SessionAtHost { side: &from, uri }, &to, args).await
    })
}

/// The target host. The name of a store is an error.
fn target(connector: &HostConnector, name: &str) -> Result<HostConnector, Failure> {
    match connector.at_host(name) {
        Err(Failure::NotFound(_)) if connector.has_store(name) => {
            Err(anyhow!("{name} is a store of this host: `grove migrate SESSION --to {name}` moves a session there")
                .into())
        }
        found => found,
    }
}

async fn relocate(
    connector: &HostConnector,
    old: &SessionAtHost<'_>,
    to: &MoveHost,
    args: &MoveArgs,
) -> Result<(), Failure> {
    let id = id_of(&old.uri).to_owned();
    let (from_name, to_name) = (old.side.name.clone(), to.name.clone());
    let has = old.files().await?;
    let there = to.session_of(&id).await?;
    if let Some(at) = &has.moved_to {
        // Host names depend on the machine that moved it; the address identifies the host.
        let is_to = at.address.as_ref().map_or(at.host == to_name, |address| *address == to.address);
        match &there {
            Some(new) if is_to => return tell(&new.uri, &has, (&from_name, &to_name), args),
            // It no longer exists there: the session here is the only one.
            None if is_to => {}
            Some(_) | None => {
                let (host, id) = (Destination::of(connector.data_dir(), at)?, sanitize(id_of(&at.session)));
                return Err(match &host {
                    Destination::Known(name) => {
                        anyhow!("it was moved to {name} already: `grove move {name}/{id} {to_name}` moves it on")
                    }
                    Destination::Unknown { .. } => anyhow!("it was moved to {host} already: move it on from there"),
                }
                .into());
            }
        }
    }
    let found = match &there {
        None => TargetState::Nothing,
        Some(there) => look(&has, there).await?,
    };
    if let (TargetState::Leftover, Some(there)) = (&found, &there) {
        there.erase().await?;
    }
    let (new, has) = match (found, there) {
        (TargetState::Copy, Some(there)) => (there, has),
        _ => {
            let asking = if args.json { FolderPrompt::Never } else { FolderPrompt::Allowed };
            let cwd = folder::choose(args.cwd.as_deref(), has.working_directory.as_deref(), &to_name, asking)?;
            let plan = CopyPlan { id: &id, agent: args.agent.as_deref(), cwd };
            let (uri, has) = copy_settled(old, to, has, &plan).await?;
            (SessionAtHost { side: to, uri }, has)
        }
    };
    let leave = LeaveParams { to: new.location(&has.stamp), seal: has.seal.clone() };
    let left: Result<LeaveResult, Failure> = old.ask(handover(handover::HandoverMethod::Leave), &leave).await;
    if let Err(failure) = left {
        return Err(not_left(old, &new, &has, failure).await);
    }
    tell(&new.uri, &has, (&from_name, &to_name), args)?;
    report_forks(old, &from_name).await;
    Ok(())
}

/// Determines the state of a session of the same id at the new host.
async fn look(has: &FilesResult, there: &SessionAtHost<'_>) -> Result<TargetState, Failure> {
    let (name, id) = (&there.side.name, id_of(&there.uri));
    let found = there.files().await.with_context_of(|| format!("{name} has a session {id} already"))?;
    let is_as_it_left = found.moved_to.as_ref().is_some_and(|to| to.stamp == found.stamp);
    match &found.moved_from {
        _ if is_as_it_left => Ok(TargetState::Leftover),
        Some(from) if found.moved_to.is_none() && from.stamp == has.stamp => Ok(TargetState::Copy),
        // An earlier run was interrupted, and the session continued here.
        Some(from) if found.moved_to.is_none() && from.stamp == found.stamp => Ok(TargetState::Leftover),
        Some(_) | None => Err(anyhow!(
            "{name} has a session {id} already, with other content: look at it with `grove show {name}/{id}`, and \
             remove it with `grove rm {name}/{id}`, or move a fork (`grove fork`)"
        )
        .into()),
    }
}

/// Copies until the session is stable: a recent fork may still be written to its log.
async fn copy_settled(
    old: &SessionAtHost<'_>,
    to: &MoveHost,
    mut has: FilesResult,
    plan: &CopyPlan<'_>,
) -> Result<(String, FilesResult), Failure> {
    for _ in 1..TRIES {
        let failure = match copy(old, to, &has, plan).await {
            Ok(uri) => return Ok((uri, has)),
            Err(failure) => failure,
        };
        match old.files().await {
            Ok(now) if now.stamp != has.stamp || now.seal != has.seal => has = now,
            Ok(_) | Err(_) => return Err(failure),
        }
    }
    Ok((copy(old, to, &has, plan).await?, has))
}

/// Copies all files to the new host. The session exists there only when all have arrived.
async fn copy(
    old: &SessionAtHost<'_>,
    to: &MoveHost,
    has: &FilesResult,
    plan: &CopyPlan<'_>,
) -> Result<String, Failure> {
    let from = old.location(&has.stamp);
    let about = BeginParams {
        id: Some(plan.id.to_owned()),
        provider: Some(plan.agent.unwrap_or(&has.provider).to_owned()),
        working_directory: plan.cwd.as_deref().map(grove_work::file_uri),
        from: Some(from),
        seal: has.seal.clone(),
        ..BeginParams::default()
    };
    let reply: Result<BeginResult, Failure> = to.client.ask(Method::Import(import::ImportMethod::Begin), &about).await;
    let BeginResult { import, .. } =
        reply.with_context_of(|| format!("{} does not accept it (--agent names another agent)", to.name))?;
    let copied = put_all(old, to, has, import).await;
    if copied.is_err() {
        // A host that is gone has no import to abort.
        to.client.ask::<AbortResult>(Method::Import(import::ImportMethod::Abort), &AbortParams { import }).await.ok();
    }
    copied
}

async fn put_all(old: &SessionAtHost<'_>, to: &MoveHost, has: &FilesResult, import: u64) -> Result<String, Failure> {
    for file in &has.files {
        put(old, to, file, import).await?;
    }
    let method = Method::Import(import::ImportMethod::Commit);
    let committed: CommitResult = to.client.ask(method, &CommitParams { import }).await?;
    Ok(committed.session)
}

async fn put(old: &SessionAtHost<'_>, to: &MoveHost, file: &File, import: u64) -> Result<(), Failure> {
    let mut offset = 0;
    loop {
        let read = ReadParams { path: file.path.clone(), offset };
        let ReadResult { data } = old.ask(handover(handover::HandoverMethod::Read), &read).await?;
        let length = STANDARD.decode(&data).with_context(|| format!("reading {}", file.path))?.len() as u64;
        // An empty file is sent, too.
        if length == 0 && offset > 0 {
            return Ok(());
        }
        let put = PutParams { import, path: file.path.clone(), offset, data };
        let PutResult { size } = to.client.ask(Method::Import(import::ImportMethod::Put), &put).await?;
        if length == 0 {
            return Ok(());
        }
        offset = size;
    }
}

/// Handles a failure of the old host to archive the session, and deletes an unwanted copy.
async fn not_left(old: &SessionAtHost<'_>, new: &SessionAtHost<'_>, has: &FilesResult, failure: Failure) -> Failure {
    let name = &new.side.name;
    match old.files().await {
        Ok(now) if now.moved_to.is_none() && (now.stamp != has.stamp || now.seal != has.seal) => {
            match new.erase().await {
                Ok(()) => anyhow!("the session changed meanwhile and was not moved: run the command again").into(),
                Err(_) => unfinished(name, &failure),
            }
        }
        Ok(_) | Err(_) => unfinished(name, &failure),
    }
}

fn unfinished(name: &str, failure: &Failure) -> Failure {
    anyhow!("the session is at {name}, but not yet archived at its old host ({failure}): run the same command again")
        .into()
}

fn tell(uri: &str, has: &FilesResult, (from, to): (&str, &str), args: &MoveArgs) -> Result<(), Failure> {
    let (files, bytes) = (has.files.len(), has.files.iter().map(|file| file.size).sum::<u64>());
    if args.json {
        return Ok(print_line(json!({"session": uri, "host": to, "from": from, "files": files, "bytes": bytes}))?);
    }
    let id = sanitize(id_of(uri));
    Ok(print_line(format!("{id} is now at {to}: `grove attach {id}` continues it; at {from} it is archived"))?)
}

/// Prints the number of forks, which are sessions of their own and stay.
async fn report_forks(old: &SessionAtHost<'_>, from: &str) {
    let about: Result<ManifestResult, Failure> =
        old.ask(Method::Workspace(workspace::WorkspaceMethod::Manifest), &json!({})).await;
    match about.map(|about| about.fork_count) {
        Ok(1) => anstream::eprintln!("a fork of it stays at {from}"),
        Ok(forks) if forks > 1 => anstream::eprintln!("{forks} forks of it stay at {from}"),
        Ok(_) | Err(_) => {}
    }
}

impl MoveHost {
    async fn open(connector: &HostConnector) -> Result<Self, Failure> {
        let (name, address) = (connector.host_name().to_owned(), connector.address());
        Ok(Self { name, address, client: AnyClient::Ahp(connector.ahp(None).await?) })
    }

    fn ahp(&self) -> Result<&Client<Ahp>, Failure> {
        match &self.client {
            AnyClient::Ahp(client) => Ok(client),
            AnyClient::V1(_) => Err(anyhow!("version 1 cannot move sessions: leave out --protocol v1").into()),
        }
    }

    /// The host's session of this id, if it has one.
    async fn session_of(&self, id: &str) -> Result<Option<SessionAtHost<'_>>, Failure> {
        let sessions = self.ahp()?.sessions();
        sessions.refresh().await?;
        let uri =
            sessions.read(|list| list.iter().find(|row| id_of(&row.resource) == id).map(|row| row.resource.clone()));
        Ok(uri.map(|uri| SessionAtHost { side: self, uri }))
    }
}

impl SessionAtHost<'_> {
    async fn ask<R: DeserializeOwned>(&self, method: Method, params: &(impl Serialize + Sync)) -> Result<R, Failure> {
        let mut params = serde_json::to_value(params)?;
        if let Some(members) = params.as_object_mut() {
            members.insert("channel".to_owned(), self.uri.clone().into());
        }
        self.side.client.ask(method, &params).await
    }

    /// The host's address and the session's id, for the other host to store.
    fn location(&self, stamp: &str) -> RemoteSession {
        RemoteSession {
            host: self.side.name.clone(),
            address: Some(self.side.address.clone()),
            session: self.uri.clone(),
            stamp: stamp.to_owned(),
        }
    }

    async fn files(&self) -> Result<FilesResult, Failure> {
        self.ask(handover(handover::HandoverMethod::Files), &json!({})).await
    }

    async fn erase(&self) -> Result<(), Failure> {
        let erase = EraseParams { session: self.uri.clone() };
        let EraseResult { .. } = self.side.client.ask(Method::Removal(removal::RemovalMethod::Erase), &erase).await?;
        Ok(())
    }
}

const fn handover(method: handover::HandoverMethod) -> Method {
    Method::Handover(method)
}

/// Adds context to a failure.
trait WithContextOf<T> {
    fn with_context_of(self, words: impl FnOnce() -> String) -> Result<T, Failure>;
}

impl<T> WithContextOf<T> for Result<T, Failure> {
    fn with_context_of(self, words: impl FnOnce() -> String) -> Result<T, Failure> {
        self.map_err(|failure| match failure {
            Failure::Other(error) => Failure::Other(error.context(words())),
            other => other,
        })
    }
}
