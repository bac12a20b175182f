//! The queue of a session: its messages are the session's, its commands the endpoint's.

use std::sync::Arc;

use grove_core::*;
use grove_wire::copilot::decode;
use grove_wire::copilot::events::PendingMessagesModified;
use grove_wire::copilot::methods::{self, *};

use super::feed::Feed;
use super::peer::{CopilotError, CopilotPeer, SessionRef};

impl CopilotPeer {
    pub(super) async fn pending_items(&self, params: SessionParams) -> Result<PendingItemsResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let item = |id: &str, kind, text: &str| PendingItem {
            id: id.to_owned(),
            message_id: (kind == PendingItemKind::Message).then(|| id.to_owned()),
            kind,
            display_text: text.to_owned(),
            agent_mode: INTERACTIVE.to_owned(),
        };
        let (mut items, steering_messages) = self
            .look(&session, move |session| {
                let chat = session.main_chat();
                let queued = chat.into_iter().flat_map(|chat| &chat.queued);
                let items: Vec<PendingItem> = queued
                    .map(|pending| item(pending.id.as_str(), PendingItemKind::Message, &pending.message.text))
                    .collect();
                let steering = chat.and_then(|chat| chat.steering.as_ref());
                (items, steering.into_iter().map(|pending| pending.message.text.clone()).collect())
            })
            .await?;
        if let Some(feed) = self.feed(&session) {
            let requests = feed.requests();
            items.extend(requests.queued().map(|queued| item(&queued.id, PendingItemKind::Command, &queued.command)));
        }
        Ok(PendingItemsResult { items, steering_messages })
    }

    pub(super) async fn has_pending(&self, params: SessionParams) -> Result<HasPendingResult, CopilotError> {
        let pending = self.pending_items(params).await?;
        Ok(HasPendingResult { has_pending: !pending.items.is_empty() || !pending.steering_messages.is_empty() })
    }

    pub(super) async fn insert_queued(&self, params: QueueInsertParams) -> Result<QueueItemResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let QueueInsertMessage { prompt, attachments } = params.message;
        let id = self.enqueue_prompt(&session, prompt, attachments.unwrap_or_default()).await?;
        // It has started if nothing runs.
        self.move_queued(&session, &id, params.position).await?;
        Ok(QueueItemResult { id })
    }

    pub(super) async fn remove_queued(&self, params: QueueItemParams) -> Result<QueueRemoved, CopilotError> {
        let session = self.find(&params.session_id).await?;
        if self.feed(&session).is_some_and(|feed| feed.requests().remove_queued(&params.id)) {
            return Ok(QueueRemoved { removed: true });
        }
        Ok(QueueRemoved { removed: self.dequeue(&session, &params.id).await? })
    }

    /// Removes the newest command, or else the newest message.
    pub(super) async fn remove_newest_queued(&self, params: SessionParams) -> Result<QueueRemoved, CopilotError> {
        let session = self.find(&params.session_id).await?;
        if let Some(feed) = self.feed(&session)
            && feed.requests().remove_newest()
        {
            feed.say(PendingMessagesModified {});
            return Ok(QueueRemoved { removed: true });
        }
        let newest = self.queued(&session).await?.pop();
        let removed = match newest {
            Some(newest) => self.dequeue(&session, newest.id.as_str()).await?,
            None => false,
        };
        Ok(QueueRemoved { removed })
    }

    pub(super) async fn clear_queue(&self, params: SessionParams) -> Result<(), CopilotError> {
        let session = self.find(&params.session_id).await?;
        if let Some(feed) = self.feed(&session) {
            feed.requests().clear_queue();
            feed.say(PendingMessagesModified {});
        }
        for pending in self.queued(&session).await? {
            self.dequeue(&session, pending.id.as_str()).await?;
        }
        Ok(())
    }

    pub(super) async fn move_queue_item(&self, params: QueueMoveParams) -> Result<QueueChanged, CopilotError> {
        let session = self.find(&params.session_id).await?;
        Ok(QueueChanged { changed: self.move_queued(&session, &params.id, params.to_position).await? })
    }

    /// Changes the text of a queued message. The rest of it stays.
    pub(super) async fn update_queued(&self, params: QueueUpdateParams) -> Result<QueueUpdated, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let found = self.queued(&session).await?.into_iter().find(|pending| pending.id.as_str() == params.id);
        let Some(PendingMessage { id, message }) = found else { return Ok(QueueUpdated { updated: false }) };
        let message = PendingMessage { id, message: Message { text: params.prompt, ..message } };
        self.carry_out(&session, ClientCommand::Enqueue { chat: Session::MAIN_CHAT.into(), message }).await?;
        Ok(QueueUpdated { updated: true })
    }

    pub(super) async fn duplicate_queued(&self, params: QueueItemParams) -> Result<QueueItemResult, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let queued = self.queued(&session).await?;
        let found = queued.iter().enumerate().find(|(_, pending)| pending.id.as_str() == params.id);
        let Some((at, pending)) = found else { return Err(not_queued(&params.id)) };
        let id = self.host().new_id()?;
        let message = PendingMessage { id: id.as_str().into(), message: pending.message.clone() };
        self.carry_out(&session, ClientCommand::Enqueue { chat: Session::MAIN_CHAT.into(), message }).await?;
        self.move_queued(&session, &id, at as u64 + 1).await?;
        Ok(QueueItemResult { id })
    }

    /// Sends a queued message into the running turn.
    pub(super) async fn send_queued_now(&self, params: QueueItemParams) -> Result<QueueSteered, CopilotError> {
        let session = self.find(&params.session_id).await?;
        let found = self.queued(&session).await?.into_iter().find(|pending| pending.id.as_str() == params.id);
        let Some(message) = found else { return Ok(QueueSteered { steered: false }) };
        // It is taken out first, so that it is never there twice.
        if !self.dequeue(&session, message.id.as_str()).await? {
            return Ok(QueueSteered { steered: false });
        }
        self.carry_out(&session, ClientCommand::SetSteering { chat: Session::MAIN_CHAT.into(), message }).await?;
        Ok(QueueSteered { steered: true })
    }

    /// Queues a prompt. It starts at once if nothing runs.
    pub(super) async fn enqueue_prompt(
        &self,
        session: &SessionRef,
        prompt: String,
        attachments: Vec<methods::Attachment>,
    ) -> Result<String, CopilotError> {
        let id = self.host().new_id()?;
        let message = PendingMessage { id: id.as_str().into(), message: decode::message(prompt, attachments) };
        self.carry_out(session, ClientCommand::Enqueue { chat: Session::MAIN_CHAT.into(), message }).await?;
        Ok(id)
    }

    /// Moves a queued message to a position. False if it is not queued, or is there.
    async fn move_queued(&self, session: &SessionRef, id: &str, position: u64) -> Result<bool, CopilotError> {
        let mut order: Vec<PendingId> = self.queued(session).await?.into_iter().map(|pending| pending.id).collect();
        let Some(at) = order.iter().position(|pending| pending.as_str() == id) else { return Ok(false) };
        let moved = order.remove(at);
        let to = usize::try_from(position).unwrap_or(usize::MAX).min(order.len());
        order.insert(to, moved);
        if to != at {
            self.carry_out(session, ClientCommand::ReorderQueue { chat: Session::MAIN_CHAT.into(), order }).await?;
        }
        Ok(to != at)
    }

    /// Removes a message. False if it has started, or was removed, meanwhile.
    async fn dequeue(&self, session: &SessionRef, id: &str) -> Result<bool, CopilotError> {
        let command = ClientCommand::Dequeue { chat: Session::MAIN_CHAT.into(), id: id.into() };
        match self.carry_out(session, command).await {
            Ok(()) => Ok(true),
            Err(CopilotError::Refused(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn queued(&self, session: &SessionRef) -> Result<Vec<PendingMessage>, CopilotError> {
        self.look(session, |session| session.main_chat().map(|chat| chat.queued.clone()).unwrap_or_default()).await
    }

    fn feed(&self, session: &SessionRef) -> Option<Arc<Feed>> {
        self.endpoint().feeds().of(&session.id)
    }
}

fn not_queued(id: &str) -> CopilotError {
    CopilotError::Failed(format!("no message {id} is queued: session.queue.pendingItems lists them"))
}
