//! `grove files`

use std::path::Path;

use anyhow::anyhow;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::workspace::{
    self, Encoding, FilesParams, FilesResult, MOST_BYTES, ReadFileParams, ReadFileResult, RemoveFileParams,
    RemoveFileResult, Shelf, WriteFileParams, WriteFileResult,
};
use serde_json::json;

use super::{print, read};
use crate::cli::{Common, FilesAction, FilesArgs};
use crate::commands::{Failure, errand, say};
use crate::connect::{Reach, id_of};
use crate::show::style::harmless;
use crate::show::table::{age, lines};
use crate::talk::tree::Tree;

pub(crate) fn run(common: &Common, args: &FilesArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    let shelf = if args.research { Shelf::Research } else { Shelf::Files };
    errand()?.block_on(async {
        let session = Tree::of_session(&reach, &args.session, args.connect.protocol).await?;
        match args.action.as_ref().unwrap_or(&FilesAction::Ls) {
            FilesAction::Ls => list(&session, shelf, args.json).await,
            FilesAction::Get { name } => get(&session, shelf, name, args.json).await,
            FilesAction::Put { file, name } => put(&session, shelf, file, name.as_deref(), args.json).await,
            FilesAction::Rm { name } => remove(&session, shelf, name, args.json).await,
        }
    })
}

async fn list(session: &Tree, shelf: Shelf, as_json: bool) -> Result<(), Failure> {
    let method = Method::Workspace(workspace::Method::Files);
    let listed: FilesResult = session.ask(method, &FilesParams { shelf }).await?;
    if as_json {
        return Ok(say(json!({"session": session.session(), "files": listed.files, "more": listed.more}))?);
    }
    if listed.files.is_empty() {
        let (id, shelf) = (id_of(session.session()), if shelf == Shelf::Research { " --research" } else { "" });
        anstream::eprintln!("no files: `grove files {id}{shelf} put FILE` adds one");
    } else {
        let head = ["NAME", "BYTES", "AGE"].map(str::to_owned).to_vec();
        let row = |file: &workspace::FileInfo| vec![harmless(&file.name), file.size.to_string(), age(file.modified)];
        let rows: Vec<_> = std::iter::once(head).chain(listed.files.iter().map(row)).collect();
        say(lines(&rows).join("\n"))?;
    }
    if listed.more {
        anstream::eprintln!("there are more than can be listed");
    }
    Ok(())
}

async fn get(session: &Tree, shelf: Shelf, name: &str, as_json: bool) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    loop {
        let offset = bytes.len() as u64;
        let params = ReadFileParams { name: name.to_owned(), shelf, offset, length: None };
        let piece: ReadFileResult = session.ask(Method::Workspace(workspace::Method::ReadFile), &params).await?;
        let before = bytes.len();
        match piece.encoding {
            Encoding::Utf8 => bytes.extend_from_slice(piece.data.as_bytes()),
            Encoding::Base64 => bytes.extend(STANDARD.decode(piece.data)?),
        }
        // A piece without bytes brings nobody further.
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
    Ok(say(json!({"session": session.session(), "name": name, "data": data, "encoding": encoding}))?)
}

async fn put(session: &Tree, shelf: Shelf, file: &Path, name: Option<&str>, as_json: bool) -> Result<(), Failure> {
    let own_name = file.file_name().filter(|_| file.as_os_str() != "-").and_then(|name| name.to_str());
    let Some(name) = name.or(own_name) else {
        return Err(anyhow!("say how the file is to be called, behind it").into());
    };
    let bytes = read(file, MOST_BYTES)?;
    if bytes.len() > MOST_BYTES {
        let file = file.display();
        return Err(anyhow!("{file} has more than {MOST_BYTES} bytes, the most that can be put there").into());
    }
    let (data, encoding) = match String::from_utf8(bytes) {
        Ok(text) => (text, Encoding::Utf8),
        Err(error) => (STANDARD.encode(error.as_bytes()), Encoding::Base64),
    };
    let params = WriteFileParams { name: name.to_owned(), shelf, data, encoding };
    let method = Method::Workspace(workspace::Method::WriteFile);
    let WriteFileResult { size } = session.ask(method, &params).await?;
    match as_json {
        true => Ok(say(json!({"session": session.session(), "name": name, "size": size}))?),
        false => Ok(say(format!("{} has {size} bytes", harmless(name)))?),
    }
}

async fn remove(session: &Tree, shelf: Shelf, name: &str, as_json: bool) -> Result<(), Failure> {
    let params = RemoveFileParams { name: name.to_owned(), shelf };
    let method = Method::Workspace(workspace::Method::RemoveFile);
    let RemoveFileResult { removed } = session.ask(method, &params).await?;
    if as_json {
        return Ok(say(json!({"session": session.session(), "name": name, "removed": removed}))?);
    }
    let name = harmless(name);
    match removed {
        true => Ok(say(format!("{name} is gone"))?),
        false => Err(Failure::NotFound(format!("there is no file {name} in {}", id_of(session.session())))),
    }
}
