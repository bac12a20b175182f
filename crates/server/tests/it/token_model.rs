//! Random operations on the registry of tokens, compared with a simple model.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grove_core::{Scope, ScopeSet, Timestamp};
use grove_host::tokens::{
    HostToken, NewToken, SecretText, TokenError, TokenGrant, TokenRecord, TokenRegistry, TokenStorage,
};
use grove_host::{Clock, Env, Task, Token};
use grove_testkit::host::TOKEN;
use proptest::prelude::*;

/// A clock that the test sets. Nothing sleeps on it.
#[derive(Clone, Debug)]
struct SetClock(Arc<AtomicU64>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::Relaxed))
    }

    fn sleep(&self, _: Duration) -> Task {
        Box::pin(std::future::pending())
    }
}

/// The files of tokens, which can be made to fail.
#[derive(Clone, Default)]
struct TokenFiles {
    tokens: Arc<Mutex<Vec<TokenRecord>>>,
    is_full: Arc<AtomicBool>,
}

impl TokenFiles {
    fn check(&self) -> io::Result<()> {
        match self.is_full.load(Ordering::Relaxed) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }
}

impl TokenStorage for TokenFiles {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        // As it is in the file.
        let text = serde_json::to_string(&*self.tokens.lock().unwrap())?;
        Ok(serde_json::from_str(&text)?)
    }

    fn store(&self, tokens: &[TokenRecord]) -> io::Result<()> {
        self.check()?;
        *self.tokens.lock().unwrap() = tokens.to_vec();
        Ok(())
    }

    fn store_host_token(&self, _: &Token) -> io::Result<()> {
        self.check()
    }
}

#[derive(Clone, Debug)]
enum Operation {
    Add { name: u8, scopes: u8, lifetime_s: Option<u64> },
    Revoke { name: u8 },
    Rotate { name: u8 },
    RotateHost,
    Pass { seconds: u64 },
    Reload,
    IssueCode,
    Redeem { code: usize },
    FillDisk,
    FreeDisk,
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || 0..5_u8;
    prop_oneof![
        5 => (name(), 1..64_u8, proptest::option::of(1..200_u64))
            .prop_map(|(name, scopes, lifetime_s)| Operation::Add { name, scopes, lifetime_s }),
        3 => name().prop_map(|name| Operation::Revoke { name }),
        3 => name().prop_map(|name| Operation::Rotate { name }),
        1 => Just(Operation::RotateHost),
        3 => (1..90_u64).prop_map(|seconds| Operation::Pass { seconds }),
        2 => Just(Operation::Reload),
        2 => Just(Operation::IssueCode),
        3 => (0..8_usize).prop_map(|code| Operation::Redeem { code }),
        1 => Just(Operation::FillDisk),
        2 => Just(Operation::FreeDisk),
    ]
}

/// A token that should be valid.
#[derive(Clone)]
struct ModelToken {
    name: String,
    secret: String,
    scopes: ScopeSet,
    expires_at: u64,
    /// The rights of a connection that was opened with this secret. A new host has none.
    grant: Option<TokenGrant>,
}

/// A code, until it is used up or too old.
struct ModelCode {
    secret: SecretText,
    since: u64,
}

/// The registry, and the state that it should have.
struct Model {
    clock: SetClock,
    files: TokenFiles,
    registry: TokenRegistry,
    host_token: HostToken,
    tokens: Vec<ModelToken>,
    /// Secrets that must not be accepted any more, with the rights that they gave.
    ended: Vec<(String, Option<TokenGrant>)>,
    codes: Vec<ModelCode>,
}

fn text(name: u8) -> String {
    format!("token-{name}")
}

fn scope_set(bits: u8) -> ScopeSet {
    let all = Scope::ALL.into_iter().enumerate();
    all.filter(|(place, _)| bits & (1 << place) != 0).map(|(_, scope)| scope).collect()
}

impl Model {
    fn new() -> Self {
        let clock = SetClock(Arc::new(AtomicU64::new(1_700_000_000_000)));
        let (files, host_token) = (TokenFiles::default(), HostToken::from(Token::parse(TOKEN).unwrap()));
        let registry = Self::open(&clock, &files, &host_token);
        Self { clock, files, registry, host_token, tokens: vec![], ended: vec![], codes: vec![] }
    }

    fn open(clock: &SetClock, files: &TokenFiles, host_token: &HostToken) -> TokenRegistry {
        let env = Env { clock: Arc::new(clock.clone()), ..Env::in_memory() };
        TokenRegistry::open(env, host_token.clone(), Box::new(files.clone())).unwrap()
    }

    fn now(&self) -> u64 {
        self.clock.now().0
    }

    fn is_full(&self) -> bool {
        self.files.is_full.load(Ordering::Relaxed)
    }

    /// Ends a token that the model has.
    fn end(&mut self, place: usize) -> ModelToken {
        let token = self.tokens.remove(place);
        self.ended.push((token.secret.clone(), token.grant.clone()));
        token
    }

    fn place(&self, name: &str) -> Option<usize> {
        self.tokens.iter().position(|token| token.name == name)
    }

    fn begin(&mut self, name: String, secret: String, scopes: ScopeSet, expires_at: u64) {
        let grant = self.registry.check(&secret);
        self.tokens.push(ModelToken { name, secret, scopes, expires_at, grant });
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Add { name, scopes, lifetime_s } => self.add(text(name), scope_set(scopes), lifetime_s),
            Operation::Revoke { name } => self.revoke(&text(name)),
            Operation::Rotate { name } => self.rotate(&text(name)),
            Operation::RotateHost => {
                let before = self.host_token.current().reveal().to_owned();
                let is_done = self.registry.rotate("host", ScopeSet::ALL).is_ok();
                assert_eq!(is_done, !self.is_full());
                assert_eq!(self.host_token.current().reveal() != before, is_done);
            }
            Operation::Pass { seconds } => {
                self.clock.0.fetch_add(seconds * 1_000, Ordering::Relaxed);
                let now = self.now();
                while let Some(place) = self.tokens.iter().position(|token| token.expires_at <= now) {
                    self.end(place);
                }
            }
            Operation::Reload => {
                self.registry = Self::open(&self.clock, &self.files, &self.host_token);
                // Connections and codes end with the host.
                self.codes.clear();
                self.tokens.iter_mut().for_each(|token| token.grant = None);
            }
            Operation::IssueCode => {
                let secret = self.registry.issue_code(ScopeSet::ALL).unwrap();
                self.codes.push(ModelCode { secret, since: self.now() });
            }
            Operation::Redeem { code } => self.redeem(code),
            Operation::FillDisk => self.files.is_full.store(true, Ordering::Relaxed),
            Operation::FreeDisk => self.files.is_full.store(false, Ordering::Relaxed),
        }
    }

    fn add(&mut self, name: String, scopes: ScopeSet, lifetime_s: Option<u64>) {
        let wanted = NewToken { name: name.clone(), scopes, lifetime: lifetime_s.map(Duration::from_secs) };
        let is_known = self.place(&name).is_some();
        match self.registry.add(wanted, ScopeSet::ALL) {
            Ok(secret) => {
                assert!(!is_known && !self.is_full());
                let expires_at = lifetime_s.map_or(u64::MAX, |seconds| self.now() + seconds * 1_000);
                self.begin(name, secret.reveal().to_owned(), scopes, expires_at);
            }
            Err(TokenError::Exists(_)) => assert!(is_known, "{name}"),
            Err(TokenError::NotStored(_)) => assert!(self.is_full()),
            Err(error) => panic!("{error}"),
        }
    }

    fn revoke(&mut self, name: &str) {
        let place = self.place(name);
        match (self.registry.revoke(name), place) {
            (Ok(ended), Some(place)) => {
                drop(ended);
                self.end(place);
            }
            (Err(TokenError::NotStored(_)), _) => assert!(self.is_full()),
            // An expired token may not be forgotten yet.
            (Ok(_) | Err(TokenError::Unknown(_)), None) => {}
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }

    fn rotate(&mut self, name: &str) {
        let place = self.place(name);
        match (self.registry.rotate(name, ScopeSet::ALL).map(|rotated| rotated.secret), place) {
            (Ok(secret), Some(place)) => {
                let ModelToken { name, scopes, expires_at, .. } = self.end(place);
                self.begin(name, secret, scopes, expires_at);
            }
            (Ok(secret), None) => self.ended.push((secret, None)),
            (Err(TokenError::NotStored(_)), _) => assert!(self.is_full()),
            (Err(TokenError::Unknown(_)), None) => {}
            (outcome, _) => panic!("{name}: {outcome:?}"),
        }
    }

    fn redeem(&mut self, code: usize) {
        let Some(code) = (code < self.codes.len()).then(|| self.codes.remove(code)) else { return };
        assert!(self.registry.check(code.secret.reveal()).is_none(), "a code is no token");
        let is_fresh = self.now() - code.since < 60_000;
        match self.registry.redeem_code(code.secret.id()) {
            Ok(Some((name, secret))) => {
                assert!(is_fresh && !self.is_full());
                let granted = self.registry.check(secret.reveal()).unwrap();
                let expires_at = self.now() + 90 * 24 * 60 * 60 * 1_000;
                self.begin(name, secret.reveal().to_owned(), granted.scopes, expires_at);
            }
            Ok(None) => assert!(!is_fresh),
            Err(TokenError::NotStored(_)) => assert!(is_fresh && self.is_full()),
            Err(error) => panic!("{error}"),
        }
        assert!(self.registry.redeem_code(code.secret.id()).unwrap().is_none(), "a code is good once");
    }

    /// Compares the registry with the model.
    fn check(&self) {
        let now = self.clock.now();
        for token in &self.tokens {
            let grant = self.registry.check(&token.secret).unwrap_or_else(|| panic!("{} is not accepted", token.name));
            assert_eq!((&*grant.name, grant.scopes), (token.name.as_str(), token.scopes));
            assert!(token.grant.as_ref().is_none_or(|grant| grant.is_alive(now)), "{} was cut off", token.name);
        }
        for (secret, grant) in &self.ended {
            assert!(self.registry.check(secret).is_none(), "an ended token is accepted");
            assert!(grant.as_ref().is_none_or(|grant| !grant.is_alive(now)), "a connection outlives its token");
        }
        let mut names: Vec<&str> = self.tokens.iter().map(|token| token.name.as_str()).collect();
        names.sort_unstable();
        let listed = self.registry.list();
        assert_eq!(listed.iter().skip(1).map(|token| token.name.as_str()).collect::<Vec<_>>(), names);
        let stored = serde_json::to_string(&*self.files.tokens.lock().unwrap()).unwrap();
        // The public id is stored, the secret behind it is not.
        assert!(self.tokens.iter().all(|token| !stored.contains(&token.secret[18..])), "a secret is stored");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens_are_accepted_from_when_they_are_made_until_they_end(
        operations in proptest::collection::vec(operation(), 1..60)
    ) {
        let mut model = Model::new();
        for operation in operations {
            model.apply(operation);
            model.check();
        }
    }
}
