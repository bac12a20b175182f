//! Settings: schemas that a client draws a form from, and their values.

use indexmap::IndexMap;
use serde_json::Value;

use crate::ahp::Object;
use crate::ahp::macros::records;

records! {
    /// A part of a JSON schema: as much of one as a form needs.
    #[derive(Default)]
    pub struct ConfigPropertySchema {
        /// `string`, `number`, `boolean`, `array` or `object`.
        #[serde(rename = "type")]
        pub kind: String,
        pub title: String,
        pub description: Option<String>,
        pub default: Option<Value>,
        #[serde(rename = "enum")]
        pub values: Option<Vec<Value>>,
        /// What to show for each of `enum`, in its order.
        pub enum_labels: Option<Vec<String>>,
        pub enum_descriptions: Option<Vec<String>>,
        pub read_only: Option<bool>,
        pub items: Option<Box<ConfigPropertySchema>>,
        pub min_items: Option<u64>,
        pub max_items: Option<u64>,
        pub properties: Option<IndexMap<String, ConfigPropertySchema>>,
        pub required: Option<Vec<String>>,
        pub additional_properties: Option<Box<ConfigPropertySchema>>,
    }

    #[derive(Default)]
    pub struct ConfigSchema {
        /// Always `object`.
        #[serde(rename = "type")]
        pub kind: String,
        pub properties: IndexMap<String, ConfigPropertySchema>,
        pub required: Option<Vec<String>>,
    }

    /// The settings of the host itself.
    #[derive(Default)]
    pub struct RootConfigState {
        pub schema: ConfigSchema,
        pub values: Object,
    }

    /// A setting of a session: what the host's settings have, and when it may be changed.
    #[derive(Default)]
    pub struct SessionConfigPropertySchema {
        #[serde(rename = "type")]
        pub kind: String,
        pub title: String,
        pub description: Option<String>,
        pub default: Option<Value>,
        #[serde(rename = "enum")]
        pub values: Option<Vec<Value>>,
        pub enum_labels: Option<Vec<String>>,
        pub enum_descriptions: Option<Vec<String>>,
        pub read_only: Option<bool>,
        pub items: Option<ConfigPropertySchema>,
        pub min_items: Option<u64>,
        pub max_items: Option<u64>,
        pub properties: Option<IndexMap<String, ConfigPropertySchema>>,
        pub required: Option<Vec<String>>,
        pub additional_properties: Option<ConfigPropertySchema>,
        /// `enum` is only a beginning: `sessionConfigCompletions` finds more.
        pub enum_dynamic: Option<bool>,
        /// It may still be changed once the session runs.
        pub session_mutable: Option<bool>,
    }

    #[derive(Default)]
    pub struct SessionConfigSchema {
        /// Always `object`.
        #[serde(rename = "type")]
        pub kind: String,
        pub properties: IndexMap<String, SessionConfigPropertySchema>,
        pub required: Option<Vec<String>>,
    }

    #[derive(Default)]
    pub struct SessionConfigState {
        pub schema: SessionConfigSchema,
        pub values: Object,
    }
}
