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
    /// Held while tokens are stored, so that changes happen one after another.
    ///
    /// `state` is not held meanwhile: a check of a token never waits for the disk.
    changes: Mutex<()>,
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
    maker: TokenMaker,
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

/// The rights of the party that makes or rotates a token, which it can pass on.
#[derive(Clone, Copy, Debug)]
pub struct TokenMaker {
    pub scopes: ScopeSet,
    /// The end of its own token, in milliseconds since 1970. What it makes ends then at the latest.
    pub expires_at: Option<u64>,
}

impl From<ScopeSet> for TokenMaker {
    fn from(scopes: ScopeSet) -> Self {
        Self { scopes, expires_at: None }
    }
}

impl TokenMaker {
    /// The end of a token that should end at a time.
    fn clip(self, expires_at: Option<u64>) -> Option<u64> {
        match Check::MakerExpiry.is_enforced() {
            true => expires_at.into_iter().chain(self.expires_at).min(),
            false => expires_at,
        }
    }
}

/// Tokens that are valid no more. Their connections are closed when this is dropped.
#[derive(Debug)]
pub struct EndedTokens(#[expect(dead_code, reason = "the connections watch what it holds")] Vec<watch::Sender<()>>);

/// A token with a new secret.
#[derive(Debug)]
pub struct RotatedToken {
    pub secret: String,
    /// The connections of the old secret.
    pub ended: EndedTokens,
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
    #[error(
        "{0} outlives the token that rotates it: rotate it with a token that does not expire before it, or on the machine \
         of the host"
    )]
    Outlives(String),
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
        Ok(Self(Arc::new(RegistryInner { env, storage, host_token, state, changes: Mutex::default() })))
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
        let now = self.now();
        let is_due = |token: &mut KnownToken| {
            let (period, expires_at) = (token.record.renewed_for?, token.record.expires_at?);
            let next = now.0.saturating_add(period);
            (next.saturating_sub(expires_at) >= RENEWAL_PAUSE.as_millis() as u64).then_some(next)
        };
        let Some(next) = self.state().find(id, now).and_then(is_due) else { return };
        let registry = self.clone();
        self.0.env.spawn.spawn_blocking(Box::new(move || {
            let renewed = registry.change(|tokens, _| {
                if let Some(token) = tokens.iter_mut().find(|token| token.record.id == id) {
                    token.record.expires_at = Some(next);
                    token.expires_at.store(next, Ordering::Relaxed);
                }
                Ok(())
            });
            if let Err(error) = renewed {
                tracing::warn!(%error, "the expiry of a token could not be stored");
            }
        }));
    }

    /// Makes a token for a holder of these rights. It writes to the storage, and blocks meanwhile.
    pub fn add(&self, wanted: NewToken, maker: impl Into<TokenMaker>) -> Result<SecretText, TokenError> {
        let maker = maker.into();
        if !is_name(&wanted.name) {
            return Err(TokenError::BadName(wanted.name.chars().take(MAX_TOKEN_NAME).collect()));
        }
        if wanted.scopes == ScopeSet::NONE {
            return Err(TokenError::NoScope);
        }
        if let Some(more) = wanted.scopes.iter().find(|scope| !maker.scopes.contains(*scope))
            && Check::TokenMaker.is_enforced()
        {
            return Err(TokenError::NotYours(more));
        }
        let secret = SecretText::new_token(self.0.env.random.as_ref())?;
        self.change(|tokens, now| {
            if tokens.iter().any(|token| token.record.name == wanted.name) {
                return Err(TokenError::Exists(wanted.name));
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokenError::TooMany);
            }
            let expires_at = maker.clip(wanted.lifetime.map(|lifetime| after(now, lifetime)));
            tokens.push(KnownToken::of(record(wanted.name, &secret, wanted.scopes, now, expires_at, None)));
            Ok(())
        })?;
        Ok(secret)
    }

    /// Issues a one-time code for a page, in the name of a holder of these rights.
    pub fn issue_code(&self, maker: impl Into<TokenMaker>) -> Result<SecretText, TokenError> {
        let maker = maker.into();
        let code = SecretText::new_code(self.0.env.random.as_ref())?;
        let scopes = BROWSER_SCOPES.into_iter().collect::<ScopeSet>().intersection(maker.scopes);
        let maker = TokenMaker { scopes, ..maker };
        let mut state = self.state();
        while state.codes.len() >= MAX_CODES {
            state.codes.pop_front();
        }
        let since = self.now();
        state.codes.push_back(OneTimeCode { id: code.id(), verifier: code.verifier(), maker, since });
        Ok(code)
    }

    /// The time in which a code can be used.
    pub fn code_lifetime(&self) -> Duration {
        CODE_LIFETIME
    }

    /// Exchanges a code, which is used up, for a token of the page's own. `None` if the code is unknown or too old.
    ///
    /// It writes to the storage, and blocks meanwhile.
    pub fn redeem_code(&self, id: TokenPublicId) -> Result<Option<(String, SecretText)>, TokenError> {
        let Some(maker) = self.use_up_code(id) else { return Ok(None) };
        let secret = SecretText::new_token(self.0.env.random.as_ref())?;
        let name = format!("{BROWSER_PREFIX}{}", &secret.id().to_string()[..8]);
        self.change(|tokens, now| {
            while tokens.iter().filter(|token| token.is_of_page()).count() >= MAX_BROWSER_TOKENS
                || tokens.len() >= MAX_TOKENS && tokens.iter().any(KnownToken::is_of_page)
            {
                let pages = tokens.iter().enumerate().filter(|(_, token)| token.is_of_page());
                let Some((first, _)) = pages.min_by_key(|(_, token)| token.record.expires_at) else { break };
                tokens.remove(first);
            }
            if tokens.len() >= MAX_TOKENS {
                return Err(TokenError::TooMany);
            }
            let expires_at = maker.clip(Some(after(now, BROWSER_LIFETIME)));
            // A token that ends with the one that made it is not renewed.
            let renewed_for = maker.expires_at.is_none().then_some(BROWSER_LIFETIME.as_millis() as u64);
            tokens.push(KnownToken::of(record(name.clone(), &secret, maker.scopes, now, expires_at, renewed_for)));
            Ok(())
        })?;
        Ok(Some((name, secret)))
    }

    /// The rights of a code, which is used up.
    fn use_up_code(&self, id: TokenPublicId) -> Option<TokenMaker> {
        let mut state = self.state();
        state.forget_old_codes(self.now());
        let maker = state.codes.iter().find(|code| code.id == id).map(|code| code.maker)?;
        if Check::OneTimeCode.is_enforced() {
            state.codes.retain(|code| code.id != id);
        }
        Some(maker)
    }

    /// Makes a token invalid. It writes to the storage, and blocks meanwhile.
    pub fn revoke(&self, name: &str) -> Result<EndedTokens, TokenError> {
        if name == HOST_TOKEN_NAME {
            return Err(TokenError::HostToken);
        }
        self.change(|tokens, _| {
            let removed = tokens.remove(place(tokens, name)?);
            Ok(EndedTokens(vec![removed.life]))
        })
    }

    /// Gives a token another secret, in the name of a holder of these rights.
    ///
    /// It writes to the storage, and blocks meanwhile.
    pub fn rotate(&self, name: &str, maker: impl Into<TokenMaker>) -> Result<RotatedToken, TokenError> {
        let maker = maker.into();
        if name == HOST_TOKEN_NAME {
            return self.rotate_host_token(maker);
        }
        self.change(|tokens, _| {
            let place = place(tokens, name)?;
            let mut record = tokens[place].record.clone();
            check_maker(maker, record.scopes(), record.expires_at, name)?;
            let secret = SecretText::rotated(record.id, self.0.env.random.as_ref())?;
            record.verifier = secret.verifier();
            let old = std::mem::replace(&mut tokens[place], KnownToken::of(record));
            Ok(RotatedToken { secret: secret.reveal().to_owned(), ended: EndedTokens(vec![old.life]) })
        })
    }

    fn rotate_host_token(&self, maker: TokenMaker) -> Result<RotatedToken, TokenError> {
        check_maker(maker, ScopeSet::ALL, None, HOST_TOKEN_NAME)?;
        // Of two rotations, the one that is stored last must be the one that counts.
        let _changing = self.changing();
        let token = Token::generate(self.0.env.random.as_ref())?;
        self.0.storage.store_host_token(&token)?;
        let old = self.0.host_token.replace(token.clone());
        Ok(RotatedToken { secret: token.reveal().to_owned(), ended: EndedTokens(vec![old]) })
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
    fn change<T>(
        &self,
        change: impl FnOnce(&mut Vec<KnownToken>, Timestamp) -> Result<T, TokenError>,
    ) -> Result<T, TokenError> {
        let _changing = self.changing();
        let now = self.now();
        let mut tokens: Vec<KnownToken> = {
            let mut state = self.state();
            state.forget_expired(now);
            state.tokens.iter().map(KnownToken::same).collect()
        };
        let result = change(&mut tokens, now)?;
        let records: Vec<TokenRecord> = tokens.iter().map(|token| token.record.clone()).collect();
        self.0.storage.store(&records)?;
        self.state().tokens = tokens;
        Ok(result)
    }

    // It guards nothing but the order of changes.
    fn changing(&self) -> MutexGuard<'_, ()> {
        self.0.changes.lock().unwrap_or_else(PoisonError::into_inner)
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

fn place(tokens: &[KnownToken], name: &str) -> Result<usize, TokenError> {
    let place = tokens.iter().position(|token| token.record.name == name);
    place.ok_or_else(|| TokenError::Unknown(name.chars().take(MAX_TOKEN_NAME).collect()))
}

/// Refuses to give the secret of a token to a holder of fewer rights, or of rights that end earlier.
fn check_maker(maker: TokenMaker, scopes: ScopeSet, expires_at: Option<u64>, name: &str) -> Result<(), TokenError> {
    if let Some(more) = scopes.iter().find(|scope| !maker.scopes.contains(*scope)) {
        return Err(TokenError::NotYours(more));
    }
    match maker.clip(expires_at) == expires_at {
        true => Ok(()),
        false => Err(TokenError::Outlives(name.to_owned())),
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
