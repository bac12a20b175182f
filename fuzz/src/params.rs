//! The fuzz bodies of the params of every request.

use grove_wire::{ahp, v1, x_grove};
use serde::Serialize;
use serde::de::DeserializeOwned;

macro_rules! read_as {
    ($text:expr, $($kind:ty),* $(,)?) => {
        0 $(+ usize::from(reread::<$kind>($text)))*
    };
}

/// Any text, line by line, as the params of every request: they are parsed or refused, and survive a round trip.
pub fn params(data: &[u8]) {
    for line in String::from_utf8_lossy(data).lines() {
        params_shapes(line);
    }
}

/// The number of requests whose params a text can be.
pub fn params_shapes(text: &str) -> usize {
    v1_shapes(text) + ahp_shapes(text) + extension_shapes(text)
}

fn v1_shapes(text: &str) -> usize {
    read_as!(
        text,
        v1::InitializeParams,
        v1::ReconnectParams,
        v1::SubscribeParams,
        v1::CreateSessionParams,
        v1::DisposeSessionParams,
        v1::ListSessionsParams,
        v1::FetchTurnsParams,
        v1::FetchContentParams,
        v1::BrowseDirectoryParams,
    )
}

fn ahp_shapes(text: &str) -> usize {
    read_as!(
        text,
        ahp::InitializeParams,
        ahp::SubscribeParams,
        ahp::UnsubscribeParams,
        ahp::CreateTerminalParams,
        ahp::InvokeChangesetOperationParams,
        ahp::ChannelParams,
        ahp::ResourceReadParams,
        ahp::ResourceWriteParams,
        ahp::ResourceListParams,
        ahp::ResourceResolveParams,
        ahp::ResourceMkdirParams,
        ahp::ResourceDeleteParams,
        ahp::ResourceCopyParams,
        ahp::ResourceMoveParams,
        ahp::ResourceRequestParams,
        ahp::CreateResourceWatchParams,
        ahp::ListSessionsParams,
        ahp::CreateSessionParams,
        ahp::CreateChatParams,
        ahp::MoveChatParams,
        ahp::FetchTurnsParams,
        ahp::CompletionsParams,
        ahp::ResolveSessionConfigParams,
        ahp::SessionConfigCompletionsParams,
        ahp::AuthenticateParams,
    )
}

fn extension_shapes(text: &str) -> usize {
    read_as!(
        text,
        x_grove::TreeParams,
        x_grove::NavigateParams,
        x_grove::EntriesParams,
        x_grove::MergeParams,
        x_grove::CompactParams,
        x_grove::LabelParams,
        x_grove::RenameParams,
        x_grove::PermissionsParams,
        x_grove::SetWorkingDirectoryParams,
        x_grove::BranchParams,
        x_grove::ForkParams,
        x_grove::MigrateParams,
        x_grove::handover::ReadParams,
        x_grove::handover::LeaveParams,
        x_grove::history::HistoryListParams,
        x_grove::history::ScanParams,
        x_grove::import::BeginParams,
        x_grove::import::PutParams,
        x_grove::import::CommitParams,
        x_grove::import::AbortParams,
        x_grove::removal::EraseParams,
        x_grove::sessions::SessionsListParams,
        x_grove::sessions::TypesParams,
        x_grove::sessions::FolderParams,
        x_grove::sessions::OpenParams,
        x_grove::sessions::SessionRefParams,
        x_grove::sessions::ChatParams,
        x_grove::sessions::CreateParams,
        x_grove::sessions::SetSessionTypeParams,
        x_grove::sessions::SendParams,
        x_grove::sessions::SetModelParams,
        x_grove::sessions::RenameChatParams,
        x_grove::sessions::DeleteParams,
        x_grove::sessions::SetReadParams,
        x_grove::sessions::ProviderParams,
        x_grove::sessions::BrowseParams,
        x_grove::sessions::AnswerTrustParams,
        x_grove::tokens::AddTokenParams,
        x_grove::tokens::TokenNameParams,
        x_grove::workspace::SetPlanParams,
        x_grove::workspace::FilesParams,
        x_grove::workspace::ReadFileParams,
        x_grove::workspace::WriteFileParams,
        x_grove::workspace::RemoveFileParams,
        x_grove::workspace::CheckpointParams,
    )
}

/// Says whether a text can be read as a type. What is written of it is read and written the same.
fn reread<T: Serialize + DeserializeOwned>(text: &str) -> bool {
    let Ok(read) = serde_json::from_str::<T>(text) else { return false };
    let written = serde_json::to_string(&read).expect("what was read can be written");
    let again: T = serde_json::from_str(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
    assert_eq!(serde_json::to_string(&again).expect("it can be written"), written);
    true
}
