//! `grove run`

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, anyhow};
use grove_agents::catalog;
use grove_client::Outcome;
use grove_wire::{ahp, v1};

use super::folder::{far_folder, local_folder};
use super::{Failure, errand};
use crate::agents::{State, offers};
use crate::cli::{Common, Protocol, RunArgs};
use crate::connect::{Reach, id_of, new_id};
use crate::data_folder;
use crate::follow::{Envelopes, Manner, Output, TICK, Until, closed, follow, output};
use crate::settings::environment;
use crate::show::screen::Screen;
use crate::show::style::dim;
use crate::talk::any::{AnyTalk, Arriving};
use crate::talk::{self, Beginning, Deed, ModeSetting, Settings, Talk};

pub(crate) fn run(common: &Common, args: &RunArgs) -> Result<(), Failure> {
    let text = prompt(&args.prompt)?;
    if args.mode.is_some() && args.connect.protocol == Protocol::V1 {
        return Err(anyhow!("version 1 knows no modes: leave out --protocol v1, or --mode").into());
    }
    let reach = Reach::new(common, &args.connect)?;
    let folder = match (reach.is_far(), args.cwd.as_deref()) {
        (true, folder) => folder.map(far_folder).transpose()?,
        (false, folder) => Some(local_folder(folder.unwrap_or(Path::new(".")))?),
    };
    errand()?.block_on(async {
        let (mut talk, envelopes) = begin(&reach, args, folder.as_deref()).await?;
        if !args.json {
            anstream::eprintln!("{}", dim(format!("session {}", id_of(talk.uri()))));
        }
        ready(&mut talk).await?;
        let model = match (&args.model, args.connect.protocol) {
            (Some(wanted), Protocol::Ahp) => Some(chosen_model(wanted, &talk.models().await?)?),
            // The session was created with it.
            (Some(_), Protocol::V1) | (None, _) => None,
        };
        if let Some(mode) = &args.mode {
            let values = chosen_mode(mode, &talk)?;
            start(&mut talk, Deed::Configure { values }).await?;
        }
        let turn = new_id()?;
        start(&mut talk, Deed::Start { turn: turn.clone(), text, model }).await?;
        follow(&mut talk, Until::Turn(turn), Manner { yes: args.yes, envelopes, newest: 0 }).await
    })
}

/// Makes a session.
async fn begin(reach: &Reach, args: &RunArgs, folder: Option<&Path>) -> Result<(AnyTalk, Arriving), Failure> {
    let (output_wanted, folder) = (Output::json(args.json), folder.map(grove_work::file_uri));
    match args.connect.protocol {
        Protocol::Ahp => {
            let (log, arriving) = output(output_wanted, Envelopes::Ahp);
            let client = reach.ahp(log).await?;
            let agents: Vec<String> = client.subscribe(ahp::ROOT).await?.read(|state| {
                let agents = state.root().map(|root| root.agents.as_slice()).unwrap_or_default();
                agents.iter().map(|agent| agent.provider.clone()).collect()
            });
            let uri = new_session(reach, args.agent.as_deref(), &agents)?;
            let create = ahp::CreateSessionParams {
                channel: uri.clone(),
                working_directories: folder.map(|folder| vec![folder]),
                config: args.store.as_deref().map(in_store),
                ..ahp::CreateSessionParams::default()
            };
            client.request(create).await?;
            Ok((AnyTalk::Ahp(talk::ahp::Conversation::join(&client, &uri, None).await?), arriving))
        }
        Protocol::V1 if args.store.is_some() => {
            Err(anyhow!("version 1 knows no stores: leave out --protocol v1, or --store").into())
        }
        Protocol::V1 => {
            let (log, arriving) = output(output_wanted, Envelopes::V1);
            let client = reach.v1(log).await?;
            let agents: Vec<String> = client.subscribe(v1::ROOT).await?.read(|state| {
                let agents = state.root().map(|root| root.agents.as_slice()).unwrap_or_default();
                agents.iter().map(|agent| agent.provider.clone()).collect()
            });
            let uri = new_session(reach, args.agent.as_deref(), &agents)?;
            let create = v1::CreateSessionParams {
                session: uri.clone(),
                provider: None,
                model: args.model.clone(),
                working_directory: folder,
            };
            client.request(create).await?;
            Ok((AnyTalk::V1(talk::v1::Conversation::join(&client, &uri).await?), arriving))
        }
    }
}

/// The settings of a session that is to lie in a store.
fn in_store(store: &str) -> serde_json::Map<String, serde_json::Value> {
    [(grove_host::STORE_SETTING.to_owned(), store.into())].into_iter().collect()
}

/// The words of a prompt as one text, or the text on stdin. An empty prompt is refused.
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

/// The id of the model that is named by its id or name. An agent that lists none is given the name as it is.
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

/// The setting that makes an agent work in this mode.
fn chosen_mode(wanted: &str, talk: &AnyTalk) -> Result<serde_json::Map<String, serde_json::Value>, Failure> {
    let Settings { has_any, mode } = talk.settings();
    if !has_any {
        return Err(Failure::NotFound("the agent has no modes: leave out --mode".to_owned()));
    }
    // An agent that has not run yet says its modes later: it keeps a value that it knows, and ignores others.
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
fn new_session(reach: &Reach, wanted: Option<&str>, agents: &[String]) -> Result<String, Failure> {
    let agent = match wanted {
        Some(wanted) if agents.iter().any(|agent| agent == wanted) => wanted,
        Some(wanted) => unknown_agent(reach, wanted, agents)?,
        None => agents.first().map(String::as_str).context("this host has no agents")?,
    };
    Ok(format!("{agent}:/{}", new_id()?))
}

/// An agent that the host does not know. It looks again when a session asks for it, also where this command finds it.
fn unknown_agent<'a>(reach: &Reach, wanted: &'a str, agents: &[String]) -> Result<&'a str, Failure> {
    let none = || format!("there is no agent {wanted:?}: this host has {}", agents.join(", "));
    if reach.is_far() {
        // Which programs there are is that machine's to say, and its host names the one that is missing.
        return match catalog::known(wanted) {
            Some(_) => Ok(wanted),
            None => Err(Failure::NotFound(none())),
        };
    }
    let offers = offers(&reach.settings().agents.value, &search_path(), &environment());
    let offer = offers.into_iter().find(|offer| offer.provider == wanted).ok_or_else(|| Failure::NotFound(none()))?;
    match offer.state {
        State::BuiltIn | State::Installed { .. } => {
            let path = search_path();
            let path = path.to_str().context("PATH is not text: the host cannot be told where the agent is")?;
            data_folder::write_client_path(reach.data_dir(), path)?;
            Ok(wanted)
        }
        State::Missing { advice, .. } => Err(Failure::NotFound(format!(
            "{} is not installed: `{advice}` installs it, then try again",
            offer.display_name
        ))),
        State::Disabled => Err(Failure::NotFound(format!(
            "{wanted} is turned off by `enabled = false` in {}",
            reach.settings().config_file.display()
        ))),
    }
}

fn search_path() -> OsString {
    std::env::var_os("PATH").unwrap_or_default()
}

/// Waits until a session can be used.
pub(super) async fn ready(talk: &mut impl Talk) -> Result<(), Failure> {
    let mut screen = Screen::new();
    let mut ticks = tokio::time::interval(TICK);
    loop {
        match talk.beginning() {
            Beginning::Ready => return Ok(()),
            Beginning::Failed(why) => {
                let id = id_of(talk.uri());
                return Err(anyhow!(
                    "the session did not start: {why}\n`grove logs {id}` prints what the agent wrote, `grove agents` shows \
                     how it is run; `grove rm {id}` deletes the session"
                )
                .into());
            }
            Beginning::Creating => tokio::select! {
                changed = talk.changed() => changed.map_err(|why| closed(why, talk.uri()))?,
                _ = ticks.tick() => screen.spin("starting the agent")?,
            },
        }
    }
}

/// Does something, and waits until the host has taken it.
pub(super) async fn start(talk: &mut impl Talk, deed: Deed) -> Result<(), Failure> {
    match talk.act(deed).await?.await {
        Outcome::Confirmed(_) => Ok(()),
        Outcome::Rejected(reason) => Err(anyhow!("the host refused it: {reason}").into()),
        Outcome::Lost => Err(anyhow!(
            "the connection was lost before the host answered: `grove attach {}` shows whether it was done",
            id_of(talk.uri())
        )
        .into()),
    }
}
