//! The action of a watch on files. It changes no state: it is the news itself.

use crate::ahp::macros::records;
use crate::ahp::state::ResourceChanges;

actions! {
    pub enum ResourceWatchAction {
        "resourceWatch/changed" Host => Changed(ResourceWatchChanged),
    }
}

records! {
    pub struct ResourceWatchChanged {
        pub changes: ResourceChanges,
    }
}
