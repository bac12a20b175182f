//! Bounds of a session's data, whatever its source contains.

/// The number of listed damaged places of a session. Further ones are counted.
pub const MAX_DAMAGE_LOCATIONS: usize = 100;
/// The number of listed models and tools of a session.
pub const MAX_NAMES: usize = 1_000;
