//! The channel of a watch on files. Its state is the watched place; file events are its actions.

use serde::{Deserialize, Serialize};

use crate::ahp::Uri;
use crate::ahp::macros::records;

records! {
    /// The state of a watch's channel.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum ResourceChangeType {
    Added,
    Updated,
    Deleted,
}
