//! A line's fields as raw values: unchanged ones stay byte for byte.

use std::borrow::Cow;

use crate::scan::{Scanner, Shape, text_of};

/// An object's fields in their order.
#[derive(Clone, Debug, Default)]
pub struct JsonObject<'a> {
    fields: Vec<Field<'a>>,
}

/// A field's decoded name and raw value.
type Field<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

impl<'a> JsonObject<'a> {
    /// Parses an object; `None` if the bytes are not one.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut object = JsonObject::default();
        let shape = Scanner::default().scan(bytes, |name, value| object.put(name.clone(), Cow::Borrowed(value)));
        (shape == Ok(Shape::JsonObject)).then_some(object)
    }

    /// A field's raw value.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields.iter().find(|(key, _)| key.as_ref() == name.as_bytes()).map(|(_, value)| value.as_ref())
    }

    /// A field's text, decoded.
    pub fn text(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        self.get(name).and_then(text_of)
    }

    /// True if a field is exactly this text.
    pub fn is(&self, name: &str, text: &str) -> bool {
        self.text(name).is_some_and(|value| value.as_ref() == text.as_bytes())
    }

    /// Sets a field to a value in JSON: in its place if it exists, else at the end.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        self.put(Cow::Owned(name.as_bytes().to_vec()), Cow::Owned(value.into()));
    }

    pub fn remove(&mut self, name: &str) {
        self.fields.retain(|(key, _)| key.as_ref() != name.as_bytes());
    }

    /// The object as JSON, without white space between fields.
    pub fn render(&self) -> Vec<u8> {
        let mut out = vec![b'{'];
        for (at, (name, value)) in self.fields.iter().enumerate() {
            if at > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&quoted(name));
            out.push(b':');
            out.extend_from_slice(value);
        }
        out.push(b'}');
        out
    }

    fn put(&mut self, name: Cow<'a, [u8]>, value: Cow<'a, [u8]>) {
        match self.fields.iter_mut().find(|(key, _)| *key == name) {
            Some(field) => field.1 = value,
            None => self.fields.push((name, value)),
        }
    }
}

/// The raw value of a top-level field of a line: `field(line, "grove")`.
pub fn field<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut found = None;
    let shape = Scanner::default().scan(line, |key, value| {
        if key.as_ref() == name.as_bytes() {
            found = Some(value);
        }
    });
    found.filter(|_| shape == Ok(Shape::JsonObject))
}

/// Quotes a text as JSON. A lone surrogate that [`text_of`] decoded becomes an escape again.
pub fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    let mut rest = text;
    while let [byte, tail @ ..] = rest {
        rest = tail;
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            0..0x20 => out.extend(format!("\\u{byte:04x}").bytes()),
            0xed => match tail {
                [second @ 0xa0..=0xbf, third, after @ ..] => {
                    let unit = 0xd000 | (u32::from(*second) & 63) << 6 | u32::from(*third) & 63;
                    out.extend(format!("\\u{unit:04x}").bytes());
                    rest = after;
                }
                _ => out.push(*byte),
            },
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untouched_fields_stay_byte_for_byte() {
        let mut object = JsonObject::parse(br#"{"a": 1.50 ,"b":"\ud800\u0041", "c":{ } }"#).unwrap();
        object.set("d", "null");
        object.set("a", "2");
        object.remove("c");
        assert_eq!(object.render(), br#"{"a":2,"b":"\ud800\u0041","d":null}"#);
    }

    #[test]
    fn a_text_comes_back_as_it_was() {
        for text in [r#""plain""#, r#""\ud800""#, r#""\ud83c🌲\"\\\n\u0001\t""#, r#""퟿""#] {
            assert_eq!(quoted(&text_of(text.as_bytes()).unwrap()), text.as_bytes());
        }
    }
}
