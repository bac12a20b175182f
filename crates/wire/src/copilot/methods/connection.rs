//! The connection itself, and requests that concern no single session.

use crate::ahp::macros::records;

records! {
    #[derive(Default, Eq)]
    pub struct ConnectParams {
        pub token: Option<String>,
        pub supported_task_kinds: Option<Vec<String>>,
        pub client_info: Option<ClientInfo>,
    }

    #[derive(Default, Eq)]
    pub struct ClientInfo {
        pub editor_name: Option<String>,
        pub editor_version: Option<String>,
        pub extension_name: Option<String>,
        pub extension_version: Option<String>,
    }

    #[derive(Eq)]
    pub struct ConnectResult {
        /// Always true: a refused connection is an error.
        pub ok: bool,
        pub protocol_version: u64,
        pub version: String,
        pub task_kinds: Option<Vec<String>>,
    }

    #[derive(Default, Eq)]
    pub struct PingParams {
        pub message: Option<String>,
    }

    #[derive(Eq)]
    pub struct PingResult {
        pub message: String,
        pub timestamp: String,
        pub protocol_version: u64,
    }

    #[derive(Eq)]
    pub struct StatusResult {
        pub version: String,
        pub protocol_version: u64,
    }

    #[derive(Default, Eq)]
    pub struct AuthStatusResult {
        pub is_authenticated: bool,
        pub auth_type: Option<String>,
        pub host: Option<String>,
        pub login: Option<String>,
        pub status_message: Option<String>,
    }

    #[derive(Eq)]
    pub struct ModelsListResult {
        pub models: Vec<Model>,
    }

    #[derive(Eq)]
    pub struct Model {
        pub id: String,
        pub name: String,
        /// Clients in typed languages refuse a row without it, so Grove always sends it. The CLI does not.
        pub capabilities: Option<ModelCapabilities>,
    }

    #[derive(Default, Eq)]
    pub struct ModelCapabilities {
        pub supports: Option<ModelSupports>,
        pub limits: Option<ModelLimits>,
    }

    #[derive(Default, Eq)]
    pub struct ModelSupports {
        pub vision: Option<bool>,
        pub reasoning_effort: Option<bool>,
    }

    /// Its keys are written in snake case.
    #[derive(Copy, Default, Eq)]
    pub struct ModelLimits {
        #[serde(rename = "max_prompt_tokens")]
        pub max_prompt_tokens: Option<u64>,
        #[serde(rename = "max_output_tokens")]
        pub max_output_tokens: Option<u64>,
        #[serde(rename = "max_context_window_tokens")]
        pub max_context_window_tokens: Option<u64>,
    }
}

impl ConnectResult {
    /// The result of a host that calls itself `version`.
    pub fn of(version: impl Into<String>) -> Self {
        Self { ok: true, protocol_version: crate::copilot::PROTOCOL_VERSION, version: version.into(), task_kinds: None }
    }
}

impl PingResult {
    /// The result of a ping at a time.
    pub fn to(ping: &PingParams, at: grove_core::Timestamp) -> Self {
        Self {
            message: format!("pong: {}", ping.message.as_deref().unwrap_or_default()),
            timestamp: crate::ahp::time::text(at),
            protocol_version: crate::copilot::PROTOCOL_VERSION,
        }
    }
}

impl StatusResult {
    /// The result of a host that calls itself `version`.
    pub fn of(version: impl Into<String>) -> Self {
        Self { version: version.into(), protocol_version: crate::copilot::PROTOCOL_VERSION }
    }
}

impl Model {
    /// An agent's model, under the id by which a session asks for it.
    pub fn of(id: impl Into<String>, model: &grove_core::ModelInfo) -> Self {
        let capabilities = ModelCapabilities::new(model.supports_vision, model.max_context_window);
        Self { id: id.into(), name: model.name.clone(), capabilities: Some(capabilities) }
    }

    /// The same row, with what is known of the reasoning effort.
    pub fn with_effort(mut self, has_effort: bool) -> Self {
        if let Some(supports) = self.capabilities.as_mut().and_then(|capabilities| capabilities.supports.as_mut()) {
            supports.reasoning_effort = Some(has_effort);
        }
        self
    }

    /// A row for an agent, or for a name that stands for another model: nothing else is known of it.
    pub fn named(id: impl Into<String>, name: impl Into<String>) -> Self {
        Self { id: id.into(), name: name.into(), capabilities: Some(ModelCapabilities::new(None, None)) }
    }
}

impl ModelCapabilities {
    /// All members that typed clients require. An unknown size of the window is 0, as the SDK itself writes it.
    fn new(vision: Option<bool>, window: Option<u64>) -> Self {
        let vision = Some(vision.unwrap_or(false));
        Self {
            supports: Some(ModelSupports { vision, reasoning_effort: Some(false) }),
            limits: Some(ModelLimits {
                max_context_window_tokens: Some(window.unwrap_or(0)),
                ..ModelLimits::default()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_model_has_the_members_that_typed_clients_require() {
        let row = serde_json::to_value(Model::named("scripted", "Scripted")).unwrap();
        let capabilities = serde_json::json!({
            "supports": { "vision": false, "reasoningEffort": false },
            "limits": { "max_context_window_tokens": 0 },
        });
        assert_eq!(row, serde_json::json!({ "id": "scripted", "name": "Scripted", "capabilities": capabilities }));
    }
}
