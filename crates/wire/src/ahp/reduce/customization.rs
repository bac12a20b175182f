//! The customizations of a session: the part of its reducer that searches containers.

use super::ReduceOutcome;
use super::edit::{assign, remove, set};
use crate::ahp::Uri;
use crate::ahp::state::{
    ChildCustomization, Customization, CustomizationEnablement, McpServerCustomization, McpServerState,
};

/// A customization with an id: at the top, or in a container. The top is searched first.
enum CustomizationRef<'a> {
    Top(&'a mut Customization),
    Child(&'a mut ChildCustomization),
}

fn find<'a>(list: &'a mut [Customization], id: &str) -> Option<CustomizationRef<'a>> {
    // Two passes: a single loop would have to borrow a child while it still searches the top.
    if let Some(at) = list.iter().position(|known| known.id() == Some(id)) {
        return list.get_mut(at).map(CustomizationRef::Top);
    }
    let mut children = list.iter_mut().filter_map(children).flatten();
    children.find(|child| child.id() == Some(id)).map(CustomizationRef::Child)
}

fn children(container: &mut Customization) -> Option<&mut Vec<ChildCustomization>> {
    match container {
        Customization::Plugin(plugin) => plugin.children.as_mut(),
        Customization::Directory(directory) => directory.children.as_mut(),
        Customization::McpServer(_) | Customization::Unknown(_) => None,
    }
}

/// Removes a customization with its contents.
pub(super) fn removed(list: &mut Vec<Customization>, id: &str) -> ReduceOutcome {
    if remove(list, |known| known.id() == Some(id)).is_changed() {
        return ReduceOutcome::Changed;
    }
    let mut containers = list.iter_mut().filter_map(children);
    ReduceOutcome::of(containers.any(|children| remove(children, |child| child.id() == Some(id)).is_changed()))
}

/// Records decisions. A type with a list keeps all; a type with only on and off takes the first.
pub(super) fn toggled(list: &mut [Customization], id: &str, enablement: &[CustomizationEnablement]) -> ReduceOutcome {
    let enabled = is_enabled(enablement);
    let decisions = || Some(enablement.to_vec()).filter(|decisions| !decisions.is_empty());
    match find(list, id) {
        Some(CustomizationRef::Top(Customization::Plugin(plugin))) => assign(&mut plugin.enablement, &decisions()),
        Some(CustomizationRef::Top(Customization::McpServer(server))) => assign(&mut server.enablement, &decisions()),
        Some(CustomizationRef::Top(Customization::Directory(directory))) => assign(&mut directory.enabled, &enabled),
        Some(CustomizationRef::Child(ChildCustomization::McpServer(server))) => {
            assign(&mut server.enablement, &decisions())
        }
        Some(CustomizationRef::Child(ChildCustomization::Agent(child))) => set(&mut child.enabled, &enabled),
        Some(CustomizationRef::Child(ChildCustomization::Skill(child))) => set(&mut child.enabled, &enabled),
        Some(CustomizationRef::Child(ChildCustomization::Prompt(child))) => set(&mut child.enabled, &enabled),
        Some(CustomizationRef::Child(ChildCustomization::Rule(child))) => set(&mut child.enabled, &enabled),
        Some(CustomizationRef::Child(ChildCustomization::Hook(child))) => set(&mut child.enabled, &enabled),
        Some(
            CustomizationRef::Top(Customization::Unknown(_)) | CustomizationRef::Child(ChildCustomization::Unknown(_)),
        )
        | None => ReduceOutcome::Unchanged,
    }
}

/// Undecided means enabled.
fn is_enabled(enablement: &[CustomizationEnablement]) -> bool {
    match enablement.first() {
        None => true,
        Some(CustomizationEnablement::Global(decision)) => decision.enabled,
        Some(CustomizationEnablement::Workspace(decision)) => decision.enabled,
        Some(CustomizationEnablement::Session(decision)) => decision.enabled,
        // A decision that cannot be read does not enable.
        Some(CustomizationEnablement::Unknown(_)) => false,
    }
}

/// Sets the state of an MCP server. A channel belongs to the state that it came with.
pub(super) fn server_moved(
    list: &mut [Customization],
    id: &str,
    state: &McpServerState,
    channel: &Option<Uri>,
) -> ReduceOutcome {
    server(list, id).map_or(ReduceOutcome::Unchanged, |server| {
        assign(&mut server.state, state) | assign(&mut server.channel, channel)
    })
}

/// Stops messages from waiting for a starting MCP server.
pub(super) fn server_backgrounded(list: &mut [Customization], id: &str) -> ReduceOutcome {
    match server(list, id).map(|server| &mut server.state) {
        Some(McpServerState::Starting(starting)) if starting.blocking == Some(true) => {
            starting.blocking = Some(false);
            ReduceOutcome::Changed
        }
        Some(_) | None => ReduceOutcome::Unchanged,
    }
}

fn server<'a>(list: &'a mut [Customization], id: &str) -> Option<&'a mut McpServerCustomization> {
    match find(list, id)? {
        CustomizationRef::Top(Customization::McpServer(server))
        | CustomizationRef::Child(ChildCustomization::McpServer(server)) => Some(server),
        CustomizationRef::Top(_) | CustomizationRef::Child(_) => None,
    }
}
