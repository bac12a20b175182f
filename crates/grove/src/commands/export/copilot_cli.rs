//! A session as a folder of the Copilot CLI.

use std::path::Path;

use anyhow::{Context, anyhow};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_core::Timestamp;
use grove_fs::workspace::{Checkpoint, Field, FilesFolder, Manifest, Value, Workspace};
use grove_fs::{Confined, LocalFs, SessionFs};
use grove_tree::Log;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::workspace::{
    self, CheckpointParams, CheckpointResult, CheckpointsResult, Encoding, FilesParams, FilesResult, ManifestResult,
    PlanResult, ReadFileParams, ReadFileResult,
};

use super::{ExportOutcome, Replace, exists};
use crate::chat_client::tree::TreeClient;
use crate::commands::{Failure, resolve};
use crate::connect::{id_of, new_id};
use crate::import_export::copilot_cli::{CopilotCliEvents, events};
use crate::import_export::transcript::header;

/// Writes a session folder of the Copilot CLI.
///
/// The folder is created beside its place and then moved, so that it is complete or missing.
pub(super) async fn write(session: &TreeClient, out: &Path, replace: Replace) -> Result<ExportOutcome, Failure> {
    let manifest: ManifestResult = session.ask(Method::Workspace(workspace::WorkspaceMethod::Manifest), &()).await?;
    let id = uuid_of(id_of(session.session()))?;
    let path = out.join(&id);
    if path.symlink_metadata().is_ok() && replace == Replace::No {
        return Err(exists(&path).into());
    }
    std::fs::create_dir_all(out).with_context(|| format!("making {}", out.display()))?;
    let made =
        tempfile::Builder::new().prefix(".grove-export-").tempdir_in(out).context("creating a temporary folder")?;
    let turns = write_copilot_cli(session, &id, &manifest, made.path(), &path).await?;
    // A folder cannot replace a folder with files by a rename: the earlier one is moved aside first, and restored on
    // failure.
    let earlier = match path.symlink_metadata() {
        Ok(_) => {
            let backup = tempfile::Builder::new()
                .prefix(".grove-export-")
                .tempdir_in(out)
                .context("creating a temporary folder")?;
            std::fs::rename(&path, backup.path().join("earlier")).context("moving the earlier export aside")?;
            Some(backup)
        }
        Err(_) => None,
    };
    let temporary_path = made.keep();
    if let Err(error) = std::fs::rename(&temporary_path, &path) {
        std::fs::remove_dir_all(&temporary_path).ok();
        if let Some(backup) = earlier {
            std::fs::rename(backup.path().join("earlier"), &path).ok();
        }
        return Err(anyhow!(error).context(format!("moving the folder to {}", path.display())).into());
    }
    Ok(ExportOutcome { id, path, turns })
}

async fn write_copilot_cli(
    session: &TreeClient,
    id: &str,
    about: &ManifestResult,
    folder: &Path,
    path: &Path,
) -> Result<usize, Failure> {
    let fs = LocalFs::new(folder);
    let place = Workspace::of(&fs, Some(""))?;
    let log = resolve::log_of(session, id, about).await?;
    let created = resolve::time_of(about.created_at.as_deref()).or_else(|| first_time(&log)).unwrap_or_default();
    let updated = resolve::time_of(about.updated_at.as_deref()).unwrap_or(created);
    place.create(&manifest(id, about, created, updated)).await?;

    let core = header(id, "copilot", about.cwd.clone(), created);
    let checkpoint = |file: &str| path.join("checkpoints").join(file).to_string_lossy().into_owned();
    // The source of randomness worked when the folder was named.
    let mut new_event_id = || new_id().unwrap_or_default().into();
    let CopilotCliEvents { events, turns } = events(&core, &log, &checkpoint, &mut new_event_id);
    let mut lines = Vec::new();
    for event in &events {
        serde_json::to_writer(&mut lines, event).context("an event")?;
        lines.push(b'\n');
    }
    fs.write_file("events.jsonl", &lines).await?;

    let plan: PlanResult = session.ask(Method::Workspace(workspace::WorkspaceMethod::Plan), &()).await?;
    if let Some(text) = plan.text {
        place.set_plan(&text).await?;
    }
    copy_checkpoints(session, &fs, &place, updated).await?;
    for (folder, on) in
        [(FilesFolder::Files, workspace::FilesFolder::Files), (FilesFolder::Research, workspace::FilesFolder::Research)]
    {
        copy_files(session, on, &Confined::new(&fs, folder.folder())?).await?;
    }
    Ok(turns)
}

async fn copy_checkpoints(
    session: &TreeClient,
    fs: &LocalFs,
    place: &Workspace<'_>,
    at: Timestamp,
) -> Result<(), Failure> {
    let listed: CheckpointsResult =
        session.ask(Method::Workspace(workspace::WorkspaceMethod::Checkpoints), &()).await?;
    let confined = Confined::new(fs, "checkpoints")?;
    let mut rows = Vec::new();
    for one in listed.checkpoints {
        let params = CheckpointParams { number: one.number };
        let found: CheckpointResult =
            session.ask(Method::Workspace(workspace::WorkspaceMethod::Checkpoint), &params).await?;
        confined.write_file(&one.file, found.text.as_bytes()).await?;
        rows.push(Checkpoint { number: one.number, title: one.title, file: one.file });
    }
    place.relist_checkpoints(rows, &[], moment(at)).await?;
    Ok(())
}

async fn copy_files(session: &TreeClient, folder: workspace::FilesFolder, to: &Confined) -> Result<(), Failure> {
    let listed: FilesResult =
        session.ask(Method::Workspace(workspace::WorkspaceMethod::Files), &FilesParams { folder }).await?;
    if listed.more {
        anstream::eprintln!("the session has more files than can be listed: the others are left out");
    }
    for file in listed.files {
        let mut offset = 0;
        loop {
            let params = ReadFileParams { name: file.name.clone(), folder, offset, length: None };
            let piece: ReadFileResult =
                session.ask(Method::Workspace(workspace::WorkspaceMethod::ReadFile), &params).await?;
            let bytes = match piece.encoding {
                Encoding::Utf8 => piece.data.into_bytes(),
                Encoding::Base64 => STANDARD.decode(piece.data)?,
            };
            to.append_file(&file.name, &bytes).await?;
            // A piece without bytes would loop forever.
            if !piece.more || bytes.is_empty() {
                break;
            }
            offset += bytes.len() as u64;
        }
    }
    Ok(())
}

fn manifest(id: &str, about: &ManifestResult, created: Timestamp, updated: Timestamp) -> Manifest {
    let mut manifest = Manifest::new(id, about.cwd.as_deref(), moment(created));
    let texts = [
        (Field::GitRoot, &about.git_root),
        (Field::Repository, &about.repository),
        (Field::Branch, &about.branch),
        (Field::Name, &about.name),
    ];
    for (field, text) in texts {
        if let Some(text) = text {
            manifest.set(field, Value::Text(text));
        }
    }
    manifest.set(Field::UserNamed, Value::Flag(about.user_named));
    manifest.set(Field::ClientName, Value::Text("grove"));
    manifest.set(Field::UpdatedAt, Value::Time(moment(updated)));
    manifest
}

fn first_time(log: &Log) -> Option<Timestamp> {
    let first = log.index().entries().find_map(|entry| log.index().time(entry))?;
    u64::try_from(first).ok().map(Timestamp)
}

fn moment(at: Timestamp) -> jiff::Timestamp {
    let at = i64::try_from(at.0).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    at.unwrap_or(jiff::Timestamp::MAX)
}

/// The session's id for the CLI, which must be a UUID: any other id is replaced by a new one.
fn uuid_of(id: &str) -> Result<String, Failure> {
    match id.parse::<uuid::fmt::Hyphenated>() {
        Ok(_) => Ok(id.to_owned()),
        Err(_) => new_id(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_stays_and_any_other_id_makes_way_for_one() {
        let id = "0f1829d1-3b2e-44e8-a246-7896319d11be";
        assert_eq!(uuid_of(id).ok().as_deref(), Some(id));
        for other in ["s1", "0f1829d13b2e44e8a2467896319d11be", "0f1829d1-3b2e-44e8-a246-7896319d11bz"] {
            let new = uuid_of(other).unwrap_or_default();
            assert_eq!((new.len(), new.as_str() == other), (36, false));
        }
    }
}
