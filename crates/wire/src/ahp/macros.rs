//! What every type of the dialect has in common, said once: how records, open words and tagged unions are written and
//! read.

use serde::de::{DeserializeOwned, Error};
use serde_json::Value;

/// Records as the protocol writes them: names in camel case, `meta` as `_meta`, and no key for what is `None`.
macro_rules! records {
    ($($(#[$about:meta])* pub struct $name:ident { $($fields:tt)* })*) => {
        $(records!(@fields [$(#[$about])* pub struct $name] [] $($fields)*);)*
    };
    (@fields [$($head:tt)*] [$($done:tt)*]) => {
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
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

/// Words of which the protocol may add more: one that is not known is kept as it is written.
macro_rules! words {
    ($($(#[$about:meta])* pub enum $name:ident {
        $($(#[$of:meta])* $variant:ident = $text:literal),* $(,)?
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$of])* $variant,)*
            /// A word that this build does not know.
            Unknown(String),
        }

        impl $name {
            /// The word as it is written.
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

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            /// Only the known words: what is unknown may be read, but a host does not say it of itself.
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($text),*] })
            }
        }
    )*};
}

/// Unions that one key tells apart. An unknown tag is kept whole as `Unknown`; a known tag with a malformed body is an
/// error, which is why the tag is read before the body.
macro_rules! unions {
    ($($(#[$about:meta])* pub enum $name:ident by $tag:literal {
        $($text:literal => $variant:ident($body:ty)),* $(,)?
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, schemars::JsonSchema)]
        #[serde(tag = $tag)]
        pub enum $name {
            $(#[serde(rename = $text)] $variant($body),)*
            /// A value under a tag that this build does not know, as it came.
            #[serde(untagged)]
            #[schemars(skip)]
            Unknown(serde_json::Value),
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let value = <serde_json::Value as serde::Deserialize>::deserialize(deserializer)?;
                let Some(tag) = value.get($tag).and_then(serde_json::Value::as_str) else {
                    return Err(crate::ahp::macros::no_tag($tag));
                };
                match tag {
                    $($text => crate::ahp::macros::body($text, value).map(Self::$variant),)*
                    _ => Ok(Self::Unknown(value)),
                }
            }
        }
    )*};
}

/// Names of the protocol that are a closed list, both ways.
macro_rules! names {
    ($(#[$about:meta])* pub enum $name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($variant),* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name as it is written.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// The one that is written so.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)* _ => None }
            }
        }
    };
}

pub(crate) use {names, records, unions, words};

/// What a union says of a value that has no tag, or one that is not a text.
pub(crate) fn no_tag<E: Error>(tag: &str) -> E {
    E::custom(format_args!("there is no text under `{tag}`"))
}

/// The body of a union's member, or an error that says whose body is malformed and where.
pub(crate) fn body<T: DeserializeOwned, E: Error>(tag: &str, value: Value) -> Result<T, E> {
    serde_path_to_error::deserialize(value).map_err(|error| E::custom(format_args!("{tag}: {}", located(&error))))
}

/// A reader's error together with the place it was met at.
pub(crate) fn located(error: &serde_path_to_error::Error<serde_json::Error>) -> String {
    let place = error.path();
    // At the top there is no place to name, and the reader's own words already name a field that is missing.
    if place.iter().next().is_none() { error.inner().to_string() } else { format!("{place}: {}", error.inner()) }
}
