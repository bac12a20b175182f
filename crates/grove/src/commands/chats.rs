//! `grove chats`: the further chats of a session.

use std::io::{BufRead, IsTerminal, stdin};

use anyhow::anyhow;
use grove_client::{Ahp, Client, DisposeChat};
use grove_wire::ahp::{ChatSummary, CreateChatParams, Message, status};
use grove_wire::x_grove::{Method, RenameParams, RenameResult};
use serde::Serialize;
use serde_json::json;

use super::{Failure, command_runtime, print_line, run};
use crate::chat_client::ahp::{MAIN_CHAT, chat_name, main_chat};
use crate::chat_client::tree::{NO_CHATS_IN_V1, find_chat};
use crate::cli::{ChatsAction, ChatsArgs, Common, Protocol};
use crate::connect::{HostConnector, find_session, id_of, new_id};
use crate::show::style::{bold, sanitize};
use crate::show::table::{cut, lines_within, short, terminal_width};

/// The maximum width of a title, in columns.
const TITLE: usize = 48;

pub(crate) fn run(common: &Common, args: &ChatsArgs) -> Result<(), Failure> {
    if args.connect.protocol == Protocol::V1 {
        return Err(anyhow!(NO_CHATS_IN_V1).into());
    }
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let (connector, session) = connector.at_session(&args.session.reference).await?;
        let client = connector.ahp(None).await?;
        let session = find_session(&client, &session).await?;
        match args.action.as_ref().unwrap_or(&ChatsAction::Ls) {
            ChatsAction::Ls => list(&client, &session, args.json).await,
            ChatsAction::New { prompt, title } => create(&client, &session, prompt, title.as_deref(), args.json).await,
            ChatsAction::Rm { chat, yes } => remove(&client, &session, chat, *yes, args.json).await,
        }
    })
}

/// A chat as `--json` prints it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ChatListRow {
    chat: String,
    uri: String,
    title: String,
    is_main: bool,
    status: &'static str,
}

async fn rows(client: &Client<Ahp>, session: &str) -> Result<Vec<ChatListRow>, Failure> {
    let session = client.subscribe(session).await?;
    Ok(session.read_confirmed(|state, _| {
        let Some(session) = state.session() else { return Vec::new() };
        let main = main_chat(session);
        let is_main = |uri: &String| main.as_ref() == Some(uri);
        let row = |chat: &ChatSummary| ChatListRow {
            chat: if is_main(&chat.resource) { MAIN_CHAT.to_owned() } else { chat_name(&chat.resource) },
            uri: chat.resource.clone(),
            title: chat.title.clone(),
            is_main: is_main(&chat.resource),
            status: match chat.status & status::ACTIVITY {
                activity if activity & status::INPUT_NEEDED == status::INPUT_NEEDED => "waiting",
                activity if activity & status::IN_PROGRESS != 0 => "working",
                activity if activity & status::ERROR != 0 => "failed",
                _ => "idle",
            },
        };
        session.chats.iter().map(row).collect()
    }))
}

async fn list(client: &Client<Ahp>, session: &str, as_json: bool) -> Result<(), Failure> {
    let rows = rows(client, session).await?;
    if as_json {
        return Ok(print_line(json!({"session": session, "chats": rows}))?);
    }
    let names = short(&rows.iter().map(|row| row.chat.as_str()).collect::<Vec<_>>());
    let head = ["CHAT", "STATUS", "TITLE"].map(str::to_owned).to_vec();
    let cells =
        rows.iter().zip(names).map(|(row, name)| vec![sanitize(&name), row.status.to_owned(), cut(&row.title, TITLE)]);
    let table: Vec<_> = std::iter::once(head).chain(cells).collect();
    for (at, line) in lines_within(&table, terminal_width(), &[2]).iter().enumerate() {
        if at == 0 { print_line(bold(line))? } else { print_line(line)? }
    }
    if rows.len() < 2 {
        let id = id_of(session);
        anstream::eprintln!("no further chats: `grove chats {id} new PROMPT` creates one");
    }
    Ok(())
}

async fn create(
    client: &Client<Ahp>,
    session: &str,
    prompt: &[String],
    title: Option<&str>,
    as_json: bool,
) -> Result<(), Failure> {
    let text = if prompt.is_empty() { None } else { Some(run::prompt(prompt)?) };
    let name = new_id()?;
    let chat = format!("ahp-chat:/{name}");
    let create = CreateChatParams {
        channel: session.to_owned(),
        chat: chat.clone(),
        initial_message: text.map(|text| Message { text, ..Message::default() }),
        ..CreateChatParams::default()
    };
    client.request(create).await?;
    if let Some(title) = title {
        let rename = RenameParams { title: title.to_owned() };
        let rename = json!({"channel": chat, "title": rename.title});
        let _: RenameResult = client.request_raw(Method::Rename.as_str(), &rename).await?;
    }
    let id = id_of(session);
    match as_json {
        true => Ok(print_line(json!({"session": session, "chat": name, "uri": chat}))?),
        false => Ok(print_line(format!("created chat {name}: `grove attach {id} --chat {name}` shows it"))?),
    }
}

async fn remove(client: &Client<Ahp>, session: &str, chat: &str, yes: bool, as_json: bool) -> Result<(), Failure> {
    let uri = find_chat(client, session, chat).await?;
    let name = chat_name(&uri);
    if !yes {
        if !stdin().is_terminal() {
            return Err(
                anyhow!("cannot ask whether to delete the chat, since stdin is not a terminal: add --yes").into()
            );
        }
        anstream::eprint!("delete the chat {} with its conversation? [y/n] ", sanitize(&name));
        let mut line = String::new();
        stdin().lock().read_line(&mut line)?;
        if !matches!(line.trim().to_lowercase().as_str(), "y" | "yes") {
            return Err(anyhow!("nothing was deleted").into());
        }
    }
    client.request(DisposeChat { channel: uri.clone() }).await?;
    match as_json {
        true => Ok(print_line(json!({"session": session, "deleted": uri}))?),
        false => Ok(print_line(format!("deleted chat {}", sanitize(&name)))?),
    }
}
