//! The host's VAPID key (RFC 8292): push services see by its signature that a message is from the host that the browser
//! has subscribed to.

use std::fmt;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::json;

/// The validity of a signature, in seconds: push services accept at most 24 hours.
const VALIDITY_SECONDS: u64 = 12 * 60 * 60;

/// The key pair of the host.
pub struct VapidKey {
    pair: EcdsaKeyPair,
    /// The pair in PKCS #8, as it is stored.
    stored: Vec<u8>,
}

/// The key cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VapidError {
    #[error("the machine has no random numbers for the key of the host")]
    Random,
    #[error(
        "the stored key of the host is damaged: remove the file, and the host makes a new key; every device then has to \
         be set up again"
    )]
    Damaged,
    #[error("the key of the host cannot sign")]
    Sign,
}

impl VapidKey {
    pub fn generate() -> Result<Self, VapidError> {
        let stored = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Self::from_pkcs8(stored.map_err(|_| VapidError::Random)?.as_ref().to_vec())
    }

    /// Reads the stored text of a key.
    pub fn read(text: &str) -> Result<Self, VapidError> {
        Self::from_pkcs8(BASE64_STANDARD.decode(text.trim()).map_err(|_| VapidError::Damaged)?)
    }

    fn from_pkcs8(stored: Vec<u8>) -> Result<Self, VapidError> {
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &stored, &SystemRandom::new());
        Ok(Self { pair: pair.map_err(|_| VapidError::Damaged)?, stored })
    }

    /// The key as it is stored.
    pub fn stored(&self) -> String {
        BASE64_STANDARD.encode(&self.stored) + "\n"
    }

    /// The public half, which browsers get.
    pub fn public(&self) -> String {
        BASE64_URL_SAFE_NO_PAD.encode(self.pair.public_key())
    }

    /// The header `Authorization` of a message to a push service with this origin.
    pub fn authorization(&self, origin: &str, contact: &str, now_ms: u64) -> Result<String, VapidError> {
        let header = json!({"typ": "JWT", "alg": "ES256"});
        let claims = json!({"aud": origin, "exp": now_ms / 1_000 + VALIDITY_SECONDS, "sub": contact});
        let encoded = |part: serde_json::Value| BASE64_URL_SAFE_NO_PAD.encode(part.to_string());
        let signed = format!("{}.{}", encoded(header), encoded(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| VapidError::Sign)?;
        let signature = BASE64_URL_SAFE_NO_PAD.encode(signature);
        Ok(format!("vapid t={signed}.{signature}, k={}", self.public()))
    }
}

impl fmt::Debug for VapidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VapidKey({})", self.public())
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};

    use super::*;

    #[test]
    fn a_signature_is_of_the_stored_key_and_names_the_service_and_its_end() {
        let key = VapidKey::read(&VapidKey::generate().unwrap().stored()).unwrap();
        let header = key.authorization("https://push.example", "mailto:a@example.com", 1_000_000).unwrap();
        let (token, public) = header.strip_prefix("vapid t=").unwrap().split_once(", k=").unwrap();
        assert_eq!(public, key.public());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let decoded = |text: &str| BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
        let point = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, decoded(public));
        point.verify(signed.as_bytes(), &decoded(signature)).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&decoded(signed.split_once('.').unwrap().1)).unwrap();
        assert_eq!(claims, json!({"aud": "https://push.example", "exp": 44_200, "sub": "mailto:a@example.com"}));
    }

    #[test]
    fn a_damaged_key_is_refused() {
        let stored = VapidKey::generate().unwrap().stored();
        for damaged in ["", "AAAA", "no base64!", &stored[..stored.len() / 2]] {
            assert_eq!(VapidKey::read(damaged).unwrap_err(), VapidError::Damaged, "{damaged}");
        }
    }
}
