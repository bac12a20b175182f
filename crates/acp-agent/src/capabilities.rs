//! `initialize`: the capabilities of both sides.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1 as acp;

/// The capabilities of the editor, as far as they matter here.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EditorCapabilities {
    /// It shows notices apart from the agent's text.
    pub(crate) notices: bool,
    /// It has switches as configuration options.
    pub(crate) boolean_options: bool,
    /// It gives its version of a file, saved or not.
    pub(crate) reads_files: bool,
    /// It writes a file that it shows, and saves it.
    pub(crate) writes_files: bool,
    /// It asks a person to fill in a form.
    pub(crate) forms: bool,
    /// It shows output in terminals that run nothing.
    pub(crate) terminal_output: bool,
}

impl EditorCapabilities {
    pub(crate) fn of(capabilities: &acp::ClientCapabilities) -> Self {
        let session = capabilities.session.as_ref();
        let options = session.and_then(|session| session.config_options.as_ref());
        Self {
            notices: session.is_some_and(|session| session.notices.is_some()),
            boolean_options: options.is_some_and(|options| options.boolean.is_some()),
            reads_files: capabilities.fs.read_text_file,
            writes_files: capabilities.fs.read_text_file && capabilities.fs.write_text_file,
            forms: capabilities.elicitation.as_ref().is_some_and(|elicitation| elicitation.form.is_some()),
            terminal_output: capabilities.meta.as_ref().and_then(|meta| meta.get("terminal_output")?.as_bool())
                == Some(true),
        }
    }
}

/// The answer to `initialize`. Only what works is announced.
///
/// Whatever version an editor asks for, it is answered in version 1, which is the only one; the editor decides whether
/// to go on.
pub(crate) fn initialized() -> acp::InitializeResponse {
    let session = acp::SessionCapabilities::new()
        .list(acp::SessionListCapabilities::new())
        .delete(acp::SessionDeleteCapabilities::new())
        .additional_directories(acp::SessionAdditionalDirectoriesCapabilities::new())
        .fork(acp::SessionForkCapabilities::new())
        .resume(acp::SessionResumeCapabilities::new())
        .close(acp::SessionCloseCapabilities::new())
        .archive(acp::SessionArchiveCapabilities::new())
        .title(acp::SessionTitleCapabilities::new());
    let capabilities = acp::AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(acp::PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(session);
    acp::InitializeResponse::new(ProtocolVersion::V1)
        .agent_capabilities(capabilities)
        .agent_info(acp::Implementation::new("grove", env!("CARGO_PKG_VERSION")).title("Grove".to_owned()))
}
