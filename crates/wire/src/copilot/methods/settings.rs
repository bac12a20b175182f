//! A session's name, model, mode and options.

use serde_json::Value;

use super::Model;
use crate::ahp::macros::records;

/// The mode of a session in which nobody has set one.
pub const INTERACTIVE: &str = "interactive";

records! {
    #[derive(Eq)]
    pub struct NameSetParams {
        pub session_id: String,
        pub name: String,
    }

    /// The name is `null` if nobody has given one.
    #[derive(Default, Eq)]
    pub struct NameGetResult {
        #[serde(default)]
        pub name: Nullable<String>,
    }

    #[derive(Default, Eq)]
    pub struct CurrentModel {
        pub model_id: Option<String>,
        pub reasoning_effort: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SwitchModelParams {
        pub session_id: String,
        pub model_id: String,
        pub reasoning_effort: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SwitchModelResult {
        pub model_id: Option<String>,
        pub message: Option<String>,
        pub model_state: Option<CurrentModel>,
    }

    #[derive(Eq)]
    pub struct SetEffortParams {
        pub session_id: String,
        pub reasoning_effort: String,
    }

    #[derive(Eq)]
    pub struct SetEffortResult {
        pub reasoning_effort: String,
    }

    #[derive(Eq)]
    pub struct SessionModelsResult {
        pub list: Vec<Model>,
    }

    #[derive(Default, Eq)]
    pub struct SetModeParams {
        pub session_id: String,
        pub mode: String,
        pub expected_mode: Option<String>,
    }

    #[derive(Default, Eq)]
    pub struct SetModeResult {
        pub status: String,
        pub model_changed: bool,
        pub mode_applied: Option<bool>,
        pub message: Option<String>,
    }

    /// Changes of options. Of the SDK's many options, these are supported.
    #[derive(Default)]
    pub struct UpdateOptionsParams {
        pub session_id: String,
        pub model: Option<String>,
        pub reasoning_effort: Option<String>,
        pub client_name: Option<String>,
        pub working_directory: Option<String>,
        pub tool_filter_precedence: Option<Value>,
    }

    #[derive(Copy, Default, Eq)]
    pub struct IsProcessingResult {
        pub processing: bool,
    }
}

/// A value that is written as `null` if there is none: its key is required.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Nullable<T>(pub Option<T>);

impl<T> Default for Nullable<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> From<Option<T>> for Nullable<T> {
    fn from(value: Option<T>) -> Self {
        Self(value)
    }
}
