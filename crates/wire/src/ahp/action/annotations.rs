//! Actions on a session's annotations. Clients dispatch all of them, and choose the ids.

use crate::ahp::Uri;
use crate::ahp::macros::records;
use crate::ahp::state::{Annotation, AnnotationEntry, AnnotationOrigin, TextRange};

actions! {
    pub enum AnnotationsAction {
        "annotations/set" Client => Set(AnnotationsSet),
        "annotations/updated" Client => Updated(AnnotationsUpdated),
        "annotations/removed" Client => Removed(AnnotationsRemoved),
        "annotations/entrySet" Client => EntrySet(AnnotationsEntrySet),
        "annotations/entryRemoved" Client => EntryRemoved(AnnotationsEntryRemoved),
    }
}

records! {
    pub struct AnnotationsSet {
        pub annotation: Annotation,
    }

    /// Changes the given fields and leaves the others, the entries included.
    pub struct AnnotationsUpdated {
        pub annotation_id: String,
        pub origin: Option<AnnotationOrigin>,
        pub resource: Option<Uri>,
        pub range: Option<TextRange>,
        pub resolved: Option<bool>,
    }

    pub struct AnnotationsRemoved {
        pub annotation_id: String,
    }

    pub struct AnnotationsEntrySet {
        pub annotation_id: String,
        pub entry: AnnotationEntry,
    }

    pub struct AnnotationsEntryRemoved {
        pub annotation_id: String,
        pub entry_id: String,
    }
}
