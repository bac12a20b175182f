//! A chat client for the Agent Host Protocol: the channels of the session and of one chat.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::{Context, Result};
use grove_client::{Ahp, Client, ClientClosed, ConnectionStatus, DispatchHandle, Subscription};
use grove_core::Answerer;
use grove_wire::ahp::{
    Action, ChatAction, ChatInputCompleted, ChatInputResponseKind, ChatPendingMessageSet, ChatToolCallConfirmed,
    ChatToolCallResultConfirmed, ChatTurnCancelled, ChatTurnStarted, ContentEncoding, FileEdit, Message,
    ModelSelection, PendingMessageKind, ResourceReadParams, ResponsePart, SessionAction, SessionConfigChanged,
    SessionInputRequest, SessionLifecycle, SessionState, StringOrMarkdown, ToolCallBase, ToolCallCancellationReason,
    ToolCallCancelled, ToolCallConfirmation, ToolCallConfirmationReason, ToolCallParameters, ToolCallState, ToolInput,
    ToolResultContent, TurnState, UsageInfo, time,
};
use grove_wire::x_grove::handover::RemoteSession;
use grove_wire::x_grove::policy::{PolicyAllowResult, PolicyOffersResult};
use serde_json::Value;
use tokio::sync::watch;

use crate::connect::read_moved_to;

use super::presence::PresenceLines;
use super::tree::AnyClient;
use super::{
    AlwaysChoice, ApprovalStage, ChatClient, ChatCommand, ChatView, DecisionSource, ModeSetting, OtherChat,
    PartContent, PartView, PendingRequest, PlanPart, SessionReadiness, SessionSettings, ToolPart, ToolPartState,
    ToolPermission, TurnResult, TurnView, UsageView, always,
};

#[derive(Debug)]
pub(crate) struct AhpChatClient {
    session: Subscription<Ahp>,
    chat: Subscription<Ahp>,
    /// Other chats of the session in which a request was answered.
    others: Vec<Subscription<Ahp>>,
}

impl AhpChatClient {
    /// Subscribes to a session, and to one of its chats (by default the main one).
    pub(crate) async fn join(client: &Client<Ahp>, session: &str, chat: Option<String>) -> Result<Self> {
        let session = client.subscribe(session).await?;
        let chat = chat.or_else(|| session.read(|state| state.session().and_then(main_chat)));
        let chat = chat.context("the session has no chat")?;
        let chat = client.subscribe(&chat).await?;
        Ok(Self { session, chat, others: Vec::new() })
    }

    /// The other chats of the session.
    pub(crate) fn other_chats(&self) -> Vec<OtherChat> {
        let shown = self.chat.resource();
        self.session.read(|state| state.session().map(|session| other_chats(session, shown)).unwrap_or_default())
    }

    /// The id and name of each model that the session's agent offers.
    pub(crate) async fn models(&self) -> Result<Vec<(String, String)>> {
        let provider = self.session.read(|state| state.session().map(|session| session.provider.clone()));
        let root = self.session.client().subscribe(grove_wire::ahp::ROOT).await?;
        Ok(root.read(|state| {
            let agents = state.root().map(|root| root.agents.as_slice()).unwrap_or_default();
            let agent = agents.iter().find(|agent| Some(&agent.provider) == provider.as_ref());
            let models = agent.into_iter().flat_map(|agent| &agent.models);
            models.map(|model| (model.id.clone(), model.name.clone())).collect()
        }))
    }

    /// The settings of the session, once its agent has named them.
    pub(crate) fn settings(&self) -> SessionSettings {
        self.session.read_confirmed(|state, _| state.session().map(settings).unwrap_or_default())
    }

    /// The lines about the session's other clients.
    pub(crate) fn watch_presence(&self) -> PresenceLines {
        PresenceLines::watch(self.session.client(), self.session.resource())
    }

    /// The new location of a session that was moved to another host.
    pub(crate) fn moved_to(&self) -> Option<RemoteSession> {
        self.session.read(|state| read_moved_to(state.session()?))
    }

    fn confirm(permission: ToolPermission, verdict: super::PermissionDecision) -> ChatAction {
        let ToolPermission { turn, request, about, .. } = permission;
        let (approved, denied) = (verdict.approved, !verdict.approved);
        match about {
            ApprovalStage::Result => ChatAction::ToolCallResultConfirmed(ChatToolCallResultConfirmed {
                turn_id: turn,
                tool_call_id: request,
                meta: None,
                approved,
            }),
            ApprovalStage::Running => ChatAction::ToolCallConfirmed(Box::new(ChatToolCallConfirmed {
                turn_id: turn,
                tool_call_id: request,
                meta: None,
                approved,
                confirmed: approved.then_some(match verdict.by {
                    DecisionSource::Person => ToolCallConfirmationReason::UserAction,
                    DecisionSource::Setting => ToolCallConfirmationReason::Setting,
                }),
                reason: denied.then_some(ToolCallCancellationReason::Denied),
                edited_tool_input: None,
                user_suggestion: None,
                reason_message: verdict.reason.filter(|_| denied).map(StringOrMarkdown::Plain),
                selected_option_id: verdict.option,
            })),
        }
    }
}

pub(crate) fn main_chat(session: &SessionState) -> Option<String> {
    session.default_chat.clone().or_else(|| session.chats.first().map(|chat| chat.resource.clone()))
}

/// The chats of a session except one.
pub(crate) fn other_chats(session: &SessionState, but: &str) -> Vec<OtherChat> {
    let main = main_chat(session);
    let others = session.chats.iter().filter(|chat| chat.resource != but);
    let other = |chat: &grove_wire::ahp::ChatSummary| {
        let is_main = main.as_ref() == Some(&chat.resource);
        let name = if is_main { MAIN_CHAT.to_owned() } else { chat_name(&chat.resource) };
        OtherChat { name, title: chat.title.clone() }
    };
    others.map(other).collect()
}

/// The name of a session's main chat.
pub(crate) const MAIN_CHAT: &str = "main";

/// The name of a chat within its session: `ID` of `ahp-chat:/ID` and of `ahp-chat://ID/SESSION`.
pub(crate) fn chat_name(uri: &str) -> String {
    let (_, rest) = uri.split_once(":/").unwrap_or(("", uri));
    match rest.strip_prefix('/') {
        Some(rest) => rest.split('/').next().unwrap_or(rest).to_owned(),
        None => rest.rsplit('/').next().unwrap_or(rest).to_owned(),
    }
}

fn settings(session: &SessionState) -> SessionSettings {
    // An agent names its settings when it starts, which may be after the snapshot.
    let named = session.meta.as_ref().and_then(|meta| meta.get("settings")).cloned();
    let schema = session.config.as_ref().and_then(|config| serde_json::to_value(&config.schema).ok());
    let properties = named.or(schema).and_then(|schema| schema.get("properties")?.as_object().cloned());
    let is_mode = |(name, property): &(String, Value)| {
        name == "mode" || property["title"].as_str().is_some_and(|title| title.eq_ignore_ascii_case("mode"))
    };
    let mode = properties.into_iter().flatten().find(is_mode).map(|(name, property)| {
        let texts = |key: &str| {
            let texts = property[key].as_array().into_iter().flatten();
            texts.map(|text| text.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        let (ids, labels) = (texts("enum"), texts("enumLabels"));
        let label = |at: usize, id: &String| labels.get(at).unwrap_or(id).clone();
        let choices = ids.iter().enumerate().map(|(at, id)| (id.clone(), label(at, id))).collect();
        ModeSetting { name, choices }
    });
    SessionSettings { has_any: session.config.is_some(), mode }
}

/// Warnings for the user before they continue a session.
fn warnings(session: &SessionState) -> Vec<String> {
    let meta_value = |key: &str| session.meta.as_ref().and_then(|meta| meta.get(key));
    let warnings = meta_value("warnings").and_then(Value::as_array).into_iter().flatten();
    let warnings = warnings.filter_map(|warning| warning.as_str().map(ToOwned::to_owned));
    let unsaved = meta_value("unsaved").and_then(Value::as_str);
    let unsaved = unsaved.map(|why| format!("the last messages are not stored yet, and new ones are refused: {why}"));
    warnings.chain(unsaved).collect()
}

fn usage(usage: &UsageInfo) -> UsageView<'_> {
    UsageView { input: usage.input_tokens, output: usage.output_tokens, meta: usage.meta.as_ref() }
}

fn message(text: String) -> Message {
    Message { text, ..Message::default() }
}

impl ChatClient for AhpChatClient {
    fn uri(&self) -> &str {
        self.session.resource()
    }

    fn read_view<T>(&self, read_view: impl FnOnce(&ChatView<'_>) -> T) -> T {
        let (title, warnings) = self.session.read_confirmed(|state, _| {
            let session = state.session();
            (session.map(|session| session.title.clone()), session.map(warnings).unwrap_or_default())
        });
        self.chat.read_confirmed(|state, _| {
            let chat = state.chat();

            let turns = chat.map(|chat| chat.turns.as_slice()).unwrap_or_default();
            let view = ChatView {
                title: title.as_deref().unwrap_or_default(),
                turns: turns
                    .iter()
                    .map(|turn| TurnView {
                        id: &turn.id,
                        prompt: &turn.message.text,
                        parts: parts(&turn.response_parts),
                        usage: turn.usage.as_ref().map(usage),
                        end: Some(end(turn)),
                    })
                    .collect(),
                older: chat.is_some_and(|chat| chat.turns_next_cursor.is_some()),
                active: chat.and_then(|chat| chat.active_turn.as_ref()).map(|turn| TurnView {
                    id: &turn.id,
                    prompt: &turn.message.text,
                    parts: parts(&turn.response_parts),
                    usage: turn.usage.as_ref().map(usage),
                    end: None,
                }),
                queued: chat
                    .and_then(|chat| chat.queued_messages.as_ref())
                    .into_iter()
                    .flatten()
                    .map(|queued| queued.message.text.as_str())
                    .collect(),
                activity: chat.and_then(|chat| chat.activity.as_deref()),
                warnings: &warnings,
            };
            read_view(&view)
        })
    }

    fn waiting(&self) -> Vec<PendingRequest> {
        self.session.read_confirmed(|state, _| {
            let needed = state.session().and_then(|session| session.input_needed.as_ref());
            needed.into_iter().flatten().filter_map(waiting).collect()
        })
    }

    fn readiness(&self) -> SessionReadiness {
        self.session.read_confirmed(|state, _| {
            let Some(session) = state.session() else { return SessionReadiness::Creating };
            match session.lifecycle {
                SessionLifecycle::Ready => SessionReadiness::Ready,
                SessionLifecycle::Failed => SessionReadiness::Failed(
                    session.creation_error.as_ref().map(|error| error.message.clone()).unwrap_or_default(),
                ),
                SessionLifecycle::Creating | SessionLifecycle::Unknown(_) => SessionReadiness::Creating,
            }
        })
    }

    async fn changed(&mut self) -> Result<(), ClientClosed> {
        tokio::select! {
            changed = self.chat.changed() => changed,
            changed = self.session.changed() => changed,
        }
    }

    fn status(&self) -> watch::Receiver<ConnectionStatus> {
        self.session.client().status()
    }

    fn is_gone(&self) -> bool {
        self.session.is_gone() || self.chat.is_gone()
    }

    async fn act(&mut self, command: ChatCommand) -> Result<DispatchHandle> {
        let (chat, action) = match command {
            ChatCommand::Configure { values } => {
                let change = SessionConfigChanged { config: values, replace: None };
                return Ok(self.session.dispatch(Action::Session(SessionAction::ConfigChanged(change)))?);
            }
            ChatCommand::Start { turn, text, model } => (
                None,
                ChatAction::TurnStarted(ChatTurnStarted {
                    turn_id: turn,
                    started_at: time::text(now()),
                    message: Message { model: model.map(|id| ModelSelection { id, config: None }), ..message(text) },
                    queued_message_id: None,
                    meta: None,
                }),
            ),
            ChatCommand::Queue { id, text } => (
                None,
                ChatAction::PendingMessageSet(ChatPendingMessageSet {
                    kind: PendingMessageKind::Queued,
                    id,
                    message: message(text),
                }),
            ),
            ChatCommand::Cancel { turn } => {
                // The host measures the duration itself; the confirmed value is shown.
                (None, ChatAction::TurnCancelled(ChatTurnCancelled { turn_id: turn, duration: 0, meta: None }))
            }
            ChatCommand::Permit { permission, verdict } => {
                (Some(permission.chat.clone()), Self::confirm(*permission, verdict))
            }
            ChatCommand::Answer { chat, request, answers } => (
                Some(chat),
                ChatAction::InputCompleted(ChatInputCompleted {
                    request_id: request,
                    response: match answers {
                        Some(_) => ChatInputResponseKind::Accept,
                        None => ChatInputResponseKind::Decline,
                    },
                    answers: answers.map(|answers| answers.into_iter().collect()),
                }),
            ),
        };
        // Without a subscription, only rejections of an action arrive.
        let chat = match chat.filter(|chat| chat != self.chat.resource()) {
            None => &self.chat,
            Some(chat) => match self.others.iter().position(|other| other.resource() == chat) {
                Some(at) => &self.others[at],
                None => {
                    self.others.push(self.chat.client().subscribe(&chat).await?);
                    &self.others[self.others.len() - 1]
                }
            },
        };
        Ok(chat.dispatch(Action::Chat(action))?)
    }

    async fn rule_offers(&self, permission: &ToolPermission) -> PolicyOffersResult {
        let client = AnyClient::Ahp(self.session.client().clone());
        always::offers(&client, &permission.chat, permission).await
    }

    async fn allow_always(&self, permission: &ToolPermission, choice: AlwaysChoice) -> Result<PolicyAllowResult> {
        let client = AnyClient::Ahp(self.session.client().clone());
        always::allow(&client, &permission.chat, permission, choice).await
    }

    async fn content(&self, uri: &str) -> Option<String> {
        let read = ResourceReadParams {
            channel: grove_wire::ahp::ROOT.to_owned(),
            meta: None,
            uri: uri.to_owned(),
            encoding: None,
        };
        let read = self.session.client().request(read).await.ok()?;
        (read.encoding == ContentEncoding::Utf8).then_some(read.data)
    }

    fn finished(&self, turn: &str) -> Option<Value> {
        self.chat.read_confirmed(|state, _| {
            let turn = state.chat()?.turns.iter().rev().find(|done| done.id == turn)?;
            serde_json::to_value(turn).ok()
        })
    }
}

fn now() -> grove_core::Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    grove_core::Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn end(turn: &grove_wire::ahp::Turn) -> TurnResult<'_> {
    match turn.state {
        TurnState::Complete => TurnResult::Complete,
        TurnState::Cancelled => TurnResult::Cancelled,
        TurnState::Error => TurnResult::Failed(match turn.response_parts.last() {
            Some(ResponsePart::Error(part)) => &part.error.message,
            _ => "the reason is unknown",
        }),
    }
}

fn parts(parts: &[ResponsePart]) -> Vec<PartView<'_>> {
    let shown = parts.iter().enumerate().filter_map(|(at, part)| {
        let content = match part {
            ResponsePart::Markdown(part) => PartContent::Text(&part.content),
            ResponsePart::Reasoning(part) => PartContent::Reasoning(&part.content),
            ResponsePart::ToolCall(part) => PartContent::ToolPart(tool(&part.tool_call)?),
            ResponsePart::SystemNotification(part) => {
                let text = part.content.text();
                match part.meta.as_ref().and_then(|meta| meta.get("plan")) {
                    Some(plan) => PartContent::PlanPart(PlanPart { plan, text }),
                    None => PartContent::Notice(text.into()),
                }
            }
            ResponsePart::ContentRef(content) => {
                let kind = content.content_type.as_deref().unwrap_or("content");
                PartContent::Notice(format!("{kind} at {}", content.uri).into())
            }
            ResponsePart::InputRequest(part) => {
                let first = part.request.questions.iter().flatten().next().map(crate::question_dialog::wording);
                let asks = part.request.message.as_deref().map(Cow::Borrowed).or(first.map(Cow::Owned));
                let response = part.response.map(|response| match response {
                    ChatInputResponseKind::Accept => "answered",
                    ChatInputResponseKind::Decline => "declined",
                    ChatInputResponseKind::Cancel => "cancelled",
                });
                PartContent::Question { asks: asks.unwrap_or_default(), response }
            }
            // The end of the turn reports it.
            ResponsePart::Error(_) | ResponsePart::Unknown(_) => return None,
        };
        Some(PartView { key: (0, at), content })
    });
    shown.collect()
}

fn input(parameters: &ToolCallParameters) -> Option<&str> {
    match parameters.tool_input.as_ref()? {
        ToolInput::Inline(input) => Some(input),
        ToolInput::Ref(_) => None,
    }
}

fn tool(call: &ToolCallState) -> Option<ToolPart<'_>> {
    let mut edits = Vec::new();
    let (base, parameters, state) = match call {
        ToolCallState::Streaming(call) => {
            let name = call.base.display_name.as_str();
            let state = ToolPartState::NotYet;
            return Some(ToolPart { name, does: name, input: None, edits, approved_by: None, state });
        }
        ToolCallState::PendingConfirmation(call) => (&call.base, &call.parameters, ToolPartState::NotYet),
        ToolCallState::Running(call) => (&call.base, &call.parameters, ToolPartState::Runs),
        ToolCallState::AuthRequired(call) => (&call.base, &call.parameters, ToolPartState::Runs),
        ToolCallState::PendingResultConfirmation(call) => (&call.base, &call.parameters, ToolPartState::Runs),
        ToolCallState::Completed(call) => {
            edits = self::edits(call.result.content.as_deref().unwrap_or_default());
            let state = ToolPartState::Done {
                success: call.result.success,
                ran: ran(&call.base),
                did: call.result.past_tense_message.text(),
                output: output(call.result.content.as_deref().unwrap_or_default()),
            };
            (&call.base, &call.parameters, state)
        }
        ToolCallState::Cancelled(call) => {
            (&call.base, &call.parameters, ToolPartState::Cancelled { why: why_cancelled(call) })
        }
        ToolCallState::Unknown(_) => return None,
    };
    let name = base.display_name.as_str();
    let approved_by = answerer(base);
    let (does, input) = (parameters.invocation_message.text(), input(parameters));
    Some(ToolPart { name, does, input, edits, approved_by, state })
}

/// The reason why a call did not run, with the party that denied it if the host names one.
fn why_cancelled(call: &ToolCallCancelled) -> Cow<'_, str> {
    let denied = match call.reason {
        ToolCallCancellationReason::Denied => "denied",
        ToolCallCancellationReason::ResultDenied => "its result was denied",
        ToolCallCancellationReason::Skipped => {
            return call.reason_message.as_ref().map_or("skipped", |message| message.text()).into();
        }
    };
    match (call.reason_message.as_ref().map(|message| message.text()), answerer(&call.base)) {
        (None, None) => denied.into(),
        (None, Some(party)) => format!("{denied} by {party}").into(),
        // The reason names the rule, or the hook.
        (Some(message), None | Some(Answerer::Rule { .. } | Answerer::Hook { .. })) => message.into(),
        (Some(message), Some(party)) => format!("{message} ({denied} by {party})").into(),
    }
}

/// The party that answered the newest question about a call.
fn answerer(base: &ToolCallBase) -> Option<Answerer> {
    Answerer::in_extra(base.meta.as_ref()?)
}

fn ran(base: &ToolCallBase) -> Option<Duration> {
    base.meta.as_ref()?.get("ranMs")?.as_u64().map(Duration::from_millis)
}

fn edits(content: &[ToolResultContent]) -> Vec<&FileEdit> {
    let edits = content.iter().filter_map(|piece| match piece {
        ToolResultContent::FileEdit(edit) => Some(edit),
        _ => None,
    });
    edits.collect()
}

fn output(content: &[ToolResultContent]) -> Cow<'_, str> {
    let mut texts = content.iter().filter_map(|piece| match piece {
        ToolResultContent::Text(text) => Some(text.text.as_str()),
        _ => None,
    });
    match (texts.next(), texts.next()) {
        (None, _) => Cow::Borrowed(""),
        (Some(only), None) => Cow::Borrowed(only),
        (Some(first), Some(second)) => {
            Cow::Owned([first, second].into_iter().chain(texts).collect::<Vec<_>>().join("\n"))
        }
    }
}

fn waiting(needed: &SessionInputRequest) -> Option<PendingRequest> {
    Some(match needed {
        SessionInputRequest::ToolConfirmation(needed) => {
            let mut edits = Vec::new();
            let (base, parameters, title, options, about) = match &needed.tool_call {
                ToolCallConfirmation::PendingConfirmation(call) => {
                    let title = call.confirmation_title.as_ref().map(|title| title.text().to_owned());
                    let options = call.options.clone().unwrap_or_default();
                    edits = call.edits.as_ref().map(|edits| edits.items.clone()).unwrap_or_default();
                    (&call.base, &call.parameters, title, options, ApprovalStage::Running)
                }
                ToolCallConfirmation::PendingResultConfirmation(call) => {
                    let title = format!("{}: use this result?", call.result.past_tense_message.text());
                    (&call.base, &call.parameters, Some(title), Vec::new(), ApprovalStage::Result)
                }
                ToolCallConfirmation::Unknown(_) => return None,
            };
            let title = title.unwrap_or_else(|| parameters.invocation_message.text().to_owned());
            let meta = |key: &str| base.meta.as_ref().and_then(|meta| meta.get(key)?.as_str());
            let is_command = meta("toolKind") == Some("terminal") || meta("language") == Some("shellscript");
            PendingRequest::ToolPermission(ToolPermission {
                chat: needed.chat.clone(),
                turn: needed.turn_id.clone(),
                request: base.tool_call_id.clone(),
                name: base.display_name.clone(),
                title,
                is_command,
                diffs: Vec::new(),
                input: input(parameters).map(ToOwned::to_owned),
                edits,
                options,
                about,
                offers: Box::default(),
            })
        }
        SessionInputRequest::ChatInput(needed) => {
            PendingRequest::Questions { chat: needed.chat.clone(), request: Box::new(needed.request.clone()) }
        }
        SessionInputRequest::ToolClientExecution(needed) => PendingRequest::Elsewhere {
            id: needed.id.clone(),
            what: format!("a tool that the client {} must run", needed.client_id),
        },
        SessionInputRequest::ToolAuthentication(needed) => PendingRequest::Elsewhere {
            id: needed.id.clone(),
            what: "a tool that requires the user to sign in".to_owned(),
        },
        SessionInputRequest::Unknown(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_stored_is_told_with_the_warnings() {
        let session = |meta: Value| SessionState { meta: meta.as_object().cloned(), ..SessionState::default() };
        assert_eq!(warnings(&session(json!({}))), Vec::<String>::new());
        let warnings = warnings(&session(json!({"warnings": ["two work here"], "unsaved": "its provider is gone"})));
        assert_eq!(warnings[0], "two work here");
        assert!(warnings[1].ends_with("new ones are refused: its provider is gone"), "{warnings:?}");
    }
}
