//! A host's announcement of its additions, in `_meta` of the result of `initialize`, in every dialect: it tells clients
//! which methods they may call.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Method;

/// The member of `_meta`.
pub const MEMBER: &str = "x-grove";
/// The edition of these methods. It changes if the meaning of a method does.
pub const VERSION: u32 = 1;

/// A host's additions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Announcement {
    pub version: u32,
    /// The methods that it serves, unknown ones included.
    pub methods: Vec<String>,
}

impl Announcement {
    /// The announcement of those methods that a host serves.
    pub fn of(serves: impl Fn(Method) -> bool) -> Self {
        let served = Method::ALL.into_iter().filter(|method| serves(*method));
        Self { version: VERSION, methods: served.map(|method| method.as_str().to_owned()).collect() }
    }

    /// Reads a host's announcement from `_meta`. A host without a valid one serves nothing.
    pub fn read(meta: Option<&Map<String, Value>>) -> Option<Self> {
        let announced = Self::deserialize(meta?.get(MEMBER)?).ok()?;
        (announced.version == VERSION).then_some(announced)
    }

    /// The announcement as `_meta`.
    pub fn meta(&self) -> Map<String, Value> {
        // Numbers and texts always serialize.
        let value = serde_json::to_value(self).unwrap_or_default();
        Map::from_iter([(MEMBER.to_owned(), value)])
    }

    pub fn offers(&self, method: Method) -> bool {
        self.methods.iter().any(|offered| offered == method.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_announced_is_read_again_and_what_is_left_out_is_not_offered() {
        let announced = Announcement::of(|method| !matches!(method, Method::Sessions(_)));
        let read = Announcement::read(Some(&announced.meta())).unwrap();
        assert_eq!(read, announced);
        for method in Method::ALL {
            assert_eq!(read.offers(method), !matches!(method, Method::Sessions(_)), "{method:?}");
        }
    }

    #[test]
    fn who_says_nothing_or_something_else_offers_nothing() {
        assert_eq!(Announcement::read(None), None);
        for meta in [json!({}), json!({"x-grove": 1}), json!({"x-grove": {"version": 2, "methods": []}})] {
            assert_eq!(Announcement::read(meta.as_object()), None, "{meta}");
        }
        let later = json!({"x-grove": {"version": 1, "methods": ["x-grove/tree", "x-grove/later"], "more": true}});
        assert!(Announcement::read(later.as_object()).unwrap().offers(Method::Tree));
    }
}
