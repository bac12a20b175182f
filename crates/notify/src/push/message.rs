//! A push message: what it contains, and the request that carries it.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use grove_host::Random;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::devices::Device;
use super::encryption;
use super::vapid::VapidKey;
use crate::http::Post;
use crate::notice::{Notice, NoticeKind};

/// The time for which a push service keeps a message for a device that is off, in seconds.
const TTL_SECONDS: u64 = 12 * 60 * 60;
/// The push service that ends a subscription after messages without a visible notification.
const SHOWS_EVERYTHING: &str = "push.apple.com";

/// The content of a message, in JSON. The page's service worker writes the words, in the language of the device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", tag = "type")]
pub(crate) enum PushContent {
    /// Shows a notification, in place of the one with the same tag.
    Show {
        tag: String,
        kind: NoticeKind,
        session: String,
        #[serde(skip_serializing_if = "String::is_empty")]
        title: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        at: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
    /// Closes the notification with the tag: the question was answered, or the session read.
    Close { tag: String },
    /// Shows that messages arrive.
    Test {
        tag: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
    },
}

impl PushContent {
    pub(crate) fn show(notice: &Notice, language: Option<String>) -> Self {
        let Notice { kind, session: _, uri, chat: _, title, text, at } = notice.clone();
        Self::Show { tag: notice.tag(), kind, session: uri, title, text, at, language }
    }

    fn tag(&self) -> &str {
        match self {
            PushContent::Show { tag, .. } | PushContent::Close { tag } | PushContent::Test { tag, .. } => tag,
        }
    }

    fn urgency(&self) -> &'static str {
        match self {
            PushContent::Show { kind: NoticeKind::Waiting, .. } | PushContent::Test { .. } => "high",
            PushContent::Show { .. } => "normal",
            PushContent::Close { .. } => "low",
        }
    }
}

/// Says whether a device may be sent messages that show nothing.
pub(crate) fn takes_silent_messages(device: &Device) -> bool {
    let host = device.endpoint.host();
    host != SHOWS_EVERYTHING && !host.ends_with(&format!(".{SHOWS_EVERYTHING}"))
}

/// The request that carries a message to a device.
pub(crate) fn post(
    content: &PushContent,
    device: &Device,
    key: &VapidKey,
    contact: &str,
    random: &dyn Random,
    now_ms: u64,
) -> Result<Post, String> {
    let text = serde_json::to_vec(content).map_err(|error| error.to_string())?;
    let mut salt = [0; 16];
    random.fill(&mut salt).map_err(|error| error.to_string())?;
    let body = encryption::encrypt(&text, &device.keys, salt).map_err(|error| error.to_string())?;
    let authorization =
        key.authorization(&device.endpoint.origin(), contact, now_ms).map_err(|error| error.to_string())?;
    let mut headers = HeaderMap::new();
    let values = [
        (header::CONTENT_TYPE, "application/octet-stream".to_owned()),
        (header::CONTENT_ENCODING, "aes128gcm".to_owned()),
        (header::AUTHORIZATION, authorization),
        (HeaderName::from_static("ttl"), TTL_SECONDS.to_string()),
        (HeaderName::from_static("urgency"), content.urgency().to_owned()),
        (HeaderName::from_static("topic"), topic(content.tag())),
    ];
    for (name, value) in values {
        headers.insert(name, HeaderValue::from_str(&value).map_err(|error| error.to_string())?);
    }
    Ok(Post { url: device.endpoint.clone(), headers, body: body.into() })
}

/// The name under which the push service replaces a message that it has not delivered yet: 32 characters at most, and it
/// must say nothing of the session.
fn topic(tag: &str) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(&Sha256::digest(tag.as_bytes())[..24])
}
