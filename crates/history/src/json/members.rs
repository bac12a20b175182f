//! An object from which known members are taken. The rest is what was not understood.

use grove_core::{Extra, Timestamp};
use serde_json::{Number, Value};

/// The members of an object. A member of another type than the requested one stays.
#[derive(Clone, Debug, Default)]
pub(crate) struct JsonMembers(Extra);

impl JsonMembers {
    /// The members of an object; any other value is returned as the error.
    pub(crate) fn of(value: Value) -> Result<Self, Value> {
        match value {
            Value::Object(members) => Ok(Self(members)),
            other => Err(other),
        }
    }

    fn take<T>(&mut self, key: &str, read: impl FnOnce(&Value) -> Option<T>) -> Option<T> {
        let read = read(self.0.get(key)?)?;
        self.0.shift_remove(key);
        Some(read)
    }

    pub(crate) fn string(&mut self, key: &str) -> Option<String> {
        match self.0.get_mut(key)? {
            Value::String(text) => {
                let text = std::mem::take(text);
                self.0.shift_remove(key);
                Some(text)
            }
            _ => None,
        }
    }

    /// A text for people: a string, or an object with a string in `value`.
    pub(crate) fn message(&mut self, key: &str) -> Option<String> {
        self.take(key, message_of)
    }

    pub(crate) fn unsigned(&mut self, key: &str) -> Option<u64> {
        self.take(key, unsigned_of)
    }

    pub(crate) fn signed(&mut self, key: &str) -> Option<i64> {
        self.take(key, Value::as_i64)
    }

    pub(crate) fn number(&mut self, key: &str) -> Option<Number> {
        self.take(key, |value| value.as_number().cloned())
    }

    pub(crate) fn flag(&mut self, key: &str) -> Option<bool> {
        self.take(key, Value::as_bool)
    }

    pub(crate) fn time(&mut self, key: &str) -> Option<Timestamp> {
        self.take(key, time_of)
    }

    /// The items of a list; none if there is no list.
    pub(crate) fn list(&mut self, key: &str) -> Vec<Value> {
        match self.0.get_mut(key) {
            Some(Value::Array(items)) => {
                let items = std::mem::take(items);
                self.0.shift_remove(key);
                items
            }
            _ => Vec::new(),
        }
    }

    pub(crate) fn object(&mut self, key: &str) -> Option<Self> {
        match self.0.get_mut(key)? {
            Value::Object(members) => {
                let members = std::mem::take(members);
                self.0.shift_remove(key);
                Some(Self(members))
            }
            _ => None,
        }
    }

    pub(crate) fn any(&mut self, key: &str) -> Option<Value> {
        self.0.shift_remove(key).filter(|value| !value.is_null())
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.0.get(key).is_some_and(|value| !value.is_null())
    }

    pub(crate) fn peek(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    pub(crate) fn insert(&mut self, key: &str, value: Value) {
        self.0.insert(key.to_owned(), value);
    }

    /// Puts back the rest of a member.
    pub(crate) fn keep(&mut self, key: &str, rest: Self) {
        let rest = rest.rest();
        if !rest.is_empty() {
            self.0.insert(key.to_owned(), Value::Object(rest));
        }
    }

    /// Removes irrelevant members.
    pub(crate) fn forget(&mut self, keys: &[&str]) {
        for key in keys {
            self.0.shift_remove(*key);
        }
    }

    /// The members that were not taken.
    pub(crate) fn rest(mut self) -> Extra {
        self.0.retain(|_, value| match value {
            Value::Null => false,
            Value::Array(items) => !items.is_empty(),
            Value::Object(members) => !members.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
        });
        self.0
    }

    pub(crate) fn into_value(self) -> Value {
        Value::Object(self.0)
    }
}

/// A text for people: a string, or an object with a string in `value`.
pub(crate) fn message_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Object(members) => members.get("value")?.as_str().map(str::to_owned),
        _ => None,
    }
}

/// A value as text: a string unchanged, anything else as JSON.
pub(crate) fn text_of(value: &Value) -> String {
    message_of(value).unwrap_or_else(|| value.to_string())
}

/// Milliseconds since 1970, or an RFC 3339 time.
pub(crate) fn time_of(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(_) => unsigned_of(value).map(Timestamp),
        Value::String(text) => {
            let at: jiff::Timestamp = text.parse().ok()?;
            u64::try_from(at.as_millisecond()).ok().map(Timestamp)
        }
        _ => None,
    }
}

/// A count; a fraction is cut, since JavaScript's clocks have some.
fn unsigned_of(value: &Value) -> Option<u64> {
    // Beyond this a float does not identify a single integer any more.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    value.as_u64().or_else(|| value.as_f64().filter(|float| (0.0..EXACT).contains(float)).map(|float| float as u64))
}
