//! Secrets as their holders have them, and what the host keeps of them.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::Random;

/// The beginning of every named token, and of every one-time code.
const TOKEN_PREFIX: &str = "gt";
const CODE_PREFIX: &str = "gc";
/// The letters of the public id and of the secret, in hexadecimal.
const ID_LETTERS: usize = 16;
const SECRET_LETTERS: usize = 64;
/// The first line of what a verifier is a digest of, so that no other digest of a secret is a verifier.
const VERIFIER_DOMAIN: &str = "grove token verifier 1";

/// The public id of a token or code: it finds the verifier, and is no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TokenPublicId([u8; ID_LETTERS / 2]);

impl TokenPublicId {
    /// Reads an id, in lower-case hexadecimal.
    pub fn parse(text: &str) -> Option<Self> {
        let is_lower = !text.bytes().any(|letter| letter.is_ascii_uppercase());
        hex::decode(text).ok().filter(|_| is_lower)?.try_into().ok().map(Self)
    }
}

impl fmt::Display for TokenPublicId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

/// A token or one-time code as its holder has it: a prefix, the public id, and the secret. `Debug` shows the id only.
#[derive(Clone)]
pub struct SecretText {
    text: String,
    id: TokenPublicId,
}

impl SecretText {
    /// A new token with an id of its own.
    pub fn new_token(random: &dyn Random) -> std::io::Result<Self> {
        let mut id = [0; ID_LETTERS / 2];
        random.fill(&mut id)?;
        Self::make(TOKEN_PREFIX, TokenPublicId(id), random)
    }

    /// Another secret for a token.
    pub fn rotated(id: TokenPublicId, random: &dyn Random) -> std::io::Result<Self> {
        Self::make(TOKEN_PREFIX, id, random)
    }

    /// A new one-time code.
    pub fn new_code(random: &dyn Random) -> std::io::Result<Self> {
        let mut id = [0; ID_LETTERS / 2];
        random.fill(&mut id)?;
        Self::make(CODE_PREFIX, TokenPublicId(id), random)
    }

    fn make(prefix: &str, id: TokenPublicId, random: &dyn Random) -> std::io::Result<Self> {
        let mut secret = [0; SECRET_LETTERS / 2];
        random.fill(&mut secret)?;
        Ok(Self { text: format!("{prefix}{id}{}", hex::encode(secret)), id })
    }

    /// Reads a named token; `None` if the text has not the form of one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(TOKEN_PREFIX)?;
        let (id, secret) = rest.split_at_checked(ID_LETTERS)?;
        let is_secret = secret.len() == SECRET_LETTERS && secret.bytes().all(|letter| letter.is_ascii_hexdigit());
        let id = TokenPublicId::parse(id).filter(|_| is_secret)?;
        Some(Self { text: text.to_owned(), id })
    }

    pub fn id(&self) -> TokenPublicId {
        self.id
    }

    /// The text itself, for its holder.
    pub fn reveal(&self) -> &str {
        &self.text
    }

    pub fn verifier(&self) -> Verifier {
        Verifier(Sha256::digest(format!("{VERIFIER_DOMAIN}\n{}", self.text)).into())
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretText({}, …)", self.id)
    }
}

/// The digest of a secret that the host keeps. The secret cannot be derived from it.
///
/// A page proves with it that it knows the secret, so it is private to the owner of the host too.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier([u8; 32]);

impl Verifier {
    /// Compares in constant time.
    pub fn accepts(&self, secret: &SecretText) -> bool {
        self.0.ct_eq(&secret.verifier().0).into()
    }

    /// The verifier in hexadecimal, from which the key of a page is derived.
    pub fn reveal(&self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Verifier(…)")
    }
}

impl Serialize for Verifier {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Verifier {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("a verifier is 32 bytes in hexadecimal"))
    }
}

impl Serialize for TokenPublicId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TokenPublicId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("an id is 8 bytes in lower-case hexadecimal"))
    }
}
