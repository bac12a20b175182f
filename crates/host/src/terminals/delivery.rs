//! A subscription to a terminal.

use std::sync::Arc;
use std::time::Duration;

use grove_wire::ahp::{
    TerminalAction, TerminalClaimed, TerminalCleared, TerminalExited, TerminalLifecycle, TerminalResized,
    TerminalState, TerminalTitleChanged,
};
use tokio::sync::Semaphore;

use super::screen::{Cursor, ScreenAction, ScreenRead};
use super::{ClientTerminal, ClientTerminalError, ClientTerminals, frame};
use crate::Host;
use crate::sequencer::{ConnectionId, DirectReply};
use crate::subscriber::{DisconnectReason, Queue};

/// The messages of a subscription that wait to be written. The next one is made when one of them is.
const UNWRITTEN: usize = 4;
/// The time in which output is gathered after a message.
const GATHERING: Duration = Duration::from_millis(5);

/// The state with which a subscription starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriptionStart {
    /// The client gets a snapshot in its answer.
    Snapshot,
    /// The client has an older state, which actions replace.
    Actions,
}

/// A subscription to a terminal, which must run ([`TerminalSubscription::run`]).
pub struct TerminalSubscription {
    terminal: Arc<ClientTerminal>,
    host: Host,
    queue: Arc<Queue>,
    connection: ConnectionId,
    subscriber: u64,
    cursor: Cursor,
    /// Actions that bring the client's older state up to date.
    first: Vec<ScreenAction>,
}

impl std::fmt::Debug for TerminalSubscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TerminalSubscription").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl ClientTerminals {
    /// Subscribes a connection to a terminal. Returns its state, after which everything is sent.
    pub fn subscribe(
        &self,
        host: &Host,
        uri: &str,
        (connection, queue): (ConnectionId, Arc<Queue>),
        start: SubscriptionStart,
    ) -> Result<(TerminalState, TerminalSubscription), ClientTerminalError> {
        let terminal = self.get(uri)?;
        let (state, (subscriber, cursor)) = {
            let mut view = terminal.view();
            (view.state(&terminal.cwd), view.screen.subscribe(connection))
        };
        let first = match start {
            SubscriptionStart::Snapshot => Vec::new(),
            SubscriptionStart::Actions => replacing(&state),
        };
        let host = host.clone();
        Ok((state, TerminalSubscription { terminal, host, queue, connection, subscriber, cursor, first }))
    }
}

/// The actions that lead from any state of a terminal to this one.
fn replacing(state: &TerminalState) -> Vec<ScreenAction> {
    let text = state.content.iter().filter_map(|part| match part {
        grove_wire::ahp::TerminalContentPart::Unclassified(part) => Some(part.value.clone()),
        _ => None,
    });
    let resized = TerminalResized { cols: state.cols.unwrap_or(0), rows: state.rows.unwrap_or(0) };
    let exited = match state.lifecycle {
        TerminalLifecycle::Running => None,
        TerminalLifecycle::Exited { exit_code } => Some(TerminalAction::Exited(TerminalExited { exit_code })),
    };
    let cleared = ScreenAction::of_host(&TerminalAction::Cleared(TerminalCleared {}));
    let rest = [
        Some(TerminalAction::Resized(resized)),
        Some(TerminalAction::TitleChanged(TerminalTitleChanged { title: state.title.clone() })),
        Some(TerminalAction::Claimed(TerminalClaimed { claim: state.claim.clone() })),
        exited,
    ];
    let rest = rest.into_iter().flatten().filter_map(|action| ScreenAction::of_host(&action));
    cleared.into_iter().chain(text.filter_map(ScreenAction::of_text)).chain(rest).collect()
}

impl TerminalSubscription {
    /// Sends what happens on the terminal, until the terminal is disposed of or the host stops. Dropping it ends it.
    pub async fn run(mut self, channel: String) {
        let room = Arc::new(Semaphore::new(UNWRITTEN));
        let mut grown = self.terminal.grown.subscribe();
        let mut first = std::mem::take(&mut self.first).into_iter();
        loop {
            // A client that does not read takes no message away from the terminal, so its command waits.
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let action = match first.next() {
                Some(action) => action,
                None => loop {
                    let read = self.terminal.view().screen.read(self.subscriber, self.connection, &mut self.cursor);
                    match read {
                        ScreenRead::Action(action) => break action,
                        ScreenRead::Behind => return self.queue.close(DisconnectReason::Behind),
                        ScreenRead::Nothing => {}
                    }
                    let is_over = self.terminal.view().is_over;
                    if is_over || grown.changed().await.is_err() {
                        return;
                    }
                },
            };
            self.terminal.read.notify_one();
            let channel = channel.clone();
            let message = DirectReply {
                connection: self.connection,
                frame: Box::new(move |seq| frame(&channel, &action, seq)),
                answer: None,
                permit: Some(permit),
            };
            if self.host.sequencer().send_direct(message).await.is_err() {
                return;
            }
            self.host.env().clock.sleep(GATHERING).await;
        }
    }
}

impl Drop for TerminalSubscription {
    fn drop(&mut self) {
        self.terminal.view().screen.unsubscribe(self.subscriber);
        self.terminal.read.notify_one();
    }
}
