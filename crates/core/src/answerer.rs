//! The party that answered a permission request or a question.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::title::is_unprintable;
use crate::turn::{Extra, ToolCall, ToolKind};

/// The longest name of a party that is kept. Longer ones are cut.
pub const MAX_PARTY_NAME_CHARS: usize = 100;
/// The longest name of a rule that is kept: it has the rule's file and text.
pub const MAX_RULE_NAME_CHARS: usize = 300;

/// The members of a call's metadata that only the host writes. Those of agents are dropped.
pub const HOST_METADATA: [&str; 2] = [ANSWERED_BY, POLICY_RULE];
/// The member that names the party that answered the newest question about the call.
pub const ANSWERED_BY: &str = "answeredBy";
/// The member that names the rule which answered, in a call or in the answer to its request.
pub const POLICY_RULE: &str = "policyRule";

/// The party that answered: a client, a rule, or a hook of a client. It has names for people, and never a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answerer {
    Rule {
        /// The rule and its place, in words.
        rule: String,
    },
    /// A hook: the client's program answered by itself, without asking a person.
    Hook {
        /// The protocol's name of the hook.
        hook: String,
        /// The name of the client's token.
        token: String,
        /// The client's own name, if it has sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
    Client {
        /// The name of the client's token.
        token: String,
        /// The client's own name, if it has sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
    },
}

impl Answerer {
    pub fn rule(rule: &str) -> Self {
        Self::Rule { rule: clipped(rule, MAX_RULE_NAME_CHARS) }
    }

    pub fn client(token: &str, client: Option<&str>) -> Self {
        let client = client.map(party_name).filter(|name| !name.is_empty());
        Self::Client { token: party_name(token), client }
    }

    /// A hook of this party.
    pub fn hook(self, hook: &str) -> Self {
        match self {
            Self::Client { token, client } | Self::Hook { token, client, .. } => {
                Self::Hook { hook: party_name(hook), token, client }
            }
            rule @ Self::Rule { .. } => rule,
        }
    }
}

/// In words that follow "by": the token with the client's name, the hook of that, or the rule.
impl fmt::Display for Answerer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule { rule } => write!(f, "rule {rule}"),
            Self::Hook { hook, token, client: Some(client) } if client != token => {
                write!(f, "hook {hook} of {token} ({client})")
            }
            Self::Hook { hook, token, .. } => write!(f, "hook {hook} of {token}"),
            Self::Client { token, client: Some(client) } if client != token => write!(f, "{token} ({client})"),
            Self::Client { token, .. } => write!(f, "{token}"),
        }
    }
}

/// The name of a party as lists show it: in one line, without unprintable characters, cut.
pub fn party_name(name: &str) -> String {
    clipped(name, MAX_PARTY_NAME_CHARS)
}

fn clipped(text: &str, most: usize) -> String {
    let shown: String = text.chars().filter(|one| !is_unprintable(*one)).take(most).collect();
    shown.trim().to_owned()
}

/// An answer about a tool call, and the call's metadata: a dialect may have to tell both in one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallAnswer {
    pub by: Answerer,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ToolKind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Extra>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
}

impl CallAnswer {
    /// The answer of a party about a call.
    pub(crate) fn new(by: Answerer, call: &ToolCall) -> Self {
        let (kind, language, ran_ms) = (call.kind, call.language.clone(), call.ran_ms);
        Self { by, kind, language, extra: call.extra.clone(), ran_ms }
    }

    /// The call's further data after the answer.
    pub fn extra(&self) -> Extra {
        let mut extra = self.extra.clone().unwrap_or_default();
        extra.insert(ANSWERED_BY.to_owned(), self.by.to_value());
        extra
    }
}

impl Answerer {
    /// The party in a call's further data.
    fn to_value(&self) -> serde_json::Value {
        match self {
            Self::Rule { rule } => serde_json::json!({ "rule": rule }),
            Self::Hook { hook, token, client: None } => serde_json::json!({ "hook": hook, "token": token }),
            Self::Hook { hook, token, client: Some(client) } => {
                serde_json::json!({ "hook": hook, "token": token, "client": client })
            }
            Self::Client { token, client: None } => serde_json::json!({ "token": token }),
            Self::Client { token, client: Some(client) } => serde_json::json!({ "token": token, "client": client }),
        }
    }

    /// The party that a call's further data name.
    pub fn in_extra(extra: &Extra) -> Option<Self> {
        Self::deserialize(extra.get(ANSWERED_BY)?).ok()
    }
}

impl ToolCall {
    /// The party that answered the newest question about the call, if that is known.
    pub fn answered_by(&self) -> Option<Answerer> {
        Answerer::in_extra(self.extra.as_ref()?)
    }

    pub(crate) fn set_answer(&mut self, answer: Option<&CallAnswer>) {
        if let Some(answer) = answer {
            let extra = self.extra.get_or_insert_default();
            extra.insert(ANSWERED_BY.to_owned(), answer.by.to_value());
        }
    }
}
