//! `grove files`

use std::path::Path;

use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::workspace::{
    self, Encoding, FilesFolder, FilesParams, FilesResult, MAX_FILE_BYTES, ReadFileParams, ReadFileResult,
    RemoveFileParams, RemoveFileResult, WriteFileParams, WriteFileResult,
};
use serde_json::json;

use super::{print, read};
use crate::chat_client::tree::TreeClient;
use crate::cli::{Common, FilesAction, FilesArgs};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::{HostConnector, id_of};
use crate::show::style::sanitize;
use crate::show::table::{age, lines};

pub(crate) fn run(common: &Common, args: &FilesArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    let folder = if args.research { FilesFolder::Research } else { FilesFolder::Files };
    command_runtime()?.block_on(async {
        let session = TreeClient::of_session(&connector, &args.session.reference, args.connect.protocol).await?;
        match args.action.as_ref().unwrap_or(&FilesAction::Ls) {
            FilesAction::Ls => list(&session, folder, args.json).await,
            FilesAction::Get { name } => get(&session, folder, name, args.json).await,
            FilesAction::Put { file, name } => put(&session, folder, file, name.as_deref(), args.json).await,
            FilesAction::Rm { name } => remove(&session, folder, name, args.json).await,
        }
    })
}

async fn list(session: &TreeClient, folder: FilesFolder, as_json: bool) -> Result<(), Failure> {
    let method = Method::Workspace(workspace::WorkspaceMethod::Files);
    let listed: FilesResult = session.ask(method, &FilesParams { folder }).await?;
    if as_json {
        return Ok(print_line(json!({"session": session.session(), "files": listed.files, "more": listed.more}))?);
    }
    if listed.files.is_empty() {
        let (id, flag) = (id_of(session.session()), if folder == FilesFolder::Research { " --research" } else { "" });
        anstream::eprintln!("no files: `grove files {id}{flag} put FILE` adds one");
    } else {
        let head = ["NAME", "BYTES", "AGE"].map(str::to_owned).to_vec();
        let row = |file: &workspace::FileInfo| vec![sanitize(&file.name), file.size.to_string(), age(file.modified)];
        let rows: Vec<_> = std::iter::once(head).chain(listed.files.iter().map(row)).collect();
        print_line(lines(&rows).join("\n"))?;
    }
    if listed.more {
        anstream::eprintln!("there are more files than can be listed");
    }
    Ok(())
}

async fn get(session: &TreeClient, folder: FilesFolder, name: &str, as_json: bool) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    loop {
        let offset = bytes.len() as u64;
        let params = ReadFileParams { name: name.to_owned(), folder, offset, length: None };
        let piece: ReadFileResult =
            session.ask(Method::Workspace(workspace::WorkspaceMethod::ReadFile), &params).await?;
        let before = bytes.len();
        match piece.encoding {
            Encoding::Utf8 => bytes.extend_from_slice(piece.data.as_bytes()),
            Encoding::Base64 => bytes.extend(STANDARD.decode(piece.data)?),
        }
        // A piece without bytes would loop forever.
        if !piece.more || bytes.len() == before {
            break;
        }
    }
    if !as_json {
        return print(&bytes);
    }
    let (data, encoding) = match String::from_utf8(bytes) {
        Ok(text) => (text, Encoding::Utf8),
        Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
    };
    Ok(print_line(json!({"session": session.session(), "name": name, "data": data, "encoding": encoding}))?)
}

async fn put(
    session: &TreeClient,
    folder: FilesFolder,
    file: &Path,
    name: Option<&str>,
    as_json: bool,
) -> Result<(), Failure> {
    let own_name = file.file_name().filter(|_| file.as_os_str() != "-").and_then(|name| name.to_str());
    let Some(name) = name.or(own_name) else {
        return Err(anyhow!("name the file in the session: add NAME after the `-`").into());
    };
    let bytes = read(file, MAX_FILE_BYTES)?;
    if bytes.len() > MAX_FILE_BYTES {
        let file = file.display();
        return Err(anyhow!("{file} has more than {MAX_FILE_BYTES} bytes, which is the maximum").into());
    }
    let (data, encoding) = match String::from_utf8(bytes) {
        Ok(text) => (text, Encoding::Utf8),
        Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
    };
    let params = WriteFileParams { name: name.to_owned(), folder, data, encoding };
    let method = Method::Workspace(workspace::WorkspaceMethod::WriteFile);
    let WriteFileResult { size } = session.ask(method, &params).await?;
    match as_json {
        true => Ok(print_line(json!({"session": session.session(), "name": name, "size": size}))?),
        false => Ok(print_line(format!("{} has {size} bytes", sanitize(name)))?),
    }
}

async fn remove(session: &TreeClient, folder: FilesFolder, name: &str, as_json: bool) -> Result<(), Failure> {
    let params = RemoveFileParams { name: name.to_owned(), folder };
    let method = Method::Workspace(workspace::WorkspaceMethod::RemoveFile);
    let RemoveFileResult { removed } = session.ask(method, &params).await?;
    if as_json {
        return Ok(print_line(json!({"session": session.session(), "name": name, "removed": removed}))?);
    }
    let name = sanitize(name);
    match removed {
        true => Ok(print_line(format!("deleted {name}"))?),
        false => Err(Failure::NotFound(format!("there is no file {name} in {}", id_of(session.session())))),
    }
}
