//! The devices that are told, and the file that keeps them.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grove_checks::Check;
use grove_core::{RefusalKind, Scope, ScopeSet};
use grove_host::notifications::{NotifyCaller, NotifyRefusal};
use grove_host::tokens::{TokenLogin, TokenPublicId, TokenRegistry};
use grove_wire::x_grove::notify::{DeviceRow, SubscribeDeviceParams, UnsubscribeDeviceParams};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::encryption::DeviceKeys;
use crate::http::{Reach, TargetUrl};
use crate::notice::{KindSet, NoticeKind};
use crate::quiet::QuietHours;
use crate::{NotifyFile, NotifyStorage};

/// The devices of a host; further ones are refused.
pub const MAX_DEVICES: usize = 64;
/// The devices of a token; further ones are refused.
pub const MAX_TOKEN_DEVICES: usize = 8;
/// The longest name of a device, in characters; the rest is left out.
pub const MAX_DEVICE_NAME: usize = 60;
/// The longest tag of a language, in bytes.
const MAX_LANGUAGE_BYTES: usize = 35;
/// The names of events that a request may have: more than there are.
const MAX_NAMED_EVENTS: usize = 16;
/// The events of a device that names none.
const DEFAULT_EVENTS: KindSet = KindSet::NONE.with(NoticeKind::Waiting).with(NoticeKind::Failed);

/// A device that is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    pub id: String,
    pub owner: DeviceOwner,
    pub endpoint: TargetUrl,
    pub keys: DeviceKeys,
    pub name: String,
    pub events: KindSet,
    pub quiet: DeviceQuiet,
    pub language: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

/// The quiet hours of a device.
#[derive(Clone, Debug, PartialEq)]
pub enum DeviceQuiet {
    /// Those of the host.
    OfHost,
    Never,
    Own(QuietHours),
}

/// The token that a device belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceOwner {
    /// The public id of a named token; none for the host's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<TokenPublicId>,
    pub name: String,
    /// A digest of the secret's verifier: a token with a new secret is another one.
    pub mark: String,
}

/// A device in the file.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredDevice {
    owner: DeviceOwner,
    endpoint: String,
    p256dh: String,
    auth: String,
    name: String,
    events: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quiet: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    created_at: u64,
}

/// The devices of a host.
pub struct Devices {
    storage: Arc<dyn NotifyStorage>,
    tokens: TokenRegistry,
    reach: Reach,
    devices: Mutex<Vec<Device>>,
    /// Held while devices are stored, so that changes happen one after another. `devices` is not held meanwhile.
    changes: Mutex<()>,
}

impl Devices {
    /// Reads the devices. A damaged entry is left out, with a line in the log.
    pub fn open(storage: Arc<dyn NotifyStorage>, tokens: TokenRegistry, reach: Reach) -> io::Result<Self> {
        let stored: Vec<StoredDevice> = match storage.load(NotifyFile::Devices)? {
            Some(text) => serde_json::from_str(&text)?,
            None => Vec::new(),
        };
        let read = |stored: StoredDevice| match stored.read(reach) {
            Ok(device) => Some(device),
            Err(error) => {
                tracing::warn!(name = %stored.name, %error, "a device is not told any more");
                None
            }
        };
        let devices: Vec<Device> = stored.into_iter().filter_map(read).take(MAX_DEVICES).collect();
        Ok(Self { storage, tokens, reach, devices: Mutex::new(devices), changes: Mutex::default() })
    }

    /// The devices whose tokens still exist and may read.
    pub fn told(&self) -> Vec<Device> {
        let mut devices = self.devices().clone();
        if Check::DeviceToken.is_enforced() {
            devices.retain(|device| self.is_valid(&device.owner));
        }
        devices
    }

    /// A device by its id, for its owner or a holder of `admin`.
    pub fn find(&self, caller: &NotifyCaller, id: &str) -> Option<Device> {
        self.told().into_iter().find(|device| device.id == id && may_see(caller, device))
    }

    /// Adds a device for a token, or changes it if its address is known. It writes to the storage, and blocks meanwhile.
    pub fn add(&self, caller: &NotifyCaller, params: SubscribeDeviceParams, now: u64) -> Result<String, NotifyRefusal> {
        let owner = self.owner(caller)?;
        let device = read_device(owner, params, self.reach, now)?;
        let id = device.id.clone();
        self.change(|devices| {
            // The address is known to the device alone: the sender is that device, with another token perhaps.
            devices.retain(|known| known.id != device.id);
            let of_token = devices.iter().filter(|known| known.owner.token == device.owner.token).count();
            if of_token >= MAX_TOKEN_DEVICES || devices.len() >= MAX_DEVICES {
                let words = format!(
                    "a token has at most {MAX_TOKEN_DEVICES} devices and a host {MAX_DEVICES}: remove one in the settings"
                );
                return Err(NotifyRefusal::new(RefusalKind::LimitReached, words));
            }
            devices.push(device);
            Ok(())
        })?;
        Ok(id)
    }

    /// Removes a device; returns false if there is none that the caller may remove. It blocks.
    pub fn remove(&self, caller: &NotifyCaller, params: &UnsubscribeDeviceParams) -> Result<bool, NotifyRefusal> {
        let id = match (&params.id, &params.endpoint) {
            (Some(id), _) => id.clone(),
            (None, Some(endpoint)) => device_id(endpoint),
            (None, None) => return Err(invalid("name the device by `id` or by `endpoint`")),
        };
        let is_named = |device: &Device| device.id == id && (params.endpoint.is_some() || may_see(caller, device));
        if !self.devices().iter().any(is_named) {
            return Ok(false);
        }
        self.change(|devices| {
            devices.retain(|device| !is_named(device));
            Ok(())
        })?;
        Ok(true)
    }

    /// Removes a device that its push service does not know any more. It blocks.
    pub fn remove_gone(&self, id: &str) -> Result<(), NotifyRefusal> {
        self.change(|devices| {
            devices.retain(|device| device.id != id);
            Ok(())
        })
    }

    /// The devices that a caller may see.
    pub fn rows(&self, caller: &NotifyCaller) -> Vec<DeviceRow> {
        let row = |device: Device| DeviceRow {
            id: device.id,
            name: device.name,
            token: device.owner.name,
            service: device.endpoint.host().to_owned(),
            events: device.events.names(),
            quiet: device.quiet.text(),
            language: device.language,
            created_at: device.created_at,
        };
        self.told().into_iter().filter(|device| may_see(caller, device)).map(row).collect()
    }

    /// Changes the devices and stores them, without those of ended tokens. If that fails, nothing has changed.
    fn change(&self, change: impl FnOnce(&mut Vec<Device>) -> Result<(), NotifyRefusal>) -> Result<(), NotifyRefusal> {
        // It guards nothing but the order of changes.
        let _changing = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut devices = self.told();
        change(&mut devices)?;
        let stored: Vec<StoredDevice> = devices.iter().map(StoredDevice::of).collect();
        let failed = |error: io::Error| {
            let words = format!("the devices cannot be stored: {error}; nothing has changed");
            NotifyRefusal::new(RefusalKind::Failed, words)
        };
        let text = serde_json::to_string_pretty(&stored).map_err(|error| failed(error.into()))?;
        self.storage.store(NotifyFile::Devices, &text).map_err(failed)?;
        *self.devices() = devices;
        Ok(())
    }

    fn owner(&self, caller: &NotifyCaller) -> Result<DeviceOwner, NotifyRefusal> {
        let mark = self.mark(caller.token);
        let mark = mark.ok_or_else(|| NotifyRefusal::new(RefusalKind::NotPermitted, "the token has ended"))?;
        // The owner's socket and the host's own token count as one.
        let name = if caller.token.is_some() { caller.name.to_string() } else { "host".to_owned() };
        Ok(DeviceOwner { token: caller.token, name, mark })
    }

    /// Says whether the token of a device still exists, with the same secret, and may read.
    fn is_valid(&self, owner: &DeviceOwner) -> bool {
        self.mark(owner.token).is_some_and(|mark| mark == owner.mark)
    }

    /// A digest of a token that may read; `None` if there is no such token.
    fn mark(&self, token: Option<TokenPublicId>) -> Option<String> {
        let secret = match token {
            None => self.tokens.host_token().current().reveal().to_owned(),
            Some(id) => match self.tokens.login(id)? {
                TokenLogin::Token(verifier, grant) if grant.scopes.contains(Scope::Read) => verifier.reveal(),
                TokenLogin::Token(..) | TokenLogin::Code(_) => return None,
            },
        };
        Some(hex::encode(&Sha256::digest(format!("grove notify 1\n{secret}"))[..16]))
    }

    // Nothing that can panic leaves it half-changed, so a poisoned lock still guards valid data.
    fn devices(&self) -> MutexGuard<'_, Vec<Device>> {
        self.devices.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Devices").field("count", &self.devices().len()).finish_non_exhaustive()
    }
}

impl DeviceQuiet {
    fn read(text: Option<&str>) -> Result<Self, NotifyRefusal> {
        match text {
            None => Ok(Self::OfHost),
            Some("") => Ok(Self::Never),
            Some(text) => text.parse().map(Self::Own).map_err(|error| invalid(&format!("`quiet`: {error}"))),
        }
    }

    fn text(&self) -> Option<String> {
        match self {
            DeviceQuiet::OfHost => None,
            DeviceQuiet::Never => Some(String::new()),
            DeviceQuiet::Own(quiet) => Some(quiet.to_string()),
        }
    }
}

impl StoredDevice {
    fn of(device: &Device) -> Self {
        let (p256dh, auth) = device.keys.texts();
        Self {
            owner: device.owner.clone(),
            endpoint: device.endpoint.as_str().to_owned(),
            p256dh,
            auth,
            name: device.name.clone(),
            events: device.events.names(),
            quiet: device.quiet.text(),
            language: device.language.clone(),
            created_at: device.created_at,
        }
    }

    fn read(&self, reach: Reach) -> Result<Device, NotifyRefusal> {
        Ok(Device {
            id: device_id(&self.endpoint),
            owner: self.owner.clone(),
            endpoint: TargetUrl::read(&self.endpoint, reach).map_err(|error| invalid(&error.to_string()))?,
            keys: DeviceKeys::read(&self.p256dh, &self.auth).map_err(|error| invalid(&error.to_string()))?,
            name: self.name.clone(),
            events: KindSet::read(self.events.iter().map(String::as_str))
                .map_err(|error| invalid(&error.to_string()))?,
            quiet: DeviceQuiet::read(self.quiet.as_deref())?,
            language: self.language.clone(),
            created_at: self.created_at,
        })
    }
}

/// Reads the params of a subscription.
pub(crate) fn read_device(
    owner: DeviceOwner,
    params: SubscribeDeviceParams,
    reach: Reach,
    now: u64,
) -> Result<Device, NotifyRefusal> {
    let SubscribeDeviceParams { endpoint, keys, name, events, quiet, language } = params;
    let target = TargetUrl::read(&endpoint, reach).map_err(|error| invalid(&format!("`endpoint`: {error}")))?;
    let keys = DeviceKeys::read(&keys.p256dh, &keys.auth).map_err(|error| invalid(&error.to_string()))?;
    let events = match events {
        None => DEFAULT_EVENTS,
        Some(names) if names.len() > MAX_NAMED_EVENTS => return Err(invalid("`events` has too many names")),
        Some(names) => {
            KindSet::read(names.iter().map(String::as_str)).map_err(|error| invalid(&format!("`events`: {error}")))?
        }
    };
    let is_tag = |tag: &String| {
        (1..=MAX_LANGUAGE_BYTES).contains(&tag.len())
            && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if language.as_ref().is_some_and(|tag| !is_tag(tag)) {
        return Err(invalid("`language` must be a tag such as `de` or `pt-BR`"));
    }
    let name = name.unwrap_or_default();
    let name: String = name.chars().filter(|letter| !letter.is_control()).take(MAX_DEVICE_NAME).collect();
    let quiet = DeviceQuiet::read(quiet.as_deref())?;
    let id = device_id(&endpoint);
    Ok(Device { id, owner, endpoint: target, keys, name, events, quiet, language, created_at: now })
}

/// The id of a device: a digest of its address, which nobody can be reached by.
fn device_id(endpoint: &str) -> String {
    hex::encode(&Sha256::digest(format!("grove device 1\n{endpoint}"))[..8])
}

fn may_see(caller: &NotifyCaller, device: &Device) -> bool {
    device.owner.token == caller.token || has_admin(caller.scopes)
}

fn has_admin(scopes: ScopeSet) -> bool {
    scopes.contains(Scope::Admin)
}

fn invalid(words: &str) -> NotifyRefusal {
    NotifyRefusal::new(RefusalKind::InvalidParams, words)
}
