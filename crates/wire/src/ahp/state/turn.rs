//! Turns: a message and its results.

use serde::{Deserialize, Serialize};

use super::{
    AgentSelection, ChatInputRequest, ChatInputResponseKind, ContentRef, ErrorInfo, ModelSelection, StringOrMarkdown,
    TextRange, TextSelection, ToolCallState, UsageInfo,
};
use crate::ahp::macros::{records, unions, words};
use crate::ahp::{Object, Uri};

records! {
    /// A finished turn.
    pub struct Turn {
        pub id: String,
        pub started_at: Option<String>,
        /// Milliseconds. Signed, because the side that ended the turn measured by its own clock.
        pub duration: Option<i64>,
        pub message: Message,
        pub response_parts: Vec<ResponsePart>,
        pub usage: Option<UsageInfo>,
        pub state: TurnState,
    }

    /// The running turn.
    #[derive(Default)]
    pub struct ActiveTurn {
        pub id: String,
        pub started_at: String,
        pub message: Message,
        pub response_parts: Vec<ResponsePart>,
        pub usage: Option<UsageInfo>,
    }

    #[derive(Default)]
    pub struct Message {
        pub text: String,
        pub origin: MessageOrigin,
        pub attachments: Option<Vec<MessageAttachment>>,
        pub model: Option<ModelSelection>,
        pub agent: Option<AgentSelection>,
        pub meta: Option<Object>,
    }

    #[derive(Default, Eq)]
    pub struct MessageOrigin {
        pub kind: MessageKind,
    }

    pub struct SimpleMessageAttachment {
        pub label: String,
        pub range: Option<TextRange>,
        pub display_kind: Option<String>,
        pub meta: Option<Object>,
        pub model_representation: Option<String>,
    }

    pub struct MessageEmbeddedResourceAttachment {
        pub label: String,
        pub range: Option<TextRange>,
        pub display_kind: Option<String>,
        pub meta: Option<Object>,
        /// Base64.
        pub data: String,
        pub content_type: String,
        pub selection: Option<TextSelection>,
    }

    pub struct MessageResourceAttachment {
        pub label: String,
        pub range: Option<TextRange>,
        pub display_kind: Option<String>,
        pub meta: Option<Object>,
        pub uri: Uri,
        pub size_hint: Option<u64>,
        pub content_type: Option<String>,
        pub nonce: Option<String>,
        pub selection: Option<TextSelection>,
    }

    pub struct MessageAnnotationsAttachment {
        pub label: String,
        pub range: Option<TextRange>,
        pub display_kind: Option<String>,
        pub meta: Option<Object>,
        pub resource: Uri,
        /// Absent means all of them.
        pub annotation_ids: Option<Vec<String>>,
    }

    pub struct MessageChatAttachment {
        pub label: String,
        pub range: Option<TextRange>,
        pub display_kind: Option<String>,
        pub meta: Option<Object>,
        pub resource: Uri,
        /// The last included turn.
        pub end_turn: Option<String>,
    }

    /// Text of the answer. `chat/delta` appends to it by its id.
    #[derive(Default, Eq)]
    pub struct MarkdownResponsePart {
        pub id: String,
        pub content: String,
    }

    /// Text of the thinking. `chat/reasoning` appends to it by its id.
    #[derive(Default, Eq)]
    pub struct ReasoningResponsePart {
        pub id: String,
        pub content: String,
    }

    pub struct ToolCallResponsePart {
        pub tool_call: ToolCallState,
    }

    pub struct SystemNotificationResponsePart {
        pub content: StringOrMarkdown,
        pub meta: Option<Object>,
    }

    /// A question to the user, with its outcome once it is answered.
    pub struct InputRequestResponsePart {
        pub request: ChatInputRequest,
        pub response: Option<ChatInputResponseKind>,
    }

    /// The error that ended the turn. If it is resumable, `chat/turnResume` continues the turn.
    #[derive(Default)]
    pub struct ErrorResponsePart {
        pub error: ErrorInfo,
        pub resumable: Option<bool>,
    }
}

words! {
    /// The speaker. A client may only speak as the user.
    #[derive(Default)]
    pub enum MessageKind {
        #[default]
        User = "user",
        Agent = "agent",
        Tool = "tool",
        Automation = "automation",
        SystemNotification = "systemNotification",
    }
}

unions! {
    pub enum MessageAttachment by "type" {
        "simple" => Simple(SimpleMessageAttachment),
        "embeddedResource" => EmbeddedResource(MessageEmbeddedResourceAttachment),
        "resource" => Resource(MessageResourceAttachment),
        "annotations" => Annotations(MessageAnnotationsAttachment),
        "chat" => Chat(MessageChatAttachment),
    }

    /// A piece of an answer, in order.
    pub enum ResponsePart by "kind" {
        "markdown" => Markdown(MarkdownResponsePart),
        "contentRef" => ContentRef(ContentRef),
        "toolCall" => ToolCall(Box<ToolCallResponsePart>),
        "reasoning" => Reasoning(ReasoningResponsePart),
        "systemNotification" => SystemNotification(SystemNotificationResponsePart),
        "inputRequest" => InputRequest(InputRequestResponsePart),
        "error" => Error(ErrorResponsePart),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum TurnState {
    Complete,
    Cancelled,
    Error,
}
