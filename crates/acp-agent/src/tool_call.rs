//! Tool calls as ACP has them.

use agent_client_protocol_schema::v1 as acp;
use grove_wire::ahp::{
    ContentRef, FileEdit, ToolCallBase, ToolCallParameters, ToolCallPendingConfirmation, ToolCallResult, ToolCallState,
    ToolInput, ToolResultContent,
};
use grove_wire::file_uri;
use serde_json::Value;

/// A tool call, with contents that may have to be fetched.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CallDraft {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) name: String,
    pub(crate) kind: acp::ToolKind,
    pub(crate) status: acp::ToolCallStatus,
    pub(crate) content: Vec<DraftContent>,
    pub(crate) locations: Vec<acp::ToolCallLocation>,
    pub(crate) raw_input: Option<Value>,
    pub(crate) raw_output: Option<Value>,
    /// It was a command when it was told first, so it has a terminal if the editor shows terminals.
    pub(crate) is_command: bool,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum DraftContent {
    Text(String),
    Image {
        data: String,
        mime_type: String,
    },
    /// The host stores it.
    Stored(ContentRef),
    /// A changed file, whose two sides the host stores.
    Edit {
        path: String,
        before: Option<ContentRef>,
        after: Option<ContentRef>,
    },
}

/// A tool call, whatever its state. `None` if its state is unknown.
pub(crate) fn draft(call: &ToolCallState) -> Option<CallDraft> {
    use acp::ToolCallStatus::{Completed, Failed, InProgress, Pending};
    let base = call.base()?;
    Some(match call {
        // The input is told when it is complete.
        ToolCallState::Streaming(_) => begin(base, &ToolCallParameters::default(), Pending),
        ToolCallState::PendingConfirmation(call) => waiting(call),
        ToolCallState::Running(call) => {
            let running = begin(base, &call.parameters, InProgress);
            CallDraft { content: contents(call.content.as_deref()), ..running }
        }
        ToolCallState::AuthRequired(call) => begin(base, &call.parameters, InProgress),
        ToolCallState::PendingResultConfirmation(call) => end(base, &call.parameters, &call.result, InProgress),
        ToolCallState::Completed(call) => {
            let status = if call.result.success { Completed } else { Failed };
            end(base, &call.parameters, &call.result, status)
        }
        ToolCallState::Cancelled(call) => {
            let reason = call.reason_message.as_ref().map(|reason| DraftContent::Text(reason.text().to_owned()));
            CallDraft { content: reason.into_iter().collect(), ..begin(base, &call.parameters, Failed) }
        }
        ToolCallState::Unknown(_) => return None,
    })
}

/// A tool call that waits for permission, with the changes that it would make.
pub(crate) fn waiting(call: &ToolCallPendingConfirmation) -> CallDraft {
    let edits = call.edits.iter().flat_map(|edits| &edits.items).filter_map(edit);
    let draft = begin(&call.base, &call.parameters, acp::ToolCallStatus::Pending);
    // The question may say more than the call. Once it is answered, the call has its own title again.
    let asked = call.confirmation_title.as_ref().map(|title| title.text()).unwrap_or_default();
    let title = match asked.is_empty() || asked == draft.title {
        true => draft.title,
        false => format!("{asked} {}", draft.title),
    };
    CallDraft { title, content: edits.collect(), ..draft }
}

/// Returns whether nothing can change in a call any more.
pub(crate) fn is_final(call: &ToolCallState) -> bool {
    matches!(call, ToolCallState::Completed(_) | ToolCallState::Cancelled(_))
}

fn begin(base: &ToolCallBase, parameters: &ToolCallParameters, status: acp::ToolCallStatus) -> CallDraft {
    let titles = [parameters.invocation_message.text(), base.display_name.as_str(), base.tool_name.as_str()];
    let title = titles.into_iter().find(|title| !title.is_empty()).unwrap_or("tool");
    let kind = kind(base);
    CallDraft {
        id: base.tool_call_id.clone(),
        title: title.to_owned(),
        name: base.tool_name.clone(),
        kind,
        status,
        content: Vec::new(),
        locations: locations(base),
        raw_input: parameters.tool_input.as_ref().and_then(|input| match input {
            ToolInput::Inline(text) => Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.clone()))),
            ToolInput::Ref(_) => None,
        }),
        raw_output: None,
        is_command: kind == acp::ToolKind::Execute,
    }
}

fn end(
    base: &ToolCallBase,
    parameters: &ToolCallParameters,
    result: &ToolCallResult,
    status: acp::ToolCallStatus,
) -> CallDraft {
    let error = result.error.as_ref().map(|error| DraftContent::Text(error.message.clone()));
    let content = contents(result.content.as_deref());
    CallDraft {
        // An error that the content shows is not repeated.
        content: if content.is_empty() { error.into_iter().collect() } else { content },
        raw_output: result.structured_content.clone().map(Value::Object),
        ..begin(base, parameters, status)
    }
}

fn contents(content: Option<&[ToolResultContent]>) -> Vec<DraftContent> {
    let piece = |content: &ToolResultContent| match content {
        ToolResultContent::Text(text) => Some(DraftContent::Text(text.text.clone())),
        ToolResultContent::EmbeddedResource(resource) if resource.content_type.starts_with("image/") => {
            let (data, mime_type) = (resource.data.clone(), resource.content_type.clone());
            Some(DraftContent::Image { data, mime_type })
        }
        ToolResultContent::EmbeddedResource(resource) => {
            Some(DraftContent::Text(format!("({} that cannot be shown)", resource.content_type)))
        }
        ToolResultContent::Resource(stored) => Some(DraftContent::Stored(stored.clone())),
        ToolResultContent::FileEdit(file) => edit(file),
        // Terminals are the host's: an editor has no terminal of that id.
        ToolResultContent::Terminal(terminal) => {
            let preview = terminal.result.as_ref().and_then(|result| result.preview.clone());
            Some(DraftContent::Text(preview.unwrap_or_else(|| terminal.title.clone())))
        }
        ToolResultContent::Subagent(subagent) => Some(DraftContent::Text(subagent.title.clone())),
        ToolResultContent::Unknown(_) => None,
    };
    content.into_iter().flatten().filter_map(piece).collect()
}

fn edit(file: &FileEdit) -> Option<DraftContent> {
    let side = file.after.as_ref().or(file.before.as_ref())?;
    let path = file_uri::to_path(&side.uri).unwrap_or_else(|| side.uri.clone());
    let content = |side: &Option<grove_wire::ahp::FileEditSide>| side.as_ref().map(|side| side.content.clone());
    Some(DraftContent::Edit { path, before: content(&file.before), after: content(&file.after) })
}

fn kind(base: &ToolCallBase) -> acp::ToolKind {
    match base.meta.as_ref().and_then(|meta| meta.get("toolKind")?.as_str()) {
        Some("terminal") => acp::ToolKind::Execute,
        Some("read") => acp::ToolKind::Read,
        Some("edit") => acp::ToolKind::Edit,
        Some("delete") => acp::ToolKind::Delete,
        Some("move") => acp::ToolKind::Move,
        Some("search") => acp::ToolKind::Search,
        Some("think") => acp::ToolKind::Think,
        Some("fetch") => acp::ToolKind::Fetch,
        Some("switchMode") => acp::ToolKind::SwitchMode,
        Some(_) | None => acp::ToolKind::Other,
    }
}

/// The files that the call is about, as an ACP agent behind the host named them.
fn locations(base: &ToolCallBase) -> Vec<acp::ToolCallLocation> {
    let named = base.meta.as_ref().and_then(|meta| meta.get("acp")?.get("locations")?.as_array());
    named.into_iter().flatten().filter_map(|location| serde_json::from_value(location.clone()).ok()).collect()
}

impl CallDraft {
    /// The whole call.
    pub(crate) fn announce(self, content: Vec<acp::ToolCallContent>) -> acp::ToolCall {
        acp::ToolCall::new(acp::ToolCallId::new(self.id), self.title)
            .name(Some(self.name))
            .kind(self.kind)
            .status(self.status)
            .content(content)
            .locations(self.locations)
            .raw_input(self.raw_input)
            .raw_output(self.raw_output)
    }

    /// The members that differ from what was told before; everything if nothing was.
    pub(crate) fn update(self, told: Option<&CallDraft>, content: Vec<acp::ToolCallContent>) -> acp::ToolCallUpdate {
        let is_new = |differs: fn(&CallDraft, &CallDraft) -> bool| told.is_none_or(|told| differs(&self, told));
        let mut fields = acp::ToolCallUpdateFields::new();
        if is_new(|new, told| new.title != told.title) {
            fields.title = Some(self.title.clone());
        }
        if is_new(|new, told| new.kind != told.kind) {
            fields.kind = Some(self.kind);
        }
        if is_new(|new, told| new.status != told.status) {
            fields.status = Some(self.status);
        }
        if is_new(|new, told| new.content != told.content) {
            fields.content = Some(content);
        }
        if is_new(|new, told| new.locations != told.locations) {
            fields.locations = Some(self.locations.clone());
        }
        if is_new(|new, told| new.raw_input != told.raw_input) {
            fields.raw_input = self.raw_input.clone();
        }
        if is_new(|new, told| new.raw_output != told.raw_output) {
            fields.raw_output = self.raw_output.clone();
        }
        acp::ToolCallUpdate::new(acp::ToolCallId::new(self.id), fields)
    }
}
