//! The fuzz bodies of tokens and of the audit log.

use std::io;
use std::sync::Mutex;

use grove_core::ScopeSet;
use grove_host::audit::AuditRecord;
use grove_host::tokens::{SecretText, TokenPublicId, TokenRecord, TokenRegistry, TokenStorage};
use grove_host::{Env, Token};

/// The tokens of a file, in memory.
#[derive(Debug)]
struct StoredTokens(Mutex<Vec<TokenRecord>>);

impl TokenStorage for StoredTokens {
    fn load(&self) -> io::Result<Vec<TokenRecord>> {
        Ok(self.0.lock().expect("no panic before").clone())
    }

    fn store(&self, tokens: &[TokenRecord]) -> io::Result<()> {
        *self.0.lock().expect("no panic before") = tokens.to_vec();
        Ok(())
    }

    fn store_host_token(&self, _: &Token) -> io::Result<()> {
        Ok(())
    }
}

/// Any text as the file of tokens: it is read or refused, its tokens can be listed and changed, and no guess is accepted.
pub fn token_file(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    guess(&text);
    let Ok(records) = serde_json::from_str::<Vec<TokenRecord>>(&text) else { return };
    let written = serde_json::to_string(&records).expect("what was read can be written");
    assert_eq!(serde_json::from_str::<Vec<TokenRecord>>(&written).ok().as_ref(), Some(&records), "{written}");
    let host_token = Token::parse("0123456789abcdef0123456789abcdef").expect("a token");
    let storage = Box::new(StoredTokens(Mutex::new(records.clone())));
    let registry = TokenRegistry::open(Env::in_memory(), host_token.into(), storage).expect("they can be read");
    assert!(registry.list().len() <= records.len() + 1);
    for record in &records {
        registry.login(record.id);
        assert!(registry.check(&format!("gt{}{}", record.id, "0".repeat(64))).is_none());
        // A token of the file may have expired, or may be there twice.
        registry.rotate(&record.name, ScopeSet::ALL).ok();
        registry.revoke(&record.name).ok();
    }
    for summary in registry.list().into_iter().skip(1) {
        assert!(records.iter().any(|record| record.name == summary.name));
    }
}

/// Any text as a token or its public id: what is read is written the same.
fn guess(text: &str) {
    for line in text.lines() {
        if let Some(secret) = SecretText::parse(line) {
            assert_eq!(secret.reveal(), line);
            assert!(!format!("{secret:?}").contains(line), "a token is printed");
        }
        if let Some(id) = TokenPublicId::parse(line) {
            assert_eq!(TokenPublicId::parse(&id.to_string()), Some(id));
        }
        drop(Token::parse(line));
    }
}

/// Any text as lines of the audit log: each is read or skipped, and survives a round trip.
pub fn audit_log(data: &[u8]) {
    for line in data.split(|byte| *byte == b'\n') {
        let Ok(record) = serde_json::from_slice::<AuditRecord>(line) else { continue };
        let written = serde_json::to_string(&record).expect("what was read can be written");
        assert!(!written.contains('\n'), "a record is one line");
        assert_eq!(serde_json::from_str::<AuditRecord>(&written).ok().as_ref(), Some(&record), "{written}");
    }
}
