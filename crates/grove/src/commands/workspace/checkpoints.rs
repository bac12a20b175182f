//! `grove checkpoints`

use grove_wire::x_grove::Method;
use grove_wire::x_grove::workspace::{self, CheckpointInfo, CheckpointParams, CheckpointResult, CheckpointsResult};
use serde_json::json;

use super::print;
use crate::chat_client::tree::TreeClient;
use crate::cli::{CheckpointsArgs, Common};
use crate::commands::{Failure, command_runtime, print_line};
use crate::connect::{HostConnector, id_of};
use crate::show::style::sanitize;
use crate::show::table::lines;

pub(crate) fn run(common: &Common, args: &CheckpointsArgs) -> Result<(), Failure> {
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        let session = TreeClient::of_session(&connector, &args.session.reference, args.connect.protocol).await?;
        if let Some(number) = args.number {
            let method = Method::Workspace(workspace::WorkspaceMethod::Checkpoint);
            let found: CheckpointResult = session.ask(method, &CheckpointParams { number }).await?;
            return match args.json {
                true => Ok(print_line(json!({"session": session.session(), "number": number, "text": found.text}))?),
                false => print(found.text.as_bytes()),
            };
        }
        let listed: CheckpointsResult =
            session.ask(Method::Workspace(workspace::WorkspaceMethod::Checkpoints), &()).await?;
        if args.json {
            return Ok(print_line(json!({"session": session.session(), "checkpoints": listed.checkpoints}))?);
        }
        if listed.checkpoints.is_empty() {
            let id = id_of(session.session());
            anstream::eprintln!("no checkpoints in {id}: a compaction of the conversation creates one");
        } else {
            let head = ["NUMBER", "TITLE", "FILE"].map(str::to_owned).to_vec();
            let row = |one: &CheckpointInfo| vec![one.number.to_string(), sanitize(&one.title), sanitize(&one.file)];
            let rows: Vec<_> = std::iter::once(head).chain(listed.checkpoints.iter().map(row)).collect();
            print_line(lines(&rows).join("\n"))?;
        }
        Ok(())
    })
}
