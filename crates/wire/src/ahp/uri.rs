//! The names of channels. There are two forms, and clients use either.
//!
//! | | as clients compute it | as the protocol has it |
//! |---|---|---|
//! | session | `<agent>:/<id>` | `ahp-session:/<id>` |
//! | main chat | `ahp-chat://default/<base64url of the session's URI>` | `ahp-chat:/<session id>` |
//! | another chat | as its creator named it | `ahp-chat:/<chat id>` |
//!
//! The first form is published; a client that uses the second gets it in return. A client may also compute a chat's
//! name from its session's plain one; then it gets that form for the chat.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use grove_core::{AgentId, ChatId, ChatOrigin, Session, SessionId, SessionUri};

use super::ROOT;

/// A form of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// With the agent's name, as clients compute URIs.
    Computed,
    /// With the protocol's own schemes.
    Plain,
    /// A plain session, and a chat computed from it.
    Derived,
}

impl Spelling {
    /// The number of forms, for tables indexed by form.
    pub const COUNT: usize = 3;

    pub const fn place(self) -> usize {
        self as usize
    }
}

const SESSION: &str = "ahp-session";
const CHAT: &str = "ahp-chat";
const TERMINAL: &str = "ahp-terminal:/";
const MAIN: &str = "default";

/// A channel, as a client named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChannelName {
    Root,
    Session(SessionName),
    Chat(ChatName),
    /// A watch, by its id.
    ResourceWatch(String),
    /// A terminal, by its id.
    Terminal(String),
}

/// A session's name: an id, and a scheme that must match it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    pub scheme: String,
    pub id: SessionId,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatName {
    Main(SessionName),
    /// A chat of the named session.
    Of(SessionName, ChatId),
    /// A main chat by its session's id, or another by its own.
    ById(ChatId),
}

impl SessionName {
    fn parse(uri: &str) -> Option<Self> {
        let uri = SessionUri::from(uri);
        let scheme = uri.scheme()?;
        // The protocol reserves these for its own channels.
        if scheme.starts_with("ahp-") && scheme != SESSION {
            return None;
        }
        Some(Self { scheme: scheme.to_owned(), id: uri.id()? })
    }

    pub fn spelling(&self) -> Spelling {
        if self.scheme == SESSION { Spelling::Plain } else { Spelling::Computed }
    }

    /// True if this names the session: by the protocol's scheme, its agent's, or the one it was created with.
    pub fn fits(&self, session: &Session) -> bool {
        self.id == session.id
            && (self.scheme == SESSION
                || self.scheme == session.agent.as_str()
                || Some(self.scheme.as_str()) == session.uri.scheme())
    }
}

impl ChannelName {
    /// Reads a URI. `None` if it names no channel.
    pub fn parse(uri: &str) -> Option<Self> {
        if uri == ROOT {
            return Some(ChannelName::Root);
        }
        if let Some(id) = uri.strip_prefix("ahp-resource-watch:/") {
            return Some(ChannelName::ResourceWatch(id.to_owned()));
        }
        if let Some(id) = uri.strip_prefix(TERMINAL) {
            return chat_id(id).map(|id| ChannelName::Terminal(id.to_string()));
        }
        match uri.strip_prefix(CHAT).and_then(|rest| rest.strip_prefix(":/")) {
            Some(name) => ChatName::parse(name).map(ChannelName::Chat),
            None => SessionName::parse(uri).map(ChannelName::Session),
        }
    }

    /// The form of this name.
    pub fn spelling(&self) -> Option<Spelling> {
        match self {
            ChannelName::Session(session) => Some(session.spelling()),
            ChannelName::Chat(chat) => Some(chat.spelling()),
            ChannelName::Root | ChannelName::ResourceWatch(_) | ChannelName::Terminal(_) => None,
        }
    }
}

impl ChatName {
    fn parse(name: &str) -> Option<Self> {
        let Some(name) = name.strip_prefix('/') else { return chat_id(name).map(ChatName::ById) };
        let (chat, session) = name.split_once('/')?;
        let session = BASE64_URL_SAFE_NO_PAD.decode(session.trim_end_matches('=')).ok()?;
        let session = SessionName::parse(std::str::from_utf8(&session).ok()?)?;
        match chat {
            MAIN => Some(ChatName::Main(session)),
            chat => Some(ChatName::Of(session, chat_id(chat)?)),
        }
    }

    pub fn spelling(&self) -> Spelling {
        match self {
            ChatName::Main(session) | ChatName::Of(session, _) => match session.spelling() {
                Spelling::Computed => Spelling::Computed,
                Spelling::Plain | Spelling::Derived => Spelling::Derived,
            },
            ChatName::ById(_) => Spelling::Plain,
        }
    }

    /// The id of a chat to be created under this name. The main chat exists already.
    pub fn new_chat(&self) -> Option<&ChatId> {
        match self {
            ChatName::Main(_) => None,
            ChatName::Of(_, chat) | ChatName::ById(chat) => Some(chat).filter(|id| id.as_str() != Session::MAIN_CHAT),
        }
    }
}

/// A chat's or a terminal's id, if it is a valid folder name, like a session's.
fn chat_id(id: &str) -> Option<ChatId> {
    SessionUri::from(format!("{CHAT}:/{id}")).id().map(|id| ChatId::from(id.as_str()))
}

/// The names of a session and its chats, in every form, computed once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionUris {
    computed: String,
    plain: String,
    main: ChatUris,
    others: Vec<(ChatId, ChatUris)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct ChatUris {
    computed: String,
    plain: String,
    derived: String,
}

impl ChatUris {
    fn get(&self, spelling: Spelling) -> &str {
        match spelling {
            Spelling::Computed => &self.computed,
            Spelling::Plain => &self.plain,
            Spelling::Derived => &self.derived,
        }
    }
}

/// A chat's name, computed from its session's.
pub fn computed(chat: &str, session: &str) -> String {
    format!("{CHAT}://{chat}/{}", BASE64_URL_SAFE_NO_PAD.encode(session))
}

impl SessionUris {
    /// The names of a session with only its main chat.
    pub fn new(agent: &AgentId, id: &SessionId) -> Self {
        let (session, plain) = (format!("{agent}:/{id}"), format!("{SESSION}:/{id}"));
        let main = ChatUris {
            computed: computed(MAIN, &session),
            plain: format!("{CHAT}:/{id}"),
            derived: computed(MAIN, &plain),
        };
        Self { computed: session, plain, main, others: Vec::new() }
    }

    pub fn of(session: &Session) -> Self {
        let mut names = Self::new(&session.agent, &session.id);
        for row in &session.catalogue {
            names.add(&row.chat, row.uri.as_deref());
        }
        names
    }

    /// Adds a chat that is not the main one.
    pub fn add(&mut self, chat: &ChatId, uri: Option<&str>) {
        if chat.as_str() == Session::MAIN_CHAT {
            return;
        }
        let names = self.other(chat, uri);
        self.others.retain(|(mine, _)| mine != chat);
        self.others.push((chat.clone(), names));
    }

    fn other(&self, chat: &ChatId, uri: Option<&str>) -> ChatUris {
        let plain = format!("{CHAT}:/{chat}");
        ChatUris {
            computed: uri.map_or_else(|| plain.clone(), ToOwned::to_owned),
            plain,
            derived: computed(chat.as_str(), &self.plain),
        }
    }

    /// The name of the chat that another one was forked from; `None` if it belongs to another session. A removed chat
    /// keeps its name.
    pub fn origin(&self, origin: &ChatOrigin, spelling: Spelling) -> Option<String> {
        if self.plain != format!("{SESSION}:/{}", origin.session) {
            return None;
        }
        Some(match origin.chat.as_str() {
            Session::MAIN_CHAT => self.main.get(spelling).to_owned(),
            _ => self.other(&origin.chat, origin.uri.as_deref()).get(spelling).to_owned(),
        })
    }

    pub fn session(&self, spelling: Spelling) -> &str {
        match spelling {
            Spelling::Computed => &self.computed,
            Spelling::Plain | Spelling::Derived => &self.plain,
        }
    }

    /// True if the session is published under this name.
    pub fn has_session(&self, name: &SessionName) -> bool {
        SessionName::parse(self.session(name.spelling())).as_ref() == Some(name)
    }

    /// True if the chat is published under this name. Other names may refer to it as well.
    pub fn has_chat(&self, chat: &ChatId, name: &ChatName) -> bool {
        ChannelName::parse(&self.chat(chat, name.spelling())) == Some(ChannelName::Chat(name.clone()))
    }

    /// A chat's name. A removed chat has its plain name, which is never sent.
    pub fn chat(&self, chat: &ChatId, spelling: Spelling) -> String {
        match self.others.iter().find(|(mine, _)| mine == chat) {
            Some((_, names)) => names.get(spelling).to_owned(),
            None if chat.as_str() == Session::MAIN_CHAT => self.main.get(spelling).to_owned(),
            None => format!("{CHAT}:/{chat}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> SessionUris {
        let mut names = SessionUris::new(&"scripted".into(), &"s1".into());
        names.add(&"side".into(), Some("ahp-chat://side/c2NyaXB0ZWQ6L3Mx"));
        names
    }

    #[test]
    fn every_name_that_is_given_out_leads_back() {
        for spelling in [Spelling::Computed, Spelling::Plain, Spelling::Derived] {
            let names = names();
            let Some(ChannelName::Session(session)) = ChannelName::parse(names.session(spelling)) else { panic!() };
            assert_eq!(session.id.as_str(), "s1");
            assert!(names.has_session(&session));
            let Some(ChannelName::Chat(main)) = ChannelName::parse(&names.chat(&"main".into(), spelling)) else {
                panic!()
            };
            assert_eq!(main.spelling(), spelling);
            assert!(names.has_chat(&"main".into(), &main));
            match (spelling, main) {
                (Spelling::Computed | Spelling::Derived, ChatName::Main(name)) => assert_eq!(name.id.as_str(), "s1"),
                (Spelling::Plain, ChatName::ById(id)) => assert_eq!(id.as_str(), "s1"),
                (_, other) => panic!("{other:?}"),
            }
            let Some(ChannelName::Chat(side)) = ChannelName::parse(&names.chat(&"side".into(), spelling)) else {
                panic!()
            };
            assert_eq!(side.new_chat().unwrap().as_str(), "side");
            assert!(names.has_chat(&"side".into(), &side));
        }
    }

    #[test]
    fn a_name_that_is_not_given_out_is_none_to_tell_of_it_by() {
        let mut names = names();
        names.add(&"third".into(), Some("ahp-chat:/third"));
        let Some(ChannelName::Session(other)) = ChannelName::parse("other:/s1") else { panic!() };
        assert!(!names.has_session(&other));
        let Some(ChannelName::Chat(other)) = ChannelName::parse("ahp-chat://third/c2NyaXB0ZWQ6L3Mx") else { panic!() };
        assert!(!names.has_chat(&"third".into(), &other));
    }

    #[test]
    fn what_names_nothing_is_nothing() {
        for uri in [
            "",
            "ahp-root",
            "ahp-chat://default/???",
            "ahp-chat:/",
            "ahp-chat:/../x",
            "ahp-chat://a b/eA",
            "ahp-terminal:/",
            "ahp-terminal:/a/b",
            "ahp-terminal://s1",
            "ahp-changeset:/s1",
            "x",
        ] {
            assert_eq!(ChannelName::parse(uri), None, "{uri}");
        }
        assert_eq!(ChannelName::parse("ahp-root://"), Some(ChannelName::Root));
        assert_eq!(ChannelName::parse("ahp-terminal:/t1"), Some(ChannelName::Terminal("t1".into())));
    }
}
