//! Requests to push services and webhooks.

pub(crate) mod address;
pub(crate) mod client;

pub use address::{Reach, TargetUrl, UrlError, is_public};
pub use client::{Answer, HttpsTransport, Post, PostError, RootSource, Transport};
