//! `grove export`

mod copilot_cli;

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use grove_history::export::{CopilotChat, Html, Json, Markdown, TurnWriter};
use serde_json::json;

use super::meant::{self, Meant};
use super::{Failure, errand, say};
use crate::cli::{Common, ExportArgs, ExportFormat};
use crate::connect::Reach;
use crate::exchange::log_lines;
use crate::exchange::opened::{Opened, fit_for_a_file};
use crate::show::style::harmless;
use crate::talk::ahp::chat_name;

/// What stands for stdout.
const STDOUT: &str = "-";

/// Whether a file or folder of an earlier export may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Replace {
    Yes,
    No,
}

/// Why nothing was written.
fn exists(path: &Path) -> anyhow::Error {
    anyhow!("{} exists: --force replaces it, --out names another folder", path.display())
}

/// What was written.
struct Exported {
    id: String,
    path: PathBuf,
    turns: usize,
}

pub(crate) fn run(common: &Common, args: &ExportArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    let to_stdout = args.out.as_deref() == Some(Path::new(STDOUT));
    if to_stdout && (args.json || args.format == ExportFormat::CopilotCli) {
        return Err(anyhow!("--out - is for a file of a session alone: name a folder, or leave out --json").into());
    }
    let out = match &args.out {
        Some(out) => std::path::absolute(out).context("--out")?,
        None => std::env::current_dir().context("the current folder")?,
    };
    errand()?.block_on(async {
        let meant = meant::find(&reach, &args.session, args.chat.as_deref(), args.connect.protocol).await?;
        if !args.json {
            meant::name_other_chats(&meant).await?;
        }
        let replace = if args.force { Replace::Yes } else { Replace::No };
        let exported = match (args.format, &meant) {
            (ExportFormat::CopilotCli, Meant::OfHost(_)) if args.chat.is_some() => {
                return Err(anyhow!("the Copilot CLI knows the main chat alone: leave out --chat").into());
            }
            (ExportFormat::CopilotCli, Meant::OfHost(session)) => copilot_cli::write(session, &out, replace).await?,
            (ExportFormat::CopilotCli, Meant::Elsewhere(_) | Meant::Log(_)) => {
                let why =
                    "only sessions of the host are written for the Copilot CLI: take it in with `grove import` first";
                return Err(anyhow!(why).into());
            }
            (_, meant) => {
                let opened = meant::open(meant).await?;
                if to_stdout {
                    let mut stdout = BufWriter::new(io::stdout().lock());
                    write(&opened, args.format, &mut stdout)?;
                    return Ok(stdout.flush()?);
                }
                let chat = match meant {
                    Meant::OfHost(session) => session.chat().map(chat_name),
                    Meant::Elsewhere(_) | Meant::Log(_) => None,
                };
                to_file(&opened, chat.as_deref(), args.format, &out, replace)?
            }
        };
        let Exported { id, path, turns } = exported;
        if args.json {
            let (session, format) = (meant.shown(), args.format.name());
            return Ok(say(json!({"session": session, "format": format, "id": id, "path": path, "turns": turns}))?);
        }
        Ok(say(path.display())?)
    })
}

/// Writes a file into a folder. It is made beside its place and moved there, so that it is whole or not there.
fn to_file(
    opened: &Opened,
    chat: Option<&str>,
    format: ExportFormat,
    folder: &Path,
    replace: Replace,
) -> Result<Exported, Failure> {
    // Each chat of a session has a file of its own.
    let stem = match chat {
        Some(chat) => format!("{}-{}", opened.file_name(), fit_for_a_file(chat)),
        None => opened.file_name(),
    };
    let name = match format {
        ExportFormat::Markdown => format!("{stem}.md"),
        ExportFormat::Html => format!("{stem}.html"),
        ExportFormat::Json => format!("{stem}.json"),
        ExportFormat::Jsonl => format!("{stem}.jsonl"),
        ExportFormat::CopilotChat => format!("{stem}.chat.json"),
        ExportFormat::Pi => log_lines::pi_file_name(opened),
        ExportFormat::CopilotCli => stem,
    };
    let path = folder.join(name);
    fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    let mut made = tempfile::Builder::new().prefix(".grove-export-").tempfile_in(folder).context("making a file")?;
    let mut out = BufWriter::new(made.as_file_mut());
    let turns = write(opened, format, &mut out)?;
    out.flush().context("writing the file")?;
    drop(out);
    let put = match replace {
        Replace::Yes => made.persist(&path),
        Replace::No => made.persist_noclobber(&path),
    };
    put.map_err(|error| match error.error.kind() {
        io::ErrorKind::AlreadyExists => exists(&path),
        _ => anyhow!(error.error).context(format!("putting {} in its place", path.display())),
    })?;
    Ok(Exported { id: opened.session().source_id.clone(), path, turns })
}

/// Writes a session, and gives how many turns it has.
fn write(opened: &Opened, format: ExportFormat, out: &mut dyn Write) -> Result<usize, Failure> {
    let heading = opened.heading();
    let mut writer: Box<dyn TurnWriter + '_> = match format {
        ExportFormat::Markdown => Box::new(Markdown::begin(out, heading)?),
        ExportFormat::Html => Box::new(Html::begin(out, heading)?),
        ExportFormat::Json => Box::new(Json::begin(out, heading)?),
        ExportFormat::CopilotChat => Box::new(CopilotChat::begin(out, heading)?),
        ExportFormat::Jsonl | ExportFormat::Pi | ExportFormat::CopilotCli => {
            for warning in log_lines::write(opened, out)? {
                anstream::eprintln!("{}", harmless(&warning));
            }
            return Ok(opened.session().turns as usize);
        }
    };
    let mut turns = 0;
    opened.each(&mut |turn| {
        turns += 1;
        Ok::<(), Failure>(writer.turn(&turn)?)
    })?;
    writer.finish()?;
    Ok(turns)
}
