//! `grove send` and `grove cancel`

use anyhow::anyhow;

use super::run::{chosen_model, prompt, ready, start};
use super::{Failure, errand, say};
use crate::cli::{CancelArgs, Common, SendArgs};
use crate::connect::{Reach, id_of, new_id};
use crate::follow::{Manner, Output, Until, follow};
use crate::hosts::Destination;
use crate::show::style::harmless;
use crate::talk::any::AnyTalk;
use crate::talk::{Deed, Talk};

pub(crate) fn run(common: &Common, args: &SendArgs) -> Result<(), Failure> {
    let text = prompt(&args.prompt)?;
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let output = Output::json(args.json);
        let (mut talk, envelopes) =
            AnyTalk::join(&reach, args.connect.protocol, &args.session, args.chat.as_deref(), output).await?;
        if let Some(at) = talk.moved_to() {
            let (host, id) = (Destination::of(reach.data_dir(), &at)?, harmless(id_of(&at.session)));
            return Err(match &host {
                Destination::Known(name) => {
                    anyhow!("this session was moved to {name}: `grove send {name}/{id} TEXT` goes on with it")
                }
                Destination::Unknown { .. } => anyhow!("this session was moved to {host}: go on with {id} there"),
            }
            .into());
        }
        ready(&mut talk).await?;
        let turn = new_id()?;
        let short = id_of(talk.uri()).to_owned();
        if args.queue {
            start(&mut talk, Deed::Queue { id: turn.clone(), text }).await?;
        } else {
            if talk.look(|view| view.active.is_some()) {
                return Err(anyhow!(
                    "a turn is running in {short}: --queue sends it when that is over, `grove cancel {short}` ends it"
                )
                .into());
            }
            let model = match &args.model {
                Some(wanted) => Some(chosen_model(wanted, &talk.models().await?)?),
                None => None,
            };
            start(&mut talk, Deed::Start { turn: turn.clone(), text, model }).await?;
        }
        if args.wait {
            return follow(&mut talk, Until::Turn(turn), Manner { yes: args.yes, envelopes, newest: 0 }).await;
        }
        if args.json {
            return Ok(say(serde_json::json!({"session": talk.uri(), "turnId": turn, "queued": args.queue}))?);
        }
        let what = if args.queue { "queued" } else { "sent" };
        Ok(say(format!("{what}: `grove attach {short}` shows what comes of it"))?)
    })
}

pub(crate) fn cancel(common: &Common, args: &CancelArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let (mut talk, _) =
            AnyTalk::join(&reach, args.connect.protocol, &args.session, args.chat.as_deref(), Output::Shown).await?;
        let active = talk.look(|view| view.active.as_ref().map(|turn| turn.id.to_owned()));
        let short = id_of(talk.uri()).to_owned();
        let nothing = || Failure::NotFound(format!("no turn is running in {short}: there is nothing to cancel"));
        let turn = active.ok_or_else(nothing)?;
        start(&mut talk, Deed::Cancel { turn: turn.clone() }).await?;
        match args.json {
            true => Ok(say(serde_json::json!({"session": talk.uri(), "turnId": turn, "cancelled": true}))?),
            false => Ok(say(format!("cancelled the turn in {short}"))?),
        }
    })
}
