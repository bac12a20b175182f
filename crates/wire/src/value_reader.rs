//! Reads types from JSON values. An error names its place.
//!
//! Every type that is read by two deserializers is compiled twice, with all the types in it. So whatever is not read
//! directly from text is read by [`ValueReader`], and nothing else.

use std::fmt;

use serde::de::{
    self, Deserialize, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

/// Reads a type from a value.
pub(crate) fn from_value<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, ReadError> {
    T::deserialize(ValueReader(value))
}

/// Reads a type from text.
pub(crate) fn from_text<T: DeserializeOwned>(text: &str) -> Result<T, ReadError> {
    let value: Value = serde_json::from_str(text).map_err(ReadError::custom)?;
    from_value(&value)
}

/// A value that is not of the type, and the place in it.
#[derive(Debug, thiserror::Error)]
#[error("{}{reason}", ValuePath(place))]
pub(crate) struct ReadError {
    reason: String,
    /// The innermost step first.
    place: Vec<PathStep>,
}

#[derive(Debug)]
enum PathStep {
    Member(String),
    Item(usize),
}

impl ReadError {
    fn within(mut self, step: PathStep) -> Self {
        self.place.push(step);
        self
    }
}

impl Error for ReadError {
    fn custom<T: fmt::Display>(reason: T) -> Self {
        Self { reason: reason.to_string(), place: Vec::new() }
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid type: {}, expected {expected}", in_json(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(format_args!("invalid value: {}, expected {expected}", in_json(&found)))
    }
}

/// Names a value as JSON does.
fn in_json<'a>(found: &'a Unexpected<'_>) -> &'a dyn fmt::Display {
    match found {
        Unexpected::Unit => &"null",
        found => found,
    }
}

/// The path to a place in a value as text, with the separator that follows it: `parts[0].text: `. At the top there is none.
struct ValuePath<'a>(&'a [PathStep]);

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().rev().enumerate() {
            match step {
                PathStep::Member(name) if depth > 0 => write!(f, ".{name}")?,
                PathStep::Member(name) => f.write_str(name)?,
                PathStep::Item(index) => write!(f, "[{index}]")?,
            }
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str(": ") }
    }
}

/// The deserializer of a value.
#[derive(Clone, Copy)]
struct ValueReader<'de>(&'de Value);

impl ValueReader<'_> {
    fn is_not(self, expected: &dyn Expected) -> ReadError {
        let found = match self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), ..) => Unexpected::Unsigned(value),
                (_, Some(value), _) => Unexpected::Signed(value),
                (.., Some(value)) => Unexpected::Float(value),
                (None, None, None) => Unexpected::Other("number"),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        };
        ReadError::invalid_type(found, expected)
    }
}

impl<'de> Deserializer<'de> for ValueReader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
                (Some(value), ..) => visitor.visit_u64(value),
                (_, Some(value), _) => visitor.visit_i64(value),
                (.., Some(value)) => visitor.visit_f64(value),
                (None, None, None) => Err(self.is_not(&visitor)),
            },
            Value::String(text) => visitor.visit_borrowed_str(text),
            Value::Array(items) => {
                let mut reader = ItemReader { items, next: 0 };
                let read = visitor.visit_seq(&mut reader)?;
                match reader.next == items.len() {
                    true => Ok(read),
                    false => Err(ReadError::invalid_length(items.len(), &"fewer elements in array")),
                }
            }
            Value::Object(members) => members_of(members, visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        match self.0 {
            Value::String(name) => visitor.visit_enum(VariantReader { name, content: None }),
            Value::Object(members) => match (members.iter().next(), members.len()) {
                (Some((name, content)), 1) => visitor.visit_enum(VariantReader { name, content: Some(content) }),
                _ => Err(ReadError::invalid_value(Unexpected::Map, &"map with a single key")),
            },
            _ => Err(self.is_not(&"string or map")),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

fn members_of<'de, V: Visitor<'de>>(members: &'de Map<String, Value>, visitor: V) -> Result<V::Value, ReadError> {
    let mut reader = MemberReader { members: members.iter(), current: None };
    let read = visitor.visit_map(&mut reader)?;
    match reader.members.next() {
        None => Ok(read),
        Some(_) => Err(ReadError::invalid_length(members.len(), &"fewer elements in map")),
    }
}

struct ItemReader<'de> {
    items: &'de [Value],
    next: usize,
}

impl<'de> SeqAccess<'de> for ItemReader<'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, ReadError> {
        let Some(item) = self.items.get(self.next) else { return Ok(None) };
        let index = self.next;
        self.next += 1;
        seed.deserialize(ValueReader(item)).map(Some).map_err(|error| error.within(PathStep::Item(index)))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len() - self.next)
    }
}

struct MemberReader<'de> {
    members: serde_json::map::Iter<'de>,
    /// The member whose name was read.
    current: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for MemberReader<'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, ReadError> {
        self.current = self.members.next().map(|(name, value)| (name.as_str(), value));
        match self.current {
            Some((name, _)) => seed.deserialize(NameReader(name)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, ReadError> {
        let (name, value) = self.current.take().ok_or_else(|| ReadError::custom("a value without a name"))?;
        seed.deserialize(ValueReader(value)).map_err(|error| error.within(PathStep::Member(name.to_owned())))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.members.len())
    }
}

/// The deserializer of a member's name.
struct NameReader<'de>(&'de str);

impl<'de> Deserializer<'de> for NameReader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_borrowed_str(self.0)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, ReadError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ReadError> {
        visitor.visit_enum(VariantReader { name: self.0, content: None })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct seq
        tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant that is named by a text, or by the only member of an object.
struct VariantReader<'de> {
    name: &'de str,
    content: Option<&'de Value>,
}

impl<'de> EnumAccess<'de> for VariantReader<'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Self), ReadError> {
        let variant = seed.deserialize(de::value::StrDeserializer::<ReadError>::new(self.name))?;
        Ok((variant, self))
    }
}

impl<'de> VariantReader<'de> {
    /// Reads the variant's content.
    fn content<T>(self, read: impl FnOnce(ValueReader<'de>) -> Result<T, ReadError>) -> Result<T, ReadError> {
        let content =
            self.content.ok_or_else(|| ReadError::invalid_type(Unexpected::UnitVariant, &"a variant's content"))?;
        read(ValueReader(content)).map_err(|error| error.within(PathStep::Member(self.name.to_owned())))
    }
}

impl<'de> VariantAccess<'de> for VariantReader<'de> {
    type Error = ReadError;

    fn unit_variant(self) -> Result<(), ReadError> {
        match self.content {
            None => Ok(()),
            Some(_) => self.content(<()>::deserialize),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, ReadError> {
        self.content(|content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, ReadError> {
        self.content(|content| content.deserialize_tuple(length, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], visitor: V) -> Result<V::Value, ReadError> {
        self.content(|content| content.deserialize_map(visitor))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Eq, Hash, serde::Deserialize)]
    struct Name(String);

    #[derive(Debug, PartialEq, serde::Deserialize)]
    enum Figure {
        Point,
        Circle { radius: f64 },
        Label(Name),
        Line(i64, i64),
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Picture {
        title: Option<Name>,
        figures: Vec<Figure>,
        #[serde(default)]
        sizes: HashMap<Name, u8>,
        #[serde(default)]
        raw: Value,
    }

    #[test]
    fn everything_is_read_as_serde_json_reads_it() {
        for value in [
            json!({"title": "t", "figures": ["Point", {"Circle": {"radius": 1.5}}, {"Label": "l"}, {"Line": [1, -2]}]}),
            json!({"title": null, "figures": [], "sizes": {"a": 1, "b": 255}, "raw": {"x": [1, {"y": null}]}, "more": [{}]}),
            json!({"figures": [{"Point": null}]}),
            json!(["t", [], {}, 1]),
            json!({"figures": [{"Circle": {"radius": 2}}], "raw": 18_446_744_073_709_551_615_u64}),
        ] {
            let expected: Picture = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(from_value::<Picture>(&value).unwrap(), expected, "{value}");
            assert_eq!(from_text::<Picture>(&value.to_string()).unwrap(), expected, "{value}");
        }
    }

    #[test]
    fn an_error_says_what_serde_json_says_and_names_the_place() {
        for (value, place) in [
            (json!({}), ""),
            (json!(null), ""),
            (json!({"title": 1, "figures": []}), "title: "),
            (json!({"figures": ["Point", "Square"]}), "figures[1]: "),
            (json!({"figures": [1]}), "figures[0]: "),
            (json!({"figures": [-1]}), "figures[0]: "),
            (json!({"figures": [1.5]}), "figures[0]: "),
            (json!({"figures": [{"Circle": {}}]}), "figures[0].Circle: "),
            (json!({"figures": [{"Circle": {"radius": "long"}}]}), "figures[0].Circle.radius: "),
            (json!({"figures": [{"Line": [1, "2"]}]}), "figures[0].Line[1]: "),
            (json!({"figures": [{"Label": 1, "Point": null}]}), "figures[0]: "),
            (json!({"figures": [], "sizes": {"big": 256}}), "sizes.big: "),
            (json!([null, [], {}, 1, 2]), ""),
        ] {
            let expected = serde_json::from_value::<Picture>(value.clone()).unwrap_err();
            assert_eq!(from_value::<Picture>(&value).unwrap_err().to_string(), format!("{place}{expected}"), "{value}");
        }
        assert!(from_text::<Picture>("{").is_err());
    }
}
