//! Named tokens: what they open, for how long, and one-time codes for pages.

use std::io;
use std::sync::{Arc, Mutex, OnceLock, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use grove_agents::scripted::ScriptedAgent;
use grove_core::{Scope, ScopeSet, Timestamp};
use grove_host::tokens::{HostToken, NewToken, TokenRecord, TokenRegistry, TokenStorage};
use grove_host::{Config, Env, Host, Token};
use grove_server::{AccessPolicy, HostServer, sdk};
use grove_testkit::host::{ADDRESS, Dialer, PIPE_BYTES, PausedClock, TOKEN, pipes, serve};
use grove_testkit::{ConnectionEnd, ahp};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::harness::Addressed;

/// The close code of a connection whose token has ended.
const TOKEN_ENDED: u16 = 4011;

/// Tokens in memory, which can be made to fail.
#[derive(Clone, Default)]
struct MemoryTokens(Arc<Mutex<Vec<TokenRecord>>>);

impl TokenStorage for MemoryTokens {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn store(&self, tokens: &[TokenRecord]) -> io::Result<()> {
        *self.0.lock().unwrap() = tokens.to_vec();
        Ok(())
    }

    fn store_host_token(&self, _: &Token) -> io::Result<()> {
        Ok(())
    }
}

fn env() -> Env {
    Env { clock: Arc::new(PausedClock::new(Timestamp(1_700_000_000_000))), ..Env::in_memory() }
}

/// The close code of a connection.
async fn close_code(client: &mut ahp::Client) -> Option<u16> {
    match client.until_end().await {
        ConnectionEnd::Closed { code, .. } => Some(code),
        ConnectionEnd::Broken => None,
    }
}

/// A host with a registry of tokens.
pub(crate) struct TokenHost {
    pub(crate) host: Host,
    pub(crate) serving: HostServer,
    dialer: Dialer,
    /// The addresses of the next remote clients.
    pub(crate) addresses: Arc<Mutex<Vec<&'static str>>>,
    pub(crate) tokens: TokenRegistry,
    stored: MemoryTokens,
}

impl TokenHost {
    pub(crate) async fn start() -> Self {
        Self::with(Config::default()).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let env = env();
        let host = Host::in_memory(env.clone(), config, vec![Arc::new(ScriptedAgent)]).await.unwrap();
        let stored = MemoryTokens::default();
        let own = HostToken::from(Token::parse(TOKEN).unwrap());
        let tokens = TokenRegistry::open(env, own, Box::new(stored.clone())).unwrap();
        host.set_tokens(tokens.clone());
        let (dialer, serving) = serve(&host);
        Self { host, serving, dialer, addresses: Arc::default(), tokens, stored }
    }

    /// The same host, at a listener for clients of other machines.
    pub(crate) fn with_remote_clients(mut self) -> Self {
        let (dialer, pipes) = pipes();
        let access = AccessPolicy::loopback(self.tokens.host_token().clone(), ADDRESS.parse().unwrap());
        self.serving.listen(access, Box::new(Addressed { pipes, addresses: self.addresses.clone() }));
        self.dialer = dialer;
        self
    }

    /// The same host, at a listener that serves editors.
    pub(crate) fn with_editors(mut self, editors: Arc<dyn grove_server::EditorService>) -> Self {
        let (dialer, pipes) = pipes();
        self.serving = self.serving.with_editors(editors);
        let access = AccessPolicy::loopback(self.tokens.host_token().clone(), ADDRESS.parse().unwrap());
        self.serving.listen(access, Box::new(pipes));
        self.dialer = dialer;
        self
    }

    pub(crate) fn dial(&self) -> DuplexStream {
        self.dialer.dial(PIPE_BYTES).unwrap()
    }

    pub(crate) fn add(&self, name: &str, scopes: &[Scope], lifetime: Option<Duration>) -> String {
        let wanted = NewToken { name: name.to_owned(), scopes: scopes.iter().copied().collect(), lifetime };
        self.tokens.add(wanted, ScopeSet::ALL).unwrap().reveal().to_owned()
    }

    pub(crate) async fn client(&self, token: &str, id: &str) -> ahp::Client {
        let mut client = self.connect(token, id).await;
        client.initialize(&[]).await;
        client
    }

    /// A client that has not initialized.
    pub(crate) async fn connect(&self, token: &str, id: &str) -> ahp::Client {
        let url = format!("ws://{ADDRESS}/ws?tkn={token}");
        ahp::Client::over(Box::new(self.dial()), &url, id).await
    }

    /// Sends a request, and returns the status and the body of its answer.
    pub(crate) async fn http(&self, head: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let mut near = self.dial();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!(
            "{head} HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        );
        near.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        near.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    async fn status(&self, token: &str) -> u16 {
        let bearer = format!("Bearer {token}");
        self.http("POST /ticket", &[("Authorization", &bearer)], "").await.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_named_token_opens_the_host_with_its_scopes_and_only_its_digest_is_stored() {
    let host = TokenHost::start().await;
    let token = host.add("phone", &[Scope::Read, Scope::Approve], None);
    let mut client = host.client(&token, "phone").await;
    let refused = client.ask("createSession", json!({"channel": "scripted:/s"})).await.unwrap_err();
    assert!(refused.message.contains("`prompt`") && refused.message.contains("`phone`"), "{refused:?}");
    let stored = serde_json::to_string(&*host.stored.0.lock().unwrap()).unwrap();
    assert!(!stored.contains(&token[18..]), "{stored}");
    let last = if token.ends_with('0') { '1' } else { '0' };
    for wrong in [&token[..80], &format!("{}{last}", &token[..81]), &token.to_uppercase(), "gt", ""] {
        assert_eq!(host.status(wrong).await, 403, "{wrong}");
    }
    assert_eq!(host.status(&token).await, 200);
}

#[tokio::test(start_paused = true)]
async fn revoking_and_rotating_a_token_close_its_connections_and_no_others() {
    let host = TokenHost::start().await;
    let (phone, desk) = (host.add("phone", &[Scope::Read], None), host.add("desk", &[Scope::Read], None));
    let (mut on_phone, mut on_desk) = (host.client(&phone, "a").await, host.client(&desk, "b").await);
    host.tokens.revoke("phone").unwrap();
    assert_eq!(close_code(&mut on_phone).await, Some(TOKEN_ENDED));
    assert_eq!(host.status(&phone).await, 403);
    on_desk.barrier().await;
    let rotated = host.tokens.rotate("desk", ScopeSet::ALL).unwrap();
    drop(rotated.ended);
    assert_eq!(close_code(&mut on_desk).await, Some(TOKEN_ENDED));
    assert_eq!((host.status(&desk).await, host.status(&rotated.secret).await), (403, 200));
}

#[tokio::test(start_paused = true)]
async fn an_expired_token_opens_nothing_and_its_connections_are_closed() {
    let host = TokenHost::start().await;
    let token = host.add("guest", &[Scope::Read], Some(Duration::from_secs(10)));
    let mut client = host.client(&token, "a").await;
    assert_eq!(close_code(&mut client).await, Some(TOKEN_ENDED));
    assert_eq!(host.status(&token).await, 403);
    assert_eq!(host.tokens.list().len(), 1, "the host's own");
}

#[tokio::test(start_paused = true)]
async fn a_ticket_has_the_rights_of_the_token_that_got_it_and_ends_with_it() {
    let host = TokenHost::start().await;
    let token = host.add("phone", &[Scope::Read], None);
    let bearer = format!("Bearer {token}");
    let ticket = async || {
        let (status, body) = host.http("POST /ticket", &[("Authorization", &bearer)], "").await;
        assert_eq!(status, 200);
        serde_json::from_str::<Value>(&body).unwrap()["ticket"].as_str().unwrap().to_owned()
    };
    let url = format!("ws://{ADDRESS}/ws?ticket={}", ticket().await);
    let mut client = ahp::Client::over(Box::new(host.dial()), &url, "a").await;
    client.initialize(&[]).await;
    let refused = client.ask("createSession", json!({"channel": "scripted:/s"})).await.unwrap_err();
    assert!(refused.message.contains("`phone`"), "{refused:?}");
    let late = ticket().await;
    host.tokens.revoke("phone").unwrap();
    let upgrade = [("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "x")];
    let head = format!("GET /ws?ticket={late}");
    let mut near = host.dial();
    let headers: String = upgrade.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("{head} HTTP/1.1\r\nHost: {ADDRESS}\r\nConnection: Upgrade\r\n{headers}\r\n");
    near.write_all(request.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    near.read_exact(&mut status).await.unwrap();
    assert_eq!(&status[9..], b"401");
}

#[tokio::test(start_paused = true)]
async fn the_host_shows_its_status_to_tokens_that_may_read_alone() {
    let host = TokenHost::start().await;
    let (reader, blind) = (host.add("reader", &[Scope::Read], None), host.add("blind", &[Scope::Prompt], None));
    let shown = async |token: &str| {
        let bearer = format!("Bearer {token}");
        let (_, body) = host.http("GET /healthz", &[("Authorization", &bearer)], "").await;
        serde_json::from_str::<Value>(&body).unwrap()["serverSeq"].is_u64()
    };
    assert_eq!((shown(&reader).await, shown(&blind).await), (true, false));
}

#[tokio::test(start_paused = true)]
async fn tokens_are_managed_by_clients_with_admin_who_give_away_nothing_that_they_lack() {
    let host = TokenHost::start().await;
    let manager = host.add("manager", &[Scope::Read, Scope::Admin], None);
    let mut client = host.client(&manager, "m").await;
    let more = json!({"name": "more", "scopes": ["read", "approve"]});
    let refused = client.ask("x-grove/tokens/add", more).await.unwrap_err();
    assert!(refused.code == -32009 && refused.message.contains("`approve`"), "{refused:?}");
    let refused = client.ask("x-grove/tokens/rotate", json!({"name": "host"})).await.unwrap_err();
    assert_eq!(refused.code, -32009, "{refused:?}");
    let made = client.ask("x-grove/tokens/add", json!({"name": "less", "scopes": ["read"]})).await.unwrap();
    assert_eq!(host.status(made["token"].as_str().unwrap()).await, 200);
    let listed = client.ask("x-grove/tokens/list", json!({})).await.unwrap();
    let names: Vec<_> = listed["tokens"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["host", "less", "manager"]);
    assert!(!listed.to_string().contains(&manager[18..]), "{listed}");
    for bad in ["", "host", "owner", "a b", &"x".repeat(65), "\u{1b}[31m"] {
        let refused = client.ask("x-grove/tokens/add", json!({"name": bad, "scopes": ["read"]})).await.unwrap_err();
        assert_eq!(refused.code, -32602, "{bad}: {refused:?}");
    }
    client.ask("x-grove/tokens/revoke", json!({"name": "less"})).await.unwrap();
    assert_eq!(host.status(made["token"].as_str().unwrap()).await, 403);
}

#[tokio::test(start_paused = true)]
async fn rotating_the_hosts_own_token_ends_the_old_one() {
    let own = HostToken::from(Token::parse(TOKEN).unwrap());
    let tokens = TokenRegistry::open(env(), own.clone(), Box::new(MemoryTokens::default())).unwrap();
    let new = tokens.rotate("host", ScopeSet::ALL).unwrap();
    assert!(own.check(TOKEN).is_none() && own.check(&new.secret).is_some());
    assert!(tokens.rotate("host", ScopeSet::ALL.without(Scope::Folders)).is_err());
    assert!(tokens.revoke("host").is_err());
}

#[tokio::test(start_paused = true)]
async fn a_token_does_not_outlive_the_one_that_makes_or_rotates_it() {
    let host = TokenHost::start().await;
    let lifetime = Some(Duration::from_secs(10));
    let manager = host.add("manager", &[Scope::Read, Scope::Prompt, Scope::Admin], lifetime);
    let ends = |name: &str| {
        let tokens = host.tokens.list();
        tokens.into_iter().find(|token| token.name.starts_with(name)).unwrap().expires_at
    };
    host.add("forever", &[Scope::Read], None);
    let mut client = host.client(&manager, "m").await;
    for (name, wanted) in [("endless", None), ("longer", Some(20_000)), ("shorter", Some(5_000))] {
        let add = json!({"name": name, "scopes": ["read"], "expiresInMs": wanted});
        client.ask("x-grove/tokens/add", add).await.unwrap();
    }
    assert_eq!((ends("endless"), ends("longer")), (ends("manager"), ends("manager")));
    assert!(ends("shorter") < ends("manager"));
    let refused = client.ask("x-grove/tokens/rotate", json!({"name": "forever"})).await.unwrap_err();
    assert!(refused.code == -32009 && refused.message.contains("outlives"), "{refused:?}");
    client.ask("x-grove/tokens/rotate", json!({"name": "shorter"})).await.unwrap();
    // A page that is paired with its code ends with it, and is not renewed.
    let code = client.ask("x-grove/tokens/issueCode", json!({})).await.unwrap();
    let page = SecretPage::of(code["secret"].as_str().unwrap()).pair(&host).await.unwrap();
    assert_eq!(ends("browser-"), ends("manager"));
    let mut page = host.client(&page, "page").await;
    assert_eq!(close_code(&mut page).await, Some(TOKEN_ENDED));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_rotates_its_own_token_gets_the_new_one_before_it_is_closed() {
    let host = TokenHost::start().await.with_remote_clients();
    for name in ["manager", "host"] {
        let token = match name {
            "host" => TOKEN.to_owned(),
            _ => host.add(name, &Scope::ALL, None),
        };
        let mut client = host.client(&token, name).await;
        let rotated = client.ask("x-grove/tokens/rotate", json!({ "name": name })).await.unwrap();
        assert_ne!(rotated["token"], token);
        assert_eq!(close_code(&mut client).await, Some(TOKEN_ENDED));
    }
}

/// A storage whose writes wait until the test lets them end.
struct SlowTokens {
    begun: Mutex<mpsc::Sender<()>>,
    may_end: Mutex<mpsc::Receiver<()>>,
}

impl TokenStorage for SlowTokens {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        Ok(Vec::new())
    }

    fn store(&self, _: &[TokenRecord]) -> io::Result<()> {
        self.begun.lock().unwrap().send(()).unwrap();
        self.may_end.lock().unwrap().recv().map_err(io::Error::other)
    }

    fn store_host_token(&self, _: &Token) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_check_of_a_token_does_not_wait_until_another_one_is_stored() {
    let (begun, stores) = mpsc::channel();
    let (end, may_end) = mpsc::channel();
    let storage = SlowTokens { begun: Mutex::new(begun), may_end: Mutex::new(may_end) };
    let own = HostToken::from(Token::parse(TOKEN).unwrap());
    let tokens = TokenRegistry::open(Env::in_memory(), own, Box::new(storage)).unwrap();
    let adding = {
        let tokens = tokens.clone();
        let wanted = NewToken { name: "phone".to_owned(), scopes: ScopeSet::ALL, lifetime: None };
        std::thread::spawn(move || tokens.add(wanted, ScopeSet::ALL).unwrap().reveal().to_owned())
    };
    stores.recv().unwrap();
    let (checked, answer) = mpsc::channel();
    let looking = tokens.clone();
    std::thread::spawn(move || checked.send((looking.check("wrong").is_some(), looking.list().len())));
    let answer = answer.recv_timeout(Duration::from_secs(20)).expect("the check waits for the storage");
    assert_eq!(answer, (false, 1), "what is not stored is no token");
    end.send(()).unwrap();
    assert!(tokens.check(&adding.join().unwrap()).is_some());
}

/// A storage that begins another rotation of the host's token while it stores the first.
#[derive(Clone, Default)]
struct CrossingTokens {
    stored: Arc<Mutex<Vec<String>>>,
    registry: Arc<OnceLock<TokenRegistry>>,
    second: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl TokenStorage for CrossingTokens {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        Ok(Vec::new())
    }

    fn store(&self, _: &[TokenRecord]) -> io::Result<()> {
        Ok(())
    }

    fn store_host_token(&self, token: &Token) -> io::Result<()> {
        let mut stored = self.stored.lock().unwrap();
        stored.push(token.reveal().to_owned());
        let is_first = stored.len() == 1;
        drop(stored);
        if is_first {
            let (registry, (done, ended)) = (self.registry.get().unwrap().clone(), mpsc::channel());
            let second = std::thread::spawn(move || {
                registry.rotate("host", ScopeSet::ALL).unwrap();
                done.send(()).ok();
            });
            *self.second.lock().unwrap() = Some(second);
            // It must not end before this one: that nothing comes is what is tested.
            ended.recv_timeout(Duration::from_millis(300)).expect_err("two rotations cross");
        }
        Ok(())
    }
}

#[test]
fn of_two_rotations_of_the_hosts_token_the_last_that_is_stored_counts() {
    let storage = CrossingTokens::default();
    let own = HostToken::from(Token::parse(TOKEN).unwrap());
    let tokens = TokenRegistry::open(Env::in_memory(), own.clone(), Box::new(storage.clone())).unwrap();
    storage.registry.set(tokens.clone()).unwrap();
    tokens.rotate("host", ScopeSet::ALL).unwrap();
    let second = storage.second.lock().unwrap().take().unwrap();
    second.join().unwrap();
    let stored = storage.stored.lock().unwrap().clone();
    assert_eq!((stored.len(), stored[1].as_str()), (2, own.current().reveal()));
}

#[test]
fn a_page_login_has_the_rights_of_the_token_that_its_key_is_made_of() {
    let own = HostToken::from(Token::parse(TOKEN).unwrap());
    let tokens = TokenRegistry::open(Env::in_memory(), own.clone(), Box::new(MemoryTokens::default())).unwrap();
    let (token, grant) = own.current_with_grant();
    let now = Timestamp(1);
    assert!(token.reveal() == TOKEN && grant.is_alive(now));
    tokens.rotate("host", ScopeSet::ALL).unwrap();
    assert!(!grant.is_alive(now), "the rights end with the token");
    assert!(own.current_with_grant().1.is_alive(now));
}

/// A page that knows a secret: a token or a one-time code.
pub(crate) struct SecretPage {
    id: String,
    key: Vec<u8>,
    nonce: String,
}

impl SecretPage {
    pub(crate) fn of(secret: &str) -> Self {
        let verifier = hex::encode(Sha256::digest(format!("grove token verifier 1\n{secret}")));
        let key = hmac(verifier.as_bytes(), &format!("grove page key 1\nhttp://{ADDRESS}\n"));
        Self { id: secret[2..18].to_owned(), key, nonce: "5f".repeat(32) }
    }

    fn sign(&self, domain: &str, parts: [&str; 2]) -> String {
        hex::encode(hmac(&self.key, &format!("{domain}\n{}\n{}", parts[0], parts[1])))
    }

    async fn challenge(&self, host: &TokenHost) -> Result<String, u16> {
        let head = format!("POST /proof?nonce={}&token={}", self.nonce, self.id);
        let (status, body) = host.http(&head, &[], "").await;
        if status != 200 {
            return Err(status);
        }
        let said: Value = serde_json::from_str(&body).unwrap();
        let challenge = said["challenge"].as_str().unwrap().to_owned();
        assert_eq!(said["proof"], self.sign("grove host proof 1", [&self.nonce, &challenge]));
        Ok(challenge)
    }

    /// Exchanges a code for a token.
    pub(crate) async fn pair(&self, host: &TokenHost) -> Result<String, u16> {
        let challenge = self.challenge(host).await?;
        let answer = self.sign("grove page answer 1", [&self.nonce, &challenge]);
        let body = json!({"code": self.id, "challenge": challenge, "answer": answer, "nonce": self.nonce});
        let (status, body) = host.http("POST /pair", &[], &body.to_string()).await;
        if status != 200 {
            return Err(status);
        }
        let said: Value = serde_json::from_str(&body).unwrap();
        let token = said["token"].as_str().unwrap().to_owned();
        assert_eq!(said["proof"], self.sign("grove pairing proof 1", [&challenge, &token]));
        assert!(said["name"].as_str().unwrap().starts_with("browser-"));
        Ok(token)
    }
}

/// HMAC-SHA-256, as a page makes it.
fn hmac(key: &[u8], message: &str) -> Vec<u8> {
    let pad = |with: u8| (0..64).map(|at| key.get(at).copied().unwrap_or_default() ^ with).collect::<Vec<u8>>();
    let inner = Sha256::digest([pad(0x36), message.as_bytes().to_vec()].concat());
    Sha256::digest([pad(0x5c), inner.to_vec()].concat()).to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_code_is_good_once_for_a_token_that_can_be_revoked() {
    let host = TokenHost::start().await;
    let code = host.tokens.issue_code(ScopeSet::ALL).unwrap().reveal().to_owned();
    assert_eq!(host.status(&code).await, 403, "a code opens nothing itself");
    let page = SecretPage::of(&code);
    let token = page.pair(&host).await.unwrap();
    assert_eq!(page.pair(&host).await, Err(401), "it is used up");
    let mut client = host.client(&token, "page").await;
    client.ready_session("scripted:/s").await;
    let refused = client.ask("x-grove/tokens/list", json!({})).await.unwrap_err();
    assert_eq!(refused.code, -32009, "{refused:?}");
    let named = host.tokens.list().into_iter().find(|token| token.name.starts_with("browser-")).unwrap();
    assert!(named.expires_at.is_some());
    host.tokens.revoke(&named.name).unwrap();
    assert_eq!(close_code(&mut client).await, Some(TOKEN_ENDED));
}

#[tokio::test(start_paused = true)]
async fn a_code_is_worth_nothing_after_a_minute() {
    let host = TokenHost::start().await;
    let code = host.tokens.issue_code(ScopeSet::ALL).unwrap().reveal().to_owned();
    tokio::time::advance(Duration::from_secs(61)).await;
    assert_eq!(SecretPage::of(&code).pair(&host).await, Err(401));
}

#[tokio::test(start_paused = true)]
async fn a_page_proves_that_it_knows_a_named_token_and_sends_it_not() {
    let host = TokenHost::start().await;
    let token = host.add("phone", &[Scope::Read], None);
    let page = SecretPage::of(&token);
    let challenge = page.challenge(&host).await.unwrap();
    let answer = page.sign("grove page answer 1", [&page.nonce, &challenge]);
    let query = format!("challenge={challenge}&answer={answer}&nonce={}", page.nonce);
    let url = format!("ws://{ADDRESS}/ws?{query}&token={}", page.id);
    let mut client = ahp::Client::over(Box::new(host.dial()), &url, "page").await;
    let first = client.json().await;
    assert_eq!(first["params"]["proof"], page.sign("grove socket proof 1", [&page.nonce, &challenge]));
    client.initialize(&[]).await;
    let refused = client.ask("createSession", json!({"channel": "scripted:/s"})).await.unwrap_err();
    assert!(refused.message.contains("`phone`"), "{refused:?}");
    // A challenge for one token is no challenge for another.
    let other = SecretPage::of(&host.add("other", &[Scope::Read], None));
    let challenge = page.challenge(&host).await.unwrap();
    let answer = other.sign("grove page answer 1", [&other.nonce, &challenge]);
    let body = json!({"code": other.id, "challenge": challenge, "answer": answer, "nonce": other.nonce});
    assert_eq!(host.http("POST /pair", &[], &body.to_string()).await.0, 401);
}

#[tokio::test(start_paused = true)]
async fn a_client_id_belongs_to_the_token_that_first_used_it() {
    let host = TokenHost::start().await;
    let (phone, desk) = (host.add("phone", &[Scope::Read], None), host.add("desk", &[Scope::Read], None));
    let mut first = host.client(&phone, "mine").await;
    for token in [&desk, &TOKEN.to_owned()] {
        let url = format!("ws://{ADDRESS}/ws?tkn={token}");
        let mut other = ahp::Client::over(Box::new(host.dial()), &url, "mine").await;
        let begin = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": "mine"});
        assert_eq!(other.ask("initialize", begin).await.unwrap_err().code, -32009);
        let again = json!({"channel": "ahp-root://", "clientId": "mine", "lastSeenServerSeq": 0, "subscriptions": []});
        assert_eq!(other.ask("reconnect", again).await.unwrap_err().code, -32009);
        let mut old = ahp::Client::over(Box::new(host.dial()), &url, "mine").await;
        let begin = json!({"protocolVersion": 1, "clientId": "mine"});
        assert_eq!(old.ask("initialize", begin).await.unwrap_err().code, -32009);
    }
    first.barrier().await;
    // The token itself may connect again; without it the id is free.
    drop(host.client(&phone, "mine").await);
    host.tokens.revoke("phone").unwrap();
    host.client(&desk, "mine").await;
}

#[tokio::test(start_paused = true)]
async fn of_two_tokens_that_use_a_client_id_at_the_same_time_one_gets_it() {
    let host = TokenHost::start().await;
    let tokens = [host.add("phone", &[Scope::Read], None), host.add("desk", &[Scope::Read], None)];
    for round in 0..20 {
        let (id, mut clients) = (format!("mine-{round}"), Vec::new());
        for token in &tokens {
            let url = format!("ws://{ADDRESS}/ws?tkn={token}");
            clients.push(ahp::Client::over(Box::new(host.dial()), &url, &id).await);
        }
        let [first, second] = &mut clients[..] else { panic!("two clients") };
        let begin = json!({"channel": "ahp-root://", "protocolVersions": ["1.0.0"], "clientId": id});
        let (one, other) = tokio::join!(first.ask("initialize", begin.clone()), second.ask("initialize", begin));
        let refused: Vec<_> = [one, other].into_iter().filter_map(Result::err).collect();
        assert_eq!(refused.iter().map(|error| error.code).collect::<Vec<_>>(), [-32009], "{refused:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_copilot_sdk_has_the_scopes_of_the_token_that_carries_it() {
    let host = TokenHost::start().await;
    let token = host.add("reader", &[Scope::Read], None);
    let mut near = host.dial();
    let head = format!(
        "GET /copilot HTTP/1.1\r\nHost: {ADDRESS}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\n\
         Upgrade: {}\r\n{}: program\r\n{}: {}\r\n\r\n",
        sdk::PROTOCOL,
        sdk::PROGRAM,
        sdk::TRANSPORT,
        sdk::PIPES
    );
    near.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(near.read_u8().await.unwrap());
    }
    assert_eq!(&answer[9..12], b"101");
    for (method, scope) in [
        ("session.list", None),
        ("session.create", Some("prompt")),
        ("session.permissions.setApproveAll", Some("approve")),
        ("runtime.shutdown", Some("admin")),
        ("sessionFs.setProvider", Some("admin")),
    ] {
        let call = json!({"jsonrpc": "2.0", "id": method, "method": method, "params": {}}).to_string();
        near.write_all(format!("Content-Length: {}\r\n\r\n{call}", call.len()).as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(near.read_u8().await.unwrap());
        }
        let length = String::from_utf8_lossy(&head).trim().strip_prefix("Content-Length: ").unwrap().parse().unwrap();
        let mut body = vec![0; length];
        near.read_exact(&mut body).await.unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap();
        match scope {
            None => assert!(answer["error"].is_null(), "{answer}"),
            Some(scope) => {
                let message = answer["error"]["message"].as_str().unwrap();
                assert!(message.contains(&format!("needs the scope `{scope}`")), "{answer}");
                assert_eq!(answer["error"]["code"], -32009, "{answer}");
            }
        }
    }
}
