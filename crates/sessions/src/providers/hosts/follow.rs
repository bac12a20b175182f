//! Listening to the channels of one session, for as long as it runs or somebody has it open.

use std::sync::Arc;
use std::time::Duration;

use grove_client::dialect::ahp::State;
use grove_client::{Ahp, Client, Closed, RequestError, Subscription};
use grove_wire::ahp::SessionState;
use grove_wire::x_grove;
use grove_wire::x_grove::workspace::{ManifestResult, Method};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::details::{Details, MainChat, changeset};
use super::table::Shared;

/// How often what is heard is shown, at most. Text may come a thousand times a second.
const PAUSE: Duration = Duration::from_millis(50);
/// How long a session that does not run any more may take to say how its turn ended.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Shows what the channels of a session tell until it is stopped. Then the last of it is shown once more.
pub(super) async fn follow(
    shared: Arc<Shared>,
    client: Client<Ahp>,
    on_host: String,
    mut stopped: oneshot::Receiver<()>,
) {
    let listening = tokio::select! {
        _ = &mut stopped => return,
        listening = listen(&client, &on_host) => listening,
    };
    // It is gone, or the connection is.
    let Some(mut channels) = listening else { return };
    loop {
        channels.show(&shared, &on_host);
        tokio::select! {
            _ = &mut stopped => break,
            changed = channels.changed() => if changed.is_err() {
                return;
            },
        }
    }
    let ended = channels.chat.until(|state| state.chat()?.active_turn.is_none().then_some(()));
    timeout(LAST_WORDS, ended).await.ok();
    channels.show(&shared, &on_host);
    shared.set_details(&on_host, Details::settle);
}

async fn listen(client: &Client<Ahp>, on_host: &str) -> Option<Channels> {
    let mut session = client.subscribe(on_host).await.ok()?;
    let main = session.until(|state| state.session()?.default_chat.clone()).await.ok()?;
    let chat = client.subscribe(&main).await.ok()?;
    let changeset = match session.read(|state| changeset(state.session()?)) {
        Some(changeset) => client.subscribe(&changeset).await.ok(),
        None => None,
    };
    let branch = match knows_manifests(client) {
        true => manifest(client, on_host).await.ok().and_then(|manifest| manifest.branch),
        false => None,
    };
    Some(Channels { session, chat, changeset, branch })
}

/// Whether a host can be asked for them.
pub(super) fn knows_manifests(client: &Client<Ahp>) -> bool {
    client.offers(x_grove::Method::Workspace(Method::Manifest))
}

/// What a host keeps of where a session works.
pub(super) async fn manifest(client: &Client<Ahp>, on_host: &str) -> Result<ManifestResult, RequestError> {
    client.request_raw(Method::Manifest.as_str(), &json!({ "channel": on_host })).await
}

/// The channels of a session.
struct Channels {
    session: Subscription<Ahp>,
    /// The main chat's.
    chat: Subscription<Ahp>,
    changeset: Option<Subscription<Ahp>>,
    branch: Option<String>,
}

impl Channels {
    /// Waits until something has changed, and a moment longer: there may be more.
    async fn changed(&mut self) -> Result<(), Closed> {
        let Self { session, chat, changeset, .. } = self;
        let changeset = async {
            match changeset {
                Some(changeset) => changeset.changed().await,
                None => std::future::pending().await,
            }
        };
        let changed = tokio::select! {
            changed = session.changed() => changed,
            changed = chat.changed() => changed,
            changed = changeset => changed,
        };
        sleep(PAUSE).await;
        changed
    }

    fn show(&self, shared: &Shared, on_host: &str) {
        let main = self.chat.read(|state| state.chat().map(MainChat::of)).unwrap_or_default();
        let changeset = self.changeset.as_ref().and_then(|changeset| {
            changeset.read(|state| match state {
                State::Changeset(changeset) => Some(changeset.clone()),
                _ => None,
            })
        });
        let branch = self.branch.clone();
        let details = |session: &SessionState| Details::of(session, main, changeset.as_deref(), branch);
        if let Some(details) = self.session.read(|state| state.session().map(details)) {
            shared.set_details(on_host, |known| *known = details);
        }
    }
}
