//! Calls with what they say, and what they are answered with.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::*;

/// A call, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Call {
    List(ListParams),
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
    Archive(SessionParams),
    Unarchive(SessionParams),
    Delete(DeleteParams),
    DeleteChat(ChatParams),
    SetRead(SetReadParams),
    SetActiveProvider(ProviderParams),
    BrowseActions,
    Browse(BrowseParams),
    AnswerTrust(AnswerTrustParams),
}

/// What a call is answered with.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    List(ListResult),
    Subscribed(Box<SubscribeResult>),
    Providers(ProvidersResult),
    Types(TypesResult),
    Session(Box<SessionResult>),
    Deleted(DeleteResult),
    DeletedChat(DeleteChatResult),
    BrowseActions(BrowseActionsResult),
    Browsed(BrowseResult),
    /// There is nothing to say but that it is done.
    Done {},
}

/// Params that are not those of their method.
#[derive(Debug, thiserror::Error)]
#[error("params of {method}: {error}")]
pub struct BadCall {
    method: &'static str,
    error: serde_json::Error,
}

impl Call {
    /// Reads the params of a method. Those of one that needs none may be missing.
    pub fn read(method: Method, params: Option<&RawValue>) -> Result<Self, BadCall> {
        fn of<P: DeserializeOwned>(params: Option<&RawValue>) -> serde_json::Result<P> {
            serde_json::from_str(params.map_or("{}", RawValue::get))
        }
        let read = match method {
            Method::List => of(params).map(Call::List),
            Method::Subscribe => Ok(Call::Subscribe),
            Method::Unsubscribe => Ok(Call::Unsubscribe),
            Method::Providers => Ok(Call::Providers),
            Method::Types => of(params).map(Call::Types),
            Method::TypesForFolder => of(params).map(Call::TypesForFolder),
            Method::Open => of(params).map(Call::Open),
            Method::OpenChat => of(params).map(Call::OpenChat),
            Method::OpenNewSessionView => Ok(Call::OpenNewSessionView),
            Method::Restore => Ok(Call::Restore),
            Method::Create => of(params).map(Call::Create),
            Method::SetSessionType => of(params).map(Call::SetSessionType),
            Method::UnsetNewSession => Ok(Call::UnsetNewSession),
            Method::SendAndCreateChat => of(params).map(Call::SendAndCreateChat),
            Method::SendRequest => of(params).map(Call::SendRequest),
            Method::SetModel => of(params).map(Call::SetModel),
            Method::RenameChat => of(params).map(Call::RenameChat),
            Method::Archive => of(params).map(Call::Archive),
            Method::Unarchive => of(params).map(Call::Unarchive),
            Method::Delete => of(params).map(Call::Delete),
            Method::DeleteChat => of(params).map(Call::DeleteChat),
            Method::SetRead => of(params).map(Call::SetRead),
            Method::SetActiveProvider => of(params).map(Call::SetActiveProvider),
            Method::BrowseActions => Ok(Call::BrowseActions),
            Method::Browse => of(params).map(Call::Browse),
            Method::AnswerTrust => of(params).map(Call::AnswerTrust),
        };
        read.map_err(|error| BadCall { method: method.as_str(), error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_by_its_method_and_says_what_is_wrong() {
        let raw = |text: &str| RawValue::from_string(text.to_owned()).unwrap();
        let read = |method, text: &str| Call::read(method, Some(&raw(text)));
        let image =
            r#"{"session":"a:1","query":"x","attachedContext":[{"kind":"image","mediaType":"image/png","data":""}]}"#;
        assert!(matches!(read(Method::SendAndCreateChat, image), Ok(Call::SendAndCreateChat(_))));
        assert_eq!(Call::read(Method::List, None).unwrap(), Call::List(ListParams::default()));
        let wrong = Call::read(Method::Open, None).unwrap_err().to_string();
        assert!(wrong.starts_with("params of x-grove/sessions/open: missing field `resource`"), "{wrong}");
        assert!(read(Method::SetRead, r#"{"session":"a:1","read":"yes"}"#).is_err());
    }

    #[test]
    fn what_is_done_is_answered_with_an_object() {
        assert_eq!(serde_json::to_string(&Outcome::Done {}).unwrap(), "{}");
    }
}
