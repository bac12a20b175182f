//! Who is let in: the token, the `Host` header, the `Origin`.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use percent_encoding::percent_decode_str;
use subtle::ConstantTimeEq;

use crate::env::Random;

/// The secret that opens the host. It is never shown by `Debug`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one, from 32 random bytes.
    pub fn generate(random: &dyn Random) -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        random.fill(&mut bytes)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// One that was kept. It must be long enough to be a secret.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| Self(text.to_owned()))
    }

    /// The secret itself, for the places that must have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in a time that says nothing about where a guess is wrong.
    fn matches(&self, guess: &str) -> bool {
        self.0.as_bytes().ct_eq(guess.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What a request must bring.
#[derive(Clone, Debug)]
pub struct Access {
    token: Token,
    /// The values of `Host` that mean this host.
    hosts: Vec<String>,
}

/// Why a request is turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("exactly one Host header is needed")]
    HostCount,
    #[error("this host does not go by that name")]
    ForeignHost,
    #[error("pages of other sites may not connect")]
    ForeignOrigin,
    #[error("the token is missing or wrong: give it as `Authorization: Bearer` or as `?tkn=`")]
    Token,
    #[error("the token is missing or wrong: give it as `Authorization: Bearer`")]
    Bearer,
    #[error("the ticket is wrong, was used, or is older than 30 s: get a new one with `POST /ticket`")]
    Ticket,
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self {
            Refusal::HostCount => StatusCode::BAD_REQUEST,
            Refusal::ForeignHost | Refusal::ForeignOrigin | Refusal::Token | Refusal::Bearer => StatusCode::FORBIDDEN,
            Refusal::Ticket => StatusCode::UNAUTHORIZED,
        };
        (status, format!("{self}\n")).into_response()
    }
}

impl Access {
    /// Access to a host that listens on a loopback address, under the names that loopback has.
    pub fn loopback(token: Token, address: SocketAddr) -> Self {
        let port = address.port();
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned(), "[::1]".to_owned()];
        let mut hosts: Vec<String> = names.iter().map(|name| format!("{name}:{port}")).collect();
        hosts.push(address.to_string());
        if port == 80 {
            hosts.extend(names);
        }
        Self { token, hosts }
    }

    /// Whether the request is meant for us and comes from no foreign page. A page elsewhere can make a browser
    /// connect to loopback, under a name of its own or with its own origin; neither gets past here.
    pub(super) fn check_source(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(Refusal::HostCount) };
        let ours = |name: &str| self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name));
        if !host.to_str().is_ok_and(ours) {
            return Err(Refusal::ForeignHost);
        }
        let origin_is_ours = |origin: &axum::http::HeaderValue| {
            origin.to_str().ok().and_then(|origin| origin.strip_prefix("http://")).is_some_and(ours)
        };
        if !headers.get_all(header::ORIGIN).iter().all(origin_is_ours) {
            return Err(Refusal::ForeignOrigin);
        }
        Ok(())
    }

    /// Whether the request holds the token, as a bearer or in its query.
    pub(super) fn check_token(&self, headers: &HeaderMap, query: Option<&str>) -> Result<(), Refusal> {
        if self.check_bearer(headers).is_ok() {
            return Ok(());
        }
        match in_query(query, "tkn") {
            Some(token) if self.token.matches(&token) => Ok(()),
            Some(_) | None => Err(Refusal::Token),
        }
    }

    /// Whether the request holds the token as a bearer.
    pub(super) fn check_bearer(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        if bearer(headers).is_some_and(|token| self.token.matches(token)) { Ok(()) } else { Err(Refusal::Bearer) }
    }
}

/// The token that a request brings as a bearer.
pub(super) fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// A value of a request's query.
pub(super) fn in_query<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let mut pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(key, _)| *key == name)?;
    Some(percent_decode_str(value).decode_utf8_lossy())
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn access() -> Access {
        Access::loopback(Token::parse(SECRET).unwrap(), "127.0.0.1:4000".parse().unwrap())
    }

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    #[test]
    fn exactly_one_host_header_and_it_is_ours() {
        let check = |pairs: &[(&str, &str)]| access().check_source(&headers(pairs));
        assert_eq!(check(&[("host", "127.0.0.1:4000")]), Ok(()));
        assert_eq!(check(&[("host", "LOCALHOST:4000")]), Ok(()));
        assert_eq!(check(&[("host", "[::1]:4000")]), Ok(()));
        assert_eq!(check(&[]), Err(Refusal::HostCount));
        assert_eq!(check(&[("host", "localhost:4000"), ("host", "localhost:4000")]), Err(Refusal::HostCount));
        for foreign in ["evil.example:4000", "localhost:4001", "localhost", "127.0.0.1.evil.example:4000", ""] {
            assert_eq!(check(&[("host", foreign)]), Err(Refusal::ForeignHost), "{foreign}");
        }
    }

    #[test]
    fn a_foreign_origin_is_refused_and_none_is_fine() {
        let check = |origin: &str| access().check_source(&headers(&[("host", "localhost:4000"), ("origin", origin)]));
        assert_eq!(check("http://localhost:4000"), Ok(()));
        for foreign in ["http://evil.example", "https://localhost:4000", "null", "http://localhost:4000.evil.example"] {
            assert_eq!(check(foreign), Err(Refusal::ForeignOrigin), "{foreign}");
        }
        let two = [("host", "localhost:4000"), ("origin", "http://localhost:4000"), ("origin", "null")];
        assert_eq!(access().check_source(&headers(&two)), Err(Refusal::ForeignOrigin));
    }

    #[test]
    fn the_token_comes_as_bearer_or_in_the_query() {
        let check = |auth: Option<&str>, query: Option<&str>| {
            let pairs: Vec<_> = auth.into_iter().map(|value| ("authorization", value)).collect();
            access().check_token(&headers(&pairs), query)
        };
        assert_eq!(check(Some(&format!("Bearer {SECRET}")), None), Ok(()));
        assert_eq!(check(None, Some(&format!("a=b&tkn={SECRET}"))), Ok(()));
        assert_eq!(check(None, None), Err(Refusal::Token));
        assert_eq!(check(Some("Bearer wrong"), Some("tkn=wrong")), Err(Refusal::Token));
        assert_eq!(check(Some(SECRET), None), Err(Refusal::Token));
        assert_eq!(check(None, Some("tkn=")), Err(Refusal::Token));
        assert_eq!(access().check_bearer(&headers(&[("authorization", &format!("bearer {SECRET}"))])), Ok(()));
        assert_eq!(access().check_bearer(&HeaderMap::new()), Err(Refusal::Bearer));
    }

    #[test]
    fn a_token_does_not_show_itself() {
        assert!(!format!("{:?}", access()).contains(SECRET));
        assert!(Token::parse("short").is_none());
    }
}
