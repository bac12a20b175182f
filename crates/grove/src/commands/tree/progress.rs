//! Waiting for a summary, which takes as long as a model takes.

use std::future::Future;
use std::pin::pin;

use tokio::signal::unix::{SignalKind, signal};

use crate::chat_client::tree::TreeClient;
use crate::commands::{Failure, exit};
use crate::show::screen::ChatScreen;
use crate::show::style::yellow;

/// Waits until what was asked is done, and shows meanwhile what goes on. Ctrl-C gives it up; a second one does not wait
/// for the host to say so.
pub(super) async fn wait_or_abort<T>(
    tree: &TreeClient,
    what: &str,
    asked: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut screen = ChatScreen::new();
    screen.passing(Some(&format!("{what} (Ctrl-C gives it up)")))?;
    let mut asked = pin!(asked);
    tokio::select! {
        // It is on its way to the host before anything can give it up.
        biased;
        done = &mut asked => return done,
        _ = interrupts.recv() => {}
    }
    screen.passing(Some("giving it up"))?;
    let given_up = async {
        match tree.abort().await?.aborted {
            true => Ok(None),
            // It was done in the same moment.
            false => asked.await.map(Some),
        }
    };
    tokio::select! {
        biased;
        given_up = given_up => match given_up? {
            Some(done) => Ok(done),
            None => {
                screen.line(yellow("given up: nothing has changed"))?;
                Err(Failure::Exit(exit::LEFT))
            }
        },
        _ = interrupts.recv() => {
            screen.line(yellow("left: the host may still do it"))?;
            Err(Failure::Exit(exit::LEFT))
        }
    }
}
