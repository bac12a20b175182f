//! The channel of a session's annotations: comments on places in files.

use super::{StringOrMarkdown, TextRange};
use crate::ahp::macros::records;
use crate::ahp::{Object, Uri};

records! {
    /// The state of a session's annotations channel: its URI with `/annotations`.
    #[derive(Default)]
    pub struct AnnotationsState {
        pub annotations: Vec<Annotation>,
    }

    /// The number of annotations, in a session's state and row.
    #[derive(Default, Eq)]
    pub struct AnnotationsSummary {
        pub resource: Uri,
        pub annotation_count: u64,
        pub entry_count: u64,
    }

    #[derive(Default)]
    pub struct Annotation {
        pub id: String,
        pub origin: AnnotationOrigin,
        /// The file.
        pub resource: Uri,
        /// Absent means the whole file.
        pub range: Option<TextRange>,
        pub resolved: bool,
        pub entries: Vec<AnnotationEntry>,
        pub meta: Option<Object>,
    }

    /// The session, chat and turn in which an annotation was made.
    #[derive(Default, Eq)]
    pub struct AnnotationOrigin {
        pub session: Uri,
        pub chat: Option<Uri>,
        pub turn_id: Option<String>,
    }

    #[derive(Default)]
    pub struct AnnotationEntry {
        pub id: String,
        pub text: StringOrMarkdown,
        pub meta: Option<Object>,
    }
}
