//! Waiting for a summary, which takes as long as the model.

use std::future::Future;
use std::pin::pin;

use tokio::signal::unix::{SignalKind, signal};

use crate::chat_client::tree::TreeClient;
use crate::commands::{Failure, exit};
use crate::show::screen::ChatScreen;
use crate::show::style::yellow;

/// Waits for a request, and shows its progress. Ctrl-C aborts it; a second one leaves without waiting for the host.
pub(super) async fn wait_or_abort<T>(
    tree: &TreeClient,
    what: &str,
    request: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut screen = ChatScreen::new();
    screen.passing(Some(&format!("{what} (Ctrl-C discards it)")))?;
    let mut request = pin!(request);
    tokio::select! {
        // The request is sent before it can be aborted.
        biased;
        done = &mut request => return done,
        _ = interrupts.recv() => {}
    }
    screen.passing(Some("discarding the summary"))?;
    let given_up = async {
        match tree.abort().await?.aborted {
            true => Ok(None),
            // It was completed at the same moment.
            false => request.await.map(Some),
        }
    };
    tokio::select! {
        biased;
        given_up = given_up => match given_up? {
            Some(done) => Ok(done),
            None => {
                screen.line(yellow("discarded: nothing has changed"))?;
                Err(Failure::Exit(exit::LEFT))
            }
        },
        _ = interrupts.recv() => {
            screen.line(yellow("interrupted: the host may still complete it"))?;
            Err(Failure::Exit(exit::LEFT))
        }
    }
}
