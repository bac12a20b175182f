//! Listening to the channels of one session, for as long as it runs or somebody has it open.

use std::sync::Arc;
use std::time::Duration;

use grove_client::{Ahp, Client, RequestError, Subscription};
use grove_wire::x_grove::workspace::{ManifestResult, Method};
use serde_json::json;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::details::{Details, MainChat};
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
    let listening = async {
        let mut session = client.subscribe(&on_host).await.ok()?;
        let main = session.until(|state| state.session()?.default_chat.clone()).await.ok()?;
        let chat = client.subscribe(&main).await.ok()?;
        // Hosts other than Grove do not know the question.
        let branch = manifest(&client, &on_host).await.ok().and_then(|manifest| manifest.branch);
        Some((session, chat, branch))
    };
    let (mut session, mut chat, branch) = tokio::select! {
        _ = &mut stopped => return,
        listening = listening => match listening {
            Some(listening) => listening,
            // It is gone, or the connection is.
            None => return,
        },
    };
    loop {
        show(&shared, &on_host, &session, &chat, branch.clone());
        tokio::select! {
            _ = &mut stopped => break,
            changed = async {
                let changed = tokio::select! {
                    changed = session.changed() => changed,
                    changed = chat.changed() => changed,
                };
                sleep(PAUSE).await;
                changed
            } => if changed.is_err() {
                return;
            },
        }
    }
    let ended = chat.until(|state| state.chat()?.active_turn.is_none().then_some(()));
    timeout(LAST_WORDS, ended).await.ok();
    show(&shared, &on_host, &session, &chat, branch.clone());
    shared.set_details(&on_host, Details::settle);
}

/// What a host keeps of where a session works.
pub(super) async fn manifest(client: &Client<Ahp>, on_host: &str) -> Result<ManifestResult, RequestError> {
    client.request_raw(Method::Manifest.as_str(), &json!({ "channel": on_host })).await
}

fn show(shared: &Shared, on_host: &str, session: &Subscription<Ahp>, chat: &Subscription<Ahp>, branch: Option<String>) {
    let main = chat.read(|state| state.chat().map(MainChat::of)).unwrap_or_default();
    if let Some(details) = session.read(|state| state.session().map(|session| Details::of(session, main, branch))) {
        shared.set_details(on_host, |known| *known = details);
    }
}
