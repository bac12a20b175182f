//! Following the channels of one session and of its chats, as long as it runs or is open.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use grove_client::dialect::ahp::ResourceState;
use grove_client::{Ahp, Client, ClientClosed, ConnectionStatus, RequestError, Subscription};
use grove_wire::ahp::SessionState;
use grove_wire::x_grove;
use grove_wire::x_grove::workspace::{self, ManifestResult};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::details::{ChatDetails, SessionDetails, changeset};
use super::table::HostState;

/// The minimal interval between two updates. Text may come a thousand times a second.
const PAUSE: Duration = Duration::from_millis(50);
/// The time that a session that stopped running may take to report the end of its turns.
const LAST_WORDS: Duration = Duration::from_secs(2);
/// The most chats beside the main one that are followed: the newest. Of further ones only the session's own state
/// tells.
pub const MAX_CHATS: usize = 32;

/// Shows the details from the channels of a session until it is stopped. Then the last details are shown once more.
pub(super) async fn follow(
    shared: Arc<HostState>,
    client: Client<Ahp>,
    host_uri: String,
    mut stopped: oneshot::Receiver<()>,
) {
    let listening = tokio::select! {
        _ = &mut stopped => None,
        listening = listen(&client, &host_uri) => match listening {
            // Nothing is known better than before: it is followed again when the host is back.
            None if !matches!(*client.status().borrow(), ConnectionStatus::Connected) => return,
            listening => listening,
        },
    };
    // It is gone. Assumptions about it no longer hold.
    let Some(mut channels) = listening else { return shared.set_details(&host_uri, SessionDetails::settle) };
    loop {
        channels.show(&shared, &host_uri);
        let change = async {
            sleep(PAUSE).await;
            channels.changed().await?;
            channels.keep_up(&client).await;
            Ok::<(), ClientClosed>(())
        };
        tokio::select! {
            _ = &mut stopped => break,
            change = change => if change.is_err() {
                return;
            },
        }
    }
    timeout(LAST_WORDS, channels.at_rest()).await.ok();
    channels.show(&shared, &host_uri);
    shared.set_details(&host_uri, SessionDetails::settle);
}

async fn listen(client: &Client<Ahp>, host_uri: &str) -> Option<Channels> {
    let mut session = client.subscribe(host_uri).await.ok()?;
    session.until(|state| state.session()?.default_chat.clone()).await.ok()?;
    let changeset = match session.read(|state| changeset(state.session()?)) {
        Some(changeset) => client.subscribe(&changeset).await.ok(),
        None => None,
    };
    let branch = match knows_manifests(client) {
        true => manifest(client, host_uri).await.ok().and_then(|manifest| manifest.branch),
        false => None,
    };
    let mut channels = Channels { session, chats: HashMap::new(), changeset, branch };
    channels.keep_up(client).await;
    Some(channels)
}

/// Returns whether a host serves manifests.
pub(super) fn knows_manifests(client: &Client<Ahp>) -> bool {
    client.offers(x_grove::Method::Workspace(workspace::WorkspaceMethod::Manifest))
}

/// The host's manifest of a session's workspace.
pub(super) async fn manifest(client: &Client<Ahp>, host_uri: &str) -> Result<ManifestResult, RequestError> {
    client.request_raw(workspace::WorkspaceMethod::Manifest.as_str(), &json!({ "channel": host_uri })).await
}

/// The channels of a session.
struct Channels {
    session: Subscription<Ahp>,
    /// By their URIs. `None`: the host refuses the subscription.
    chats: HashMap<String, Option<Subscription<Ahp>>>,
    changeset: Option<Subscription<Ahp>>,
    branch: Option<String>,
}

impl Channels {
    /// Waits for a change since the last wait.
    async fn changed(&mut self) -> Result<(), ClientClosed> {
        let Self { session, chats, changeset, .. } = self;
        let all = std::iter::once(session).chain(chats.values_mut().flatten()).chain(changeset);
        select_all(all.map(|channel| Box::pin(channel.changed()))).await.0
    }

    /// Subscribes to new chats, and unsubscribes from those that are gone.
    async fn keep_up(&mut self, client: &Client<Ahp>) {
        let wanted = self.session.read(|state| state.session().map(followed)).unwrap_or_default();
        self.chats.retain(|chat, _| wanted.contains(chat));
        for chat in wanted {
            if let Entry::Vacant(place) = self.chats.entry(chat) {
                let listened = client.subscribe(place.key()).await.ok();
                place.insert(listened);
            }
        }
    }

    /// Waits until no turn runs in any followed chat.
    async fn at_rest(&mut self) {
        let chats = self.chats.values_mut().flatten();
        let rests = chats.map(|chat| chat.until(|state| state.chat()?.active_turn.is_none().then_some(())));
        join_all(rests).await;
    }

    fn show(&self, shared: &HostState, host_uri: &str) {
        let listened = self.chats.iter().filter_map(|(name, chat)| Some((name, chat.as_ref()?)));
        let chat_details = listened.filter_map(|(name, chat)| {
            let details = chat.read(|state| state.chat().map(ChatDetails::of))?;
            Some((name.clone(), details))
        });
        let chats = chat_details.collect();
        let changeset = self.changeset.as_ref().and_then(|changeset| {
            changeset.read(|state| match state {
                ResourceState::Changeset(changeset) => Some(changeset.clone()),
                _ => None,
            })
        });
        let branch = self.branch.clone();
        let details = |session: &SessionState| SessionDetails::of(session, chats, changeset.as_deref(), branch);
        if let Some(details) = self.session.read(|state| state.session().map(details)) {
            shared.set_details(host_uri, |known| *known = details);
        }
    }
}

/// The chats of a session to follow: the main one, and the newest of the others.
fn followed(session: &SessionState) -> Vec<String> {
    let main = session.default_chat.iter().cloned();
    let others = session.chats.iter().rev().map(|chat| &chat.resource);
    let others = others.filter(|chat| Some(*chat) != session.default_chat.as_ref()).take(MAX_CHATS);
    main.chain(others.cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_chat_and_the_newest_others_are_listened_to() {
        let chats: Vec<_> = (0..MAX_CHATS + 3)
            .map(|n| json!({"resource": format!("c{n}"), "title": "", "status": 1, "modifiedAt": ""}))
            .collect();
        let session = json!({"provider": "p", "title": "", "status": 1, "lifecycle": "ready", "activeClients": [],
            "defaultChat": "c0", "chats": chats});
        let followed = followed(&serde_json::from_value(session).unwrap());
        assert_eq!((followed.len(), followed[0].as_str()), (MAX_CHATS + 1, "c0"));
        assert_eq!((followed[1].as_str(), followed[MAX_CHATS].as_str()), ("c34", "c3"));
    }
}
