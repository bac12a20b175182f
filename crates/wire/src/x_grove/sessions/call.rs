//! Calls with their params, and their results.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::*;

/// A parsed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionsCall {
    List(SessionsListParams),
    Subscribe,
    Unsubscribe,
    Providers,
    Types(TypesParams),
    TypesForFolder(FolderParams),
    Open(OpenParams),
    OpenChat(ChatParams),
    OpenNewSessionView,
    Restore,
    Create(CreateParams),
    SetSessionType(SetSessionTypeParams),
    UnsetNewSession,
    SendAndCreateChat(SendParams),
    SendRequest(SendParams),
    SetModel(SetModelParams),
    RenameChat(RenameChatParams),
    Archive(SessionRefParams),
    Unarchive(SessionRefParams),
    Delete(DeleteParams),
    DeleteChat(ChatParams),
    SetRead(SetReadParams),
    SetActiveProvider(ProviderParams),
    BrowseActions,
    Browse(BrowseParams),
    AnswerTrust(AnswerTrustParams),
    Pin(PinParams),
    Waiting,
    Answer(AnswerParams),
}

/// The result of a call.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum SessionsOutcome {
    List(SessionsListResult),
    Subscribed(Box<SubscribeResult>),
    Providers(ProvidersResult),
    Types(TypesResult),
    Session(Box<SessionResult>),
    Deleted(DeleteResult),
    DeletedChat(DeleteChatResult),
    BrowseActions(BrowseActionsResult),
    Browsed(BrowseResult),
    Waiting(WaitingResult),
    /// Done, without further data.
    Done {},
}

/// Invalid params of a method.
#[derive(Debug, thiserror::Error)]
#[error("params of {method}: {error}")]
pub struct SessionsCallError {
    method: &'static str,
    error: serde_json::Error,
}

impl SessionsCall {
    /// Reads the params of a method. They may be missing if the method needs none.
    pub fn read(method: SessionsMethod, params: Option<&RawValue>) -> Result<Self, SessionsCallError> {
        fn of<P: DeserializeOwned>(params: Option<&RawValue>) -> serde_json::Result<P> {
            serde_json::from_str(params.map_or("{}", RawValue::get))
        }
        let read = match method {
            SessionsMethod::List => of(params).map(SessionsCall::List),
            SessionsMethod::Subscribe => Ok(SessionsCall::Subscribe),
            SessionsMethod::Unsubscribe => Ok(SessionsCall::Unsubscribe),
            SessionsMethod::Providers => Ok(SessionsCall::Providers),
            SessionsMethod::Types => of(params).map(SessionsCall::Types),
            SessionsMethod::TypesForFolder => of(params).map(SessionsCall::TypesForFolder),
            SessionsMethod::Open => of(params).map(SessionsCall::Open),
            SessionsMethod::OpenChat => of(params).map(SessionsCall::OpenChat),
            SessionsMethod::OpenNewSessionView => Ok(SessionsCall::OpenNewSessionView),
            SessionsMethod::Restore => Ok(SessionsCall::Restore),
            SessionsMethod::Create => of(params).map(SessionsCall::Create),
            SessionsMethod::SetSessionType => of(params).map(SessionsCall::SetSessionType),
            SessionsMethod::UnsetNewSession => Ok(SessionsCall::UnsetNewSession),
            SessionsMethod::SendAndCreateChat => of(params).map(SessionsCall::SendAndCreateChat),
            SessionsMethod::SendRequest => of(params).map(SessionsCall::SendRequest),
            SessionsMethod::SetModel => of(params).map(SessionsCall::SetModel),
            SessionsMethod::RenameChat => of(params).map(SessionsCall::RenameChat),
            SessionsMethod::Archive => of(params).map(SessionsCall::Archive),
            SessionsMethod::Unarchive => of(params).map(SessionsCall::Unarchive),
            SessionsMethod::Delete => of(params).map(SessionsCall::Delete),
            SessionsMethod::DeleteChat => of(params).map(SessionsCall::DeleteChat),
            SessionsMethod::SetRead => of(params).map(SessionsCall::SetRead),
            SessionsMethod::SetActiveProvider => of(params).map(SessionsCall::SetActiveProvider),
            SessionsMethod::BrowseActions => Ok(SessionsCall::BrowseActions),
            SessionsMethod::Browse => of(params).map(SessionsCall::Browse),
            SessionsMethod::AnswerTrust => of(params).map(SessionsCall::AnswerTrust),
            SessionsMethod::Pin => of(params).map(SessionsCall::Pin),
            SessionsMethod::Waiting => Ok(SessionsCall::Waiting),
            SessionsMethod::Answer => of(params).map(SessionsCall::Answer),
        };
        read.map_err(|error| SessionsCallError { method: method.as_str(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_by_its_method_and_says_what_is_wrong() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let read = |method, text: &str| SessionsCall::read(method, Some(&raw(text)));
        let image =
            r#"{"session":"a:1","query":"x","attachedContext":[{"kind":"image","mediaType":"image/png","data":""}]}"#;
        assert!(matches!(read(SessionsMethod::SendAndCreateChat, image), Ok(SessionsCall::SendAndCreateChat(_))));
        assert_eq!(
            SessionsCall::read(SessionsMethod::List, None).unwrap(),
            SessionsCall::List(SessionsListParams::default())
        );
        let wrong = SessionsCall::read(SessionsMethod::Open, None).unwrap_err().to_string();
        assert!(wrong.starts_with("params of x-grove/sessions/open: missing field `resource`"), "{wrong}");
        assert!(read(SessionsMethod::SetRead, r#"{"session":"a:1","read":"yes"}"#).is_err());
    }

    #[test]
    fn what_is_done_is_answered_with_an_object() {
        assert_eq!(serde_json::to_string(&SessionsOutcome::Done {}).unwrap(), "{}");
    }
}
