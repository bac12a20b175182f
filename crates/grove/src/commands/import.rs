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

use super::folder::{self, FolderPrompt};
use super::resolve::find_in_tool_stores;
use super::{Failure, command_runtime, exit, print_line};
use crate::chat_client::tree::AnyClient;
use crate::cli::{Common, ImportArgs};
use crate::connect::{HostConnector, id_of, new_id};
use crate::hosts::LOCAL;
use crate::import_export::prepared_import::{ImportId, PreparedImport, prepare_import, prepare_located_import};
use crate::import_export::stores::with_source;
use crate::json_errors;
use crate::show::style::sanitize;

/// The number of bytes per request.
const PIECE: usize = 1 << 20;

/// An imported session.
struct ImportOutcome {
    session: String,
    turns: Option<usize>,
    title: Option<String>,
    warnings: Vec<String>,
}

pub(crate) fn run(common: &Common, args: &ImportArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let client = AnyClient::connect(&connector, args.connect.protocol).await?;
        let mut failed = false;
        for path in &args.paths {
            match import_session(&client, &connector, path, args).await {
                Ok(taken) => tell(path, &taken, args.json)?,
                Err(failure) => {
                    failed = true;
                    let shown = path.display();
                    match args.json {
                        true => print_line(json!({"path": path, "error": json_errors::body(&failure)}))?,
                        false => anstream::eprintln!("grove: {shown}: {failure}"),
                    }
                }
            }
        }
        if failed { Err(Failure::Exit(exit::FAILED)) } else { Ok(()) }
    })
}

fn tell(path: &Path, taken: &ImportOutcome, as_json: bool) -> Result<(), Failure> {
    let ImportOutcome { session, turns, title, warnings } = taken;
    if as_json {
        return Ok(print_line(json!({"path": path, "session": session, "turns": turns, "warnings": warnings}))?);
    }
    for warning in warnings {
        anstream::eprintln!("{}: {}", id_of(session), sanitize(warning));
    }
    let turns = match turns {
        None => String::new(),
        Some(1) => "  1 turn".to_owned(),
        Some(turns) => format!("  {turns} turns"),
    };
    let title = title.as_deref().map(|title| format!("  {}", sanitize(title))).unwrap_or_default();
    Ok(print_line(format!("{}{turns}{title}", id_of(session)))?)
}

async fn import_session(
    client: &AnyClient,
    connector: &HostConnector,
    path: &Path,
    args: &ImportArgs,
) -> Result<ImportOutcome, Failure> {
    let id = if args.new_id { ImportId::New(new_id()?) } else { ImportId::Own };
    let is_name = |name: &str| with_source(name).is_some() || path.components().count() == 1;
    let name = path.to_str().filter(|name| !path.exists() && is_name(name));
    // The folder that a tool of this machine noted is one of this machine's; what a file says may come from anywhere.
    let (prepared_import, is_of_here) =
        match name.map(|name| find_in_tool_stores(connector, name)).transpose()?.flatten() {
            Some(location) => (prepare_located_import(location, &id)?, connector.host_name() == LOCAL),
            None => (prepare_import(path, &id)?, false),
        };
    let was = prepared_import.about.working_directory.clone();
    let working_directory = match (is_of_here, &args.cwd) {
        (true, None) => was,
        (_, named) => {
            let asking = if args.json { FolderPrompt::Never } else { FolderPrompt::Allowed };
            let chosen = folder::choose(named.as_deref(), was.as_deref(), connector.host_name(), asking)?;
            chosen.as_deref().map(grove_work::file_uri)
        }
    };
    let about = BeginParams {
        provider: args.agent.clone(),
        store: args.store.clone(),
        working_directory,
        ..prepared_import.about.clone()
    };
    let BeginResult { import, .. } = client.ask(Method::Import(import::ImportMethod::Begin), &about).await?;
    let taken = put_all(client, import, prepared_import).await;
    if taken.is_err() {
        // A rejected import is already removed, and a host that is gone has none.
        client.ask::<AbortResult>(Method::Import(import::ImportMethod::Abort), &AbortParams { import }).await.ok();
    }
    taken
}

async fn put_all(client: &AnyClient, import: u64, prepared_import: PreparedImport) -> Result<ImportOutcome, Failure> {
    let PreparedImport { about, mut log, manifest, files, turns, mut warnings } = prepared_import;
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
    let method = Method::Import(import::ImportMethod::Commit);
    let committed: CommitResult = client.ask(method, &CommitParams { import }).await?;
    warnings.extend(committed.damage);
    Ok(ImportOutcome { session: committed.session, turns, title: about.title, warnings })
}

/// Sends a file in pieces. An empty file has one piece, too.
async fn put(client: &AnyClient, import: u64, path: &str, file: &mut (impl Read + Send)) -> Result<(), Failure> {
    let mut offset = 0;
    loop {
        let mut piece = Vec::new();
        file.take(PIECE as u64).read_to_end(&mut piece).with_context(|| format!("reading {path}"))?;
        if piece.is_empty() && offset > 0 {
            return Ok(());
        }
        let params = PutParams { import, path: path.to_owned(), offset, data: STANDARD.encode(&piece) };
        let put: PutResult = client.ask(Method::Import(import::ImportMethod::Put), &params).await?;
        if piece.len() < PIECE {
            return Ok(());
        }
        offset = put.size;
    }
}
