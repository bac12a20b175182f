//! Values of a session.

use grove_core::*;

use super::commands::*;
use super::turn::*;
use super::{Dice, any_extra};

pub(super) fn details(dice: &mut Dice) -> SessionDetails {
    let command =
        |dice: &mut Dice| AgentCommand { name: dice.text(), description: dice.text(), hint: dice.maybe(Dice::text) };
    let remembered = |dice: &mut Dice| RememberedPermission {
        kind: permission_kind(dice),
        about: dice.text(),
        option: option("option-0".to_owned(), dice),
    };
    SessionDetails {
        settings: dice.maybe(settings),
        commands: (0..dice.below(3)).map(|_| command(dice)).collect(),
        remembered: (0..dice.below(3)).map(|_| remembered(dice)).collect(),
        permissions: dice.maybe(permissions),
        warnings: (0..dice.below(3)).map(|_| dice.text()).collect(),
        unsaved: dice.maybe(Dice::text),
        moved_to: dice.maybe(remote_session),
        moved_from: dice.maybe(remote_session),
        imported_from: dice.maybe(|dice| ImportSource { source: dice.text(), source_id: dice.text() }),
        workspace: dice.maybe(|dice| WorkspaceDetails {
            plan: dice.maybe(|dice| Timestamp(dice.below(1_000) as u64)),
            files: dice.maybe(|dice| Timestamp(dice.below(1_000) as u64)),
            checkpoints: dice.below(3) as u32,
        }),
    }
}

pub(super) fn checkout(dice: &mut Dice) -> Checkout {
    Checkout {
        root: dice.maybe(Dice::text),
        worktree_of: dice.maybe(Dice::text),
        branch: dice.maybe(Dice::text),
        own_pull_request: dice.maybe(Dice::text),
        ..Checkout::default()
    }
}

pub(super) fn remote_session(dice: &mut Dice) -> RemoteSession {
    RemoteSession { host: dice.text(), address: Some(dice.text()), session: dice.text(), stamp: dice.text() }
}

pub(super) fn permissions(dice: &mut Dice) -> Permissions {
    Permissions {
        allow_all: dice.chance(50),
        approved: rules(dice),
        denied: rules(dice),
        directories: (0..dice.below(2)).map(|_| dice.text()).collect(),
        primary: dice.maybe(Dice::text),
        policy_rules: (0..dice.below(2)).map(|_| dice.text()).collect(),
    }
}

pub(super) fn rules(dice: &mut Dice) -> Vec<PermissionRule> {
    let rule = |dice: &mut Dice| PermissionRule { kind: permission_kind(dice), argument: dice.maybe(Dice::text) };
    (0..dice.below(3)).map(|_| rule(dice)).collect()
}

pub(super) fn permissions_change(dice: &mut Dice) -> PermissionsChange {
    match dice.below(6) {
        0 => PermissionsChange::Configure {
            allow_all: dice.maybe(|dice| dice.chance(50)),
            approved: dice.maybe(rules),
            denied: dice.maybe(rules),
            directories: None,
        },
        1 => PermissionsChange::Rules { add: rules(dice), remove: rules(dice), remove_all: dice.chance(20) },
        2 => PermissionsChange::AddDirectory(dice.text()),
        3 => PermissionsChange::Primary(dice.text()),
        4 => PermissionsChange::AddPolicyRules(vec![dice.text()]),
        _ => PermissionsChange::Forget,
    }
}

/// An agent's schema of settings, or something that is no schema.
pub(super) fn settings(dice: &mut Dice) -> Extra {
    let choices = serde_json::json!({
        "type": "object",
        "properties": {
            "mode": {"type": "string", "title": dice.text(), "enum": ["ask", "code"], "default": "ask"},
            "fast": {"type": "boolean", "title": dice.text(), "description": dice.text()},
        },
        "required": ["mode"],
    });
    match choices {
        serde_json::Value::Object(schema) if dice.chance(80) => schema,
        _ => any_extra(dice).unwrap_or_default(),
    }
}

pub(super) fn chat_row(dice: &mut Dice) -> ChatRow {
    ChatRow {
        chat: ChatId::from(dice.pick(&["main", "side"])),
        uri: dice.maybe(Dice::text),
        title: normalized_title(&dice.text()).unwrap_or_default(),
        origin: None,
        status: dice.pick(&[ChatStatus::Idle, ChatStatus::InProgress, ChatStatus::InputNeeded, ChatStatus::Error]),
        is_read: dice.chance(50),
        is_archived: dice.chance(50),
        modified_at: Timestamp(dice.below(1_000) as u64),
        touched_at: Timestamp(dice.below(1_000) as u64),
    }
}

pub(super) fn active_client(dice: &mut Dice) -> ActiveClient {
    let tool = |dice: &mut Dice| ClientTool {
        name: dice.text(),
        description: dice.maybe(Dice::text),
        input_schema: dice.maybe(|_| serde_json::json!({"type": "object"})),
        extra: any_extra(dice),
    };
    ActiveClient {
        client: client(dice),
        display_name: dice.maybe(Dice::text),
        tools: (0..dice.below(3)).map(|_| tool(dice)).collect(),
        extra: any_extra(dice),
    }
}
