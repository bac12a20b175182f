//! The forms in which agents give calls to their hooks, and read decisions.

use serde_json::{Map, Value, json};

use super::{HookDecision, HookReply, HookRequest};

/// The beginning of a denial, which some agents write themselves.
const DENIED: &str = "Denied by preToolUse hook: ";

/// The form of an agent's own hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookFormat {
    /// Codex: `tool_name`, `tool_input` and `tool_use_id`.
    Codex,
    /// The Copilot CLI: `toolName` and `toolArgs`.
    Copilot,
}

impl HookFormat {
    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            HookFormat::Codex => "codex",
            HookFormat::Copilot => "copilot",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        [HookFormat::Codex, HookFormat::Copilot].into_iter().find(|format| format.as_str() == name)
    }

    /// Reads the input of a hook. The error says what is missing.
    pub(super) fn read(self, input: &[u8]) -> Result<HookRequest, String> {
        let mut members: Map<String, Value> =
            serde_json::from_slice(input).map_err(|error| format!("the agent's call is no JSON object: {error}"))?;
        let (tool, arguments) = match self {
            HookFormat::Codex => ("tool_name", "tool_input"),
            HookFormat::Copilot => ("toolName", "toolArgs"),
        };
        let Some(Value::String(name)) = members.remove(tool) else { return Err(format!("the call has no {tool}")) };
        let arguments = members.remove(arguments).unwrap_or(Value::Null);
        let call = members.get("tool_use_id").and_then(Value::as_str).map(str::to_owned);
        Ok(HookRequest { tool: name, arguments, call })
    }

    /// The output of a hook; `None` prints nothing.
    pub(super) fn write(self, reply: HookReply, request: Option<&HookRequest>) -> Option<Value> {
        let HookReply { decision, reason, arguments } = reply;
        let reason = reason.unwrap_or_else(|| "a hook denied it".to_owned());
        let changed = arguments.or_else(|| {
            // Codex takes a permission only together with the arguments.
            let same = request.filter(|_| self == HookFormat::Codex && decision == HookDecision::Allow);
            same.map(|request| request.arguments.clone())
        });
        let words = match (decision, changed) {
            (HookDecision::Deny, _) => {
                let reason = match self {
                    HookFormat::Codex => reason.as_str(),
                    HookFormat::Copilot => reason.strip_prefix(DENIED).unwrap_or(&reason),
                };
                json!({"permissionDecision": "deny", "permissionDecisionReason": reason})
            }
            (HookDecision::None, None) => return None,
            (HookDecision::Allow, None) => json!({"permissionDecision": "allow"}),
            (HookDecision::Allow | HookDecision::None, Some(changed)) => match self {
                HookFormat::Codex => json!({"permissionDecision": "allow", "updatedInput": changed}),
                HookFormat::Copilot if decision == HookDecision::None => json!({"modifiedArgs": changed}),
                HookFormat::Copilot => json!({"permissionDecision": "allow", "modifiedArgs": changed}),
            },
        };
        match (self, words) {
            (HookFormat::Codex, Value::Object(mut members)) => {
                members.insert("hookEventName".to_owned(), "PreToolUse".into());
                Some(json!({"hookSpecificOutput": members}))
            }
            (_, words) => Some(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_read_and_a_decision_written_in_the_form_of_each_agent() {
        let arguments = json!({"command": "ls"});
        let codex =
            json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": arguments, "tool_use_id": "c1"});
        let copilot = json!({"sessionId": "s", "toolName": "bash", "toolArgs": arguments});
        let read = |format: HookFormat, input: &Value| format.read(input.to_string().as_bytes());
        let call = |tool: &str, call: Option<&str>| HookRequest {
            tool: tool.to_owned(),
            arguments: arguments.clone(),
            call: call.map(str::to_owned),
        };
        assert_eq!(read(HookFormat::Codex, &codex), Ok(call("Bash", Some("c1"))));
        assert_eq!(read(HookFormat::Copilot, &copilot), Ok(call("bash", None)));
        assert!(read(HookFormat::Codex, &copilot).is_err() && HookFormat::Codex.read(b"x").is_err());

        let denied = || HookReply::denied("Denied by preToolUse hook: no");
        let written = HookFormat::Codex.write(denied(), None);
        let output = json!({"hookEventName": "PreToolUse", "permissionDecision": "deny",
            "permissionDecisionReason": "Denied by preToolUse hook: no"});
        assert_eq!(written, Some(json!({ "hookSpecificOutput": output })));
        let written = HookFormat::Copilot.write(denied(), None);
        assert_eq!(written, Some(json!({"permissionDecision": "deny", "permissionDecisionReason": "no"})));

        let reply = |decision, arguments| HookReply { decision, reason: None, arguments };
        let request = call("Bash", None);
        assert_eq!(HookFormat::Codex.write(reply(HookDecision::None, None), Some(&request)), None);
        let allowed = HookFormat::Codex.write(reply(HookDecision::Allow, None), Some(&request)).unwrap();
        assert_eq!(allowed["hookSpecificOutput"]["updatedInput"], arguments);
        let changed = HookFormat::Copilot.write(reply(HookDecision::None, Some(json!({"a": 1}))), Some(&request));
        assert_eq!(changed, Some(json!({"modifiedArgs": {"a": 1}})));
        assert_eq!(HookFormat::named("codex"), Some(HookFormat::Codex));
    }
}
