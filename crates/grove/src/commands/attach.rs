//! `grove attach`

use std::io::{IsTerminal, stdin};

use super::resolve::tell_other_chats;
use super::{Failure, command_runtime};
use crate::chat_client::ChatClient;
use crate::chat_client::any::AnyChatClient;
use crate::chat_client::presence::PresenceLines;
use crate::cli::{AttachArgs, Common};
use crate::connect::{HostConnector, id_of};
use crate::follow::{FollowOptions, FollowUntil, OutputFormat, follow};
use crate::show::style::{bold, dim, sanitize};

/// The number of earlier turns that are shown.
const NEWEST: usize = 3;

pub(crate) fn run(common: &Common, args: &AttachArgs) -> Result<(), Failure> {
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
        if output == OutputFormat::Shown {
            let title = chat_client.read_view(|view| sanitize(view.title));
            anstream::eprintln!("{} {}", bold(title), dim(format!("session {}", id_of(chat_client.uri()))));
            tell_other_chats(&chat_client.other_chats());
            if stdin().is_terminal() {
                let help = "type a prompt and press Enter; Ctrl-C cancels a running turn, Ctrl-D leaves";
                anstream::eprintln!("{}", dim(help));
            }
        }
        let presence = match output {
            OutputFormat::Shown => chat_client.watch_presence(),
            OutputFormat::Json => PresenceLines::none(),
        };
        let options = FollowOptions { yes: false, envelopes, newest: NEWEST, presence };
        follow(&mut chat_client, FollowUntil::Left, options).await
    })
}
