//! `grove archive` and `grove read`: the archived and read marks of sessions.

use anyhow::anyhow;
use grove_client::{Ahp, Client, DispatchOutcome};
use grove_wire::ahp::{Action, SessionAction, SessionIsArchivedChanged, SessionIsReadChanged};
use serde_json::json;

use super::{Failure, command_runtime, print_line};
use crate::cli::{Common, MarkArgs, Protocol};
use crate::connect::{HostConnector, find_session, id_of};

/// A mark of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SessionFlag {
    Archived,
    Read,
}

impl SessionFlag {
    const fn key(self) -> &'static str {
        match self {
            SessionFlag::Archived => "archived",
            SessionFlag::Read => "read",
        }
    }

    fn action(self, is_set: bool) -> SessionAction {
        match self {
            SessionFlag::Archived => SessionAction::IsArchivedChanged(SessionIsArchivedChanged { is_archived: is_set }),
            SessionFlag::Read => SessionAction::IsReadChanged(SessionIsReadChanged { is_read: is_set }),
        }
    }

    const fn outcome(self, is_set: bool) -> &'static str {
        match (self, is_set) {
            (SessionFlag::Archived, true) => "archived",
            (SessionFlag::Archived, false) => "back from the archive:",
            (SessionFlag::Read, true) => "marked as read:",
            (SessionFlag::Read, false) => "marked as unread:",
        }
    }
}

pub(crate) fn run(common: &Common, args: &MarkArgs, mark: SessionFlag) -> Result<(), Failure> {
    if args.connect.protocol == Protocol::V1 {
        let key = mark.key();
        return Err(anyhow!("version 1 cannot mark sessions as {key}: leave out --protocol v1").into());
    }
    let connector = HostConnector::new(common, &args.connect)?;
    command_runtime()?.block_on(async {
        // Find all sessions before changing any.
        let mut found: Vec<(Client<Ahp>, String)> = Vec::new();
        for wanted in &args.sessions {
            let (at, wanted) = connector.at_session(wanted).await?;
            let client = at.ahp(None).await?;
            let uri = find_session(&client, &wanted).await?;
            found.push((client, uri));
        }
        for (client, uri) in found {
            let session = client.subscribe(&uri).await?;
            match session.dispatch(Action::Session(mark.action(!args.undo)))?.await {
                DispatchOutcome::Confirmed(_) => {}
                DispatchOutcome::Rejected(reason) => return Err(anyhow!("the host refused it: {reason}").into()),
                DispatchOutcome::Lost => {
                    return Err(anyhow!("the connection was lost before the host answered: run it again").into());
                }
            }
            match args.json {
                true => print_line(json!({"session": uri, mark.key(): !args.undo}))?,
                false => print_line(format!("{} {}", mark.outcome(!args.undo), id_of(&uri)))?,
            }
        }
        Ok(())
    })
}
