//! A chat client for version 1, in which a session and its one chat are the same resource.

use anyhow::Result;
use grove_client::{Client, ClientClosed, ConnectionStatus, DispatchHandle, Subscription, Unsupported, V1};
use grove_wire::v1::{
    ActiveTurn, CompletedToolCall, Lifecycle, PermissionRequest, ResponsePart, SessionChange, ToolCallState,
    ToolCallStatus, TurnState, UsageInfo, UserMessage,
};
use grove_wire::x_grove::policy::{PolicyAllowResult, PolicyOffersResult};
use serde_json::Value;
use tokio::sync::watch;

use super::presence::PresenceLines;
use super::tree::AnyClient;
use super::{
    AlwaysChoice, ApprovalStage, ChatClient, ChatCommand, ChatView, PartContent, PartKey, PartView, PendingRequest,
    SessionReadiness, ToolPart, ToolPartState, ToolPermission, TurnResult, TurnView, UsageView, always,
};

const REASONING: PartKey = (0, 0);
const TEXT: PartKey = (1, 0);
const TOOLS: u8 = 2;
const OTHERS: u8 = 3;

#[derive(Debug)]
pub(crate) struct V1ChatClient {
    session: Subscription<V1>,
}

impl V1ChatClient {
    /// The lines about the session's other clients.
    pub(crate) fn watch_presence(&self) -> PresenceLines {
        PresenceLines::watch(self.session.client(), self.session.resource())
    }

    pub(crate) async fn join(client: &Client<V1>, session: &str) -> Result<Self> {
        Ok(Self { session: client.subscribe(session).await? })
    }

    /// The id and name of each model that the session's agent offers.
    pub(crate) async fn models(&self) -> Result<Vec<(String, String)>> {
        let provider = self.session.read(|state| state.session().map(|session| session.summary.provider.clone()));
        let root = self.session.client().subscribe(grove_wire::v1::ROOT).await?;
        Ok(root.read(|state| {
            let agents = state.root().map(|root| root.agents.as_slice()).unwrap_or_default();
            let agent = agents.iter().find(|agent| Some(&agent.provider) == provider.as_ref());
            let models = agent.into_iter().flat_map(|agent| &agent.models);
            models.map(|model| (model.id.clone(), model.name.clone())).collect()
        }))
    }
}

impl ChatClient for V1ChatClient {
    fn uri(&self) -> &str {
        self.session.resource()
    }

    fn read_view<T>(&self, read_view: impl FnOnce(&ChatView<'_>) -> T) -> T {
        self.session.read_confirmed(|state, _| {
            let session = state.session();
            let turns = session.map(|session| session.turns.as_slice()).unwrap_or_default();
            read_view(&ChatView {
                title: session.map_or("", |session| session.summary.title.as_str()),
                turns: turns.iter().map(finished).collect(),
                older: false,
                active: session.and_then(|session| session.active_turn.as_ref()).map(active),
                queued: Vec::new(),
                activity: None,
                warnings: &[],
            })
        })
    }

    fn waiting(&self) -> Vec<PendingRequest> {
        self.session.read_confirmed(|state, _| {
            let active = state.session().and_then(|session| session.active_turn.as_ref());
            let Some(active) = active else { return Vec::new() };
            active.pending_permissions.values().map(|request| waiting(active, request)).collect()
        })
    }

    fn readiness(&self) -> SessionReadiness {
        self.session.read_confirmed(|state, _| match state.session() {
            Some(session) => match session.lifecycle {
                Lifecycle::Creating => SessionReadiness::Creating,
                Lifecycle::Ready => SessionReadiness::Ready,
                Lifecycle::CreationFailed => {
                    let error = session.creation_error.as_ref();
                    SessionReadiness::Failed(error.map(|error| error.message.clone()).unwrap_or_default())
                }
            },
            None => SessionReadiness::Creating,
        })
    }

    async fn changed(&mut self) -> Result<(), ClientClosed> {
        self.session.changed().await
    }

    fn status(&self) -> watch::Receiver<ConnectionStatus> {
        self.session.client().status()
    }

    fn is_gone(&self) -> bool {
        self.session.is_gone()
    }

    async fn act(&mut self, command: ChatCommand) -> Result<DispatchHandle> {
        let missing = |what: &str| {
            let (what, version) = (what.to_owned(), "1".to_owned());
            Err(Unsupported::ByVersion { what, version }.into())
        };
        let change = match command {
            ChatCommand::Configure { .. } => return missing("session settings"),
            ChatCommand::Start { turn, text, model } => {
                if let Some(model) = model {
                    self.session.dispatch(SessionChange::ModelChanged { model })?;
                }
                SessionChange::TurnStarted { turn_id: turn, user_message: UserMessage { text, attachments: None } }
            }
            ChatCommand::Cancel { turn } => SessionChange::TurnCancelled { turn_id: turn },
            ChatCommand::Permit { verdict, .. } if verdict.option.is_some() => {
                return missing("permission options");
            }
            ChatCommand::Permit { permission, verdict } => SessionChange::PermissionResolved {
                turn_id: permission.turn,
                request_id: permission.request,
                approved: verdict.approved,
                policy_rule: None,
            },
            ChatCommand::Queue { .. } => return missing("message queue"),
            ChatCommand::Answer { .. } => return missing("questions"),
        };
        Ok(self.session.dispatch(change)?)
    }

    async fn rule_offers(&self, permission: &ToolPermission) -> PolicyOffersResult {
        let client = AnyClient::V1(self.session.client().clone());
        always::offers(&client, self.uri(), permission).await
    }

    async fn allow_always(&self, permission: &ToolPermission, choice: AlwaysChoice) -> Result<PolicyAllowResult> {
        let client = AnyClient::V1(self.session.client().clone());
        always::allow(&client, self.uri(), permission, choice).await
    }

    async fn content(&self, _uri: &str) -> Option<String> {
        // Version 1's requests refer to no contents.
        None
    }

    fn finished(&self, turn: &str) -> Option<Value> {
        self.session.read_confirmed(|state, _| {
            let turn = state.session()?.turns.iter().rev().find(|done| done.id == turn)?;
            serde_json::to_value(turn).ok()
        })
    }
}

fn part(key: PartKey, content: PartContent<'_>) -> PartView<'_> {
    PartView { key, content }
}

fn other(at: usize, response: &ResponsePart) -> PartView<'_> {
    let content = match response {
        ResponsePart::Markdown { content } => PartContent::Text(content),
        ResponsePart::ContentRef { uri, mime_type, .. } => {
            PartContent::Notice(format!("{} at {uri}", mime_type.as_deref().unwrap_or("content")).into())
        }
    };
    part((OTHERS, at), content)
}

fn active(turn: &ActiveTurn) -> TurnView<'_> {
    let mut parts = vec![
        part(REASONING, PartContent::Reasoning(&turn.reasoning)),
        part(TEXT, PartContent::Text(&turn.streaming_text)),
    ];
    parts.extend(
        turn.tool_calls.values().enumerate().map(|(at, call)| part((TOOLS, at), PartContent::ToolPart(tool(call)))),
    );
    parts.push(part(TEXT, PartContent::Text(&turn.streaming_text)));
    parts.extend(turn.response_parts.iter().enumerate().map(|(at, response)| other(at, response)));
    TurnView { id: &turn.id, prompt: &turn.user_message.text, parts, usage: turn.usage.as_ref().map(usage), end: None }
}

fn finished(turn: &grove_wire::v1::Turn) -> TurnView<'_> {
    // The streamed text comes before the other parts.
    let (text, others) = match turn.response_parts.as_slice() {
        [ResponsePart::Markdown { content }, others @ ..] => (content.as_str(), others),
        others => ("", others),
    };
    let mut parts = vec![part(TEXT, PartContent::Text(text))];
    parts.extend(
        turn.tool_calls.iter().enumerate().map(|(at, call)| part((TOOLS, at), PartContent::ToolPart(done(call)))),
    );
    parts.extend(others.iter().enumerate().map(|(at, response)| other(at, response)));
    let end = match turn.state {
        TurnState::Complete => TurnResult::Complete,
        TurnState::Cancelled => TurnResult::Cancelled,
        TurnState::Error => {
            TurnResult::Failed(turn.error.as_ref().map_or("the reason is unknown", |error| error.message.as_str()))
        }
    };
    TurnView {
        id: &turn.id,
        prompt: &turn.user_message.text,
        parts,
        usage: turn.usage.as_ref().map(usage),
        end: Some(end),
    }
}

fn usage(usage: &UsageInfo) -> UsageView<'_> {
    UsageView { input: usage.input_tokens, output: usage.output_tokens, meta: None }
}

fn tool(call: &ToolCallState) -> ToolPart<'_> {
    let did = call.past_tense_message.as_deref().unwrap_or(&call.invocation_message);
    let output = call.tool_output.as_deref().unwrap_or_default().into();
    let state = match call.status {
        ToolCallStatus::PendingPermission => ToolPartState::NotYet,
        ToolCallStatus::Running => ToolPartState::Runs,
        ToolCallStatus::Completed => ToolPartState::Done { success: true, did, ran: None, output },
        // It ran without success, or was not allowed to run.
        ToolCallStatus::Failed if call.success.is_some() => {
            ToolPartState::Done { success: false, did, ran: None, output }
        }
        ToolCallStatus::Failed => ToolPartState::Cancelled { why: "denied".into() },
    };
    let (name, does) = (call.display_name.as_str(), call.invocation_message.as_str());
    ToolPart { name, does, input: call.tool_input.as_deref(), edits: Vec::new(), approved_by: None, state }
}

fn done(call: &CompletedToolCall) -> ToolPart<'_> {
    let output = call.tool_output.as_deref().unwrap_or_default().into();
    let state = ToolPartState::Done { success: call.success, did: &call.past_tense_message, ran: None, output };
    ToolPart {
        name: &call.display_name,
        does: &call.display_name,
        input: None,
        edits: Vec::new(),
        approved_by: None,
        state,
    }
}

fn waiting(turn: &ActiveTurn, request: &PermissionRequest) -> PendingRequest {
    let call = request.tool_call_id.as_ref().and_then(|id| turn.tool_calls.get(id));
    let name = call.map_or("the agent", |call| call.display_name.as_str());
    let about = request.intention.clone().or_else(|| call.map(|call| call.invocation_message.clone()));
    let input = [&request.full_command_text, &request.path].into_iter().flatten().next().cloned();
    PendingRequest::ToolPermission(ToolPermission {
        chat: String::new(),
        turn: turn.id.clone(),
        request: request.request_id.clone(),
        name: name.to_owned(),
        title: if request.full_command_text.is_some() {
            "Run this command?".to_owned()
        } else {
            about.unwrap_or_default()
        },
        is_command: request.full_command_text.is_some(),
        diffs: Vec::new(),
        input: input.or_else(|| call.and_then(|call| call.tool_input.clone())),
        edits: Vec::new(),
        options: Vec::new(),
        about: ApprovalStage::Running,
        offers: Box::default(),
    })
}
