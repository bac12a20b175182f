//! Macros for the common parts of the dialect's types: records, open words and tagged unions.

use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

use crate::value_reader;

/// Defines records as the protocol writes them: names in camel case, `meta` as `_meta`, and no key for `None`.
macro_rules! records {
    ($($(#[$about:meta])* pub struct $name:ident { $($fields:tt)* })*) => {
        $(records!(@fields [$(#[$about])* pub struct $name] [] $($fields)*);)*
    };
    (@fields [$($head:tt)*] [$($done:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(rename_all = "camelCase")]
        $($head)* { $($done)* }
    };
    (@fields $head:tt [$($done:tt)*] $(#[$about:meta])* pub meta: Option<$kind:ty>, $($rest:tt)*) => {
        records!(@fields $head [
            $($done)*
            $(#[$about])*
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            pub meta: Option<$kind>,
        ] $($rest)*);
    };
    (@fields $head:tt [$($done:tt)*] $(#[$about:meta])* pub $field:ident: Option<$kind:ty>, $($rest:tt)*) => {
        records!(@fields $head [
            $($done)*
            $(#[$about])*
            #[serde(skip_serializing_if = "Option::is_none")]
            pub $field: Option<$kind>,
        ] $($rest)*);
    };
    (@fields $head:tt [$($done:tt)*] $(#[$about:meta])* pub $field:ident: $kind:ty, $($rest:tt)*) => {
        records!(@fields $head [$($done)* $(#[$about])* pub $field: $kind,] $($rest)*);
    };
}

/// Defines words that the protocol may extend: an unknown one is kept.
macro_rules! words {
    ($($(#[$about:meta])* pub enum $name:ident {
        $($(#[$of:meta])* $variant:ident = $text:literal),* $(,)?
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)*
            /// An unknown word.
            Unknown(String),
        }

        impl $name {
            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$variant => $text,)*
                    Self::Unknown(text) => text,
                }
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                Ok(match text.as_str() {
                    $($text => Self::$variant,)*
                    _ => Self::Unknown(text),
                })
            }
        }

        #[cfg(feature = "schema")]
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            /// Only the known words: unknown ones may be read, but a host does not send them.
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),*] })
            }
        }
    )*};
}

/// Defines unions that are tagged by one key. An unknown tag is kept with its body as `Unknown`; a known tag with a
/// malformed body is an error, so the tag is read before the body.
macro_rules! unions {
    ($($(#[$about:meta])* pub enum $name:ident by $tag:literal {
        $($text:literal => $variant:ident($body:ty)),* $(,)?
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = $tag)]
        pub enum $name {
            $(#[serde(rename = $text)] $variant($body),)*
            /// A value with an unknown tag, as it came.
            #[serde(untagged)]
            #[cfg_attr(feature = "schema", schemars(skip))]
            Unknown(serde_json::Value),
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                let Some(tag) = value.get($tag).and_then(serde_json::Value::as_str) else {
                    return Err(crate::ahp::macros::no_tag($tag));
                };
                match tag {
                    $($text => crate::ahp::macros::body($text, &value).map(Self::$variant),)*
                    _ => Ok(Self::Unknown(value)),
                }
            }
        }
    )*};
}

/// Defines closed lists of names, with conversions in both directions.
macro_rules! names {
    ($(#[$about:meta])* pub enum $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name on the wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The value of a name on the wire.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

pub(crate) use {names, records, unions, words};

/// The error of a union's value without a tag, or with one that is not a text.
pub(crate) fn no_tag<E: Error>(tag: &str) -> E {
    E::custom(format_args!("there is no text under `{tag}`"))
}

/// The body of a union's variant, or an error that names the variant and the place.
pub(crate) fn body<T: DeserializeOwned, E: Error>(tag: &str, value: &Value) -> Result<T, E> {
    value_reader::from_value(value).map_err(|error| E::custom(format_args!("{tag}: {error}")))
}
