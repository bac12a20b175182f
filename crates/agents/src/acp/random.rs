//! Names that no other process gives.

/// Eight letters and digits.
pub(crate) fn tag() -> String {
    hex::encode(number().to_be_bytes())
}

/// Where the system gives no random bytes, the time does: nothing here is a secret.
pub(crate) fn number() -> u32 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u32::from_be_bytes(bytes),
        Err(_) => std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos().rotate_left(2)),
    }
}
