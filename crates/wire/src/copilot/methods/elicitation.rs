//! Forms that one client asks the person at another one to fill in.

use serde_json::Value;

use crate::ahp::macros::records;
use crate::copilot::Object;

records! {
    pub struct ElicitationParams {
        pub session_id: String,
        pub message: String,
        /// A JSON schema of an object.
        pub requested_schema: Value,
    }

    pub struct HandleElicitationParams {
        pub session_id: String,
        pub request_id: String,
        pub result: ElicitationResponse,
    }

    #[derive(Default)]
    pub struct ElicitationResponse {
        /// `accept`, `decline` or `cancel`.
        pub action: String,
        /// The values of the form, if it was accepted.
        pub content: Option<Object>,
    }
}
