//! `grove import`

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::import::{
    self, AbortParams, AbortResult, BeginParams, BeginResult, CommitParams, CommitResult, PutParams, PutResult,
};
use serde_json::json;

use super::folder::{self, Asking};
use super::meant::of_another_tool;
use super::{Failure, errand, exit, say};
use crate::cli::{Common, ImportArgs};
use crate::connect::{Reach, id_of, new_id};
use crate::exchange::brought::{Brought, WantedId, bring, bring_located};
use crate::exchange::stores::with_source;
use crate::hosts::LOCAL;
use crate::json_errors;
use crate::show::style::harmless;
use crate::talk::tree::AnyClient;

/// How much of a file is sent at once.
const PIECE: usize = 1 << 20;

/// A session that was taken in.
struct TakenIn {
    session: String,
    turns: Option<usize>,
    title: Option<String>,
    warnings: Vec<String>,
}

pub(crate) fn run(common: &Common, args: &ImportArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let client = AnyClient::connect(&reach, args.connect.protocol).await?;
        let mut failed = false;
        for path in &args.paths {
            match take_in(&client, &reach, path, args).await {
                Ok(taken) => tell(path, &taken, args.json)?,
                Err(failure) => {
                    failed = true;
                    let shown = path.display();
                    match args.json {
                        true => say(json!({"path": path, "error": json_errors::body(&failure)}))?,
                        false => anstream::eprintln!("grove: {shown}: {failure}"),
                    }
                }
            }
        }
        if failed { Err(Failure::Said(exit::FAILED)) } else { Ok(()) }
    })
}

fn tell(path: &Path, taken: &TakenIn, as_json: bool) -> Result<(), Failure> {
    let TakenIn { session, turns, title, warnings } = taken;
    if as_json {
        return Ok(say(json!({"path": path, "session": session, "turns": turns, "warnings": warnings}))?);
    }
    for warning in warnings {
        anstream::eprintln!("{}: {}", id_of(session), harmless(warning));
    }
    let turns = match turns {
        None => String::new(),
        Some(1) => "  1 turn".to_owned(),
        Some(turns) => format!("  {turns} turns"),
    };
    let title = title.as_deref().map(|title| format!("  {}", harmless(title))).unwrap_or_default();
    Ok(say(format!("{}{turns}{title}", id_of(session)))?)
}

async fn take_in(client: &AnyClient, reach: &Reach, path: &Path, args: &ImportArgs) -> Result<TakenIn, Failure> {
    let id = if args.new_id { WantedId::New(new_id()?) } else { WantedId::Own };
    let is_name = |name: &str| with_source(name).is_some() || path.components().count() == 1;
    let name = path.to_str().filter(|name| !path.exists() && is_name(name));
    // The folder that a tool of this machine noted is one of this machine's; what a file says may come from anywhere.
    let (brought, is_of_here) = match name.map(|name| of_another_tool(reach, name)).transpose()?.flatten() {
        Some(located) => (bring_located(located, &id)?, reach.host_name() == LOCAL),
        None => (bring(path, &id)?, false),
    };
    let was = brought.about.working_directory.clone();
    let working_directory = match (is_of_here, &args.cwd) {
        (true, None) => was,
        (_, named) => {
            let asking = if args.json { Asking::Never } else { Asking::Allowed };
            let chosen = folder::choose(named.as_deref(), was.as_deref(), reach.host_name(), asking)?;
            chosen.as_deref().map(grove_work::file_uri)
        }
    };
    let about = BeginParams {
        provider: args.agent.clone(),
        store: args.store.clone(),
        working_directory,
        ..brought.about.clone()
    };
    let BeginResult { import, .. } = client.ask(Method::Import(import::Method::Begin), &about).await?;
    let taken = put_all(client, import, brought).await;
    if taken.is_err() {
        // What was refused is gone already, and a host that is gone has nothing to give up.
        client.ask::<AbortResult>(Method::Import(import::Method::Abort), &AbortParams { import }).await.ok();
    }
    taken
}

async fn put_all(client: &AnyClient, import: u64, brought: Brought) -> Result<TakenIn, Failure> {
    let Brought { about, mut log, manifest, files, turns, mut warnings } = brought;
    put(client, import, "events.jsonl", &mut log).await?;
    if let Some(manifest) = manifest {
        put(client, import, "workspace.yaml", &mut manifest.as_bytes()).await?;
    }
    for file in files {
        match File::open(&file.path) {
            Ok(mut opened) => put(client, import, &file.name, &mut opened).await?,
            Err(error) => warnings.push(format!("{} is left out: {error}", file.name)),
        }
    }
    let method = Method::Import(import::Method::Commit);
    let committed: CommitResult = client.ask(method, &CommitParams { import }).await?;
    warnings.extend(committed.damage);
    Ok(TakenIn { session: committed.session, turns, title: about.title, warnings })
}

/// Sends a file, piece by piece. One without bytes is a file all the same.
async fn put(client: &AnyClient, import: u64, path: &str, file: &mut (impl Read + Send)) -> Result<(), Failure> {
    let mut offset = 0;
    loop {
        let mut piece = Vec::new();
        file.take(PIECE as u64).read_to_end(&mut piece).with_context(|| format!("reading {path}"))?;
        if piece.is_empty() && offset > 0 {
            return Ok(());
        }
        let params = PutParams { import, path: path.to_owned(), offset, data: STANDARD.encode(&piece) };
        let put: PutResult = client.ask(Method::Import(import::Method::Put), &params).await?;
        if piece.len() < PIECE {
            return Ok(());
        }
        offset = put.size;
    }
}
