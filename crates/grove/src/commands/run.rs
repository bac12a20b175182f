//! `grove run`

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow};
use grove_client::DispatchOutcome;
use grove_wire::{ahp, v1};

use super::folder::{far_folder, local_folder};
use super::{Failure, command_runtime};
use crate::agents::{AgentState, offers_of};
use crate::chat_client::any::{AnyChatClient, EnvelopeReceiver};
use crate::chat_client::presence::PresenceLines;
use crate::chat_client::{self, ChatClient, ChatCommand, ModeSetting, SessionReadiness, SessionSettings};
use crate::cli::{Common, Protocol, RunArgs};
use crate::connect::{HostConnector, id_of, new_id};
use crate::data_folder;
use crate::follow::{EnvelopeDialect, FollowOptions, FollowUntil, OutputFormat, TICK, closed, follow, output};
use crate::settings::environment;
use crate::show::screen::ChatScreen;
use crate::show::style::dim;

pub(crate) fn run(common: &Common, args: &RunArgs) -> Result<(), Failure> {
    let text = prompt(&args.prompt)?;
    if args.mode.is_some() && args.connect.protocol == Protocol::V1 {
        return Err(anyhow!("version 1 has no modes: leave out --protocol v1, or --mode").into());
    }
    let connector = HostConnector::new(common, &args.connect)?;
    let folder = match (connector.is_remote(), args.cwd.as_deref()) {
        (true, folder) => folder.map(far_folder).transpose()?,
        (false, folder) => Some(local_folder(folder.unwrap_or(Path::new(".")))?),
    };
    command_runtime()?.block_on(async {
        let (mut chat_client, envelopes) = begin(&connector, args, folder.as_deref()).await?;
        if !args.json {
            anstream::eprintln!("{}", dim(format!("session {}", id_of(chat_client.uri()))));
        }
        ready(&mut chat_client).await?;
        let model = match (&args.model, args.connect.protocol) {
            (Some(wanted), Protocol::Ahp) => Some(chosen_model(wanted, &chat_client.models().await?)?),
            // Version 1 already created the session with the model.
            (Some(_), Protocol::V1) | (None, _) => None,
        };
        if let Some(mode) = &args.mode {
            let values = chosen_mode(mode, &chat_client)?;
            start(&mut chat_client, ChatCommand::Configure { values }).await?;
        }
        let turn = new_id()?;
        start(&mut chat_client, ChatCommand::Start { turn: turn.clone(), text, model }).await?;
        follow(
            &mut chat_client,
            FollowUntil::Turn(turn),
            FollowOptions { yes: args.yes, envelopes, newest: 0, presence: PresenceLines::none() },
        )
        .await
    })
}

/// Creates a session.
async fn begin(
    connector: &HostConnector,
    args: &RunArgs,
    folder: Option<&Path>,
) -> Result<(AnyChatClient, EnvelopeReceiver), Failure> {
    let (output_wanted, folder) = (OutputFormat::json(args.json), folder.map(grove_work::file_uri));
    match args.connect.protocol {
        Protocol::Ahp => {
            let (log, arriving) = output(output_wanted, EnvelopeDialect::Ahp);
            let client = connector.ahp(log).await?;
            let agents: Vec<String> = client.subscribe(ahp::ROOT).await?.read(|state| {
                let agents = state.root().map(|root| root.agents.as_slice()).unwrap_or_default();
                agents.iter().map(|agent| agent.provider.clone()).collect()
            });
            let uri = new_session(connector, args.agent.as_deref(), &agents)?;
            let create = ahp::CreateSessionParams {
                channel: uri.clone(),
                working_directories: folder.map(|folder| vec![folder]),
                config: args.store.as_deref().map(in_store),
                ..ahp::CreateSessionParams::default()
            };
            client.request(create).await?;
            Ok((AnyChatClient::Ahp(chat_client::ahp::AhpChatClient::join(&client, &uri, None).await?), arriving))
        }
        Protocol::V1 if args.store.is_some() => {
            Err(anyhow!("version 1 has no stores: leave out --protocol v1, or --store").into())
        }
        Protocol::V1 => {
            let (log, arriving) = output(output_wanted, EnvelopeDialect::V1);
            let client = connector.v1(log).await?;
            let agents: Vec<String> = client.subscribe(v1::ROOT).await?.read(|state| {
                let agents = state.root().map(|root| root.agents.as_slice()).unwrap_or_default();
                agents.iter().map(|agent| agent.provider.clone()).collect()
            });
            let uri = new_session(connector, args.agent.as_deref(), &agents)?;
            let create = v1::CreateSessionParams {
                session: uri.clone(),
                provider: None,
                model: args.model.clone(),
                working_directory: folder,
            };
            client.request(create).await?;
            Ok((AnyChatClient::V1(chat_client::v1::V1ChatClient::join(&client, &uri).await?), arriving))
        }
    }
}

/// The settings for a session in a store.
fn in_store(store: &str) -> serde_json::Map<String, serde_json::Value> {
    [(grove_host::STORE_SETTING.to_owned(), store.into())].into_iter().collect()
}

/// The prompt from the arguments, or from stdin. An empty prompt is refused.
pub(super) fn prompt(words: &[String]) -> Result<String, Failure> {
    let text = match words {
        [only] if only == "-" => {
            let mut text = String::new();
            std::io::stdin().lock().read_to_string(&mut text).context("cannot read the prompt from stdin")?;
            text.trim_end_matches(['\n', '\r']).to_owned()
        }
        words => words.join(" "),
    };
    match text.trim().is_empty() {
        true => Err(anyhow!("the prompt is empty: say what the agent should do").into()),
        false => Ok(text),
    }
}

/// The id of a model that is named by its id or name. An agent without a list gets the name unchanged.
pub(super) fn chosen_model(wanted: &str, models: &[(String, String)]) -> Result<String, Failure> {
    let is_it = |(id, name): &&(String, String)| id == wanted || name.eq_ignore_ascii_case(wanted);
    match models.iter().find(is_it) {
        Some((id, _)) => Ok(id.clone()),
        None if models.is_empty() => Ok(wanted.to_owned()),
        None => {
            let ids: Vec<&str> = models.iter().map(|(id, _)| id.as_str()).collect();
            Err(Failure::NotFound(format!("the agent has no model {wanted:?}: choose one of {}", ids.join(", "))))
        }
    }
}

/// The setting that selects a mode of the agent.
fn chosen_mode(
    wanted: &str,
    chat_client: &AnyChatClient,
) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let SessionSettings { has_any, mode } = chat_client.settings();
    if !has_any {
        return Err(Failure::NotFound("the agent has no modes: leave out --mode".to_owned()));
    }
    // An agent that has not run yet names its modes later: it keeps a value that it has, and ignores others.
    let (name, value) = match mode {
        None => ("mode".to_owned(), wanted.to_owned()),
        Some(ModeSetting { name, choices }) => {
            let is_it = |(id, label): &&(String, String)| id == wanted || label.eq_ignore_ascii_case(wanted);
            let Some((id, _)) = choices.iter().find(is_it) else {
                let ids: Vec<&str> = choices.iter().map(|(id, _)| id.as_str()).collect();
                let ids = ids.join(", ");
                return Err(Failure::NotFound(format!("the agent has no mode {wanted:?}: choose one of {ids}")));
            };
            (name, id.clone())
        }
    };
    Ok([(name, value.into())].into_iter().collect())
}

/// The URI of a session that is to be made, of the agent that is wanted or the host's first.
fn new_session(connector: &HostConnector, wanted: Option<&str>, agents: &[String]) -> Result<String, Failure> {
    let agent = match wanted {
        Some(wanted) if agents.iter().any(|agent| agent == wanted) => wanted,
        Some(wanted) => unknown_agent(connector, wanted, agents)?,
        None => agents.first().map(String::as_str).context("this host has no agents")?,
    };
    Ok(format!("{agent}:/{}", new_id()?))
}

/// Checks an agent that the host does not know yet. The host looks again when a session asks for it.
fn unknown_agent<'a>(connector: &HostConnector, wanted: &'a str, agents: &[String]) -> Result<&'a str, Failure> {
    let none = || format!("there is no agent {wanted:?}: this host has {}", agents.join(", "));
    if connector.is_remote() {
        // Only the other machine knows its programs, and its host names the missing one.
        return match connector.settings().catalog.catalog.get(wanted) {
            Some(_) => Ok(wanted),
            None => Err(Failure::NotFound(none())),
        };
    }
    let offers = offers_of(connector.settings(), &search_path(), &environment());
    let offer = offers.into_iter().find(|offer| offer.id == wanted).ok_or_else(|| Failure::NotFound(none()))?;
    match offer.state {
        AgentState::BuiltIn | AgentState::Installed { .. } => {
            let path = search_path();
            let path = path.to_str().context("PATH is not text: the host cannot be told where the agent is")?;
            data_folder::write_client_path(connector.data_dir(), path)?;
            Ok(wanted)
        }
        AgentState::Missing { advice, .. } => Err(Failure::NotFound(format!(
            "{} is not installed: `{advice}` installs it, then try again",
            offer.display_name
        ))),
        AgentState::Disabled => Err(Failure::NotFound(format!(
            "{wanted} is turned off by `enabled = false` in {}",
            connector.settings().config_file.display()
        ))),
    }
}

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Waits until a session is ready.
pub(super) async fn ready(chat_client: &mut impl ChatClient) -> Result<(), Failure> {
    let mut screen = ChatScreen::new();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        match chat_client.readiness() {
            SessionReadiness::Ready => return Ok(()),
            SessionReadiness::Failed(why) => {
                let id = id_of(chat_client.uri());
                return Err(anyhow!(
                    "the session did not start: {why}\n`grove logs {id}` prints what the agent wrote, `grove agents` shows \
                     how it is run; `grove rm {id}` deletes the session"
                )
                .into());
            }
            SessionReadiness::Creating => tokio::select! {
                changed = chat_client.changed() => changed.map_err(|why| closed(why, chat_client.uri()))?,
                _ = ticks.tick() => screen.spin("starting the agent")?,
            },
        }
    }
}

/// Dispatches a command, and waits until the host has confirmed it.
pub(super) async fn start(chat_client: &mut impl ChatClient, command: ChatCommand) -> Result<(), Failure> {
    match chat_client.act(command).await?.await {
        DispatchOutcome::Confirmed(_) => Ok(()),
        DispatchOutcome::Rejected(reason) => Err(anyhow!("the host refused it: {reason}").into()),
        DispatchOutcome::Lost => Err(anyhow!(
            "the connection was lost before the host answered: `grove attach {}` shows whether it was done",
            id_of(chat_client.uri())
        )
        .into()),
    }
}
