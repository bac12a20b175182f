//! The rules of both kinds of persistence, with a sequencer that only notes what it gets.

use std::collections::HashSet;
use std::sync::{Mutex, Weak};
use std::time::Duration;

use futures_util::FutureExt;
use grove_fs::MemoryFs;
use grove_fs::temp_files::TempFilePolicy;
use grove_storage::copies::ActiveCopies;
use grove_storage::{paths, session_file};
use tokio::sync::{mpsc, watch};

use super::save_job::SaveError;
use super::*;
use crate::config::Config;
use crate::env::Env;
use crate::hooks::Hooks;
use crate::sequencer::{JournalWriteError, SequencerHandle, ToSequencer};
use crate::session::reports::tests::{TURN, session_with};
use crate::session::spills::{LeftoverSpills, SessionSpills};

/// The published events, and whether the journal can be written.
#[derive(Clone, Default)]
struct Published(Arc<Mutex<(Vec<String>, bool)>>);

impl Published {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap().0)
    }

    fn refuse(&self) {
        self.0.lock().unwrap().1 = true;
    }

    /// Answers publications like a sequencer.
    async fn serve(self, mut messages: mpsc::Receiver<ToSequencer>) {
        let mut seq = 10;
        while let Some(message) = messages.recv().await {
            match message {
                ToSequencer::Publish(publication) => {
                    let mut published = self.0.lock().unwrap();
                    let answer = match published.1 {
                        true => Err(JournalWriteError::from(std::io::Error::other("full"))),
                        false => {
                            seq += publication.events.len() as u64;
                            published.0.extend(publication.events.iter().map(name));
                            Ok(seq)
                        }
                    };
                    publication.done.unwrap().send(answer).ok();
                }
                ToSequencer::Persisted(_, seq) => self.0.lock().unwrap().0.push(format!("persisted {seq}")),
                _ => panic!("nothing else is sent"),
            }
        }
    }
}

/// The kind of an event.
fn name(event: &Event) -> String {
    let text = match &event.change {
        Change::Chat(_, _, event) => format!("{event:?}"),
        Change::Session(_, event) => format!("{event:?}"),
        Change::Root(event) => format!("{event:?}"),
    };
    text.split([' ', '(']).next().unwrap_or_default().to_owned()
}

struct Fixture {
    published: Published,
    store: Arc<dyn SessionFs>,
    context: SessionContext,
    tip: Session,
    logs: ChatLogs,
    copies: LogCopies,
    workspace: WorkspaceFolder,
    publisher: Publisher,
}

impl Fixture {
    /// A session without a running turn.
    fn new(scope: JournalScope) -> Self {
        let (sender, messages) = mpsc::channel(8);
        let published = Published::default();
        tokio::spawn(published.clone().serve(messages));
        let (env, config) = (Env::in_memory(), Arc::new(Config::default()));
        let sequencer = SequencerHandle::to(sender);
        let store: Arc<dyn SessionFs> = Arc::new(MemoryFs::default());
        let tip = session_with(vec![ChatEvent::TurnCompleted { turn: TURN.into(), duration: None }]);
        let (left, policy) = (LeftoverSpills::None, TempFilePolicy::Removed);
        let spills = SessionSpills::new(tip.id.clone(), store.clone(), left, policy, &config);
        Self {
            published,
            publisher: Publisher::new(sequencer.clone(), scope, 10),
            logs: ChatLogs::new(store.clone(), tip.id.clone()),
            store,
            copies: LogCopies::default(),
            workspace: WorkspaceFolder::new(spills),
            tip,
            context: SessionContext {
                env,
                config,
                sequencer,
                agents: watch::channel(Arc::from([])).1,
                active_folders: Arc::default(),
                departures: Arc::default(),
                hooks: Hooks::default(),
                host: Weak::new(),
                copies: ActiveCopies::default(),
                left: Arc::new(HashSet::new()),
                temp_files: policy,
                spills: None,
            },
        }
    }

    fn parts(&mut self) -> SavedParts<'_> {
        let Self { tip, logs, copies, workspace, publisher, context, .. } = self;
        SavedParts { tip, logs, copies, workspace, publisher, context }
    }

    async fn file_exists(&self) -> bool {
        self.store.exists(&paths::session_file(&self.tip.id)).await.unwrap()
    }
}

fn out(events: Vec<ChatEvent>) -> Outbox {
    let change = |event| Change::Chat("s".into(), Session::MAIN_CHAT.into(), event);
    let events = events.into_iter().map(|event| Event { at: Timestamp(1), change: change(event) });
    Outbox { events: events.collect(), ..Outbox::default() }
}

/// An event that nobody has to save.
fn streamed() -> ChatEvent {
    ChatEvent::ActivityChanged(Some("thinking".to_owned()))
}

/// An event that must be in `session.json` first.
fn titled() -> ChatEvent {
    ChatEvent::ChatTitleChanged("t".to_owned())
}

/// An event that must be in the log first.
fn ended() -> ChatEvent {
    ChatEvent::TurnCancelled { turn: TURN.into(), duration: None }
}

async fn finish_save(client: &mut ClientPersistence, fixture: &mut Fixture, result: Result<(), SaveError>) -> Progress {
    let mut saved = client.running_save().await.expect("a save is running");
    saved.result = saved.result.and(result);
    client.saved(fixture.parts(), *saved).await.unwrap()
}

fn refused() -> Result<(), SaveError> {
    Err(SaveError { reason: "no space".to_owned(), code: "ENOSPC" })
}

#[tokio::test]
async fn with_a_journal_a_refused_command_has_not_happened() {
    let mut fixture = Fixture::new(JournalScope::AllEvents);
    let mut journal = JournalPersistence::default();
    let progress = journal.commit(fixture.parts(), out(vec![titled()]), None).await.unwrap().unwrap();
    assert_eq!(progress.released.len(), 1);
    assert_eq!((fixture.published.take(), fixture.publisher.last_seq()), (vec!["ChatTitleChanged".to_owned()], 11));
    fixture.published.refuse();
    let refused = journal.commit(fixture.parts(), out(vec![titled()]), None).await.unwrap();
    assert!(refused.is_err_and(|reason| reason.to_string().contains("full")));
    assert_eq!(fixture.publisher.last_seq(), 11);
}

#[tokio::test]
async fn with_a_journal_nobody_waits_for_what_happens_by_itself() {
    let mut fixture = Fixture::new(JournalScope::AllEvents);
    let mut journal = JournalPersistence::default();
    let progress = journal.send(fixture.parts(), out(vec![ended()])).await.unwrap();
    assert_eq!(progress.released.len(), 1);
    assert!(!fixture.publisher.is_idle());
    assert!(fixture.publisher.done().await && fixture.publisher.is_idle());
    assert_eq!(fixture.publisher.last_seq(), 11);
    journal.send(fixture.parts(), Outbox::default()).await.unwrap();
    assert!(fixture.publisher.is_idle(), "nothing is published without events");
}

#[tokio::test]
async fn with_a_journal_the_folder_is_written_behind_it() {
    let mut fixture = Fixture::new(JournalScope::AllEvents);
    let mut journal = JournalPersistence::default();
    journal.mark_folder_due();
    journal.save_folder(fixture.parts()).await;
    assert!(!journal.is_folder_due());
    // Nobody waits for that message.
    tokio::task::yield_now().await;
    assert_eq!(fixture.published.take(), ["persisted 10"], "the journal may release its part");
    let file = session_file::read(fixture.store.as_ref(), &fixture.tip.id).await.unwrap();
    assert_eq!((file.seq, file.disposed), (10, false));
    assert_eq!(file.expected_logs()[0].extent.as_ref().map(|extent| extent.turns), Some(1));
    journal.save_disposed(fixture.parts()).await;
    assert!(session_file::read(fixture.store.as_ref(), &fixture.tip.id).await.unwrap().disposed);
}

#[tokio::test]
async fn what_streams_is_published_before_a_storage_client_has_it() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let mut client = ClientPersistence::default();
    let progress = client.send(fixture.parts(), out(vec![streamed()])).await.unwrap();
    assert_eq!(progress.released.len(), 1);
    assert!(client.holds_nothing() && fixture.publisher.done().await);
    assert_eq!(fixture.published.take(), ["ActivityChanged"]);
    assert!(!fixture.file_exists().await);
}

#[tokio::test]
async fn what_matters_is_saved_before_anybody_hears_of_it() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let mut client = ClientPersistence::default();
    let progress = client.send(fixture.parts(), out(vec![streamed(), titled(), streamed()])).await.unwrap();
    assert!(progress.released.is_empty() && fixture.publisher.done().await);
    assert_eq!(fixture.published.take(), ["ActivityChanged"]);
    assert!(!client.takes_reports(&fixture.tip) && !client.may_save_folder(&fixture.tip));
    let progress = finish_save(&mut client, &mut fixture, Ok(())).await;
    assert_eq!(progress.released.len(), 1);
    assert!(fixture.file_exists().await && fixture.publisher.done().await);
    assert_eq!(fixture.published.take(), ["ChatTitleChanged", "ActivityChanged"]);
    assert!(client.holds_nothing() && client.takes_reports(&fixture.tip));
}

#[tokio::test(start_paused = true)]
async fn what_a_storage_client_refuses_is_held_in_order_and_retried() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let mut client = ClientPersistence::default();
    client.send(fixture.parts(), out(vec![ended()])).await.unwrap();
    let progress = finish_save(&mut client, &mut fixture, refused()).await;
    assert_eq!(progress.unsaved, Some(Some("no space".to_owned())));
    assert!(progress.released.is_empty() && !client.holds_nothing());
    // Even what only streams comes after it.
    client.send(fixture.parts(), out(vec![streamed()])).await.unwrap();
    assert!(fixture.publisher.is_idle());
    finish_save(&mut client, &mut fixture, refused()).await;
    assert!(
        tokio::time::timeout(Duration::from_millis(900), client.next()).await.is_err(),
        "the second pause is longer"
    );
    assert!(matches!(client.next().await, SaveStep::RetryDue));
    client.retry(fixture.parts());
    let progress = finish_save(&mut client, &mut fixture, Ok(())).await;
    assert_eq!(progress.released.len(), 2);
    assert!(fixture.publisher.done().await);
    assert_eq!(fixture.published.take(), ["TurnCancelled", "ActivityChanged"]);
}

#[tokio::test]
async fn an_agent_that_is_to_stop_waits_for_no_storage_client() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let (chat, turn) = (Session::MAIN_CHAT.into(), TURN.into());
    let turn = EndedTurn { chat, turn, by_agent: false, outcome: Outcome::Complete, error: None };
    let out = Outbox { ended: vec![turn], ..out(vec![ended()]) };
    let progress = ClientPersistence::default().send(fixture.parts(), out).await.unwrap();
    assert_eq!((progress.ended.len(), progress.released.len()), (1, 0));
}

#[tokio::test]
async fn a_command_is_waited_for_unless_it_happens_anyway() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let mut client = ClientPersistence::default();
    let saved = client.commit(fixture.parts(), out(vec![titled()]), None).await.unwrap().unwrap();
    assert!(!saved.is_awaited && client.holds_nothing() && fixture.file_exists().await, "it is saved already");
    let entry = ChatEvent::EntryAdded(LogEntry { line: "{}".into(), after: None });
    assert!(client.commit(fixture.parts(), out(vec![entry]), None).await.unwrap().unwrap().is_awaited);
    finish_save(&mut client, &mut fixture, Ok(())).await;
    assert!(!client.commit(fixture.parts(), out(vec![ended()]), None).await.unwrap().unwrap().is_awaited);
}

#[tokio::test]
async fn changes_are_refused_while_nothing_can_be_saved() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let mut client = ClientPersistence::default();
    let away = client.storage_client_is(fixture.parts(), StorageClientPresence::Away).unsaved.unwrap();
    fixture.tip.details.unsaved = away;
    assert!(client.refusal(&fixture.tip).is_some_and(|reason| reason.contains("no storage client is connected")));
    assert!(!client.takes_reports(&fixture.tip) && !client.may_save_folder(&fixture.tip));
    let back = client.storage_client_is(fixture.parts(), StorageClientPresence::Back);
    assert_eq!(back.unsaved, Some(None));
    assert_eq!(JournalPersistence::default().refusal(&fixture.tip), None);
}

#[tokio::test]
async fn a_session_that_ends_publishes_what_was_never_saved() {
    let mut fixture = Fixture::new(JournalScope::NumbersOnly);
    let mut client = ClientPersistence::default();
    client.send(fixture.parts(), out(vec![titled()])).await.unwrap();
    client.abandon(fixture.parts()).await.unwrap();
    assert!(client.holds_nothing() && client.running_save().now_or_never().flatten().is_none());
    assert!(fixture.publisher.done().await);
    assert_eq!(fixture.published.take(), ["ChatTitleChanged"]);
}
