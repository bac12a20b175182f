//! The further scopes that the params of a request or the body of an action need.
//!
//! Params that cannot be read here need all that they could need: a request's handler may read them in another way.

use grove_core::{Scope, ScopeSet, SessionConfig};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::ahp::uri::ChannelName;
use crate::ahp::{self, SessionAction};
use crate::copilot::methods::Method as CopilotMethod;
use crate::file_uri;
use crate::v1;
use crate::x_grove::administration::AdministrationMethod;
use crate::x_grove::history::HistoryMethod;
use crate::x_grove::policy::{PolicyAllowParams, PolicyMethod, RuleTarget};
use crate::x_grove::sessions::SessionsMethod;
use crate::x_grove::{self, PermissionsParams};

/// The settings that change nothing of what an agent asks for: the model, and how long it thinks.
///
/// An agent may define any setting, and many define one that ends all questions, so others count as such.
const HARMLESS_SETTINGS: [&str; 6] =
    ["model", "reasoning_effort", "reasoningEffort", "effort", "thought_level", "thinking"];

/// The folder that params count as naming if they cannot be read.
const ANY_FOLDER: &str = "file:///";

/// The further scopes of `initialize` and `reconnect`: they may subscribe.
fn connect(params: Option<&RawValue>) -> ScopeSet {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Subscriptions {
        initial_subscriptions: Value,
        subscriptions: Value,
    }
    const READ: ScopeSet = ScopeSet::NONE.with(Scope::Read);
    let Some(wanted) = read::<Subscriptions>(params) else { return READ.with(Scope::Terminal) };
    let channels = |list: Value| match list {
        Value::Null => Vec::new(),
        Value::Array(channels) => channels,
        other => vec![other],
    };
    let wanted = [wanted.initial_subscriptions, wanted.subscriptions].map(channels).concat();
    // Each is a name, or an object with one.
    let mut names = wanted.iter().map(|wanted| wanted.as_str().or_else(|| wanted["channel"].as_str()));
    match names.any(|name| name.is_some_and(is_terminal)) {
        true => READ.with(Scope::Terminal),
        false if wanted.is_empty() => ScopeSet::NONE,
        false => READ,
    }
}

/// Says whether a channel is a terminal's, whose output is for those who may use terminals.
fn is_terminal(channel: &str) -> bool {
    matches!(ChannelName::parse(channel), Some(ChannelName::Terminal(_)))
}

/// The further scopes of a request of the Agent Host Protocol.
pub fn ahp_method(method: ahp::Method, params: Option<&RawValue>) -> ScopeSet {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Settings {
        config: Option<Map<String, Value>>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct SubscribedChannel {
        channel: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Access {
        write: Option<bool>,
    }
    match method {
        ahp::Method::Initialize | ahp::Method::Reconnect => connect(params),
        ahp::Method::Subscribe => match read::<SubscribedChannel>(params) {
            Some(wanted) if !is_terminal(&wanted.channel) => ScopeSet::NONE,
            Some(_) | None => ScopeSet::NONE.with(Scope::Terminal),
        },
        // The change itself needs `approve` as well if it is about a protected file, which its real path decides.
        ahp::Method::ResourceRequest => match read::<Access>(params) {
            Some(Access { write: None | Some(false) }) => ScopeSet::NONE,
            Some(_) | None => ScopeSet::NONE.with(Scope::Prompt),
        },
        ahp::Method::CreateSession => match read::<Settings>(params) {
            Some(params) => settings(&params.config.unwrap_or_default()),
            None => ScopeSet::NONE.with(Scope::Approve),
        },
        _ => ScopeSet::NONE,
    }
}

/// The further scopes of an action of the Agent Host Protocol.
pub fn ahp_action(action: &ahp::Action) -> ScopeSet {
    match action {
        // Replacing all settings also resets the mode.
        ahp::Action::Session(SessionAction::ConfigChanged(changed)) if changed.replace.unwrap_or(false) => {
            ScopeSet::NONE.with(Scope::Approve)
        }
        ahp::Action::Session(SessionAction::ConfigChanged(changed)) => settings(&changed.config),
        _ => ScopeSet::NONE,
    }
}

/// The further scopes of a method of Grove's extensions.
pub fn x_grove_method(method: x_grove::Method, params: Option<&RawValue>) -> ScopeSet {
    match method {
        x_grove::Method::Permissions if read::<PermissionsParams>(params).is_none_or(|params| params.revoke) => {
            ScopeSet::NONE.with(Scope::Approve)
        }
        // It creates a session.
        x_grove::Method::History(HistoryMethod::Import) => ScopeSet::NONE.with(Scope::Prompt),
        // A stored rule counts for other sessions too.
        x_grove::Method::Policy(PolicyMethod::Allow) => match read::<PolicyAllowParams>(params) {
            Some(params) if params.target == RuleTarget::Session => ScopeSet::NONE,
            Some(_) | None => ScopeSet::NONE.with(Scope::Admin),
        },
        // A stored rule answers agents.
        x_grove::Method::Administration(AdministrationMethod::AddRules | AdministrationMethod::RemoveRule) => {
            ScopeSet::NONE.with(Scope::Approve)
        }
        _ => ScopeSet::NONE,
    }
}

/// The further scopes of a request of the Copilot SDK: opening a session also sends its events.
pub fn copilot_method(method: CopilotMethod) -> ScopeSet {
    match method {
        CopilotMethod::SessionCreate | CopilotMethod::SessionResume => ScopeSet::NONE.with(Scope::Read),
        _ => ScopeSet::NONE,
    }
}

/// The folders that a request chooses to work in, which need the scope `folders` outside of the configured roots.
///
/// `method` is the name of a request of version 1, of the Agent Host Protocol, or of Grove's extensions.
pub fn named_folders(method: &str, params: Option<&RawValue>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct NamedFolders {
        working_directory: Value,
        working_directories: Value,
        directory: Value,
        folder: Value,
        cwd: Value,
    }
    if method == x_grove::Method::Sessions(SessionsMethod::Browse).as_str() {
        return browsed_folders(params);
    }
    let names_folders = [
        v1::Method::CreateSession.as_str(),
        ahp::Method::CreateSession.as_str(),
        ahp::Method::CreateChat.as_str(),
        ahp::Method::CreateTerminal.as_str(),
        x_grove::Method::SetWorkingDirectory.as_str(),
        x_grove::Method::Sessions(SessionsMethod::Create).as_str(),
        x_grove::Method::Sessions(SessionsMethod::TypesForFolder).as_str(),
        x_grove::Method::Administration(AdministrationMethod::Rules).as_str(),
        x_grove::Method::Administration(AdministrationMethod::CheckRules).as_str(),
    ];
    if !names_folders.contains(&method) {
        return Vec::new();
    }
    let Some(named) = read::<NamedFolders>(params) else { return vec![ANY_FOLDER.to_owned()] };
    let NamedFolders { working_directory, working_directories, directory, folder, cwd } = named;
    let several = match working_directories {
        Value::Array(folders) => folders,
        one => vec![one],
    };
    let all = [working_directory, directory, folder, cwd].into_iter().chain(several);
    all.filter_map(|folder| folder.as_str().map(str::to_owned)).collect()
}

/// The folders that a browse action names: the chosen one, and the one that is listed for an absolute path.
///
/// A relative path is one of the host's default folder, unless it leads out of that.
fn browsed_folders(params: Option<&RawValue>) -> Vec<String> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct BrowsedFolders {
        chosen: Option<String>,
        query: Option<String>,
    }
    let Some(BrowsedFolders { chosen, query }) = read(params) else { return vec![ANY_FOLDER.to_owned()] };
    let query = query.unwrap_or_default();
    let listed = match query.rsplit_once('/') {
        Some(_) if query.split('/').any(|part| part == "..") => Some(ANY_FOLDER.to_owned()),
        Some((folder, _)) if query.starts_with('/') => file_uri::of_path(if folder.is_empty() { "/" } else { folder }),
        Some(_) | None => None,
    };
    chosen.into_iter().chain(listed).collect()
}

fn settings(values: &Map<String, Value>) -> ScopeSet {
    debug_assert!(!HARMLESS_SETTINGS.contains(&SessionConfig::MODE));
    match values.keys().all(|name| HARMLESS_SETTINGS.contains(&name.as_str())) {
        true => ScopeSet::NONE,
        false => ScopeSet::NONE.with(Scope::Approve),
    }
}

/// The params of a request; `None` if they cannot be read. A list gives members by their position, which differs between types.
fn read<T: Default + serde::de::DeserializeOwned>(params: Option<&RawValue>) -> Option<T> {
    let Some(params) = params else { return Some(T::default()) };
    let is_object = params.get().trim_start().starts_with('{');
    serde_json::from_str(params.get()).ok().filter(|_| is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    const READ: ScopeSet = ScopeSet::NONE.with(Scope::Read);
    const APPROVE: ScopeSet = ScopeSet::NONE.with(Scope::Approve);

    #[test]
    fn a_connection_that_subscribes_at_once_reads() {
        for (text, expected) in [
            (r#"{"clientId":"a"}"#, ScopeSet::NONE),
            (r#"{"initialSubscriptions":[]}"#, ScopeSet::NONE),
            (r#"{"initialSubscriptions":["agenthost:root"]}"#, READ),
            (r#"{"subscriptions":[{"channel":"ahp-root://"}]}"#, READ),
            (r#"{"subscriptions":"ahp-root://"}"#, READ),
            (r#"{"initialSubscriptions":["ahp-root://","ahp-terminal:/t"]}"#, READ.with(Scope::Terminal)),
            (r#"{"subscriptions":[{"channel":"ahp-terminal:/t","lastSeenServerSeq":0}]}"#, READ.with(Scope::Terminal)),
        ] {
            assert_eq!(connect(Some(&raw(text))), expected, "{text}");
        }
        assert_eq!(connect(None), ScopeSet::NONE);
    }

    #[test]
    fn a_setting_that_may_end_questions_needs_approve() {
        let action = |text: &str| ahp_action(&ahp::Action::parse(text).unwrap());
        let changed = |config: &str| action(&format!(r#"{{"type":"session/configChanged","config":{config}}}"#));
        assert_eq!(changed(r#"{"model":"m","effort":"high"}"#), ScopeSet::NONE);
        assert_eq!(changed(r#"{"mode":"bypassPermissions"}"#), APPROVE);
        assert_eq!(changed(r#"{"model":"m","approval_policy":"never"}"#), APPROVE);
        assert_eq!(action(r#"{"type":"session/configChanged","config":{},"replace":true}"#), APPROVE);
        let create = |text: &str| ahp_method(ahp::Method::CreateSession, Some(&raw(text)));
        assert_eq!(create(r#"{"channel":"a:/b","config":{"mode":"yolo"}}"#), APPROVE);
        assert_eq!(create(r#"{"channel":"a:/b","config":{"model":"m"}}"#), ScopeSet::NONE);
        assert_eq!(create(r#"{"channel":"a:/b"}"#), ScopeSet::NONE);
    }

    #[test]
    fn the_output_of_a_terminal_needs_the_scope_of_terminals() {
        let subscribe = |text: &str| ahp_method(ahp::Method::Subscribe, Some(&raw(text)));
        let terminal = ScopeSet::NONE.with(Scope::Terminal);
        assert_eq!(subscribe(r#"{"channel":"ahp-terminal:/t"}"#), terminal);
        assert_eq!((subscribe("[]"), subscribe(r#"{"channel":1}"#)), (terminal, terminal));
        assert_eq!(subscribe(r#"{"channel":"ahp-root://"}"#), ScopeSet::NONE);
        let folders =
            named_folders("createTerminal", Some(&raw(r#"{"channel":"ahp-terminal:/t","cwd":"file:///etc"}"#)));
        assert_eq!(folders, ["file:///etc"]);
    }

    #[test]
    fn asking_to_change_a_file_needs_prompt_and_asking_to_read_it_does_not() {
        let request = |text: &str| ahp_method(ahp::Method::ResourceRequest, Some(&raw(text)));
        let prompt = ScopeSet::NONE.with(Scope::Prompt);
        assert_eq!(request(r#"{"uri":"file:///w","read":true}"#), ScopeSet::NONE);
        assert_eq!(request(r#"{"uri":"file:///w","write":false}"#), ScopeSet::NONE);
        assert_eq!(request(r#"{"uri":"file:///w","write":true}"#), prompt);
        assert_eq!((request(r#"{"write":1}"#), request("[]")), (prompt, prompt));
    }

    #[test]
    fn params_that_cannot_be_read_here_need_all_that_they_could_need() {
        let create = |text: &str| ahp_method(ahp::Method::CreateSession, Some(&raw(text)));
        for text in [
            r#"["a:/b",null,null,null,{"mode":"yolo"}]"#,
            r#"[null]"#,
            r#"{"config":1}"#,
            r#"{"config":{},"config":{}}"#,
        ] {
            assert_eq!(create(text), APPROVE, "{text}");
        }
        assert_eq!(
            connect(Some(&raw(r#"{"subscriptions":["a:/b"],"initialSubscriptions":1,"initialSubscriptions":1}"#))),
            READ.with(Scope::Terminal)
        );
        let permissions = |text: &str| x_grove_method(x_grove::Method::Permissions, Some(&raw(text)));
        assert_eq!((permissions(r#"["a:/b",true]"#), permissions(r#"{"revoke":"yes"}"#)), (APPROVE, APPROVE));
        let folders = |text: &str| named_folders("createSession", Some(&raw(text)));
        assert_eq!(folders(r#"{"workingDirectories":["file:///"],"folder":1}"#), ["file:///"]);
        for text in [r#"["a:/b","file:///etc"]"#, r#"{"folder":"a","folder":"b"}"#] {
            assert_eq!(folders(text), [ANY_FOLDER], "{text}");
        }
        assert_eq!(folders(r#"{"channel":"a:/b"}"#), [""; 0]);
    }

    #[test]
    fn a_rule_for_other_sessions_needs_admin_and_one_for_this_session_does_not() {
        let method = x_grove::Method::Policy(PolicyMethod::Allow);
        let scopes = |text: &str| x_grove_method(method, Some(&raw(text)));
        let admin = ScopeSet::NONE.with(Scope::Admin);
        let params = |target: &str| format!(r#"{{"channel":"a:/b","request":"r","rule":"x","target":{target}}}"#);
        assert_eq!(scopes(&params(r#""session""#)), ScopeSet::NONE);
        for target in [r#""repository""#, r#""everywhere""#, r#""other""#, "null"] {
            assert_eq!(scopes(&params(target)), admin, "{target}");
        }
        assert_eq!(scopes(r#"["a:/b","r","session","x"]"#), admin);
    }

    #[test]
    fn browsing_names_the_chosen_folder_and_the_one_that_is_listed() {
        let folders = |text: &str| named_folders("x-grove/sessions/browse", Some(&raw(text)));
        assert_eq!(folders(r#"{"query":"pro"}"#), [""; 0], "below the default folder");
        assert_eq!(folders(r#"{"query":"projects/ap"}"#), [""; 0]);
        assert_eq!(folders(r#"{"query":"/e"}"#), ["file:///"]);
        assert_eq!(folders(r#"{"query":"/srv/a b/x"}"#), ["file:///srv/a%20b"]);
        assert_eq!(folders(r#"{"query":"../../etc/"}"#), [ANY_FOLDER]);
        assert_eq!(folders(r#"{"chosen":"file:///srv","query":"/etc/"}"#), ["file:///srv", "file:///etc"]);
        assert_eq!(folders(r#"["a"]"#), [ANY_FOLDER]);
    }

    #[test]
    fn revoking_permissions_needs_approve_and_listing_them_does_not() {
        let scopes = |text: &str| x_grove_method(x_grove::Method::Permissions, Some(&raw(text)));
        assert_eq!(scopes(r#"{"channel":"a:/b","revoke":true}"#), APPROVE);
        assert_eq!(scopes(r#"{"channel":"a:/b"}"#), ScopeSet::NONE);
    }
}
