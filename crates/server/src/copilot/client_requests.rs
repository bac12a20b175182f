//! The requests of the endpoint to the clients of a session: forms and commands.

use std::collections::{HashMap, VecDeque};

use grove_host::sequencer::ConnectionId;
use grove_wire::copilot::methods::{CommandDeclaration, ElicitationResponse};
use tokio::sync::oneshot;

/// The forms of a session that may wait for a person, and its commands that may wait for a client. More are refused.
pub const MAX_CLIENT_REQUESTS: usize = 64;
/// The commands of a session that may be queued. More are refused.
pub const MAX_QUEUED_COMMANDS: usize = 64;

/// The pending requests of a session. They end with its feed.
#[derive(Default)]
pub(super) struct ClientRequests {
    forms: HashMap<String, oneshot::Sender<ElicitationResponse>>,
    commands: HashMap<String, PendingCommand>,
    queue: VecDeque<QueuedCommand>,
    /// The queued command that clients were asked about.
    current: Option<QueuedCommand>,
}

/// A command that a client runs.
struct PendingCommand {
    connection: ConnectionId,
    done: oneshot::Sender<Option<String>>,
}

/// A command in the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueuedCommand {
    pub(super) id: String,
    pub(super) command: String,
}

/// There are too many requests of this kind.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("too many requests to the clients of this session are pending ({0}): wait for answers, then try again")]
pub(super) struct TooManyRequests(usize);

impl ClientRequests {
    /// Notes a form. The receiver gets its values.
    pub(super) fn begin_form(&mut self, id: &str) -> Result<oneshot::Receiver<ElicitationResponse>, TooManyRequests> {
        // A caller that is gone waits for nothing.
        self.forms.retain(|_, form| !form.is_closed());
        if self.forms.len() >= MAX_CLIENT_REQUESTS {
            return Err(TooManyRequests(MAX_CLIENT_REQUESTS));
        }
        let (answer, answered) = oneshot::channel();
        self.forms.insert(id.to_owned(), answer);
        Ok(answered)
    }

    /// Answers a form. False if nobody waits for it: the first answer counts.
    pub(super) fn answer_form(&mut self, id: &str, response: ElicitationResponse) -> bool {
        self.forms.remove(id).is_some_and(|form| form.send(response).is_ok())
    }

    /// Notes a command that a client runs. The receiver gets the reason of a failure.
    pub(super) fn begin_command(
        &mut self,
        id: &str,
        connection: ConnectionId,
    ) -> Result<oneshot::Receiver<Option<String>>, TooManyRequests> {
        self.commands.retain(|_, command| !command.done.is_closed());
        if self.commands.len() >= MAX_CLIENT_REQUESTS {
            return Err(TooManyRequests(MAX_CLIENT_REQUESTS));
        }
        let (done, ended) = oneshot::channel();
        self.commands.insert(id.to_owned(), PendingCommand { connection, done });
        Ok(ended)
    }

    pub(super) fn end_command(&mut self, id: &str, error: Option<String>) -> bool {
        self.commands.remove(id).is_some_and(|command| command.done.send(error).is_ok())
    }

    /// Notes that a client has left. Without a client that shows forms, nobody fills them in.
    pub(super) fn client_left(&mut self, connection: ConnectionId, shows_forms: bool) {
        self.commands.retain(|_, command| command.connection != connection);
        if !shows_forms {
            self.forms.clear();
        }
    }

    /// Queues a command. Returns it if clients are to be asked about it now.
    pub(super) fn enqueue(&mut self, command: QueuedCommand) -> Result<Option<QueuedCommand>, TooManyRequests> {
        if self.current.is_none() {
            self.current = Some(command.clone());
            return Ok(Some(command));
        }
        if self.queue.len() >= MAX_QUEUED_COMMANDS {
            return Err(TooManyRequests(MAX_QUEUED_COMMANDS));
        }
        self.queue.push_back(command);
        Ok(None)
    }

    /// Ends the current command, if it is this one. The next one takes its place, unless the rest waits.
    pub(super) fn end_current(&mut self, id: &str, stops: bool) -> Option<(QueuedCommand, Option<QueuedCommand>)> {
        let ended = self.current.take_if(|current| current.id == id)?;
        if !stops {
            self.current = self.queue.pop_front();
        }
        Some((ended, self.current.clone()))
    }

    /// The commands that wait for their turn.
    pub(super) fn queued(&self) -> impl Iterator<Item = &QueuedCommand> {
        self.queue.iter()
    }

    /// Removes the newest queued command.
    pub(super) fn remove_newest(&mut self) -> bool {
        self.queue.pop_back().is_some()
    }

    pub(super) fn remove_queued(&mut self, id: &str) -> bool {
        let before = self.queue.len();
        self.queue.retain(|command| command.id != id);
        self.queue.len() < before
    }

    pub(super) fn clear_queue(&mut self) {
        self.queue.clear();
    }
}

/// The commands of several clients together, each name once.
pub(super) fn merged<'a>(of_clients: impl Iterator<Item = &'a CommandDeclaration>) -> Vec<CommandDeclaration> {
    let mut merged: Vec<CommandDeclaration> = Vec::new();
    for command in of_clients {
        if !merged.iter().any(|known| known.name == command.name) {
            merged.push(command.clone());
        }
    }
    merged.sort_by(|a, b| a.name.cmp(&b.name));
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(id: &str) -> QueuedCommand {
        QueuedCommand { id: id.to_owned(), command: format!("/{id}") }
    }

    #[test]
    fn queued_commands_are_asked_about_one_after_another_until_a_client_stops_them() {
        let mut requests = ClientRequests::default();
        assert_eq!(requests.enqueue(command("a")).unwrap(), Some(command("a")));
        assert_eq!(requests.enqueue(command("b")).unwrap(), None);
        assert_eq!(requests.enqueue(command("c")).unwrap(), None);
        assert_eq!(requests.end_current("b", false), None);
        assert_eq!(requests.end_current("a", false), Some((command("a"), Some(command("b")))));
        assert_eq!(requests.queued().collect::<Vec<_>>(), [&command("c")]);
        assert_eq!(requests.end_current("b", true), Some((command("b"), None)));
        assert!(requests.remove_newest() && !requests.remove_newest());
    }

    #[test]
    fn a_full_queue_refuses_and_a_caller_that_is_gone_leaves_room() {
        let mut requests = ClientRequests::default();
        for number in 0..=MAX_QUEUED_COMMANDS {
            requests.enqueue(command(&number.to_string())).unwrap();
        }
        assert!(requests.enqueue(command("one more")).is_err());
        let waiting: Vec<_> = (0..MAX_CLIENT_REQUESTS).map(|n| requests.begin_form(&n.to_string()).unwrap()).collect();
        assert!(requests.begin_form("one more").is_err());
        drop(waiting);
        assert!(requests.begin_form("one more").is_ok());
    }

    #[tokio::test]
    async fn the_first_answer_counts_and_none_comes_without_a_client() {
        let mut requests = ClientRequests::default();
        let answered = requests.begin_form("form").unwrap();
        assert!(requests.answer_form("form", ElicitationResponse::default()));
        assert!(!requests.answer_form("form", ElicitationResponse::default()));
        assert!(answered.await.is_ok());
        let forgotten = requests.begin_form("form").unwrap();
        let ended = requests.begin_command("command", ConnectionId(1)).unwrap();
        requests.client_left(ConnectionId(1), false);
        assert!(forgotten.await.is_err() && ended.await.is_err());
    }
}
