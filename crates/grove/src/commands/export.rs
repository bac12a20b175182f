//! `grove export`

mod copilot_cli;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use grove_transcript::export::{CopilotChat, Html, Json, Markdown, TurnWriter};
use serde_json::json;

use super::resolve::{self, ResolvedSession};
use super::{Failure, command_runtime, print_line};
use crate::chat_client::ahp::chat_name;
use crate::cli::{Common, ExportArgs, ExportFormat};
use crate::connect::HostConnector;
use crate::import_export::log_export;
use crate::import_export::transcript::{Transcript, fit_for_a_file};
use crate::show::style::sanitize;

/// The path that stands for stdout.
const STDOUT: &str = "-";

/// Permission to replace a file or folder of an earlier export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replace {
    Yes,
    No,
}

/// The error for an existing file or folder.
fn exists(path: &Path) -> anyhow::Error {
    anyhow!("{} exists: --force replaces it, --out names another folder", path.display())
}

/// The result of an export.
struct ExportOutcome {
    id: String,
    path: PathBuf,
    turns: usize,
}

pub(crate) fn run(common: &Common, args: &ExportArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    let to_stdout = args.out.as_deref() == Some(Path::new(STDOUT));
    if to_stdout && (args.json || args.format == ExportFormat::CopilotCli) {
        return Err(anyhow!("--out - works only for a single file: name a folder, or leave out --json").into());
    }
    let out = match &args.out {
        Some(out) => std::path::absolute(out).context("--out")?,
        None => std::env::current_dir().context("the current folder")?,
    };
    command_runtime()?.block_on(async {
        let resolved = resolve::find(&connector, &args.session, args.chat.name.as_deref(), args.connect.protocol).await?;
        if !args.json {
            resolve::name_other_chats(&resolved).await?;
        }
        let replace = if args.force { Replace::Yes } else { Replace::No };
        let exported = match (args.format, &resolved) {
            (ExportFormat::CopilotCli, ResolvedSession::OfHost(_)) if args.chat.name.is_some() => {
                return Err(anyhow!("the Copilot CLI has only the main chat: leave out --chat").into());
            }
            (ExportFormat::CopilotCli, ResolvedSession::OfHost(session)) => {
                copilot_cli::write(session, &out, replace).await?
            }
            (ExportFormat::CopilotCli, ResolvedSession::Elsewhere(_) | ResolvedSession::Log(_)) => {
                let why =
                    "only sessions of the host can be exported for the Copilot CLI: import it with `grove import` first";
                return Err(anyhow!(why).into());
            }
            (_, resolved) => {
                let transcript = resolve::open(resolved).await?;
                if to_stdout {
                    let mut stdout = BufWriter::new(io::stdout().lock());
                    write(&transcript, args.format, &mut stdout)?;
                    return Ok(stdout.flush()?);
                }
                let chat = match resolved {
                    ResolvedSession::OfHost(session) => session.chat().map(chat_name),
                    ResolvedSession::Elsewhere(_) | ResolvedSession::Log(_) => None,
                };
                to_file(&transcript, chat.as_deref(), args.format, &out, replace)?
            }
        };
        let ExportOutcome { id, path, turns } = exported;
        if args.json {
            let (session, format) = (resolved.shown(), args.format.name());
            return Ok(print_line(
                json!({"session": session, "format": format, "id": id, "path": path, "turns": turns}),
            )?);
        }
        Ok(print_line(path.display())?)
    })
}

/// Writes a file atomically: as a temporary file beside its place, which is then moved.
fn to_file(
    transcript: &Transcript,
    chat: Option<&str>,
    format: ExportFormat,
    folder: &Path,
    replace: Replace,
) -> Result<ExportOutcome, Failure> {
    // Each chat of a session has its own file.
    let stem = match chat {
        Some(chat) => format!("{}-{}", transcript.file_name(), fit_for_a_file(chat)),
        None => transcript.file_name(),
    };
    let name = match format {
        ExportFormat::Markdown => format!("{stem}.md"),
        ExportFormat::Html => format!("{stem}.html"),
        ExportFormat::Json => format!("{stem}.json"),
        ExportFormat::Jsonl => format!("{stem}.jsonl"),
        ExportFormat::CopilotChat => format!("{stem}.chat.json"),
        ExportFormat::Pi => log_export::pi_file_name(transcript),
        ExportFormat::CopilotCli => stem,
    };
    let path = folder.join(name);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut made =
        tempfile::Builder::new().prefix(".grove-export-").tempfile_in(folder).context("creating a temporary file")?;
    let mut out = BufWriter::new(made.as_file_mut());
    let turns = write(transcript, format, &mut out)?;
    out.flush().context("writing the file")?;
    drop(out);
    let put = match replace {
        Replace::Yes => made.persist(&path),
        Replace::No => made.persist_noclobber(&path),
    };
    put.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(&path),
        _ => anyhow!(error.error).context(format!("moving the file to {}", path.display())),
    })?;
    Ok(ExportOutcome { id: transcript.session().source_id.clone(), path, turns })
}

/// Writes a session, and returns the number of its turns.
fn write(transcript: &Transcript, format: ExportFormat, out: &mut dyn Write) -> Result<usize, Failure> {
    let heading = transcript.heading();
    let mut writer: Box<dyn TurnWriter + '_> = match format {
        ExportFormat::Markdown => Box::new(Markdown::begin(out, heading)?),
        ExportFormat::Html => Box::new(Html::begin(out, heading)?),
        ExportFormat::Json => Box::new(Json::begin(out, heading)?),
        ExportFormat::CopilotChat => Box::new(CopilotChat::begin(out, heading)?),
        ExportFormat::Jsonl | ExportFormat::Pi | ExportFormat::CopilotCli => {
            for warning in log_export::write(transcript, out)? {
                anstream::eprintln!("{}", sanitize(&warning));
            }
            return Ok(transcript.session().turns as usize);
        }
    };
    let mut turns = 0;
    transcript.each(&mut |turn| {
        turns += 1;
        Ok::<(), Failure>(writer.turn(&turn)?)
    })?;
    writer.finish()?;
    Ok(turns)
}
