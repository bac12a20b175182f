//! Sessions of every source in one list, each acted on through its own provider.

#![forbid(unsafe_code)]

pub mod grouping;
mod ids;
pub mod management;
mod memory;
pub mod metadata;
mod observed;
pub mod provider;
pub mod providers;
mod registry;
pub mod session;
mod subscription;

pub use ids::{BadId, BrowseActionId, Icon, Markdown, ProviderId, SessionId, SessionTypeId, Uri};
pub use management::{Management, ManagementError};
pub use memory::{
    InMemory, LastChat, MAX_LAST_CHATS, MAX_TRUST_ANSWERS, Memory, MemoryError, Remember, Remembered, Trust,
};
pub use metadata::Metadata;
pub use observed::Observed;
pub use provider::{ProviderError, SessionsProvider};
pub use registry::{DuplicateProvider, ProvidersChange, Registration, Registry};
pub use session::{Chat, Session, SessionIdentity, SessionSource, SessionState};
pub use subscription::{Notice, Subscription};
