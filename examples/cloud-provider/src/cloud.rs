//! A cloud that runs coding tasks: a stand-in for a real service, without a network. Nothing here depends on Grove.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thiserror::Error;
use tokio::sync::watch;

/// The duration of each step of a task.
const STEP: Duration = Duration::from_millis(200);
/// The maximum number of tasks of an account.
const MAX_TASKS: usize = 1_000;

/// A task in the cloud's terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// `(owner, name)` of its repository.
    pub repository: (String, String),
    pub prompt: String,
    /// The caller's name for the task. The cloud returns it, so that callers recognize their task before the answer.
    pub reference: Option<String>,
    pub progress: Progress,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    Queued,
    Running { doing: &'static str },
    Done { pull_request: u64 },
}

/// The error of an account without room for more tasks.
#[derive(Debug, Error)]
#[error("there are {MAX_TASKS} tasks: delete some of them")]
pub struct Full;

/// The tasks of an account, by the cloud's names.
pub type Tasks = BTreeMap<String, Task>;

/// An account in the cloud.
#[derive(Debug)]
pub struct Cloud {
    repositories: Vec<(String, String)>,
    tasks: watch::Sender<Tasks>,
    named: AtomicU64,
}

impl Cloud {
    pub fn new(repositories: &[(&str, &str)]) -> Arc<Self> {
        let repositories = repositories.iter().map(|(owner, name)| ((*owner).into(), (*name).into())).collect();
        Arc::new(Self { repositories, tasks: watch::Sender::default(), named: AtomicU64::new(1) })
    }

    /// `(owner, name)` of each connected repository.
    pub fn repositories(&self) -> &[(String, String)] {
        &self.repositories
    }

    pub fn has(&self, owner: &str, name: &str) -> bool {
        self.repositories.iter().any(|known| known.0 == owner && known.1 == name)
    }

    /// All tasks, now and after each change. A real cloud would be polled.
    pub fn tasks(&self) -> watch::Receiver<Tasks> {
        self.tasks.subscribe()
    }

    /// Starts a task and runs it to its end, with or without listeners. Returns its name.
    pub async fn start(self: &Arc<Self>, task: Task) -> Result<String, Full> {
        // As with a network, other tasks run meanwhile.
        tokio::task::yield_now().await;
        let name = format!("task-{}", self.named.fetch_add(1, Ordering::Relaxed));
        let has_room = self.tasks.send_if_modified(|tasks| {
            let has_room = tasks.len() < MAX_TASKS;
            if has_room {
                tasks.insert(name.clone(), task);
            }
            has_room
        });
        if !has_room {
            return Err(Full);
        }
        let (cloud, started) = (self.clone(), name.clone());
        tokio::spawn(async move {
            let pull_request = cloud.tasks.borrow().len() as u64;
            for progress in [Progress::Running { doing: "Running the tests" }, Progress::Done { pull_request }] {
                tokio::time::sleep(STEP).await;
                cloud.tasks.send_modify(|tasks| {
                    if let Some(task) = tasks.get_mut(&started) {
                        task.progress = progress;
                    }
                });
            }
        });
        // The list contains the task before the answer arrives.
        tokio::task::yield_now().await;
        Ok(name)
    }

    pub fn delete(&self, name: &str) {
        self.tasks.send_modify(|tasks| drop(tasks.remove(name)));
    }
}
