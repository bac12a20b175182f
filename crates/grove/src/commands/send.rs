//! `grove send` and `grove cancel`

use anyhow::anyhow;

use super::run::{chosen_model, prompt, ready, start};
use super::{Failure, command_runtime, print_line};
use crate::chat_client::any::AnyChatClient;
use crate::chat_client::presence::PresenceLines;
use crate::chat_client::{ChatClient, ChatCommand};
use crate::cli::{CancelArgs, Common, SendArgs};
use crate::connect::{HostConnector, id_of, new_id};
use crate::follow::{FollowOptions, FollowUntil, OutputFormat, follow};
use crate::hosts::Destination;
use crate::show::style::sanitize;

pub(crate) fn run(common: &Common, args: &SendArgs) -> Result<(), Failure> {
    let text = prompt(&args.prompt)?;
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let output = OutputFormat::json(args.json);
        let (mut chat_client, envelopes) = AnyChatClient::join(
            &connector,
            args.connect.protocol,
            &args.session.reference,
            args.chat.name.as_deref(),
            output,
        )
        .await?;
        if let Some(at) = chat_client.moved_to() {
            let (host, id) = (Destination::of(connector.data_dir(), &at)?, sanitize(id_of(&at.session)));
            return Err(match &host {
                Destination::Known(name) => {
                    anyhow!("this session was moved to {name}: `grove send {name}/{id} TEXT` continues it")
                }
                Destination::Unknown { .. } => anyhow!("this session was moved to {host}: continue {id} there"),
            }
            .into());
        }
        ready(&mut chat_client).await?;
        let turn = new_id()?;
        let short = id_of(chat_client.uri()).to_owned();
        if args.queue {
            start(&mut chat_client, ChatCommand::Queue { id: turn.clone(), text }).await?;
        } else {
            if chat_client.read_view(|view| view.active.is_some()) {
                return Err(anyhow!(
                    "a turn is running in {short}: --queue sends the prompt after it, `grove cancel {short}` cancels it"
                )
                .into());
            }
            let model = match &args.model {
                Some(wanted) => Some(chosen_model(wanted, &chat_client.models().await?)?),
                None => None,
            };
            start(&mut chat_client, ChatCommand::Start { turn: turn.clone(), text, model }).await?;
        }
        if args.wait {
            return follow(
                &mut chat_client,
                FollowUntil::Turn(turn),
                FollowOptions { yes: args.yes, envelopes, newest: 0, presence: PresenceLines::none() },
            )
            .await;
        }
        if args.json {
            return Ok(print_line(
                serde_json::json!({"session": chat_client.uri(), "turnId": turn, "queued": args.queue}),
            )?);
        }
        let what = if args.queue { "queued" } else { "sent" };
        Ok(print_line(format!("{what}: `grove attach {short}` shows the answer"))?)
    })
}

pub(crate) fn cancel(common: &Common, args: &CancelArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let (mut chat_client, _) = AnyChatClient::join(
            &connector,
            args.connect.protocol,
            &args.session.reference,
            args.chat.name.as_deref(),
            OutputFormat::Shown,
        )
        .await?;
        let active = chat_client.read_view(|view| view.active.as_ref().map(|turn| turn.id.to_owned()));
        let short = id_of(chat_client.uri()).to_owned();
        let nothing = || Failure::NotFound(format!("no turn is running in {short}: there is nothing to cancel"));
        let turn = active.ok_or_else(nothing)?;
        start(&mut chat_client, ChatCommand::Cancel { turn: turn.clone() }).await?;
        match args.json {
            true => {
                Ok(print_line(serde_json::json!({"session": chat_client.uri(), "turnId": turn, "cancelled": true}))?)
            }
            false => Ok(print_line(format!("cancelled the turn in {short}"))?),
        }
    })
}
