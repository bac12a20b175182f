//! Decisions about agents' requests, as a log has them.

use grove_core::*;
use sha2::{Digest, Sha256};

use crate::store::artifacts::moment;

/// The type of the entry of a decision.
const PERMISSION: &str = "grove.permission";

/// A decision about an agent's request, as a log has it before the agent learns of it.
#[derive(Clone, Debug)]
pub struct LoggedVerdict {
    pub turn: TurnId,
    pub call: ToolCallId,
    pub request: RequestId,
    pub tool: String,
    pub decision: Decision,
    pub at: Timestamp,
}

impl LoggedVerdict {
    /// It is derived from the request, so that a repeated write after a failure is there once.
    pub(super) fn id(&self) -> String {
        let Self { turn, call, request, .. } = self;
        hex::encode(&Sha256::digest(format!("permission {turn} {call} {request}"))[..4])
    }

    pub(super) fn line(&self, parent: Option<&str>) -> Vec<u8> {
        let mut line = serde_json::json!({
            "type": "custom",
            "customType": PERMISSION,
            "data": {
                "turn": self.turn,
                "call": self.call,
                "tool": self.tool,
                "decision": self.decision,
                "at": self.at,
            },
            "id": self.id(),
            "parentId": parent,
            "timestamp": format!("{:.3}", moment(self.at)),
        })
        .to_string();
        line.push('\n');
        line.into_bytes()
    }
}
