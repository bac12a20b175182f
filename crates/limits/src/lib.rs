//! The table of every limit of the host: name, value, holder, behaviour beyond it, and its setting.
//!
//! The values are the constants and the `Limits` of the crates themselves, so the table cannot say anything else.
//! [`page`] makes `docs/limits.md` of it; a test compares the two, and `make limits` writes the page again.
//!
//! ```
//! let groups = grove_limits::table();
//! assert!(groups.iter().flat_map(|group| &group.limits).any(|limit| limit.name == "token-subscriptions"));
//! ```

#[cfg(test)]
mod completeness;
mod page;
mod table;

use std::time::Duration;

use grove_host::Rate;

pub use page::page;
pub use table::table;

/// Limits of one subject.
#[derive(Debug)]
pub struct LimitGroup {
    pub subject: &'static str,
    /// Sentences before the rows.
    pub about: &'static str,
    pub limits: Vec<Limit>,
}

/// One limit.
#[derive(Debug)]
pub struct Limit {
    /// The name, unique in the table. Refusals give it as `data.limit`.
    pub name: &'static str,
    pub value: LimitValue,
    /// The holder of the limit: a connection, a token, a listener, a session, the host.
    pub per: &'static str,
    /// The behaviour beyond it.
    pub beyond: &'static str,
    /// The setting in `grove.toml`, if it has one.
    pub setting: Option<&'static str>,
}

/// The value of a limit, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitValue {
    Count(u64),
    Bytes(u64),
    Time(Duration),
    /// So many a second, with a burst.
    CountRate(Rate),
    /// So many bytes a second, with a burst.
    ByteRate(Rate),
}

impl Limit {
    fn new(name: &'static str, value: LimitValue, per: &'static str, beyond: &'static str) -> Self {
        Self { name, value, per, beyond, setting: None }
    }

    fn set_by(self, setting: &'static str) -> Self {
        Self { setting: Some(setting), ..self }
    }
}

fn count(number: impl TryInto<u64>) -> LimitValue {
    LimitValue::Count(number.try_into().unwrap_or(u64::MAX))
}

fn bytes(number: impl TryInto<u64>) -> LimitValue {
    LimitValue::Bytes(number.try_into().unwrap_or(u64::MAX))
}

fn time(duration: Duration) -> LimitValue {
    LimitValue::Time(duration)
}
