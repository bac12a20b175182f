//! A web page beside the protocol: its files, and a browser's caching and permissions.

use std::borrow::Cow;
use std::collections::HashMap;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;

/// The file that stands for the page itself.
const INDEX: &str = "index.html";

/// The files of a web page.
///
/// Everybody who reaches the host gets them, without a token: a page contains no data, and requests it like any other
/// client.
#[derive(Clone, Debug, Default)]
pub struct WebPage {
    assets: HashMap<Cow<'static, str>, Asset>,
}

/// One file of a page.
#[derive(Clone, Debug)]
pub struct Asset {
    pub content: Bytes,
    pub content_type: &'static str,
    /// Differs whenever the content does. Letters, digits and `-`.
    pub tag: Cow<'static, str>,
    pub caching: Caching,
}

/// The time for which a browser may use its copy of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caching {
    /// It asks each time if its copy is still valid.
    Revalidated,
    /// Forever: the name changes with the content.
    Immutable,
}

impl WebPage {
    /// A page of these files, each with its path as a browser requests it, without the leading slash.
    ///
    /// `index.html` is the answer to `/`.
    pub fn new(assets: impl IntoIterator<Item = (Cow<'static, str>, Asset)>) -> Self {
        Self { assets: assets.into_iter().collect() }
    }

    /// The answer to a request for a path; `None` if the page has no such file.
    pub(super) fn answer(&self, path: &str, headers: &HeaderMap) -> Option<Response> {
        let name = match path.strip_prefix('/')? {
            "" => INDEX,
            name => name,
        };
        self.assets.get(name).map(|asset| asset.answer(headers))
    }
}

impl Asset {
    fn answer(&self, request: &HeaderMap) -> Response {
        let tag = format!("\"{}\"", self.tag);
        let caching = match self.caching {
            Caching::Revalidated => "no-cache",
            Caching::Immutable => "public, max-age=31536000, immutable",
        };
        let mut response = if has_copy(request, &tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(header::CONTENT_TYPE, self.content_type)], Body::from(self.content.clone())).into_response()
        };
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(caching));
        if let Ok(tag) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, tag);
        }
        response
    }
}

/// Says whether the browser already has the content of this tag.
fn has_copy(request: &HeaderMap, tag: &str) -> bool {
    let values = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut known = values.flat_map(|value| value.split(',')).map(str::trim);
    known.any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

/// The permissions of the page in a browser: its own scripts and its own host, nothing else.
///
/// `'self'` covers the WebSocket of the same address. Every answer has these headers, since a browser may show any of
/// them as a page.
const STRICT: [(HeaderName, HeaderValue); 6] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; \
             connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types dompurify grove-worker svelte-trusted-html",
        ),
    ),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (
        HeaderName::from_static("permissions-policy"),
        HeaderValue::from_static(
            "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), \
             microphone=(), midi=(), payment=(), publickey-credentials-get=(), screen-wake-lock=(), serial=(), usb=(), \
             xr-spatial-tracking=()",
        ),
    ),
];

/// Adds the strict headers to an answer.
pub(super) fn restrict(response: &mut Response) {
    response.headers_mut().extend(STRICT);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> WebPage {
        let asset = |caching| Asset {
            content: Bytes::from_static(b"content"),
            content_type: "text/plain",
            tag: "a1".into(),
            caching,
        };
        WebPage::new([
            ("index.html".into(), asset(Caching::Revalidated)),
            ("assets/x-1.js".into(), asset(Caching::Immutable)),
        ])
    }

    #[test]
    fn only_files_of_the_page_are_answered() {
        let is_there = |path| page().answer(path, &HeaderMap::new()).is_some();
        assert!(is_there("/") && is_there("/index.html") && is_there("/assets/x-1.js"));
        for path in ["", "index.html", "//", "/assets", "/assets/", "/assets/../index.html", "//index.html", "/x"] {
            assert!(!is_there(path), "{path}");
        }
    }

    #[test]
    fn a_copy_holds_as_long_as_its_tag_is_the_same() {
        let status = |known: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in known {
                headers.append(header::IF_NONE_MATCH, HeaderValue::from_str(value).unwrap());
            }
            let response = page().answer("/", &headers).unwrap();
            assert_eq!(response.headers()[header::ETAG], "\"a1\"");
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-cache");
            response.status().as_u16()
        };
        for known in [&["\"a1\""][..], &["W/\"a1\""], &["*"], &["\"x\", \"a1\""], &["\"x\"", "\"a1\""]] {
            assert_eq!(status(known), 304, "{known:?}");
        }
        for known in [&[][..], &["\"a2\""], &["a1"], &[""], &["\"a1"]] {
            assert_eq!(status(known), 200, "{known:?}");
        }
    }
}
