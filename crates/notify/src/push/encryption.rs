//! Message encryption for Web Push (RFC 8291) with the content coding `aes128gcm` (RFC 8188), in one record.

use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::SystemRandom;

/// The length of an uncompressed point of P-256.
pub const PUBLIC_KEY_BYTES: usize = 65;
/// The length of a device's secret.
pub const AUTH_BYTES: usize = 16;
/// The largest message before padding, in bytes: encrypted, it stays below the 4,096 bytes that every push service takes.
pub const MAX_MESSAGE_BYTES: usize = 3_000;
/// Messages are padded to a multiple of this, so that their length says little.
const PADDING_STEP: usize = 512;
const SALT_BYTES: usize = 16;
/// The record size in the header. The message is the first record, and the last one.
const RECORD_SIZE: u32 = 4_096;
/// The byte behind the plaintext of the last record.
const LAST_RECORD: u8 = 2;
/// The first byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// The keys of a device, which encrypt messages to it.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceKeys {
    pub p256dh: [u8; PUBLIC_KEY_BYTES],
    pub auth: [u8; AUTH_BYTES],
}

/// The keys are not those of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceKeyError {
    #[error("`keys.p256dh` must be an uncompressed point of P-256 in base64url: 65 bytes, the first of them 4")]
    PublicKey,
    #[error("`keys.auth` must be 16 bytes in base64url")]
    Auth,
}

/// A message was not encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncryptError {
    #[error("the message has more than {MAX_MESSAGE_BYTES} bytes")]
    TooLarge,
    #[error("the device's public key is no point of P-256")]
    PublicKey,
    #[error("the machine has no random numbers")]
    Random,
    #[error("the cipher failed")]
    Cipher,
}

impl DeviceKeys {
    /// Reads keys in base64url, with or without padding. The point is checked when a message is encrypted.
    pub fn read(p256dh: &str, auth: &str) -> Result<Self, DeviceKeyError> {
        let p256dh: [u8; PUBLIC_KEY_BYTES] = decoded(p256dh).ok_or(DeviceKeyError::PublicKey)?;
        if p256dh[0] != UNCOMPRESSED {
            return Err(DeviceKeyError::PublicKey);
        }
        Ok(Self { p256dh, auth: decoded(auth).ok_or(DeviceKeyError::Auth)? })
    }

    /// The keys in base64url.
    pub fn texts(&self) -> (String, String) {
        (BASE64_URL_SAFE_NO_PAD.encode(self.p256dh), BASE64_URL_SAFE_NO_PAD.encode(self.auth))
    }
}

fn decoded<const LENGTH: usize>(text: &str) -> Option<[u8; LENGTH]> {
    // A long text is not decoded at all.
    let text = text.trim_end_matches('=');
    let bytes = (text.len() <= LENGTH.div_ceil(3) * 4).then(|| BASE64_URL_SAFE_NO_PAD.decode(text).ok())??;
    bytes.try_into().ok()
}

/// Encrypts a message to a device.
pub fn encrypt(message: &[u8], device: &DeviceKeys, salt: [u8; SALT_BYTES]) -> Result<Vec<u8>, EncryptError> {
    if message.len() > MAX_MESSAGE_BYTES {
        return Err(EncryptError::TooLarge);
    }
    let random = SystemRandom::new();
    let key = EphemeralPrivateKey::generate(&ECDH_P256, &random).map_err(|_| EncryptError::Random)?;
    let sender = key.compute_public_key().map_err(|_| EncryptError::Cipher)?;
    let sender: [u8; PUBLIC_KEY_BYTES] = sender.as_ref().try_into().map_err(|_| EncryptError::Cipher)?;
    let receiver = UnparsedPublicKey::new(&ECDH_P256, device.p256dh);
    let padded = (message.len() + 1).next_multiple_of(PADDING_STEP);
    agree_ephemeral(key, &receiver, |secret| seal(message, padded, secret, device, &sender, salt))
        .map_err(|_| EncryptError::PublicKey)?
}

/// Encrypts with the secret that both sides have agreed on.
///
/// `padded` is the length of the record's plaintext, with the byte behind the message.
fn seal(
    message: &[u8],
    padded: usize,
    shared_secret: &[u8],
    device: &DeviceKeys,
    sender: &[u8; PUBLIC_KEY_BYTES],
    salt: [u8; SALT_BYTES],
) -> Result<Vec<u8>, EncryptError> {
    let (key, nonce) = record_key(shared_secret, device, sender, salt)?;
    let mut record = Vec::with_capacity(padded + AES_128_GCM.tag_len());
    record.extend_from_slice(message);
    record.push(LAST_RECORD);
    record.resize(padded.max(record.len()), 0);
    key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record).map_err(|_| EncryptError::Cipher)?;
    let mut body = Vec::with_capacity(SALT_BYTES + 5 + PUBLIC_KEY_BYTES + record.len());
    body.extend_from_slice(&salt);
    body.extend_from_slice(&RECORD_SIZE.to_be_bytes());
    body.push(PUBLIC_KEY_BYTES as u8);
    body.extend_from_slice(sender);
    body.extend_from_slice(&record);
    Ok(body)
}

/// The key and the nonce of the record, from the secret of both sides (RFC 8291, section 3.4).
fn record_key(
    shared_secret: &[u8],
    device: &DeviceKeys,
    sender: &[u8; PUBLIC_KEY_BYTES],
    salt: [u8; SALT_BYTES],
) -> Result<(LessSafeKey, Nonce), EncryptError> {
    let cipher = |_| EncryptError::Cipher;
    let agreed = Salt::new(HKDF_SHA256, &device.auth).extract(shared_secret);
    let input: [u8; 32] = expand(&agreed, &[b"WebPush: info\0", &device.p256dh, sender])?;
    let derived = Salt::new(HKDF_SHA256, &salt).extract(&input);
    let key = derived.expand(&[b"Content-Encoding: aes128gcm\0"], &AES_128_GCM).map_err(cipher)?;
    let nonce: [u8; NONCE_LEN] = expand(&derived, &[b"Content-Encoding: nonce\0"])?;
    Ok((LessSafeKey::new(UnboundKey::from(key)), Nonce::assume_unique_for_key(nonce)))
}

/// The length of derived bytes.
struct OutputLength(usize);

impl KeyType for OutputLength {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const LENGTH: usize>(from: &Prk, info: &[&[u8]]) -> Result<[u8; LENGTH], EncryptError> {
    let mut bytes = [0; LENGTH];
    let output = from.expand(info, OutputLength(LENGTH)).map_err(|_| EncryptError::Cipher)?;
    output.fill(&mut bytes).map_err(|_| EncryptError::Cipher)?;
    Ok(bytes)
}

// The secret of a device is for no log.
impl fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes<const LENGTH: usize>(text: &str) -> [u8; LENGTH] {
        decoded(text).unwrap()
    }

    /// The values of RFC 8291, appendix A. The library makes its own private key for each message, so the test begins
    /// with the secret that both sides agree on there; the tests below agree on one themselves.
    #[test]
    fn the_example_of_the_standard_is_encrypted_byte_for_byte() {
        let sender = bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
        let device = DeviceKeys::read(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
            "BTBZMqHH6r4Tts7J_aSIgg",
        )
        .unwrap();
        let secret: [u8; 32] = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let message = b"When I grow up, I want to be a watermelon";
        let body = seal(message, message.len() + 1, &secret, &device, &sender, bytes("DGv6ra1nlYgDCS1FRnbzlw"));
        let expected = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS\
                        6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4\
                        a-fN";
        assert_eq!(BASE64_URL_SAFE_NO_PAD.encode(body.unwrap()), expected);
    }

    /// A device that can read one message.
    struct TestDevice {
        private: EphemeralPrivateKey,
        keys: DeviceKeys,
    }

    impl TestDevice {
        fn new(auth: [u8; AUTH_BYTES]) -> Self {
            let private = EphemeralPrivateKey::generate(&ECDH_P256, &SystemRandom::new()).unwrap();
            let p256dh = private.compute_public_key().unwrap().as_ref().try_into().unwrap();
            Self { private, keys: DeviceKeys { p256dh, auth } }
        }

        fn read(self, body: &[u8]) -> Option<Vec<u8>> {
            let (salt, rest) = body.split_at_checked(SALT_BYTES)?;
            let (header, rest) = rest.split_at_checked(5)?;
            assert_eq!(header, [0, 0, 16, 0, 65]);
            let (sender, record) = rest.split_at_checked(PUBLIC_KEY_BYTES)?;
            let sender: [u8; PUBLIC_KEY_BYTES] = sender.try_into().unwrap();
            let public = UnparsedPublicKey::new(&ECDH_P256, sender);
            let keys = self.keys;
            let derive = |secret: &[u8]| record_key(secret, &keys, &sender, salt.try_into().unwrap()).unwrap();
            let (key, nonce) = agree_ephemeral(self.private, &public, derive).unwrap();
            let mut record = record.to_vec();
            let plain = key.open_in_place(nonce, Aad::empty(), &mut record).ok()?;
            let end = plain.iter().rposition(|byte| *byte != 0)?;
            assert_eq!(plain[end], LAST_RECORD);
            Some(plain[..end].to_vec())
        }
    }

    proptest! {
        #[test]
        fn a_device_reads_every_message_and_a_changed_one_is_noticed(
            message in prop::collection::vec(any::<u8>(), 0..=MAX_MESSAGE_BYTES),
            (auth, salt) in any::<([u8; AUTH_BYTES], [u8; SALT_BYTES])>(),
            changed in any::<prop::sample::Index>(),
        ) {
            let device = TestDevice::new(auth);
            let body = encrypt(&message, &device.keys, salt).unwrap();
            prop_assert!(body.len() < 4_096);
            prop_assert_eq!(device.read(&body).unwrap(), message.clone());
            let device = TestDevice::new(auth);
            let mut body = encrypt(&message, &device.keys, salt).unwrap();
            let record = SALT_BYTES + 5 + PUBLIC_KEY_BYTES;
            let place = record + changed.index(body.len() - record);
            body[place] ^= 1;
            prop_assert_eq!(device.read(&body), None);
        }

        #[test]
        fn any_text_is_read_as_keys_or_refused(p256dh in ".{0,120}", auth in ".{0,40}") {
            if let Ok(keys) = DeviceKeys::read(&p256dh, &auth) {
                let (p256dh, auth) = keys.texts();
                prop_assert_eq!(DeviceKeys::read(&p256dh, &auth).unwrap(), keys);
            }
        }
    }

    #[test]
    fn a_message_that_is_too_large_and_a_key_that_is_no_point_are_refused() {
        let device = TestDevice::new([0; AUTH_BYTES]);
        let large = vec![0; MAX_MESSAGE_BYTES + 1];
        assert_eq!(encrypt(&large, &device.keys, [0; SALT_BYTES]), Err(EncryptError::TooLarge));
        let mut p256dh = [1; PUBLIC_KEY_BYTES];
        p256dh[0] = UNCOMPRESSED;
        let keys = DeviceKeys { p256dh, auth: [0; AUTH_BYTES] };
        assert_eq!(encrypt(b"x", &keys, [0; SALT_BYTES]), Err(EncryptError::PublicKey));
        let (p256dh, auth) = device.keys.texts();
        assert_eq!(DeviceKeys::read(&p256dh[1..], &auth), Err(DeviceKeyError::PublicKey));
        assert_eq!(DeviceKeys::read(&auth, &auth), Err(DeviceKeyError::PublicKey));
        assert_eq!(DeviceKeys::read(&p256dh, &p256dh), Err(DeviceKeyError::Auth));
        assert_eq!(DeviceKeys::read(&p256dh, &"A".repeat(1 << 20)), Err(DeviceKeyError::Auth));
    }
}
