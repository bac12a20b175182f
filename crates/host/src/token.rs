//! Tokens: random secrets that give access.

use subtle::ConstantTimeEq;

use crate::env::Random;

/// The secret that gives access to the host. It is never shown by `Debug`.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// Generates a token from 32 random bytes.
    pub fn generate(random: &dyn Random) -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        random.fill(&mut bytes)?;
        Ok(Self(hex::encode(bytes)))
    }

    /// Parses a stored token. It must be long enough to be a secret.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        (text.len() >= 32 && text.bytes().all(|byte| byte.is_ascii_alphanumeric())).then(|| Self(text.to_owned()))
    }

    /// The secret itself, for the places that must have it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in constant time.
    pub fn matches(&self, guess: &str) -> bool {
        self.0.as_bytes().ct_eq(guess.as_bytes()).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}
