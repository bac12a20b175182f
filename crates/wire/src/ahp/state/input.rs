//! Questions to the user, and the answers.

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::ahp::Uri;
use crate::ahp::macros::{records, unions};

records! {
    #[derive(Default)]
    pub struct ChatInputRequest {
        pub id: String,
        pub message: Option<String>,
        /// A page to open instead of answering questions.
        pub url: Option<Uri>,
        pub questions: Option<Vec<ChatInputQuestion>>,
        /// By the question's id, in the order in which they were given.
        pub answers: Option<IndexMap<String, ChatInputAnswer>>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputOption {
        pub id: String,
        pub label: String,
        pub description: Option<String>,
        pub recommended: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputTextQuestion {
        pub id: String,
        pub title: Option<String>,
        pub message: String,
        pub required: Option<bool>,
        pub format: Option<String>,
        /// The minimum number of characters.
        pub min: Option<u64>,
        /// The maximum number of characters.
        pub max: Option<u64>,
        pub default_value: Option<String>,
    }

    /// Numbers are kept as they are written, so that 10 does not become 10.0.
    #[derive(Default, Eq)]
    pub struct ChatInputNumberQuestion {
        pub id: String,
        pub title: Option<String>,
        pub message: String,
        pub required: Option<bool>,
        pub min: Option<Number>,
        pub max: Option<Number>,
        pub default_value: Option<Number>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputBooleanQuestion {
        pub id: String,
        pub title: Option<String>,
        pub message: String,
        pub required: Option<bool>,
        pub default_value: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputSingleSelectQuestion {
        pub id: String,
        pub title: Option<String>,
        pub message: String,
        pub required: Option<bool>,
        pub options: Vec<ChatInputOption>,
        pub allow_freeform_input: Option<bool>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputMultiSelectQuestion {
        pub id: String,
        pub title: Option<String>,
        pub message: String,
        pub required: Option<bool>,
        pub options: Vec<ChatInputOption>,
        pub allow_freeform_input: Option<bool>,
        /// The minimum number of choices.
        pub min: Option<u64>,
        /// The maximum number of choices.
        pub max: Option<u64>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputTextAnswer {
        pub value: String,
    }

    #[derive(Eq)]
    pub struct ChatInputNumberAnswer {
        pub value: Number,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputBooleanAnswer {
        pub value: bool,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputSelectedAnswer {
        /// The option's id.
        pub value: String,
        pub freeform_values: Option<Vec<String>>,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputSelectedManyAnswer {
        /// The options' ids.
        pub value: Vec<String>,
        pub freeform_values: Option<Vec<String>>,
    }

    pub struct ChatInputAnswered {
        pub value: ChatInputAnswerValue,
    }

    #[derive(Default, Eq)]
    pub struct ChatInputSkipped {
        pub freeform_values: Option<Vec<String>>,
    }
}

unions! {
    pub enum ChatInputQuestion by "kind" {
        "text" => Text(ChatInputTextQuestion),
        "number" => Number(ChatInputNumberQuestion),
        "integer" => Integer(ChatInputNumberQuestion),
        "boolean" => Boolean(ChatInputBooleanQuestion),
        "single-select" => SingleSelect(ChatInputSingleSelectQuestion),
        "multi-select" => MultiSelect(ChatInputMultiSelectQuestion),
    }

    pub enum ChatInputAnswerValue by "kind" {
        "text" => Text(ChatInputTextAnswer),
        "number" => Number(ChatInputNumberAnswer),
        "boolean" => Boolean(ChatInputBooleanAnswer),
        "selected" => Selected(ChatInputSelectedAnswer),
        "selected-many" => SelectedMany(ChatInputSelectedManyAnswer),
    }
}

/// The state of an answer. The protocol closes this list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum ChatInputAnswer {
    Draft(ChatInputAnswered),
    Submitted(ChatInputAnswered),
    Skipped(ChatInputSkipped),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ChatInputResponseKind {
    Accept,
    Decline,
    Cancel,
}
