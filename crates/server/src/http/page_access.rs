//! Page access: a page and the host prove to each other that they know the token, and neither sends it.
//!
//! A page stays open while its host is down, and another program may listen on the port meanwhile. So the page asks for
//! a proof over a nonce of its own (`POST /proof?nonce=…`) before it sends anything else, answers the host's challenge
//! in the address of its WebSocket (`/ws?challenge=…&answer=…&nonce=…`), and receives a second proof as the socket's
//! first message.
//!
//! The secret is the host's own token, or the verifier of a named token (`&token=` and its public id). A page with a
//! one-time code proves in the same way that it knows the code, and gets a token of its own for it (`pairing.rs`).
//!
//! Every proof is made with a key that belongs to one origin. A program that listens elsewhere and passes a nonce on to
//! the real host gets a proof for the real host's address, which the page does not accept.

use std::sync::{Mutex, PoisonError};

use grove_checks::Check;
use grove_core::Timestamp;
use grove_host::tokens::{TokenGrant, TokenPublicId};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use super::access::{AccessError, in_query};

/// The proofs that a listener gives at once, before `PROOFS_PER_SECOND` bounds it.
pub const PROOF_BURST: u64 = 64;
/// The proofs per second, over time. They need no token, so this bounds the cost of unauthenticated requests.
pub const PROOFS_PER_SECOND: u64 = 16;
/// The letters of a nonce: 32 bytes in hexadecimal.
const NONCE_LETTERS: usize = 64;
/// The method of the WebSocket's first message.
const SOCKET_PROOF: &str = "x-grove/hostProof";

// Each authenticated message begins with a line of its own, so that no proof is valid for anything else.
const KEY_DOMAIN: &str = "grove page key 1";
const HOST_DOMAIN: &str = "grove host proof 1";
const PAGE_DOMAIN: &str = "grove page answer 1";
const SOCKET_DOMAIN: &str = "grove socket proof 1";
const PAIRING_DOMAIN: &str = "grove pairing proof 1";

/// A random number of a page, in hexadecimal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nonce(String);

impl Nonce {
    pub(super) fn from_query(query: Option<&str>) -> Option<Self> {
        Self::parse(&in_query(query, "nonce")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let is_nonce =
            text.len() == NONCE_LETTERS && text.bytes().all(|letter| matches!(letter, b'0'..=b'9' | b'a'..=b'f'));
        is_nonce.then(|| Self(text.to_owned()))
    }
}

/// A page's answer to a challenge, from the address of its WebSocket.
#[derive(Clone, Debug)]
pub(super) struct ChallengeResponse {
    pub(super) challenge: String,
    answer: String,
    nonce: Nonce,
}

impl ChallengeResponse {
    /// An answer that is not in an address.
    pub(super) fn new(challenge: String, answer: String, nonce: &str) -> Option<Self> {
        Some(Self { challenge, answer, nonce: Nonce::parse(nonce)? })
    }

    pub(super) fn from_query(query: Option<&str>) -> Option<Self> {
        let text = |name| in_query(query, name).map(|value| value.into_owned());
        Some(Self { challenge: text("challenge")?, answer: text("answer")?, nonce: Nonce::from_query(query)? })
    }
}

/// The key of a page's token, and the rights that the page gets with it. A one-time code gives none.
pub(super) struct PageLogin {
    pub(super) key: PageKey,
    pub(super) grant: Option<TokenGrant>,
}

/// The token that a page names in a query: its public id; none for the host's own.
pub(super) fn named_token(query: Option<&str>) -> Result<Option<TokenPublicId>, AccessError> {
    match in_query(query, "token") {
        Some(id) => TokenPublicId::parse(&id).map(Some).ok_or(AccessError::ChallengeResponse),
        None => Ok(None),
    }
}

/// The key that is derived from a token for pages of one origin. It is never sent.
pub(super) struct PageKey([u8; 32]);

impl PageKey {
    pub(super) fn derive(token: &str, origin: &str) -> Self {
        Self(hmac_sha256(token.as_bytes(), &lines([KEY_DOMAIN, origin, ""])))
    }

    /// Proves that this host knows the token. The proof covers its challenge.
    pub(super) fn prove(&self, nonce: &Nonce, challenge: &str) -> String {
        self.authenticate([HOST_DOMAIN, &nonce.0, challenge])
    }

    /// Says whether the answering page knows the token.
    pub(super) fn accepts(&self, given: &ChallengeResponse) -> bool {
        let expected = self.authenticate([PAGE_DOMAIN, &given.nonce.0, &given.challenge]);
        expected.as_bytes().ct_eq(given.answer.as_bytes()).into()
    }

    /// The first message of a WebSocket that an answer opened.
    ///
    /// A program that took the port since the first proof cannot make it.
    pub(super) fn socket_proof(&self, given: &ChallengeResponse) -> String {
        let proof = self.authenticate([SOCKET_DOMAIN, &given.nonce.0, &given.challenge]);
        serde_json::json!({"jsonrpc": "2.0", "method": SOCKET_PROOF, "params": {"proof": proof}}).to_string()
    }

    /// Proves that a page's new token comes from this host.
    pub(super) fn pairing_proof(&self, given: &ChallengeResponse, token: &str) -> String {
        self.authenticate([PAIRING_DOMAIN, &given.challenge, token])
    }

    fn authenticate(&self, parts: [&str; 3]) -> String {
        hex::encode(hmac_sha256(&self.0, &lines(parts)))
    }
}

fn lines(parts: [&str; 3]) -> String {
    parts.join("\n")
}

/// HMAC-SHA-256 (RFC 2104).
fn hmac_sha256(key: &[u8], message: &str) -> [u8; 32] {
    const BLOCK: usize = 64;
    let mut block = [0_u8; BLOCK];
    if key.len() > BLOCK {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let inner = Sha256::new().chain_update(block.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(block.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

/// Bounds the rate of a listener's proofs.
#[derive(Debug)]
pub(super) struct ProofRate(Mutex<Bucket>);

#[derive(Debug)]
struct Bucket {
    /// In thousandths of a proof.
    left: u64,
    filled_at: Timestamp,
}

impl ProofRate {
    pub(super) fn new(now: Timestamp) -> Self {
        Self(Mutex::new(Bucket { left: PROOF_BURST * 1000, filled_at: now }))
    }

    /// Says whether another proof may be given now.
    pub(super) fn allows(&self, now: Timestamp) -> bool {
        // Nothing that can panic happens while it is held, so a poisoned lock still guards valid data.
        let mut bucket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A clock that was set back adds nothing.
        let elapsed_ms = now.0.saturating_sub(bucket.filled_at.0);
        bucket.left = bucket.left.saturating_add(elapsed_ms.saturating_mul(PROOFS_PER_SECOND)).min(PROOF_BURST * 1000);
        bucket.filled_at = now;
        match bucket.left.checked_sub(1000) {
            Some(left) => {
                bucket.left = left;
                true
            }
            None => !Check::ProofRate.is_enforced(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ticket;
    use super::*;

    #[test]
    fn hmac_is_that_of_rfc_4231() {
        let hmac = |key: &[u8], message: &str| hex::encode(hmac_sha256(key, message));
        assert_eq!(hmac(&[0x0b; 20], "Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
        assert_eq!(
            hmac(b"Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hmac(&[0xaa; 131], "Test Using Larger Than Block-Size Key - Hash Key First"),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_nonce_is_32_bytes_in_hexadecimal_and_nothing_else() {
        let nonce = |text: &str| Nonce::from_query(Some(&format!("nonce={text}"))).is_some();
        assert!(nonce(&"0a".repeat(32)));
        for bad in ["", "0a", &"0A".repeat(32), &"0a".repeat(33), &"0g".repeat(32), &format!("{}%0A", "0a".repeat(31))]
        {
            assert!(!nonce(bad), "{bad}");
        }
        assert_eq!(Nonce::from_query(None), None);
    }

    #[test]
    fn a_proof_is_good_for_one_token_one_origin_one_nonce_and_one_challenge() {
        let nonce = |letter: &str| Nonce(letter.repeat(64));
        let prove = |token, origin, n: &str, challenge| PageKey::derive(token, origin).prove(&nonce(n), challenge);
        let proof = prove("t", "http://127.0.0.1:4747", "a", "c");
        assert_eq!(proof, prove("t", "http://127.0.0.1:4747", "a", "c"));
        for other in [
            prove("u", "http://127.0.0.1:4747", "a", "c"),
            prove("t", "http://127.0.0.1:4748", "a", "c"),
            prove("t", "https://127.0.0.1:4747", "a", "c"),
            prove("t", "http://127.0.0.1:4747", "b", "c"),
            prove("t", "http://127.0.0.1:4747", "a", "d"),
        ] {
            assert_ne!(proof, other);
        }
        // A host's proof is no valid answer of a page, and the reverse.
        let key = PageKey::derive("t", "http://127.0.0.1:4747");
        let given = ChallengeResponse { challenge: "c".to_owned(), answer: proof.clone(), nonce: nonce("a") };
        assert!(!key.accepts(&given) && !key.socket_proof(&given).contains(&proof));
    }

    #[test]
    fn proofs_are_those_of_the_page() {
        // The page has the same values in `access.test.ts`.
        let key = PageKey::derive("0123456789abcdef0123456789abcdef", "http://127.0.0.1:4747");
        let (nonce, challenge) = (Nonce("0a".repeat(32)), "A".repeat(43));
        assert_eq!(hex::encode(key.0), "c0af90b87f74759f9566a81ea4e072b491f49e88552857c0ee430bfca6383d76");
        assert_eq!(key.prove(&nonce, &challenge), "a698feaf1c64f5fadfcef8174c1da69dd6af642ca85d5c745196675a44fb7310");
        let answer = "9e3c89b3db4656ed3ad386239e420249747685a5eb141a63cfe04633a9cac3c9".to_owned();
        let given = ChallengeResponse { challenge, answer, nonce };
        assert!(key.accepts(&given));
        let proof = "06ba5ef355a953eb62008b438d74ac9c394c52abef11e467bc3520a770df4e10";
        assert!(key.socket_proof(&given).contains(proof));
    }

    #[test]
    fn the_proofs_of_a_named_token_are_those_of_the_page() {
        // The page has the same values in `access.test.ts`.
        let token = format!("gt00112233445566aa{}", "0f".repeat(32));
        let verifier = grove_host::tokens::SecretText::parse(&token).unwrap().verifier();
        let key = PageKey::derive(&verifier.reveal(), "http://127.0.0.1:4747");
        assert_eq!(hex::encode(key.0), "4c33c21aa47ca81a52dfd735cb3477c12b6e65a52206cd3224fc5d743275d6f6");
        let given =
            ChallengeResponse { challenge: "A".repeat(43), answer: String::new(), nonce: Nonce("0a".repeat(32)) };
        let proof = "d69d263d68c829796c4585429462c063669a9555897106c4bbd14ab90e6ed045";
        assert_eq!(key.pairing_proof(&given, &token), proof);
    }

    #[test]
    fn proofs_are_bounded_in_number_and_come_back_with_time() {
        let rate = ProofRate::new(Timestamp(1_000));
        let given = |now: u64| (0..1_000).filter(|_| rate.allows(Timestamp(now))).count() as u64;
        assert_eq!(given(1_000), PROOF_BURST);
        assert_eq!(given(0), 0, "the clock was turned back");
        assert_eq!(given(1_000), PROOFS_PER_SECOND);
        assert_eq!(given(3_000), 2 * PROOFS_PER_SECOND);
        assert_eq!(given(u64::MAX), PROOF_BURST);
    }

    #[test]
    fn strangers_who_ask_for_proofs_push_no_live_challenge_out() {
        assert!(PROOF_BURST + PROOFS_PER_SECOND * ticket::TICKET_LIFETIME.as_secs() < ticket::MAX_TICKETS as u64);
    }
}
