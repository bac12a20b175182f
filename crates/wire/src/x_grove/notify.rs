//! Notifications: which devices the host tells when an agent needs a person, and the key with which it signs messages to them.
//!
//! A subscription belongs to the token that made it, and ends with it. No method names a `channel`. Each needs the scope
//! `read`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyMethod {
    Key,
    Subscribe,
    Unsubscribe,
    List,
    Test,
}

impl NotifyMethod {
    pub const fn as_str(self) -> &'static str {
        match self {
            NotifyMethod::Key => "x-grove/notify/key",
            NotifyMethod::Subscribe => "x-grove/notify/subscribe",
            NotifyMethod::Unsubscribe => "x-grove/notify/unsubscribe",
            NotifyMethod::List => "x-grove/notify/list",
            NotifyMethod::Test => "x-grove/notify/test",
        }
    }
}

/// A request with its params.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotifyCall {
    Key,
    Subscribe(Box<SubscribeDeviceParams>),
    Unsubscribe(UnsubscribeDeviceParams),
    List,
    Test(TestNotificationParams),
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum NotifyOutcome {
    Key(NotifyKeyResult),
    Subscribed(SubscribeDeviceResult),
    Unsubscribed(UnsubscribeDeviceResult),
    Devices(DevicesResult),
    Tested(TestNotificationResult),
}

/// The public half of the host's VAPID key (RFC 8292), which a browser asks for when it subscribes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NotifyKeyResult {
    /// An uncompressed point of P-256, in base64url without padding.
    pub key: String,
    /// The details that a message may contain: `none`, `title` or `text`.
    pub detail: String,
}

/// A browser's subscription, as `PushSubscription.toJSON()` gives it, and the wishes of its user.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubscribeDeviceParams {
    /// The address of the push service for this device. Its holders can send to the device, so it is secret.
    pub endpoint: String,
    pub keys: SubscriptionKeyTexts,
    /// The name of the device, for lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `waiting`, `finished` and `failed`; absent means `waiting` and `failed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// `22:00-07:00` or `22:00-07:00 Europe/Berlin`; absent means the host's quiet hours, an empty text none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<String>,
    /// The language of the device, as a tag such as `de`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
}

/// The keys of a device, in base64url.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscriptionKeyTexts {
    /// An uncompressed point of P-256.
    pub p256dh: String,
    /// 16 random bytes.
    pub auth: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubscribeDeviceResult {
    pub id: String,
}

/// Names a device by its id, or by its endpoint if it removes itself.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnsubscribeDeviceParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsubscribeDeviceResult {
    pub removed: bool,
}

/// The devices of the asking token; those of all tokens for a holder of `admin`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicesResult {
    pub devices: Vec<DeviceRow>,
}

/// A device without its keys and without its endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceRow {
    pub id: String,
    pub name: String,
    /// The name of the token that it belongs to.
    pub token: String,
    /// The machine of its push service.
    pub service: String,
    pub events: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quiet: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Milliseconds since 1970.
    pub created_at: u64,
}

/// Names the device that gets a test message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestNotificationParams {
    pub id: String,
}

/// The outcome of one attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestNotificationResult {
    pub delivered: bool,
    /// The reason why it was not delivered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

// Endpoint and keys are for the host alone, and for no log.
impl fmt::Debug for SubscribeDeviceParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SubscribeDeviceParams").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for SubscriptionKeyTexts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SubscriptionKeyTexts(…)")
    }
}

impl fmt::Debug for UnsubscribeDeviceParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnsubscribeDeviceParams").field("id", &self.id).finish_non_exhaustive()
    }
}
