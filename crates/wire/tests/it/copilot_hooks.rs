//! The shapes of hook calls, as the SDK reads and writes them.

use grove_wire::copilot::hooks::*;
use serde_json::{Value, json};

/// Each hook with its input on the wire, without the members that all have.
fn inputs() -> Vec<(&'static str, HookMomentInput, Value)> {
    let tool = ("bash".to_owned(), json!({"command": "ls"}));
    let result = HookToolResult { text_result_for_llm: "a.txt".to_owned(), result_type: ToolResultType::Success };
    vec![
        (
            "preToolUse",
            HookMomentInput::PreToolUse { tool_name: tool.0.clone(), tool_args: tool.1.clone() },
            json!({"toolName": "bash", "toolArgs": {"command": "ls"}}),
        ),
        (
            "postToolUse",
            HookMomentInput::PostToolUse { tool_name: tool.0.clone(), tool_args: tool.1.clone(), tool_result: result },
            json!({"toolName": "bash", "toolArgs": {"command": "ls"},
                "toolResult": {"textResultForLlm": "a.txt", "resultType": "success"}}),
        ),
        (
            "postToolUseFailure",
            HookMomentInput::PostToolUseFailure { tool_name: tool.0, tool_args: tool.1, error: "no".to_owned() },
            json!({"toolName": "bash", "toolArgs": {"command": "ls"}, "error": "no"}),
        ),
        (
            "userPromptSubmitted",
            HookMomentInput::UserPromptSubmitted { prompt: "hi".to_owned() },
            json!({"prompt": "hi"}),
        ),
        (
            "sessionStart",
            HookMomentInput::SessionStart { source: StartSource::New, initial_prompt: Some("hi".to_owned()) },
            json!({"source": "new", "initialPrompt": "hi"}),
        ),
        ("sessionEnd", HookMomentInput::SessionEnd { reason: EndReason::UserExit }, json!({"reason": "user_exit"})),
        (
            "errorOccurred",
            HookMomentInput::ErrorOccurred {
                error: "no model".to_owned(),
                error_context: ErrorContext::ModelCall,
                recoverable: false,
            },
            json!({"error": "no model", "errorContext": "model_call", "recoverable": false}),
        ),
        (
            "agentStop",
            HookMomentInput::AgentStop { stop_reason: "end_turn".to_owned(), stop_hook_active: true },
            json!({"stopReason": "end_turn", "stop_hook_active": true}),
        ),
    ]
}

#[test]
fn a_hook_gets_its_input_as_the_sdk_reads_it() {
    for (hook, moment, members) in inputs() {
        assert_eq!(moment.hook_type(), hook);
        let input = HookInput { session_id: "s".to_owned(), timestamp: 7, cwd: "/work".to_owned(), moment };
        let params = HookInvokeParams { session_id: "s".to_owned(), hook_type: hook.to_owned(), input };
        let mut expected = json!({"sessionId": "s", "timestamp": 7, "cwd": "/work"});
        expected.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let written = serde_json::to_value(&params).unwrap();
        assert_eq!(written, json!({"sessionId": "s", "hookType": hook, "input": expected}), "{hook}");
        assert_eq!(serde_json::from_value::<HookInvokeParams>(written).unwrap(), params, "{hook}");
    }
}

#[test]
fn an_output_is_read_by_its_members_and_none_is_required() {
    let none = HookOutput::default();
    for (output, read) in [
        (None, none.clone()),
        (Some(json!(null)), none.clone()),
        (Some(json!("garbage")), none.clone()),
        (Some(json!({"modifiedPrompt": 3, "suppressOutput": true})), none.clone()),
        (
            Some(json!({"permissionDecision": "deny", "permissionDecisionReason": "no"})),
            HookOutput {
                permission_decision: Some(PermissionVerdict::Deny),
                permission_decision_reason: Some("no".to_owned()),
                ..none.clone()
            },
        ),
        (
            Some(json!({"permissionDecision": null, "modifiedArgs": {"a": 1}, "additionalContext": "c"})),
            HookOutput {
                modified_args: Some(json!({"a": 1})),
                additional_context: Some("c".to_owned()),
                ..none.clone()
            },
        ),
        (
            Some(json!({"modifiedResult": {"textResultForLlm": "t", "resultType": "failure", "error": "e"}})),
            HookOutput {
                modified_result: Some(HookToolResult {
                    text_result_for_llm: "t".to_owned(),
                    result_type: ToolResultType::Failure,
                }),
                ..none.clone()
            },
        ),
        (
            Some(json!({"decision": "block", "reason": "go on"})),
            HookOutput { blocks: true, reason: Some("go on".to_owned()), ..none.clone() },
        ),
    ] {
        assert_eq!(HookOutput::read(output.clone()), Ok(read), "{output:?}");
    }
}

#[test]
fn a_decision_that_cannot_be_read_is_an_error_and_no_permission() {
    for decision in [json!("Deny"), json!("block"), json!(false), json!({"deny": true})] {
        assert!(HookOutput::read(Some(json!({ "permissionDecision": decision }))).is_err(), "{decision}");
    }
}
