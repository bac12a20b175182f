//! Settings: schemas that a client draws a form from, and their values.

use indexmap::IndexMap;
use serde_json::Value;

use crate::ahp::Object;
use crate::ahp::macros::records;

records! {
    /// The part of a JSON schema that a form needs.
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
        /// The labels of `enum`, in its order.
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

    /// A setting of a session: like one of the host, plus its mutability.
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
        /// `enum` is incomplete: `sessionConfigCompletions` finds more.
        pub enum_dynamic: Option<bool>,
        /// True if it may be changed while the session runs.
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
