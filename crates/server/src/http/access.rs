//! Access control: the token, the `Host` header, the `Origin`.

use std::borrow::Cow;
use std::net::SocketAddr;

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use grove_checks::Check;
use grove_core::Scope;
use grove_host::tokens::{HOST_TOKEN_NAME, HostToken, TokenGrant, TokenLogin, TokenPublicId, TokenRegistry};
use percent_encoding::percent_decode_str;

use super::admission::{Authentication, TokenId};
use super::host_names::HostNames;
use super::page_access::{PageKey, PageLogin};
use super::wrong_tokens::RefusedToken;
use crate::listener::PeerAddress;
use crate::principal::Principal;

/// The names of loopback.
const LOOPBACK_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

/// The requirements for a request.
#[derive(Clone, Debug)]
pub struct AccessPolicy {
    key: AccessKey,
    names: AllowedHostNames,
    /// The scheme at the beginning of an origin.
    scheme: &'static str,
    query_token: QueryToken,
}

#[derive(Clone, Debug)]
enum AccessKey {
    /// The host's own token, or a named one.
    Token(HostToken),
    /// Everybody who can connect has access.
    NotRequired,
}

#[derive(Clone, Debug)]
enum AllowedHostNames {
    /// The values of `Host` that mean this host.
    These(Vec<String>),
    /// The names under which other machines know this host.
    Remote(HostNames),
}

/// Says whether a token may stand in an address (`?tkn=`), which proxies and other machines may log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum QueryToken {
    Accepted,
    Refused,
}

/// The holder of a connection's rights, as the listener and the token say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenHolder {
    /// The owner of the host, through the host's own socket.
    Owner,
    Token(TokenGrant),
}

impl TokenHolder {
    /// The token whose share of the connections it uses.
    pub(super) fn token_id(&self) -> TokenId {
        match self {
            TokenHolder::Token(TokenGrant { id: Some(id), .. }) => TokenId::Named(*id),
            TokenHolder::Owner | TokenHolder::Token(_) => TokenId::Host,
        }
    }

    /// The name of that token.
    pub(super) fn token_name(&self) -> &str {
        match self {
            TokenHolder::Token(token) => &token.name,
            TokenHolder::Owner => HOST_TOKEN_NAME,
        }
    }

    pub(super) fn may_read(&self) -> bool {
        match self {
            TokenHolder::Owner => true,
            TokenHolder::Token(token) => token.scopes.contains(Scope::Read),
        }
    }

    /// The party behind a connection from an address.
    pub(super) fn principal(self, address: PeerAddress) -> Principal {
        match self {
            TokenHolder::Owner => Principal::owner(address),
            TokenHolder::Token(token) => Principal::of_token(token, address),
        }
    }
}

/// Says whether traffic to other machines can be read on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportSecurity {
    Tls,
    None,
}

/// The reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AccessError {
    #[error("exactly one Host header is needed")]
    HostCount,
    #[error("Transfer-Encoding is not supported: send the request with Content-Length")]
    TransferEncoding,
    #[error("at most one Content-Length header is allowed")]
    LengthCount,
    #[error("an upgrade request must not have a body")]
    UpgradeWithBody,
    #[error("this host does not accept that name in the Host header")]
    ForeignHost,
    #[error(
        "this host does not accept that name in the Host header: add it to `host-names` in grove.toml, or start the \
         host with `--host-name`"
    )]
    UnlistedHost,
    #[error("a request that may change something needs `Content-Type: application/json`, also without a body")]
    ContentType,
    #[error("pages of other sites may not connect")]
    ForeignOrigin,
    #[error("the token is missing or wrong: give it as `Authorization: Bearer` or as `?tkn=`")]
    Token,
    #[error("the token is missing or wrong: give it as `Authorization: Bearer`")]
    Bearer,
    #[error(
        "a token in the address is not accepted here, since others may log it: give it as `Authorization: Bearer`, or set \
         `query-token = true` in grove.toml"
    )]
    QueryToken,
    #[error("the ticket is wrong, was used, or is older than 30 s: get a new one with `POST /ticket`")]
    Ticket,
    #[error(
        "the answer to the challenge is wrong, was used, or is older than 30 s: get a new challenge with `POST /proof`"
    )]
    ChallengeResponse,
    #[error("the code is wrong, was used, or is older than a minute: get a new one with `grove open`")]
    Code,
    #[error("no page is served on this listener")]
    NoPage,
    #[error(
        "a listener for other machines gives no proof under a loopback name: open the page at the loopback address \
         that `grove status` prints"
    )]
    LoopbackName,
}

impl IntoResponse for AccessError {
    fn into_response(self) -> Response {
        let status = match self {
            AccessError::HostCount
            | AccessError::TransferEncoding
            | AccessError::LengthCount
            | AccessError::UpgradeWithBody => StatusCode::BAD_REQUEST,
            AccessError::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            AccessError::ForeignHost
            | AccessError::UnlistedHost
            | AccessError::ForeignOrigin
            | AccessError::Token
            | AccessError::Bearer
            | AccessError::QueryToken
            | AccessError::NoPage
            | AccessError::LoopbackName => StatusCode::FORBIDDEN,
            AccessError::Ticket | AccessError::ChallengeResponse | AccessError::Code => StatusCode::UNAUTHORIZED,
        };
        let mut response = (status, format!("{self}\n")).into_response();
        if self.refuses_token() {
            response.extensions_mut().insert(RefusedToken);
        }
        response
    }
}

impl AccessPolicy {
    /// Access to a host that listens on a loopback address, under the names of loopback.
    pub fn loopback(token: impl Into<HostToken>, address: SocketAddr) -> Self {
        let port = address.port();
        let mut hosts: Vec<String> = LOOPBACK_NAMES.iter().map(|name| format!("{name}:{port}")).collect();
        hosts.push(address.to_string());
        if port == 80 {
            hosts.extend(LOOPBACK_NAMES.map(str::to_owned));
        }
        Self {
            key: AccessKey::Token(token.into()),
            names: AllowedHostNames::These(hosts),
            scheme: "http://",
            query_token: QueryToken::Accepted,
        }
    }

    /// Access for other machines, by the token, under these names.
    ///
    /// The port that they use may be forwarded and is unknown, so an origin only has to be that of the `Host` header. A
    /// token in the address is refused, unless [`with_query_token`](Self::with_query_token) permits it.
    pub fn remote(token: impl Into<HostToken>, privacy: TransportSecurity, names: HostNames) -> Self {
        let scheme = match privacy {
            TransportSecurity::Tls => "https://",
            TransportSecurity::None => "http://",
        };
        let key = AccessKey::Token(token.into());
        Self { key, names: AllowedHostNames::Remote(names), scheme, query_token: QueryToken::Refused }
    }

    /// Accepts a token in the address, which proxies and other machines may log.
    pub fn with_query_token(self) -> Self {
        Self { query_token: QueryToken::Accepted, ..self }
    }

    /// Access through a socket that the system opens for its owner alone ([`UnixSocket`](super::UnixSocket)).
    ///
    /// It needs no token: this user can read the token anyhow. Browsers cannot connect to it.
    pub fn owner() -> Self {
        Self {
            key: AccessKey::NotRequired,
            names: AllowedHostNames::These(vec!["localhost".to_owned()]),
            scheme: "http://",
            query_token: QueryToken::Accepted,
        }
    }

    /// Says whether connections have to authenticate.
    pub(super) fn proof(&self) -> Authentication {
        match self.key {
            AccessKey::Token(_) => Authentication::Required,
            AccessKey::NotRequired => Authentication::NotRequired,
        }
    }

    /// Checks that the request is meant for this host and comes from no other site's page.
    ///
    /// Such a page can make a browser connect to loopback, under a name of its own or with its own origin; both are
    /// rejected.
    pub(super) fn check_source(&self, headers: &HeaderMap) -> Result<(), AccessError> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(AccessError::HostCount) };
        let host = host.to_str().map_err(|_| AccessError::ForeignHost)?;
        let ours = |name: &str| match &self.names {
            AllowedHostNames::These(names) => names.iter().any(|ours| ours.eq_ignore_ascii_case(name)),
            AllowedHostNames::Remote(_) => host.eq_ignore_ascii_case(name) && !name.is_empty(),
        };
        if Check::HostHeader.is_enforced() && !ours(host) {
            return Err(AccessError::ForeignHost);
        }
        if let AllowedHostNames::Remote(names) = &self.names
            && Check::HostNames.is_enforced()
            && !names.accepts(host)
        {
            return Err(AccessError::UnlistedHost);
        }
        let origin_is_ours = |origin: &axum::http::HeaderValue| {
            origin.to_str().ok().and_then(|origin| origin.strip_prefix(self.scheme)).is_some_and(ours)
        };
        if Check::Origin.is_enforced() && !headers.get_all(header::ORIGIN).iter().all(origin_is_ours) {
            return Err(AccessError::ForeignOrigin);
        }
        Ok(())
    }

    /// Finds the holder of a request's token, which comes as a bearer or in its query.
    pub(super) fn check_token(
        &self,
        headers: &HeaderMap,
        query: Option<&str>,
        tokens: Option<&TokenRegistry>,
    ) -> Result<TokenHolder, AccessError> {
        if let Ok(holder) = self.check_bearer(headers, tokens) {
            return Ok(holder);
        }
        match in_query(query, "tkn") {
            Some(_) if Check::QueryToken.is_enforced() && self.query_token == QueryToken::Refused => {
                Err(AccessError::QueryToken)
            }
            Some(token) => self.find(&token, tokens).ok_or(AccessError::Token),
            None => Err(AccessError::Token),
        }
    }

    /// Finds the holder of a request's bearer token.
    pub(super) fn check_bearer(
        &self,
        headers: &HeaderMap,
        tokens: Option<&TokenRegistry>,
    ) -> Result<TokenHolder, AccessError> {
        self.find(bearer(headers).unwrap_or_default(), tokens).ok_or(AccessError::Bearer)
    }

    /// The key for pages of the origin that a request names, and the rights that a page gets with it.
    ///
    /// [`check_source`](Self::check_source) comes first: it refuses names that are not this host's.
    pub(super) fn page_login(
        &self,
        headers: &HeaderMap,
        token: Option<TokenPublicId>,
        tokens: Option<&TokenRegistry>,
    ) -> Result<PageLogin, AccessError> {
        let AccessKey::Token(host_token) = &self.key else { return Err(AccessError::NoPage) };
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).ok_or(AccessError::HostCount)?;
        let host = host.to_ascii_lowercase();
        // Otherwise a program on a loopback port could get a proof for that port here, since any port is accepted here.
        let names_loopback =
            matches!(self.names, AllowedHostNames::Remote(_)) && self.scheme == "http://" && is_loopback_name(&host);
        if Check::LoopbackProof.is_enforced() && names_loopback {
            return Err(AccessError::LoopbackName);
        }
        let (secret, grant) = match token {
            None => {
                let (token, grant) = host_token.current_with_grant();
                (token.reveal().to_owned(), Some(grant))
            }
            Some(id) => match tokens.and_then(|tokens| tokens.login(id)).ok_or(AccessError::ChallengeResponse)? {
                TokenLogin::Token(verifier, grant) => (verifier.reveal(), Some(grant)),
                TokenLogin::Code(verifier) => (verifier.reveal(), None),
            },
        };
        Ok(PageLogin { key: PageKey::derive(&secret, &format!("{}{host}", self.scheme)), grant })
    }

    fn find(&self, guess: &str, tokens: Option<&TokenRegistry>) -> Option<TokenHolder> {
        match &self.key {
            AccessKey::Token(host_token) => {
                let found = host_token.check(guess).or_else(|| tokens.and_then(|tokens| tokens.check(guess)));
                let found = found.or_else(|| (!Check::Token.is_enforced()).then(|| host_token.grant()));
                found.map(TokenHolder::Token)
            }
            AccessKey::NotRequired => Some(TokenHolder::Owner),
        }
    }
}

/// Says whether a name, in lower case, is one of loopback, under which a loopback listener serves its page.
fn is_loopback_name(host: &str) -> bool {
    LOOPBACK_NAMES
        .iter()
        .any(|name| host.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(':')))
}

/// Refuses a request that a page of another site or port made, unless it only reads.
///
/// A browser says so whatever the page does. A person may follow a link to the page from anywhere.
pub(super) fn check_site(method: &Method, headers: &HeaderMap) -> Result<(), AccessError> {
    let only_reads = matches!(*method, Method::GET | Method::HEAD) && !headers.contains_key(header::UPGRADE);
    let is_ours = |site: &HeaderValue| site == "same-origin" || site == "none";
    match !Check::FetchSite.is_enforced() || only_reads || headers.get_all("sec-fetch-site").iter().all(is_ours) {
        true => Ok(()),
        false => Err(AccessError::ForeignOrigin),
    }
}

/// Refuses a request that may change something and has no JSON content type.
///
/// A form or a script of another site cannot send one without asking the host first (a CORS preflight), which no host
/// answers. This holds for every route, with and without a body.
pub(super) fn check_content_type(method: &Method, headers: &HeaderMap) -> Result<(), AccessError> {
    if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) || !Check::ContentType.is_enforced() {
        return Ok(());
    }
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let (content_type, another) = (types.next(), types.next());
    let essence = content_type.and_then(|value| value.to_str().ok()?.split(';').next());
    match essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json")) && another.is_none() {
        true => Ok(()),
        false => Err(AccessError::ContentType),
    }
}

/// Refuses a request whose end is ambiguous.
///
/// A proxy that uses another header than this server would take the rest of the body for the next request. The HTTP
/// parser hides a Content-Length behind a Transfer-Encoding, so the latter is refused as such: the few requests with a
/// body are short.
pub(super) fn check_length(headers: &HeaderMap) -> Result<(), AccessError> {
    if Check::TransferEncoding.is_enforced() && headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(AccessError::TransferEncoding);
    }
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let (length, another) = (lengths.next(), lengths.next());
    if Check::LengthCount.is_enforced() && another.is_some() {
        return Err(AccessError::LengthCount);
    }
    let upgrades_with_body = headers.contains_key(header::UPGRADE) && length.is_some_and(|length| length != "0");
    if Check::UpgradeBody.is_enforced() && upgrades_with_body {
        return Err(AccessError::UpgradeWithBody);
    }
    Ok(())
}

/// The bearer token of a request.
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
    use axum::http::HeaderName;
    use grove_host::Token;

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn access() -> AccessPolicy {
        AccessPolicy::loopback(Token::parse(SECRET).unwrap(), "127.0.0.1:4000".parse().unwrap())
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
        assert_eq!(check(&[]), Err(AccessError::HostCount));
        assert_eq!(check(&[("host", "localhost:4000"), ("host", "localhost:4000")]), Err(AccessError::HostCount));
        for foreign in ["evil.example:4000", "localhost:4001", "localhost", "127.0.0.1.evil.example:4000", ""] {
            assert_eq!(check(&[("host", foreign)]), Err(AccessError::ForeignHost), "{foreign}");
        }
    }

    #[test]
    fn a_page_of_another_site_or_port_may_only_follow_a_link() {
        let check = |method: Method, site: &str, more: &[(&str, &str)]| {
            check_site(&method, &headers(&[&[("sec-fetch-site", site)], more].concat()))
        };
        let upgrade = [("upgrade", "websocket")];
        for site in ["cross-site", "same-site", "something new"] {
            assert_eq!(check(Method::GET, site, &[]), Ok(()), "{site}");
            assert_eq!(check(Method::POST, site, &[]), Err(AccessError::ForeignOrigin), "{site}");
            assert_eq!(check(Method::GET, site, &upgrade), Err(AccessError::ForeignOrigin), "{site}");
            let two = [("sec-fetch-site", "same-origin")];
            assert_eq!(check(Method::POST, site, &two), Err(AccessError::ForeignOrigin), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(
                (check(Method::POST, site, &[]), check(Method::GET, site, &upgrade)),
                (Ok(()), Ok(())),
                "{site}"
            );
        }
        assert_eq!(check_site(&Method::POST, &HeaderMap::new()), Ok(()), "a program sends none");
    }

    fn lab() -> HostNames {
        HostNames::listed(["lab.example".to_owned()])
    }

    #[test]
    fn a_request_that_may_change_something_has_a_json_content_type() {
        let check = |method: Method, types: &[&str]| {
            let pairs: Vec<_> = types.iter().map(|value| ("content-type", *value)).collect();
            check_content_type(&method, &headers(&pairs))
        };
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            assert_eq!(check(method.clone(), &["application/json"]), Ok(()));
            assert_eq!(check(method.clone(), &["Application/JSON; charset=utf-8"]), Ok(()));
            let json = "application/json";
            for types in [&[][..], &["text/plain"], &["text/plain;application/json"], &[""], &[json, "text/plain"]] {
                assert_eq!(check(method.clone(), types), Err(AccessError::ContentType), "{types:?}");
            }
        }
        assert_eq!(check(Method::GET, &[]), Ok(()));
    }

    #[test]
    fn a_foreign_origin_is_refused_and_none_is_fine() {
        let check = |origin: &str| access().check_source(&headers(&[("host", "localhost:4000"), ("origin", origin)]));
        assert_eq!(check("http://localhost:4000"), Ok(()));
        for foreign in ["http://evil.example", "https://localhost:4000", "null", "http://localhost:4000.evil.example"] {
            assert_eq!(check(foreign), Err(AccessError::ForeignOrigin), "{foreign}");
        }
        let two = [("host", "localhost:4000"), ("origin", "http://localhost:4000"), ("origin", "null")];
        assert_eq!(access().check_source(&headers(&two)), Err(AccessError::ForeignOrigin));
    }

    #[test]
    fn a_request_has_one_length_and_an_upgrade_has_no_body() {
        let check = |pairs: &[(&str, &str)]| check_length(&headers(pairs));
        assert_eq!((check(&[]), check(&[("content-length", "5")])), (Ok(()), Ok(())));
        assert_eq!(check(&[("content-length", "5"), ("content-length", "5")]), Err(AccessError::LengthCount));
        assert_eq!(check(&[("transfer-encoding", "chunked")]), Err(AccessError::TransferEncoding));
        assert_eq!(check(&[("upgrade", "websocket"), ("content-length", "5")]), Err(AccessError::UpgradeWithBody));
        assert_eq!(check(&[("upgrade", "websocket"), ("content-length", "0")]), Ok(()));
    }

    #[test]
    fn the_token_comes_as_bearer_or_in_the_query() {
        let check = |auth: Option<&str>, query: Option<&str>| {
            let pairs: Vec<_> = auth.into_iter().map(|value| ("authorization", value)).collect();
            access().check_token(&headers(&pairs), query, None).map(|_| ())
        };
        assert_eq!(check(Some(&format!("Bearer {SECRET}")), None), Ok(()));
        assert_eq!(check(None, Some(&format!("a=b&tkn={SECRET}"))), Ok(()));
        assert_eq!(check(None, None), Err(AccessError::Token));
        assert_eq!(check(Some("Bearer wrong"), Some("tkn=wrong")), Err(AccessError::Token));
        assert_eq!(check(Some(SECRET), None), Err(AccessError::Token));
        assert_eq!(check(None, Some("tkn=")), Err(AccessError::Token));
        assert_eq!(
            access().check_bearer(&headers(&[("authorization", &format!("bearer {SECRET}"))]), None).map(|_| ()),
            Ok(())
        );
        assert_eq!(access().check_bearer(&HeaderMap::new(), None), Err(AccessError::Bearer));
    }

    #[test]
    fn other_machines_use_the_names_of_the_host_and_no_other_page_comes_in() {
        let secret = Token::parse(SECRET).unwrap();
        let check = |privacy, origin: &str| {
            AccessPolicy::remote(secret.clone(), privacy, lab())
                .check_source(&headers(&[("host", "lab.example:7443"), ("origin", origin)]))
        };
        assert_eq!(check(TransportSecurity::Tls, "https://lab.example:7443"), Ok(()));
        assert_eq!(check(TransportSecurity::None, "http://lab.example:7443"), Ok(()));
        for foreign in ["https://evil.example", "http://lab.example:7443", "null", "https://lab.example"] {
            assert_eq!(check(TransportSecurity::Tls, foreign), Err(AccessError::ForeignOrigin), "{foreign}");
        }
        let remote = AccessPolicy::remote(secret, TransportSecurity::Tls, lab());
        assert_eq!(remote.check_source(&headers(&[("host", "")])), Err(AccessError::ForeignHost));
        let rebound = headers(&[("host", "evil.example:7443"), ("origin", "https://evil.example:7443")]);
        assert_eq!(remote.check_source(&rebound), Err(AccessError::UnlistedHost));
        assert!(AccessError::UnlistedHost.to_string().contains("host-names"));
        assert_eq!(remote.check_bearer(&HeaderMap::new(), None), Err(AccessError::Bearer));
    }

    #[test]
    fn a_token_in_the_address_is_for_loopback_or_for_who_permits_it() {
        let secret = Token::parse(SECRET).unwrap();
        let query = format!("tkn={SECRET}");
        let check = |access: &AccessPolicy| access.check_token(&HeaderMap::new(), Some(&query), None).map(|_| ());
        let remote = AccessPolicy::remote(secret, TransportSecurity::Tls, lab());
        assert_eq!(check(&access()), Ok(()));
        assert_eq!(check(&remote), Err(AccessError::QueryToken));
        assert_eq!(check(&remote.with_query_token()), Ok(()));
    }

    #[test]
    fn the_owner_of_the_socket_needs_no_token() {
        let owner = AccessPolicy::owner();
        assert_eq!(owner.check_source(&headers(&[("host", "localhost")])), Ok(()));
        assert_eq!(owner.check_source(&headers(&[("host", "evil.example")])), Err(AccessError::ForeignHost));
        assert_eq!(
            (owner.check_token(&HeaderMap::new(), None, None), owner.check_bearer(&HeaderMap::new(), None)),
            (Ok(TokenHolder::Owner), Ok(TokenHolder::Owner))
        );
    }

    #[test]
    fn a_page_key_is_for_the_origin_that_is_asked_for_and_no_other_listener_gives_one_for_loopback() {
        let key = |access: &AccessPolicy, host: &str| {
            let nonce = format!("nonce={}", "0a".repeat(32));
            let nonce = crate::http::page_access::Nonce::from_query(Some(&nonce)).unwrap();
            access.page_login(&headers(&[("host", host)]), None, None).map(|login| login.key.prove(&nonce, ""))
        };
        let (secret, local) = (Token::parse(SECRET).unwrap(), access());
        assert_eq!(key(&local, "LOCALHOST:4000"), key(&local, "localhost:4000"));
        assert_ne!(key(&local, "localhost:4000"), key(&local, "127.0.0.1:4000"));
        assert_ne!(
            key(&local, "localhost:4000"),
            key(&AccessPolicy::remote(secret.clone(), TransportSecurity::Tls, lab()), "localhost:4000")
        );
        let plain = AccessPolicy::remote(secret, TransportSecurity::None, lab());
        assert!(key(&plain, "lab.example:4000").is_ok());
        for name in ["localhost:4000", "127.0.0.1", "[::1]:4000", "LocalHost:1"] {
            assert_eq!(key(&plain, name), Err(AccessError::LoopbackName), "{name}");
        }
        assert_eq!(key(&AccessPolicy::owner(), "localhost"), Err(AccessError::NoPage));
    }

    #[test]
    fn a_token_does_not_show_itself() {
        assert!(!format!("{:?}", access()).contains(SECRET));
        assert!(Token::parse("short").is_none());
    }
}
