//! `grove checkpoints`

use grove_wire::x_grove::Method;
use grove_wire::x_grove::workspace::{self, CheckpointInfo, CheckpointParams, CheckpointResult, CheckpointsResult};
use serde_json::json;

use super::print;
use crate::cli::{CheckpointsArgs, Common};
use crate::commands::{Failure, errand, say};
use crate::connect::{Reach, id_of};
use crate::show::style::harmless;
use crate::show::table::lines;
use crate::talk::tree::Tree;

pub(crate) fn run(common: &Common, args: &CheckpointsArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let session = Tree::of_session(&reach, &args.session, args.connect.protocol).await?;
        if let Some(number) = args.number {
            let method = Method::Workspace(workspace::Method::Checkpoint);
            let found: CheckpointResult = session.ask(method, &CheckpointParams { number }).await?;
            return match args.json {
                true => Ok(say(json!({"session": session.session(), "number": number, "text": found.text}))?),
                false => print(found.text.as_bytes()),
            };
        }
        let listed: CheckpointsResult = session.ask(Method::Workspace(workspace::Method::Checkpoints), &()).await?;
        if args.json {
            return Ok(say(json!({"session": session.session(), "checkpoints": listed.checkpoints}))?);
        }
        if listed.checkpoints.is_empty() {
            let id = id_of(session.session());
            anstream::eprintln!("no checkpoints in {id}: its agent makes them when it compacts the conversation");
        } else {
            let head = ["NUMBER", "TITLE", "FILE"].map(str::to_owned).to_vec();
            let row = |one: &CheckpointInfo| vec![one.number.to_string(), harmless(&one.title), harmless(&one.file)];
            let rows: Vec<_> = std::iter::once(head).chain(listed.checkpoints.iter().map(row)).collect();
            say(lines(&rows).join("\n"))?;
        }
        Ok(())
    })
}
