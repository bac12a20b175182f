//! What takes its time: hooks are asked, a summary is made. The session goes on meanwhile, and nothing of it has changed
//! until the end.

use std::future::Future;

use futures_util::FutureExt;
use futures_util::future::{AbortHandle, abortable};
use grove_core::*;

use super::moving::Leaving;
use super::summing::{Compacting, Merging};
use super::{Done, TreeAnswer, TreeError};
use crate::hooks::HooksAt;
use crate::sequencer::Stopped;
use crate::session::{Outbox, SessionTask, ToSession};

/// Something that is under way in a chat.
pub(in crate::session) struct Undertaking {
    /// Tells it from an earlier one whose end is still on its way.
    number: u64,
    abort: AbortHandle,
    meanwhile: Meanwhile,
    /// Whether others are told what goes on.
    is_shown: bool,
    /// Nobody waits for what the host does by itself.
    done: Option<Done>,
}

/// What becomes of a turn that begins meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meanwhile {
    /// It waits.
    Waits,
    /// It goes first, and the undertaking is given up.
    GoesFirst,
}

/// How an undertaking begins.
pub(super) struct Beginning {
    pub(super) meanwhile: Meanwhile,
    /// What others are told that goes on, where it may take long.
    pub(super) shown: Option<&'static str>,
    pub(super) done: Option<Done>,
}

/// The end of an undertaking.
pub(crate) struct Undertaken {
    number: u64,
    result: Result<Found, TreeError>,
}

/// What was found, which is now to be done.
pub(super) enum Found {
    Leave(Box<Leaving>),
    Merge(Box<Merging>),
    Compact(Box<Compacting>),
}

impl Undertaking {
    /// Ends it without a word.
    pub(in crate::session) fn drop_it(&self) {
        self.abort.abort();
    }
}

impl SessionTask {
    /// Those who want to know of this chat's tree.
    pub(super) fn hooks(&self, chat: &ChatId) -> HooksAt {
        self.around.hooks.at(self.around.host.clone(), self.tip.uri.clone(), chat.clone())
    }

    /// Whether something can be undertaken.
    pub(super) fn must_be_free(&self, chat: &ChatId) -> Result<(), TreeError> {
        if self.desks.get(chat).is_some_and(|desk| desk.undertaking.is_some()) {
            return Err(TreeError::Busy);
        }
        match self.tip.chat(chat).is_some_and(|chat| chat.active.is_some()) {
            true => Err(TreeError::TurnRuns),
            false => Ok(()),
        }
    }

    pub(super) async fn undertake(
        &mut self,
        chat: &ChatId,
        beginning: Beginning,
        work: impl Future<Output = Result<Found, TreeError>> + Send + 'static,
    ) -> Result<(), Stopped> {
        let Beginning { meanwhile, shown, done } = beginning;
        self.last_undertaking += 1;
        let number = self.last_undertaking;
        let (inbox, at) = (self.inbox_sender.clone(), chat.clone());
        let (work, abort) = abortable(async move {
            let result = work.await;
            // A session that is gone does not listen any more.
            if let Some(inbox) = inbox.upgrade() {
                inbox.send(ToSession::Undertaken(at, Undertaken { number, result })).await.ok();
            }
        });
        let undertaking = Undertaking { number, abort, meanwhile, is_shown: shown.is_some(), done };
        self.desk(chat).undertaking = Some(undertaking);
        self.around.env.spawn.spawn(Box::pin(work.map(|_| ())));
        match shown {
            Some(words) => self.show(chat, Some(words)).await,
            None => Ok(()),
        }
    }

    /// What was undertaken has come to its end.
    pub(in crate::session) async fn undertaken(&mut self, chat: &ChatId, end: Undertaken) -> Result<(), Stopped> {
        let is_this = |undertaking: &mut Undertaking| undertaking.number == end.number;
        let Some(undertaking) = self.desk(chat).undertaking.take_if(is_this) else { return Ok(()) };
        let answer = match end.result {
            Ok(Found::Leave(leaving)) => self.leave(chat, *leaving).await?.map(TreeAnswer::Navigated),
            Ok(Found::Merge(merging)) => self.finish_merge(chat, *merging).await?.map(TreeAnswer::Merged),
            Ok(Found::Compact(compacting)) => {
                self.finish_compaction(chat, *compacting).await?.map(TreeAnswer::Compacted)
            }
            Err(error) => Err(error),
        };
        self.conclude(chat, undertaking, answer).await
    }

    /// Gives up what is under way, if anything is.
    pub(in crate::session) async fn give_up(&mut self, chat: &ChatId, why: TreeError) -> Result<bool, Stopped> {
        let Some(undertaking) = self.desks.get_mut(chat).and_then(|desk| desk.undertaking.take()) else {
            return Ok(false);
        };
        undertaking.abort.abort();
        self.conclude(chat, undertaking, Err(why)).await?;
        Ok(true)
    }

    /// A turn is to begin. Gives whether it may: what is under way gives way to it, or has it wait.
    pub(in crate::session) fn makes_way(&mut self, chat: &ChatId) -> bool {
        let desk = self.desk(chat);
        let gives_way = |undertaking: &mut Undertaking| undertaking.meanwhile == Meanwhile::GoesFirst;
        if let Some(undertaking) = desk.undertaking.take_if(gives_way) {
            undertaking.abort.abort();
            // What is shown of it goes when the agent speaks.
            if let Some(done) = undertaking.done {
                done.send(Err(TreeError::TurnBegan)).ok();
            }
        }
        desk.undertaking.is_none() && !desk.is_full
    }

    async fn conclude(
        &mut self,
        chat: &ChatId,
        undertaking: Undertaking,
        answer: Result<TreeAnswer, TreeError>,
    ) -> Result<(), Stopped> {
        match (undertaking.done, answer) {
            // Whoever asked may have gone meanwhile.
            (Some(done), answer) => {
                done.send(answer).ok();
            }
            (None, Err(error)) => tracing::warn!(session = %self.tip.id, %error, "a conversation was not compacted"),
            (None, Ok(_)) => {}
        }
        if undertaking.is_shown {
            self.show(chat, None).await?;
        }
        // A turn may have waited for it.
        if undertaking.meanwhile == Meanwhile::Waits {
            self.prompt_waiting(chat);
        }
        Ok(())
    }

    /// Gives the agent the turn that waited for something that is over now.
    pub(super) fn prompt_waiting(&mut self, chat: &ChatId) {
        if let Some(turn) = self.tip.chat(chat).and_then(|chat| chat.active.as_ref()).map(|turn| turn.id.clone()) {
            self.prompt(chat, &turn);
        }
    }

    /// Tells others what goes on.
    async fn show(&mut self, chat: &ChatId, words: Option<&str>) -> Result<(), Stopped> {
        let event = ChatEvent::ActivityChanged(words.map(str::to_owned));
        let mut out = Outbox::default();
        // A chat that is gone has nothing to show.
        self.accept(Command::Report { chat: chat.clone(), event }, &Who::Host, &mut out).ok();
        self.send(out).await
    }
}
