//! Events with their sequence number, encoded at most once per dialect.

use std::sync::{Arc, OnceLock};

use grove_core::*;
use grove_storage::ActionOrigin;
use grove_storage::session_file::SessionNames;
use grove_wire::ahp::uri;
use grove_wire::registry::Registry;
use grove_wire::{ahp, v1};

use crate::subscriber::Dialect;

/// The names of a session and its chats in the protocols.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) uri: SessionUri,
    pub(crate) ahp: uri::SessionUris,
}

impl Names {
    pub(crate) fn of(session: &Session) -> Self {
        Self { uri: session.uri.clone(), ahp: uri::SessionUris::of(session) }
    }

    /// The names of a session that was recovered.
    pub(super) fn recovered(id: &SessionId, names: &SessionNames) -> Self {
        let mut ahp = uri::SessionUris::new(&names.agent, id);
        for (chat, uri) in &names.chats {
            ahp.add(chat, uri.as_deref());
        }
        Self { uri: names.uri.clone(), ahp }
    }

    /// The same names with another chat.
    pub(crate) fn with(&self, row: &ChatRow) -> Self {
        let mut ahp = self.ahp.clone();
        ahp.add(&row.chat, row.uri.as_deref());
        Self { uri: self.uri.clone(), ahp }
    }
}

/// The resources that clients subscribe to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Root,
    Session(SessionId),
    Chat(SessionId, ChatId),
}

impl Resource {
    /// The session that it belongs to.
    pub(super) fn session(&self) -> Option<&SessionId> {
        match self {
            Resource::Root => None,
            Resource::Session(session) | Resource::Chat(session, _) => Some(session),
        }
    }
}

/// A numbered event.
#[derive(Debug)]
pub struct SequencedEvent {
    pub seq: u64,
    pub event: Event,
    pub origin: Option<ActionOrigin>,
    /// The names of the event's session.
    names: Option<Arc<Names>>,
    v1: OnceLock<Option<EncodedEvent<v1::ActionType>>>,
    /// One for each spelling.
    ahp: [OnceLock<Option<EncodedEvent<&'static str>>>; uri::Spelling::COUNT],
}

/// An event as an action of a dialect.
#[derive(Clone, Debug)]
struct EncodedEvent<K> {
    kind: K,
    frame: Arc<str>,
}

impl SequencedEvent {
    pub(crate) fn new(seq: u64, event: Event, origin: Option<ActionOrigin>, names: Option<Arc<Names>>) -> Self {
        Self { seq, event, origin, names, v1: OnceLock::new(), ahp: Default::default() }
    }

    pub(crate) fn resource(&self) -> Resource {
        match &self.event.change {
            Change::Root(_) => Resource::Root,
            Change::Session(session, _) => Resource::Session(session.clone()),
            Change::Chat(session, chat, _) => Resource::Chat(session.clone(), chat.clone()),
        }
    }

    /// The frame of this event in a dialect, if the dialect and the client's version have one.
    pub fn frame(&self, dialect: Dialect, registry: &Registry) -> Option<Arc<str>> {
        match dialect {
            Dialect::V1 { version } => {
                let encoded = self.v1()?;
                registry.knows_action(encoded.kind, version).then(|| encoded.frame.clone())
            }
            Dialect::Ahp { version, spelling } => {
                let slot = self.ahp.get(spelling.place())?;
                let encoded = slot.get_or_init(|| self.encode_ahp(spelling)).as_ref()?;
                ahp::version::knows(version, encoded.kind).then(|| encoded.frame.clone())
            }
        }
    }

    /// The bytes of this event in a replay: itself, and its encoded frames.
    ///
    /// At least one frame is counted, since a reconnecting client will need one.
    pub(crate) fn weight(&self) -> usize {
        // The approximate size of a delta's frame beside the text.
        const DELTA_FRAME: usize = 200;
        let v1 = self.v1.get().and_then(|encoded| encoded.as_ref()).map(|encoded| encoded.frame.len());
        let ahp = self.ahp.iter().filter_map(|slot| slot.get()?.as_ref());
        let frames: usize = v1.into_iter().chain(ahp.map(|encoded| encoded.frame.len())).sum();
        let own = match self.event.change.delta() {
            Some(text) => text.len(),
            // Other events are rare enough to be encoded only for their length.
            None => written_length(&self.event),
        };
        size_of::<Self>() + own + if frames == 0 { own + DELTA_FRAME } else { frames }
    }

    fn v1(&self) -> Option<&EncodedEvent<v1::ActionType>> {
        self.v1.get_or_init(|| self.encode_v1(&self.event)).as_ref()
    }

    /// This delta with more text and a later number: the result of merging consecutive deltas.
    pub(crate) fn merged(&self, text: String, seq: u64) -> Arc<Self> {
        let event = Event { at: self.event.at, change: self.event.change.clone().with_delta(text) };
        Arc::new(Self::new(seq, event, None, self.names.clone()))
    }

    fn encode_ahp(&self, spelling: uri::Spelling) -> Option<EncodedEvent<&'static str>> {
        let names = self.names.as_deref().map(|names| &names.ahp);
        let origin = self.origin.as_ref();
        let (kind, frame) = ahp::encode::frame(&self.event, self.seq, origin.map(ahp_echo), names, spelling)?;
        Some(EncodedEvent { kind, frame: frame.into() })
    }

    fn encode_v1(&self, event: &Event) -> Option<EncodedEvent<v1::ActionType>> {
        let uri = self.names.as_ref().map_or("", |names| names.uri.as_str());
        let action = v1::encode::action(event, uri)?;
        let kind = action.kind();
        let envelope = v1::ActionEnvelope {
            action,
            server_seq: self.seq,
            origin: self.origin.as_ref().map(v1_origin),
            rejection_reason: None,
        };
        match v1::encode::action_frame(&envelope) {
            Ok(frame) => Some(EncodedEvent { kind, frame: frame.into() }),
            Err(error) => {
                tracing::error!(%error, kind = kind.as_str(), "an action could not be written as JSON");
                None
            }
        }
    }
}

/// The length of an event as JSON.
fn written_length(event: &Event) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting never fails.
    serde_json::to_writer(&mut count, event).ok();
    count.0
}

/// The origin of an event, as version 1 echoes it.
pub fn v1_origin(origin: &ActionOrigin) -> v1::Origin {
    v1::Origin { client_id: origin.client.to_string(), client_seq: origin.client_seq }
}

/// The origin of an event, as AHP echoes it.
pub fn ahp_echo(origin: &ActionOrigin) -> ahp::encode::Echo<'_> {
    ahp::encode::Echo { client: &origin.client, client_seq: origin.client_seq, extra: origin.extra.as_ref() }
}
