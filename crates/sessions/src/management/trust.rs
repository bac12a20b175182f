//! Workspace trust: the permission for agents to work in a folder.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use async_trait::async_trait;
use tokio::sync::Mutex as AsyncMutex;

use super::Management;
use super::error::ManagementError;
use crate::ids::{ProviderId, Uri};
use crate::session::{Session, SessionWorkspace};
use crate::state_store::{StateChange, StateStoreError, Trust};

/// The question to a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustQuestion {
    /// The folder's provider.
    pub provider_id: ProviderId,
    /// The workspace. Its URI is the folder that is trusted or not.
    pub workspace: Arc<SessionWorkspace>,
}

/// Asks the person who sends. It is passed with each message: of several clients, the one that sends is asked.
#[async_trait]
pub trait TrustPrompt: Send + Sync + fmt::Debug {
    /// Asks. `None`: the person did not answer, and is asked again the next time.
    async fn ask(&self, question: &TrustQuestion) -> Option<Trust>;
}

/// Asks nobody. Nothing is sent to a folder that needs an answer and has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTrustPrompt;

#[async_trait]
impl TrustPrompt for NoTrustPrompt {
    async fn ask(&self, _: &TrustQuestion) -> Option<Trust> {
        None
    }
}

/// The questions that are being asked.
#[derive(Debug, Default)]
pub(super) struct OpenTrustQuestions {
    folders: Mutex<HashMap<(ProviderId, Uri), Weak<TrustQuestionLock>>>,
}

/// Held while asking.
type TrustQuestionLock = AsyncMutex<()>;

impl OpenTrustQuestions {
    /// The lock of the question about a folder. It is dropped when nobody holds it or waits for it.
    fn about(&self, provider: &ProviderId, folder: &Uri) -> Arc<TrustQuestionLock> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        folders.retain(|_, open_trust_questions| open_trust_questions.strong_count() > 0);
        let entry = folders.entry((provider.clone(), folder.clone())).or_default();
        entry.upgrade().unwrap_or_else(|| {
            let open_trust_questions = Arc::default();
            *entry = Arc::downgrade(&open_trust_questions);
            open_trust_questions
        })
    }
}

impl Management {
    /// The answer for a folder of a provider.
    pub fn trust(&self, provider: &ProviderId, folder: &Uri) -> Option<Trust> {
        self.shared.persistent_state(|persistent_state| persistent_state.trust(provider, folder))
    }

    /// Sets whether a folder is trusted, whatever the earlier answer.
    pub fn set_trust(&self, provider: ProviderId, folder: Uri, answer: Trust) -> Result<(), StateStoreError> {
        self.shared.remember(StateChange::Trust { provider, folder, answer })
    }

    /// Checks that something may be sent: asks once for each folder that must be trusted.
    pub(super) async fn ensure_trusted(&self, session: &Session, ask: &dyn TrustPrompt) -> Result<(), ManagementError> {
        let Some(workspace) = session.workspace().filter(|workspace| workspace.requires_workspace_trust) else {
            return Ok(());
        };
        let (provider, folder) = (session.provider_id(), workspace.uri.clone());
        // One question about a folder at a time: other senders find the answer.
        let open_trust_questions = self.shared.open_trust_questions.about(provider, &folder);
        let _asking = match self.trust(provider, &folder) {
            Some(_) => None,
            None => Some(open_trust_questions.lock().await),
        };
        let answer = match self.trust(provider, &folder) {
            Some(answer) => answer,
            None => {
                let question = TrustQuestion { provider_id: provider.clone(), workspace };
                let reply = ask.ask(&question).await;
                let Some(answer) = reply else { return Err(ManagementError::TrustUnanswered(folder)) };
                self.set_trust(provider.clone(), folder.clone(), answer)?;
                answer
            }
        };
        match answer {
            Trust::Trusted => Ok(()),
            Trust::Refused => Err(ManagementError::Untrusted(folder)),
        }
    }
}
