//! `grove show`

use std::fmt::Display;
use std::io::{BufWriter, Write};
use std::num::NonZeroU32;

use grove_history::{Branches, SessionLocation, TurnLookup, find_turn};
use grove_transcript::export::{Heading, Json, SessionOutline, TurnOutline, TurnWriter};
use grove_transcript::{ContextBlock, TranscriptWorkspace};
use grove_wire::x_grove::PermissionsParams;
use serde_json::json;

use super::resolve::{self, ResolvedSession};
use super::{Failure, command_runtime, print_line};
use crate::chat_client::ChatClient;
use crate::cli::{Common, ShowArgs};
use crate::connect::HostConnector;
use crate::import_export::running_turn::{is_running, running_turn};
use crate::import_export::transcript::Transcript;
use crate::show::transcript::{self, Length};

pub(crate) fn run(common: &Common, args: &ShowArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    let runtime = command_runtime()?;
    let resolved = runtime.block_on(async {
        let resolved =
            resolve::find(&connector, &args.session, args.chat.name.as_deref(), args.connect.protocol).await?;
        if !args.json {
            resolve::name_other_chats(&resolved).await?;
        }
        Ok::<_, Failure>(resolved)
    })?;
    // A turn alone says nothing of the whole session, so the file is not read to its end.
    if let (ResolvedSession::Elsewhere(location), Some(wanted), false, false) =
        (&resolved, args.turn, args.context, args.json)
    {
        return show_turn_of(location, wanted, args);
    }
    let (opened, allow_all) = runtime.block_on(open(&resolved))?;
    if let Some(wanted) = args.turn
        && wanted.get() > shown_turns(&opened, args)
    {
        return Err(no_turn(wanted, shown_turns(&opened, args)));
    }
    if opened.session().turns == 0 && !args.json {
        let id = &opened.session().source_id;
        anstream::eprintln!("the session is empty: `grove send {id} PROMPT` starts a turn");
    }
    match (args.context, args.json) {
        (false, false) => show(&opened, allow_all, args),
        (false, true) => show_json(&opened, allow_all, args),
        (true, false) => show_context(&opened, args),
        (true, true) => show_context_json(&opened, args),
    }
}

/// Opens a session with its running turn, and returns whether it allows everything.
async fn open(resolved: &ResolvedSession) -> Result<(Transcript, Option<bool>), Failure> {
    let opened = resolve::open(resolved).await?;
    let ResolvedSession::OfHost(tree) = resolved else { return Ok((opened, None)) };
    let allow_all = tree.permissions(&PermissionsParams::default()).await?.allow_all;
    // The log has a turn when it is over. The look at the log came first, so the turn may be in it by now.
    let chat_client = tree.chat_client().await?;
    let running = chat_client.read_view(|view| view.active.as_ref().map(running_turn));
    let opened = match running {
        Some(turn) => opened.with_running(turn)?,
        None => opened,
    };
    Ok((opened, Some(allow_all)))
}

/// Shows one turn of another tool's session.
fn show_turn_of(location: &SessionLocation, wanted: NonZeroU32, args: &ShowArgs) -> Result<(), Failure> {
    let branches = if args.branches { Branches::All } else { Branches::Active };
    match find_turn(location, wanted, branches)? {
        TurnLookup::Found(turn) => {
            let mut out = BufWriter::new(anstream::stdout().lock());
            for line in transcript::turn(&TurnOutline::of(&turn), &wanted.to_string(), length(args)) {
                writeln!(out, "{line}")?;
            }
            Ok(out.flush()?)
        }
        TurnLookup::Missing { turns } => Err(no_turn(wanted, turns)),
    }
}

fn no_turn(wanted: NonZeroU32, turns: impl Display) -> Failure {
    Failure::NotFound(format!("there is no turn {wanted}: the session has {turns}"))
}

/// The number of turns that are numbered.
fn shown_turns(opened: &Transcript, args: &ShowArgs) -> u32 {
    let all = opened.session().turns;
    if args.branches { all } else { all.saturating_sub(opened.abandoned()) }
}

/// The heading, which names what is left out and what is allowed.
fn heading<'a>(opened: &'a Transcript, allow_all: Option<bool>, args: &ShowArgs) -> Heading<'a> {
    let abandoned = if args.branches { 0 } else { opened.abandoned() };
    Heading { abandoned, allow_all, ..opened.heading() }
}

/// The selected turns, with their numbers.
fn each(
    opened: &Transcript,
    args: &ShowArgs,
    take: &mut dyn FnMut(u32, grove_transcript::TranscriptTurn) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut number = 0;
    let mut count = |turn| {
        number += 1;
        if args.turn.is_none_or(|wanted| wanted.get() == number) { take(number, turn) } else { Ok(()) }
    };
    if args.branches { opened.each_of_all(&mut count) } else { opened.each(&mut count) }
}

fn length(args: &ShowArgs) -> Length {
    if args.turn.is_some() { Length::Whole } else { Length::Short }
}

fn show(opened: &Transcript, allow_all: Option<bool>, args: &ShowArgs) -> Result<(), Failure> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    if args.turn.is_none() {
        for line in transcript::session(&SessionOutline::of(heading(opened, allow_all, args))) {
            writeln!(out, "{line}")?;
        }
    }
    each(opened, args, &mut |number, turn| {
        let mut outline = TurnOutline::of(&turn);
        if is_running(&turn) {
            outline.state = Some(format!("running: `grove attach {}` shows it live", opened.session().source_id));
        }
        for line in transcript::turn(&outline, &number.to_string(), length(args)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    })?;
    Ok(out.flush()?)
}

fn show_json(opened: &Transcript, allow_all: Option<bool>, args: &ShowArgs) -> Result<(), Failure> {
    let mut json = Json::begin(BufWriter::new(std::io::stdout().lock()), heading(opened, allow_all, args))?;
    each(opened, args, &mut |_, turn| Ok(json.turn(&turn)?))?;
    Ok(json.finish()?)
}

fn show_context(opened: &Transcript, args: &ShowArgs) -> Result<(), Failure> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    for line in transcript::facts(&workspace_facts(&opened.session().workspace)) {
        writeln!(out, "{line}")?;
    }
    each(opened, args, &mut |number, turn| {
        for line in transcript::context(&turn.context, number, length(args)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    })?;
    Ok(out.flush()?)
}

fn show_context_json(opened: &Transcript, args: &ShowArgs) -> Result<(), Failure> {
    let mut turns: Vec<(u32, Vec<ContextBlock>)> = Vec::new();
    each(opened, args, &mut |number, turn| {
        turns.push((number, turn.context));
        Ok(())
    })?;
    let turns = turns.into_iter().map(|(number, blocks)| json!({"turn": number, "blocks": blocks}));
    let turns: Vec<_> = turns.collect();
    Ok(print_line(json!({"workspace": opened.session().workspace, "turns": turns}))?)
}

/// The known facts about the session's workspace.
fn workspace_facts(workspace: &TranscriptWorkspace) -> Vec<(&'static str, String)> {
    let folders = workspace.folders.iter().map(|folder| Some(("Folder", folder.shown().to_owned())));
    let rest = [
        ("Repository", &workspace.repository),
        ("Branch", &workspace.branch),
        ("Commit", &workspace.commit),
        ("System", &workspace.system),
        ("Shell", &workspace.shell),
    ];
    let rest = rest.into_iter().map(|(name, fact)| Some((name, fact.clone()?)));
    folders.chain(rest).flatten().collect()
}
