//! The tokens of a host.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use grove_checks::Check;
use grove_core::{Scope, ScopeSet, Timestamp};
use tokio::sync::watch;

use super::grant::{TokenGrant, TokenLife};
use super::record::{TokenRecord, TokenStorage};
use super::{HOST_TOKEN_NAME, HostToken, MAX_TOKEN_NAME, MAX_TOKENS, SecretText, TokenPublicId, Verifier};
use crate::{Env, Token};

/// The time in which a one-time code can be used.
pub const CODE_LIFETIME: Duration = Duration::from_secs(60);
/// The unused codes at a time; with more, the oldest are dropped.
pub const MAX_CODES: usize = 64;
/// The tokens that pages got for codes; with more, the one that expires first is dropped.
pub const MAX_BROWSER_TOKENS: usize = 64;
/// The time without a login after which the token of a page expires.
pub const BROWSER_LIFETIME: Duration = Duration::from_secs(90 * 24 * 60 * 60);
/// The expiry of a page's token is stored at most this often.
const RENEWAL_PAUSE: Duration = Duration::from_secs(24 * 60 * 60);
/// The beginning of the name of a page's token.
const BROWSER_PREFIX: &str = "browser-";
/// The scopes of a page's token.
const BROWSER_SCOPES: [Scope; 4] = [Scope::Read, Scope::Prompt, Scope::Approve, Scope::Terminal];

/// The tokens of a host. Clones share them.
#[derive(Clone)]
pub struct TokenRegistry(Arc<RegistryInner>);

struct RegistryInner {
    env: Env,
    storage: Box<dyn TokenStorage>,
    host_token: HostToken,
    state: Mutex<RegistryState>,
}

#[derive(Default)]
struct RegistryState {
    tokens: Vec<KnownToken>,
    /// The unused one-time codes, oldest first.
    codes: VecDeque<OneTimeCode>,
}

struct KnownToken {
    record: TokenRecord,
    life: watch::Sender<()>,
    expires_at: Arc<AtomicU64>,
}

struct OneTimeCode {
    id: TokenPublicId,
    verifier: Verifier,
    scopes: ScopeSet,
    since: Timestamp,
}

/// A request for a new token.
#[derive(Clone, Debug)]
pub struct NewToken {
    pub name: String,
    pub scopes: ScopeSet,
    /// The time after which it expires.
    pub lifetime: Option<Duration>,
}

/// A token without its secret, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenSummary {
    pub name: String,
    pub id: Option<TokenPublicId>,
    pub scopes: ScopeSet,
    pub created_at: Option<u64>,
    pub expires_at: Option<u64>,
}

/// The verifier for a page's proof, and what the page gets with it.
#[derive(Clone, Debug)]
pub enum TokenLogin {
    Token(Verifier, TokenGrant),
    /// A one-time code: it is good for a token of its own, and for nothing else.
    Code(Verifier),
}

/// The reason why a token was not made, rotated or revoked.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error(
        "{0:?} is not a name for a token: take 1 to {MAX_TOKEN_NAME} letters, digits, `-`, `_` and `.`, and not `host`, \
         `owner` or `in-process`"
    )]
    BadName(String),
    #[error("there is a token {0} already: choose another name, or revoke it with `grove token revoke {0}`")]
    Exists(String),
    #[error("there is no token {0}: `grove token ls` lists them")]
    Unknown(String),
    #[error("the host's own token cannot be revoked: replace it with `grove token rotate host`")]
    HostToken,
    #[error("a token needs at least one scope: name some with --can")]
    NoScope,
    #[error("a token cannot have the scope `{0}`, since the token that makes it does not have it")]
    NotYours(Scope),
    #[error("a host has at most {MAX_TOKENS} tokens: revoke one with `grove token revoke NAME`")]
    TooMany,
    #[error("the tokens cannot be stored: {0}")]
    NotStored(#[from] io::Error),
}

impl TokenRegistry {
    /// The stored tokens of a host, with its own.
    pub fn open(env: Env, host_token: HostToken, storage: Box<dyn TokenStorage>) -> io::Result<Self> {
        let tokens = storage.load()?.into_iter().map(KnownToken::of).collect();
        let state = Mutex::new(RegistryState { tokens, codes: VecDeque::new() });
        Ok(Self(Arc::new(RegistryInner { env, storage, host_token, state })))
    }

    pub fn host_token(&self) -> &HostToken {
        &self.0.host_token
    }

    /// The rights of a named token, if it is valid.
    ///
    /// The token is found by its public id, and then its digest is compared in constant time.
    pub fn check(&self, guess: &str) -> Option<TokenGrant> {
        let secret = SecretText::parse(guess)?;
        let mut state = self.state();
        let now = self.now();
        let token = state.find(secret.id(), now)?;
        token.record.verifier.accepts(&secret).then(|| token.grant())
    }

    /// The verifier with which a page proves that it knows a token or a code.
    pub fn login(&self, id: TokenPublicId) -> Option<TokenLogin> {
        let mut state = self.state();
        let now = self.now();
        if let Some(token) = state.find(id, now) {
            return Some(TokenLogin::Token(token.record.verifier.clone(), token.grant()));
        }
        state.forget_old_codes(now);
        let code = state.codes.iter().find(|code| code.id == id)?;
        Some(TokenLogin::Code(code.verifier.clone()))
    }

    /// Notes that the holder of a token has connected: the expiry of a page's token moves.
    pub fn used(&self, grant: &TokenGrant) {
        let Some(id) = grant.id else { return };
        let mut state = self.state();
        let now = self.now();
        let Some(token) = state.find(id, now) else { return };
        let (Some(period), Some(expires_at)) = (token.record.renewed_for, token.record.expires_at) else { return };
        let next = now.0.saturating_add(period);
        if next.saturating_sub(expires_at) < RENEWAL_PAUSE.as_millis() as u64 {
            return;
        }
        token.record.expires_at = Some(next);
        token.expires_at.store(next, Ordering::Relaxed);
        if let Err(error) = self.store(&state) {
            tracing::warn!(%error, "the expiry of a token could not be stored");
        }
    }

    /// Makes a token for a holder of these scopes.
    pub fn add(&self, wanted: NewToken, maker: ScopeSet) -> Result<SecretText, TokenError> {
        if !is_name(&wanted.name) {
            return Err(TokenError::BadName(wanted.name.chars().take(MAX_TOKEN_NAME).collect()));
        }
        if wanted.scopes == ScopeSet::NONE {
            return Err(TokenError::NoScope);
        }
        if let Some(more) = wanted.scopes.iter().find(|scope| !maker.contains(*scope))
            && Check::TokenMaker.is_enforced()
        {
            return Err(TokenError::NotYours(more));
        }
        let secret = SecretText::new_token(self.0.env.random.as_ref())?;
        let mut state = self.state();
        let now = self.now();
        let expires_at = wanted.lifetime.map(|lifetime| after(now, lifetime));
        state.forget_expired(now);
        if state.tokens.iter().any(|token| token.record.name == wanted.name) {
            return Err(TokenError::Exists(wanted.name));
        }
        if state.tokens.len() >= MAX_TOKENS {
            return Err(TokenError::TooMany);
        }
        let token = KnownToken::of(record(wanted.name, &secret, wanted.scopes, now, expires_at, None));
        self.change(&mut state, |tokens| tokens.push(token))?;
        Ok(secret)
    }

    /// Issues a one-time code for a page, in the name of a holder of these scopes.
    pub fn issue_code(&self, maker: ScopeSet) -> Result<SecretText, TokenError> {
        let code = SecretText::new_code(self.0.env.random.as_ref())?;
        let scopes = BROWSER_SCOPES.into_iter().collect::<ScopeSet>().intersection(maker);
        let mut state = self.state();
        while state.codes.len() >= MAX_CODES {
            state.codes.pop_front();
        }
        let since = self.now();
        state.codes.push_back(OneTimeCode { id: code.id(), verifier: code.verifier(), scopes, since });
        Ok(code)
    }

    /// The time in which a code can be used.
    pub fn code_lifetime(&self) -> Duration {
        CODE_LIFETIME
    }

    /// Exchanges a code, which is used up, for a token of the page's own. `None` if the code is unknown or too old.
    pub fn redeem_code(&self, id: TokenPublicId) -> Result<Option<(String, SecretText)>, TokenError> {
        let mut state = self.state();
        let now = self.now();
        state.forget_old_codes(now);
        let Some(scopes) = state.codes.iter().find(|code| code.id == id).map(|code| code.scopes) else {
            return Ok(None);
        };
        if Check::OneTimeCode.is_enforced() {
            state.codes.retain(|code| code.id != id);
        }
        let secret = SecretText::new_token(self.0.env.random.as_ref())?;
        let name = format!("{BROWSER_PREFIX}{}", &secret.id().to_string()[..8]);
        let lifetime = BROWSER_LIFETIME;
        let expires_at = Some(after(now, lifetime));
        let renewed_for = Some(lifetime.as_millis() as u64);
        let token = KnownToken::of(record(name.clone(), &secret, scopes, now, expires_at, renewed_for));
        state.forget_expired(now);
        self.change(&mut state, |tokens| {
            while tokens.iter().filter(|token| token.is_of_page()).count() >= MAX_BROWSER_TOKENS
                || tokens.len() >= MAX_TOKENS && tokens.iter().any(KnownToken::is_of_page)
            {
                let pages = tokens.iter().enumerate().filter(|(_, token)| token.is_of_page());
                let Some((first, _)) = pages.min_by_key(|(_, token)| token.record.expires_at) else { break };
                tokens.remove(first);
            }
            tokens.push(token);
        })?;
        Ok(Some((name, secret)))
    }

    /// Makes a token invalid, and closes its connections.
    pub fn revoke(&self, name: &str) -> Result<(), TokenError> {
        if name == HOST_TOKEN_NAME {
            return Err(TokenError::HostToken);
        }
        let mut state = self.state();
        let place = state.place(name)?;
        self.change(&mut state, |tokens| drop(tokens.remove(place)))
    }

    /// Gives a token another secret, and closes the connections of the old one. Returns the new one.
    pub fn rotate(&self, name: &str, maker: ScopeSet) -> Result<String, TokenError> {
        let random = self.0.env.random.as_ref();
        if name == HOST_TOKEN_NAME {
            if let Some(more) = Scope::ALL.into_iter().find(|scope| !maker.contains(*scope)) {
                return Err(TokenError::NotYours(more));
            }
            let token = Token::generate(random)?;
            self.0.storage.store_host_token(&token)?;
            self.0.host_token.replace(token.clone());
            return Ok(token.reveal().to_owned());
        }
        let mut state = self.state();
        let place = state.place(name)?;
        let mut record = state.tokens[place].record.clone();
        if let Some(more) = record.scopes().iter().find(|scope| !maker.contains(*scope)) {
            return Err(TokenError::NotYours(more));
        }
        let secret = SecretText::rotated(record.id, random)?;
        record.verifier = secret.verifier();
        self.change(&mut state, |tokens| tokens[place] = KnownToken::of(record))?;
        Ok(secret.reveal().to_owned())
    }

    /// All tokens, the host's own first, then by name.
    pub fn list(&self) -> Vec<TokenSummary> {
        let mut state = self.state();
        state.forget_expired(self.now());
        let host = TokenSummary {
            name: HOST_TOKEN_NAME.to_owned(),
            id: None,
            scopes: ScopeSet::ALL,
            created_at: None,
            expires_at: None,
        };
        let mut named: Vec<_> = state.tokens.iter().map(KnownToken::summary).collect();
        named.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        std::iter::once(host).chain(named).collect()
    }

    /// Changes the tokens, and stores them. If that fails, nothing has changed.
    fn change(&self, state: &mut RegistryState, change: impl FnOnce(&mut Vec<KnownToken>)) -> Result<(), TokenError> {
        let before: Vec<KnownToken> = state.tokens.iter().map(KnownToken::same).collect();
        change(&mut state.tokens);
        self.store(state).map_err(|error| {
            state.tokens = before;
            error.into()
        })
    }

    fn store(&self, state: &RegistryState) -> io::Result<()> {
        let records: Vec<TokenRecord> = state.tokens.iter().map(|token| token.record.clone()).collect();
        self.0.storage.store(&records)
    }

    fn now(&self) -> Timestamp {
        self.0.env.clock.now()
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TokenRegistry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TokenRegistry").field("tokens", &self.state().tokens.len()).finish_non_exhaustive()
    }
}

impl RegistryState {
    /// A valid token. An expired one is forgotten.
    fn find(&mut self, id: TokenPublicId, now: Timestamp) -> Option<&mut KnownToken> {
        self.forget_expired(now);
        self.tokens.iter_mut().find(|token| token.record.id == id)
    }

    fn place(&self, name: &str) -> Result<usize, TokenError> {
        let place = self.tokens.iter().position(|token| token.record.name == name);
        place.ok_or_else(|| TokenError::Unknown(name.chars().take(MAX_TOKEN_NAME).collect()))
    }

    fn forget_expired(&mut self, now: Timestamp) {
        self.tokens.retain(|token| !token.record.is_expired(now));
    }

    /// A clock that was set back ends a code as well: its age is unknown then.
    fn forget_old_codes(&mut self, now: Timestamp) {
        let age = |code: &OneTimeCode| now.0.checked_sub(code.since.0).map(Duration::from_millis);
        self.codes.retain(|code| age(code).is_some_and(|age| age < CODE_LIFETIME));
    }
}

impl KnownToken {
    fn of(record: TokenRecord) -> Self {
        let expires_at = Arc::new(AtomicU64::new(record.expires_at.unwrap_or(u64::MAX)));
        Self { record, life: watch::Sender::new(()), expires_at }
    }

    /// The same token, with the same connections.
    fn same(&self) -> Self {
        Self { record: self.record.clone(), life: self.life.clone(), expires_at: self.expires_at.clone() }
    }

    fn is_of_page(&self) -> bool {
        self.record.renewed_for.is_some()
    }

    fn grant(&self) -> TokenGrant {
        let (ended, expires_at) = (self.life.subscribe(), self.expires_at.clone());
        let life = TokenLife { ended, expires_at, _host_token: None };
        let name = self.record.name.as_str().into();
        TokenGrant { id: Some(self.record.id), name, scopes: self.record.scopes(), life }
    }

    fn summary(&self) -> TokenSummary {
        TokenSummary {
            name: self.record.name.clone(),
            id: Some(self.record.id),
            scopes: self.record.scopes(),
            created_at: Some(self.record.created_at),
            expires_at: self.record.expires_at,
        }
    }
}

fn record(
    name: String,
    secret: &SecretText,
    scopes: ScopeSet,
    now: Timestamp,
    expires_at: Option<u64>,
    renewed_for: Option<u64>,
) -> TokenRecord {
    let scopes = scopes.iter().map(|scope| scope.as_str().to_owned()).collect();
    let (id, verifier) = (secret.id(), secret.verifier());
    TokenRecord { name, id, verifier, scopes, created_at: now.0, expires_at, renewed_for }
}

fn after(now: Timestamp, lifetime: Duration) -> u64 {
    now.0.saturating_add(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX))
}

/// Says whether a token may have a name. Those of principals without a named token are taken.
fn is_name(name: &str) -> bool {
    let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'-' | b'_' | b'.');
    (1..=MAX_TOKEN_NAME).contains(&name.len())
        && name.bytes().all(is_letter)
        && !["host", "owner", "in-process"].contains(&name)
}
