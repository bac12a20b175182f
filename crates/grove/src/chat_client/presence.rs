//! The clients of a session: who is there, who comes and who goes, in lines for people.

use std::collections::BTreeMap;

use grove_client::{Client, Dialect, RequestError};
use grove_core::Answerer;
use grove_wire::x_grove::Method;
use grove_wire::x_grove::presence::{
    AttachedClient, AttachedKind, PRESENCE_CHANGED, PresenceNotice, PresenceParams, PresenceResult,
};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::mpsc;

/// Lines that may wait to be shown; with more, the next ones wait.
const WAITING_LINES: usize = 16;
/// The clients that one line names.
const NAMED: usize = 5;

/// A client in words: its token with its name, or the agent's process that it is.
pub(crate) fn label(client: &AttachedClient) -> String {
    let party = Answerer::client(&client.token, client.name.as_deref());
    match client.kind {
        AttachedKind::Client | AttachedKind::Hub => party.to_string(),
        AttachedKind::Agent => format!("{party}, an agent"),
    }
}

/// Names with a bound, as a list in words.
pub(crate) fn named(mut names: Vec<String>, more: usize) -> String {
    let more = more + names.len().saturating_sub(NAMED);
    names.truncate(NAMED);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// The lines about a session's other clients.
#[derive(Debug)]
pub(crate) struct PresenceLines(Option<mpsc::Receiver<String>>);

impl PresenceLines {
    /// No lines.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    /// The lines about a session to which a client is subscribed. A host that is too old has none.
    pub(crate) fn watch<D: Dialect>(client: &Client<D>, session: &str) -> Self {
        if !client.offers(Method::Presence) {
            return Self::none();
        }
        let (sender, lines) = mpsc::channel(WAITING_LINES);
        let watcher =
            PresenceWatcher { client: client.clone(), session: session.to_owned(), known: None, lines: sender };
        tokio::spawn(watcher.run());
        Self(Some(lines))
    }

    /// The next line; waits for ever if there is none.
    pub(crate) async fn next(&mut self) -> String {
        match &mut self.0 {
            Some(lines) => match lines.recv().await {
                Some(line) => line,
                None => {
                    self.0 = None;
                    std::future::pending().await
                }
            },
            None => std::future::pending().await,
        }
    }
}

struct PresenceWatcher<D: Dialect> {
    client: Client<D>,
    session: String,
    /// The other clients in the last list, by their ids; none before the first list.
    known: Option<BTreeMap<String, String>>,
    lines: mpsc::Sender<String>,
}

impl<D: Dialect> PresenceWatcher<D> {
    /// Watches until the client closes or nobody reads the lines.
    async fn run(mut self) {
        let (mut notices, mut status) = (self.client.notifications(), self.client.status());
        let params = PresenceParams { channel: self.session.clone(), watch: Some(true) };
        loop {
            if self.client.connected().await.is_err() {
                return;
            }
            status.mark_unchanged();
            let method = Method::Presence.as_str();
            match self.client.request_raw::<PresenceResult>(method, &params).await {
                Ok(list) if !self.tell(&list).await => return,
                // There is nothing to watch.
                Err(RequestError::Refused { .. } | RequestError::NotUnderstood { .. }) => return,
                // A connection that breaks now is made again, which changes the status.
                Ok(_) | Err(_) => {}
            }
            loop {
                tokio::select! {
                    notice = notices.recv() => {
                        let notice = match notice {
                            Ok(notice) => notice,
                            // Each notice has the whole list, so the next one makes up for missed ones.
                            Err(RecvError::Lagged(_)) => continue,
                            Err(RecvError::Closed) => return,
                        };
                        if notice.method == PRESENCE_CHANGED
                            && let Ok(PresenceNotice { channel, presence }) = serde_json::from_str(notice.params.get())
                            && channel == self.session
                            && !self.tell(&presence).await
                        {
                            return;
                        }
                    }
                    changed = status.changed() => match changed {
                        // After reconnecting, the host has to be asked again.
                        Ok(()) => break,
                        Err(_) => return,
                    }
                }
            }
        }
    }

    /// Tells the difference to the last list. Returns false if nobody reads it.
    async fn tell(&mut self, list: &PresenceResult) -> bool {
        let own = self.client.client_id();
        let others = list.clients.iter().filter(|client| client.client_id != own && client.kind != AttachedKind::Hub);
        let others: BTreeMap<_, _> = others.map(|client| (client.client_id.clone(), label(client))).collect();
        let lines = match &self.known {
            None if others.is_empty() => Vec::new(),
            None => vec![format!("also here: {}", named(others.values().cloned().collect(), list.more))],
            // Beyond the bound of a list, clients enter and leave it without coming or going.
            Some(_) if list.more > 0 => Vec::new(),
            Some(known) => {
                let news = |these: &BTreeMap<String, String>, those: &BTreeMap<String, String>| -> Vec<String> {
                    these.iter().filter(|(id, _)| !those.contains_key(*id)).map(|(_, label)| label.clone()).collect()
                };
                let (came, left) = (news(&others, known), news(known, &others));
                let line =
                    |names: Vec<String>, what: &str| (!names.is_empty()).then(|| format!("{} {what}", named(names, 0)));
                [line(came, "is here now"), line(left, "has left")].into_iter().flatten().collect()
            }
        };
        self.known = Some(others);
        for line in lines {
            if self.lines.send(line).await.is_err() {
                return false;
            }
        }
        !self.lines.is_closed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_named_by_its_token_and_its_own_name_and_a_list_is_bounded() {
        let client = |name: Option<&str>, kind| AttachedClient {
            client_id: "c".to_owned(),
            name: name.map(str::to_owned),
            token: "phone".to_owned(),
            dialect: "ahp".to_owned(),
            since: 1,
            kind,
        };
        assert_eq!(label(&client(Some("Grove’s page"), AttachedKind::Client)), "phone (Grove’s page)");
        assert_eq!(label(&client(None, AttachedKind::Agent)), "phone, an agent");
        let names = |count: usize| (0..count).map(|number| number.to_string()).collect::<Vec<_>>();
        assert_eq!(named(names(2), 0), "0, 1");
        assert_eq!(named(names(7), 40), "0, 1, 2, 3, 4, and 42 more");
    }
}
