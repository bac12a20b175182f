//! The webhook: an address of the host's owner that gets every notice, in JSON, signed if there is a secret.

use std::fmt;

use grove_host::Random;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use ring::hmac;
use serde::Serialize;

use crate::http::{Post, TargetUrl};
use crate::notice::{Notice, NoticeKind};

/// The header with the time of the attempt, in seconds since 1970, and the signature.
pub const SIGNATURE_HEADER: &str = "x-grove-signature";

/// The webhook of a host.
#[derive(Clone)]
pub struct Webhook {
    pub url: TargetUrl,
    pub secret: Option<String>,
}

/// The body of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebhookBody {
    /// The edition of this schema.
    version: u32,
    /// The same for each attempt to deliver a notice.
    id: String,
    event: NoticeKind,
    session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Milliseconds since 1970.
    at: u64,
}

impl WebhookBody {
    pub(crate) fn of(notice: Notice, random: &dyn Random) -> Self {
        let mut id = [0; 16];
        // Without random numbers the id says too little, and the notice is told all the same.
        random.fill(&mut id).ok();
        let Notice { kind, session: _, uri, chat: _, title, text, at } = notice;
        Self { version: 1, id: hex::encode(id), event: kind, session: uri, title, text, at }
    }
}

impl Webhook {
    /// The request of an attempt.
    pub(crate) fn post(&self, body: &WebhookBody, now_ms: u64) -> Result<Post, String> {
        let body = serde_json::to_vec(body).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(secret) = &self.secret {
            let signature = signature(secret, now_ms / 1_000, &body);
            let value = HeaderValue::from_str(&signature).map_err(|error| error.to_string())?;
            headers.insert(HeaderName::from_static(SIGNATURE_HEADER), value);
        }
        Ok(Post { url: self.url.clone(), headers, body: body.into() })
    }
}

/// The value of the header: `t=SECONDS,v1=HEX`, an HMAC-SHA256 of the time, a full stop and the body.
///
/// The time is signed too, so that a recorded request is useless later.
fn signature(secret: &str, seconds: u64, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let mut signed = hmac::Context::with_key(&key);
    signed.update(format!("{seconds}.").as_bytes());
    signed.update(body);
    format!("t={seconds},v1={}", hex::encode(signed.sign()))
}

// The address may contain a secret of its own.
impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("url", &self.url).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected value is from `printf '1000.{}' | openssl dgst -sha256 -hmac secret`.
    #[test]
    fn a_signature_is_an_hmac_of_the_time_and_the_body() {
        let expected = "t=1000,v1=026360fb6284f077f1148b1ae7c62679730497810a6a0321574de01e8b009e7a";
        assert_eq!(signature("secret", 1_000, b"{}"), expected);
        assert_ne!(signature("secret", 1_001, b"{}")[7..], expected[7..]);
    }
}
