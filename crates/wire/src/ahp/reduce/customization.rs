//! Customizations of a session: the part of its reducer that looks into containers.

use super::Outcome;
use super::edit::{assign, remove, set};
use crate::ahp::Uri;
use crate::ahp::state::{
    ChildCustomization, Customization, CustomizationEnablement, McpServerCustomization, McpServerState,
};

/// Anything with an id: at the top, or in a container. What is at the top comes first.
enum Found<'a> {
    Top(&'a mut Customization),
    Child(&'a mut ChildCustomization),
}

fn find<'a>(list: &'a mut [Customization], id: &str) -> Option<Found<'a>> {
    // Twice through the list: a single loop would have to hold on to a child while it still looks at the top.
    if let Some(at) = list.iter().position(|known| known.id() == Some(id)) {
        return list.get_mut(at).map(Found::Top);
    }
    let mut children = list.iter_mut().filter_map(children).flatten();
    children.find(|child| child.id() == Some(id)).map(Found::Child)
}

fn children(container: &mut Customization) -> Option<&mut Vec<ChildCustomization>> {
    match container {
        Customization::Plugin(plugin) => plugin.children.as_mut(),
        Customization::Directory(directory) => directory.children.as_mut(),
        Customization::McpServer(_) | Customization::Unknown(_) => None,
    }
}

/// Removes a customization, with all that lies in it.
pub(super) fn removed(list: &mut Vec<Customization>, id: &str) -> Outcome {
    if remove(list, |known| known.id() == Some(id)).is_changed() {
        return Outcome::Changed;
    }
    let mut containers = list.iter_mut().filter_map(children);
    Outcome::of(containers.any(|children| remove(children, |child| child.id() == Some(id)).is_changed()))
}

/// Writes down decisions. Where a type keeps them, all are kept; where it only knows on and off, the first decides.
pub(super) fn toggled(list: &mut [Customization], id: &str, enablement: &[CustomizationEnablement]) -> Outcome {
    let enabled = is_enabled(enablement);
    let decisions = || Some(enablement.to_vec()).filter(|decisions| !decisions.is_empty());
    match find(list, id) {
        Some(Found::Top(Customization::Plugin(plugin))) => assign(&mut plugin.enablement, &decisions()),
        Some(Found::Top(Customization::McpServer(server))) => assign(&mut server.enablement, &decisions()),
        Some(Found::Top(Customization::Directory(directory))) => assign(&mut directory.enabled, &enabled),
        Some(Found::Child(ChildCustomization::McpServer(server))) => assign(&mut server.enablement, &decisions()),
        Some(Found::Child(ChildCustomization::Agent(child))) => set(&mut child.enabled, &enabled),
        Some(Found::Child(ChildCustomization::Skill(child))) => set(&mut child.enabled, &enabled),
        Some(Found::Child(ChildCustomization::Prompt(child))) => set(&mut child.enabled, &enabled),
        Some(Found::Child(ChildCustomization::Rule(child))) => set(&mut child.enabled, &enabled),
        Some(Found::Child(ChildCustomization::Hook(child))) => set(&mut child.enabled, &enabled),
        Some(Found::Top(Customization::Unknown(_)) | Found::Child(ChildCustomization::Unknown(_))) | None => {
            Outcome::Nothing
        }
    }
}

/// What nobody decided is on.
fn is_enabled(enablement: &[CustomizationEnablement]) -> bool {
    match enablement.first() {
        None => true,
        Some(CustomizationEnablement::Global(decision)) => decision.enabled,
        Some(CustomizationEnablement::Workspace(decision)) => decision.enabled,
        Some(CustomizationEnablement::Session(decision)) => decision.enabled,
        // A decision that cannot be read is none for it.
        Some(CustomizationEnablement::Unknown(_)) => false,
    }
}

/// Puts an MCP server into another state. A channel belongs to the state it came with.
pub(super) fn server_moved(
    list: &mut [Customization],
    id: &str,
    state: &McpServerState,
    channel: &Option<Uri>,
) -> Outcome {
    server(list, id)
        .map_or(Outcome::Nothing, |server| assign(&mut server.state, state) | assign(&mut server.channel, channel))
}

/// Lets messages no longer wait for an MCP server that starts.
pub(super) fn server_backgrounded(list: &mut [Customization], id: &str) -> Outcome {
    match server(list, id).map(|server| &mut server.state) {
        Some(McpServerState::Starting(starting)) if starting.blocking == Some(true) => {
            starting.blocking = Some(false);
            Outcome::Changed
        }
        Some(_) | None => Outcome::Nothing,
    }
}

fn server<'a>(list: &'a mut [Customization], id: &str) -> Option<&'a mut McpServerCustomization> {
    match find(list, id)? {
        Found::Top(Customization::McpServer(server)) | Found::Child(ChildCustomization::McpServer(server)) => {
            Some(server)
        }
        Found::Top(_) | Found::Child(_) => None,
    }
}
