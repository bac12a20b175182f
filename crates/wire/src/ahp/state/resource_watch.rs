//! The channel of a watch on files. Its state only says what is watched; what happens there are its actions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ahp::Uri;
use crate::ahp::macros::records;

records! {
    /// What clients subscribe to at a watch's URI.
    #[derive(Default, Eq)]
    pub struct ResourceWatchState {
        pub root: Uri,
        pub recursive: bool,
        pub excludes: Option<Globs>,
        pub includes: Option<Globs>,
    }

    /// Patterns, or paths below the watched place.
    #[derive(Default, Eq)]
    pub struct Globs {
        pub items: Vec<String>,
    }

    #[derive(Default, Eq)]
    pub struct ResourceChanges {
        pub items: Vec<ResourceChange>,
    }

    #[derive(Eq)]
    pub struct ResourceChange {
        pub uri: Uri,
        #[serde(rename = "type")]
        pub kind: ResourceChangeType,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ResourceChangeType {
    Added,
    Updated,
    Deleted,
}
