//! `grove attach`

use std::io::{IsTerminal, stdin};

use super::meant::tell_other_chats;
use super::{Failure, errand};
use crate::cli::{AttachArgs, Common};
use crate::connect::{Reach, id_of};
use crate::follow::{Manner, Output, Until, follow};
use crate::show::style::{bold, dim, harmless};
use crate::talk::Talk;
use crate::talk::any::AnyTalk;

/// How many of the turns that were there before are shown.
const NEWEST: usize = 3;

pub(crate) fn run(common: &Common, args: &AttachArgs) -> Result<(), Failure> {
    let reach = Reach::new(common, &args.connect)?;
    errand()?.block_on(async {
        let output = Output::json(args.json);
        let (mut talk, envelopes) =
            AnyTalk::join(&reach, args.connect.protocol, &args.session, args.chat.as_deref(), output).await?;
        if output == Output::Shown {
            let title = talk.look(|view| harmless(view.title));
            anstream::eprintln!("{} {}", bold(title), dim(format!("session {}", id_of(talk.uri()))));
            tell_other_chats(&talk.other_chats());
            if stdin().is_terminal() {
                let help = "type a prompt and press Enter; Ctrl-C cancels a running turn, Ctrl-D leaves";
                anstream::eprintln!("{}", dim(help));
            }
        }
        follow(&mut talk, Until::Left, Manner { yes: false, envelopes, newest: NEWEST }).await
    })
}
