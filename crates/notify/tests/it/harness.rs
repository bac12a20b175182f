//! A host in memory with notifications, on tokio's paused clock.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use grove_agents::scripted::ScriptedAgent;
use grove_core::{Scope, ScopeSet, Timestamp};
use grove_host::tokens::{HostToken, NewToken, TokenRecord, TokenRegistry, TokenStorage};
use grove_host::{Config, Env, Host, Token};
use grove_notify::http::{Post, PostAnswer, PostError, Transport};
use grove_notify::{
    Detail, Devices, KindSet, Notifier, NotifyConfig, NotifyFile, NotifyStorage, Reach, TargetUrl, Webhook,
};
use grove_server::HostServer;
use grove_testkit::ahp::Client;
use grove_testkit::host::{ADDRESS, Dialer, PIPE_BYTES, PausedClock, TOKEN, serve};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey};
use ring::rand::SystemRandom;
use serde_json::{Value, json};

/// 2026-03-01 at noon UTC.
pub(crate) const NOON: u64 = 1_772_366_400_000;
pub(crate) const URI: &str = "scripted:/s";
pub(crate) const HOOK: &str = "https://hook.example/grove";

/// The two files of the service, which outlive a host.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryFiles(pub(crate) Arc<Mutex<[Option<String>; 2]>>);

impl NotifyStorage for MemoryFiles {
    fn load(&self, file: NotifyFile) -> io::Result<Option<String>> {
        Ok(self.0.lock().unwrap()[file as usize].clone())
    }

    fn store(&self, file: NotifyFile, text: &str) -> io::Result<()> {
        self.0.lock().unwrap()[file as usize] = Some(text.to_owned());
        Ok(())
    }
}

/// The tokens of a host, which outlive it.
#[derive(Clone, Default)]
pub(crate) struct MemoryTokens(Arc<Mutex<Vec<TokenRecord>>>);

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

/// The network: it records requests, and answers them from a list; with 201 at its end.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pub(crate) posts: Mutex<Vec<(u64, Post)>>,
    pub(crate) answers: Mutex<VecDeque<PostAnswer>>,
    clock: Mutex<Option<Env>>,
}

#[async_trait]
impl Transport for Network {
    async fn post(&self, post: Post) -> Result<PostAnswer, PostError> {
        let now = self.clock.lock().unwrap().as_ref().map_or(0, |env| env.clock.now().0);
        self.posts.lock().unwrap().push((now, post));
        let answer = self.answers.lock().unwrap().pop_front();
        Ok(answer.unwrap_or(PostAnswer { status: 201, retry_after: None }))
    }
}

pub(crate) fn status(status: u16) -> PostAnswer {
    PostAnswer { status, retry_after: None }
}

/// A host with notifications.
pub(crate) struct NotifyHost {
    _host: Host,
    _serving: HostServer,
    pub(crate) network: Arc<Network>,
    pub(crate) tokens: TokenRegistry,
    dialer: Dialer,
}

/// The parts that outlive a host.
#[derive(Clone, Default)]
pub(crate) struct Disk {
    pub(crate) files: MemoryFiles,
    pub(crate) tokens: MemoryTokens,
}

pub(crate) fn config() -> NotifyConfig {
    let url = TargetUrl::read(HOOK, Reach::Public).unwrap();
    NotifyConfig {
        webhook: Some(Webhook { url, secret: Some("a secret of sixteen".to_owned()) }),
        events: KindSet::ALL,
        quiet: None,
        detail: Detail::Text,
        contact: "mailto:owner@example.org".to_owned(),
    }
}

impl NotifyHost {
    pub(crate) async fn start() -> Self {
        Self::with(config(), &Disk::default()).await
    }

    pub(crate) async fn with(config: NotifyConfig, disk: &Disk) -> Self {
        let env = Env { clock: Arc::new(PausedClock::new(Timestamp(NOON))), ..Env::in_memory() };
        let host = Host::in_memory(env.clone(), Config::default(), vec![Arc::new(ScriptedAgent)]).await.unwrap();
        let own = HostToken::from(Token::parse(TOKEN).unwrap());
        let tokens = TokenRegistry::open(env.clone(), own, Box::new(disk.tokens.clone())).unwrap();
        host.set_tokens(tokens.clone());
        let network = Arc::new(Network { clock: Mutex::new(Some(env)), ..Network::default() });
        let files = Arc::new(disk.files.clone());
        let devices = Devices::open(files.clone(), tokens.clone(), Reach::Public).unwrap();
        let notifier = Notifier::new(&host, config, files, devices, network.clone());
        host.set_notifications(Arc::new(notifier.clone()));
        tokio::spawn(notifier.run());
        let (dialer, serving) = serve(&host);
        Self { _host: host, _serving: serving, network, tokens, dialer }
    }

    pub(crate) fn add_token(&self, name: &str, scopes: &[Scope]) -> String {
        let wanted = NewToken { name: name.to_owned(), scopes: scopes.iter().copied().collect(), lifetime: None };
        self.tokens.add(wanted, ScopeSet::ALL).unwrap().reveal().to_owned()
    }

    pub(crate) async fn client(&self, token: &str, id: &str) -> Client {
        let url = format!("ws://{ADDRESS}/ws?tkn={token}");
        let mut client = Client::over(Box::new(self.dialer.dial(PIPE_BYTES).unwrap()), &url, id).await;
        client.initialize(&[]).await;
        client
    }

    /// The events that the webhook was told, each with its time after noon in seconds.
    pub(crate) fn hooked(&self) -> Vec<(u64, String)> {
        let posts = self.network.posts.lock().unwrap();
        let hooked = posts.iter().filter(|(_, post)| post.url.as_str() == HOOK);
        let event =
            |post: &Post| serde_json::from_slice::<Value>(&post.body).unwrap()["event"].as_str().unwrap().to_owned();
        hooked.map(|(at, post)| ((at - NOON) / 1_000, event(post))).collect()
    }

    /// The urgencies of the messages to a device.
    pub(crate) fn pushed(&self, endpoint: &str) -> Vec<String> {
        let posts = self.network.posts.lock().unwrap();
        let pushed = posts.iter().filter(|(_, post)| post.url.as_str() == endpoint);
        pushed.map(|(_, post)| post.headers["urgency"].to_str().unwrap().to_owned()).collect()
    }
}

/// The params of a subscription, with keys that a browser could have made.
pub(crate) fn subscription(endpoint: &str) -> Value {
    let key = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
    let p256dh = BASE64_URL_SAFE_NO_PAD.encode(key.compute_public_key().unwrap());
    json!({
        "endpoint": endpoint,
        "keys": {"p256dh": p256dh, "auth": BASE64_URL_SAFE_NO_PAD.encode([7; 16])},
        "name": "Phone",
        "events": ["waiting", "finished", "failed"],
    })
}

pub(crate) fn ask() -> Value {
    json!([{"tool": {"name": "bash", "input": "ls", "permission": "shell", "output": "a"}}])
}

pub(crate) async fn seconds(count: u64) {
    tokio::time::sleep(Duration::from_secs(count)).await;
}
