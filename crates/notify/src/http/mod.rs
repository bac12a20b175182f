//! Requests to push services and webhooks.

pub(crate) mod address;
pub(crate) mod client;

pub use address::{Reach, TargetUrl, UrlError, is_public};
pub use client::{HttpsTransport, Post, PostAnswer, PostError, RootSource, Transport};
