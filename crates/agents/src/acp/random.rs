//! Names that are unique among processes.

/// Eight letters and digits.
pub(crate) fn tag() -> String {
    hex::encode(number().to_be_bytes())
}

/// A random number; from the time if the system gives no random bytes, since nothing here is a secret.
pub(crate) fn number() -> u32 {
    let mut bytes = [0; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => u32::from_be_bytes(bytes),
        Err(_) => std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.subsec_nanos().rotate_left(2)),
    }
}
