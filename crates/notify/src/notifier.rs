//! The service: it listens to the host, follows the plan, and answers the requests of clients.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use grove_core::{RefusalKind, SessionId};
use grove_host::notifications::{NotificationService, NotifyCaller, NotifyRefusal};
use grove_host::sequencer::{ListenScope, PublishedState, SequencedEvent};
use grove_host::{Env, Host, WeakHost};
use grove_metrics::NotificationLabel;
use grove_wire::x_grove::notify::{
    DevicesResult, NotifyCall, NotifyKeyResult, NotifyOutcome, SubscribeDeviceResult, TestNotificationResult,
    UnsubscribeDeviceResult,
};
use grove_wire::x_grove::presence::AttachedKind;
use tokio::sync::mpsc::Receiver;

use crate::delivery::{Courier, DeliveryOutcome, MakePost, OutgoingMessage};
use crate::happenings;
use crate::http::Transport;
use crate::notice::{Detail, KindSet, Notice, TargetId, tag};
use crate::planner::{Attendance, NoticeTarget, Planner, Step};
use crate::push::devices::{Device, DeviceQuiet, Devices};
use crate::push::message::{self, PushContent};
use crate::push::vapid::VapidKey;
use crate::quiet::QuietHours;
use crate::webhook::{Webhook, WebhookBody};
use crate::{NotifyFile, NotifyStorage};

/// The events that may wait for the plan; with more, the open requests are looked at again.
pub const MAX_EVENTS: usize = 1_024;
/// The longest sleep until the plan is looked at again: the clock may be set.
const MAX_SLEEP: Duration = Duration::from_secs(60);
/// The attached clients of a session that are looked at for a person.
const MAX_LOOKED_AT: usize = 64;
/// The tag of test messages.
const TEST_TAG: &str = "test";

/// The owner's settings.
#[derive(Clone, Debug)]
pub struct NotifyConfig {
    pub webhook: Option<Webhook>,
    /// The events of the webhook.
    pub events: KindSet,
    /// The quiet hours of the webhook, and of devices that have none of their own.
    pub quiet: Option<QuietHours>,
    pub detail: Detail,
    /// The address, `mailto:` or `https:`, at which a push service finds the owner of the host.
    pub contact: String,
}

/// The service. Clones share it.
#[derive(Clone)]
pub struct Notifier(Arc<NotifierInner>);

struct NotifierInner {
    env: Env,
    host: WeakHost,
    config: NotifyConfig,
    storage: Arc<dyn NotifyStorage>,
    devices: Devices,
    courier: Arc<Courier>,
    key: OnceLock<Arc<VapidKey>>,
    /// Held while the key is made, so that there is one.
    making_key: Mutex<()>,
}

impl Notifier {
    pub fn new(
        host: &Host,
        config: NotifyConfig,
        storage: Arc<dyn NotifyStorage>,
        devices: Devices,
        transport: Arc<dyn Transport>,
    ) -> Self {
        let env = host.env().clone();
        let courier = Courier::new(env.clone(), transport);
        Self(Arc::new(NotifierInner {
            env,
            host: host.downgrade(),
            config,
            storage,
            devices,
            courier,
            key: OnceLock::new(),
            making_key: Mutex::default(),
        }))
    }

    /// Follows the plan until the host ends.
    pub async fn run(self) {
        let mut planner = Planner::default();
        let mut is_first = true;
        while let Some(host) = self.0.host.upgrade() {
            // The requests that wait when the host starts were told by the one before it; later, events were missed.
            let (now, started_at) = (self.0.env.clock.now(), host.started_at());
            let look = move |state: &PublishedState| match is_first {
                true => happenings::cut_off(state, started_at),
                false => happenings::waiting(state, now),
            };
            let listening = host.sequencer().listen(ListenScope::Attention, MAX_EVENTS, look).await;
            let Ok((happenings, events)) = listening else { return };
            for happening in happenings {
                planner.note(happening, now.0, false);
            }
            is_first = false;
            // A strong reference would keep the host alive.
            drop(host);
            self.follow(&mut planner, events).await;
        }
    }

    /// Follows the plan until the sequencer drops this listener, which was too slow, or ends.
    async fn follow(&self, planner: &mut Planner, mut events: Receiver<Arc<SequencedEvent>>) {
        loop {
            let now = self.0.env.clock.now().0;
            let wait = planner.next().map_or(MAX_SLEEP, |next| Duration::from_millis(next.saturating_sub(now)));
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => self.note(planner, &event),
                    None => return,
                },
                () = self.0.env.clock.sleep(wait.min(MAX_SLEEP)) => {}
            }
            self.carry_out(planner);
        }
    }

    fn note(&self, planner: &mut Planner, event: &SequencedEvent) {
        let Some(host) = self.0.host.upgrade() else { return };
        let (change, at) = (&event.event.change, event.event.at);
        let happening = host.sequencer().read(|state| happenings::of_event(change, at, state));
        if let Some(happening) = happening {
            let is_attended = change.session().is_some_and(|session| is_attended(&host, session));
            planner.note(happening, self.0.env.clock.now().0, is_attended);
        }
    }

    fn carry_out(&self, planner: &mut Planner) {
        let now = self.0.env.clock.now().0;
        if planner.next().is_none_or(|next| next > now) {
            return;
        }
        let Some(host) = self.0.host.upgrade() else { return };
        let devices = self.0.devices.told();
        let look = |session: &SessionId| Attendance {
            is_attended: is_attended(&host, session),
            is_read: host.sequencer().read(|state| happenings::is_read(state, session)),
        };
        for step in planner.due(now, &self.targets(&devices), look) {
            match step {
                Step::Tell(TargetId::Webhook, notice) => self.tell_webhook(&notice),
                Step::Tell(TargetId::Device(id), notice) => {
                    let language =
                        devices.iter().find(|device| device.id == id).and_then(|found| found.language.clone());
                    let content = PushContent::show(&notice.limited_to(self.0.config.detail), language);
                    self.tell_device(&devices, &id, notice.tag(), content);
                }
                // A webhook is told what happened, not what to show.
                Step::Close(TargetId::Webhook, ..) => {}
                Step::Close(TargetId::Device(id), session, kind) => {
                    let tag = tag(&session, kind);
                    let takes = devices.iter().any(|device| device.id == id && message::takes_silent_messages(device));
                    if takes {
                        self.tell_device(&devices, &id, tag.clone(), PushContent::Close { tag });
                    }
                }
            }
        }
    }

    fn targets(&self, devices: &[Device]) -> Vec<NoticeTarget> {
        let config = &self.0.config;
        let device = |device: &Device| NoticeTarget {
            id: TargetId::Device(device.id.clone()),
            events: device.events,
            quiet: match &device.quiet {
                DeviceQuiet::OfHost => config.quiet.clone(),
                DeviceQuiet::Never => None,
                DeviceQuiet::Own(quiet) => Some(quiet.clone()),
            },
        };
        let webhook = config.webhook.iter().map(|_| NoticeTarget {
            id: TargetId::Webhook,
            events: config.events,
            quiet: config.quiet.clone(),
        });
        webhook.chain(devices.iter().map(device)).collect()
    }

    fn tell_webhook(&self, notice: &Notice) {
        let Some(webhook) = self.0.config.webhook.clone() else { return };
        let body = WebhookBody::of(notice.limited_to(self.0.config.detail), self.0.env.random.as_ref());
        let clock = self.0.env.clock.clone();
        let make: MakePost = Box::new(move || webhook.post(&body, clock.now().0));
        self.0.courier.send(OutgoingMessage { target: TargetId::Webhook, tag: notice.tag(), make }, |_| ());
    }

    fn tell_device(&self, devices: &[Device], id: &str, tag: String, content: PushContent) {
        let Some(device) = devices.iter().find(|device| device.id == id) else { return };
        let make = match self.make_push(device.clone(), content) {
            Ok(make) => make,
            Err(refusal) => return tracing::warn!(%refusal, "a notification cannot be made"),
        };
        let (notifier, id) = (self.clone(), id.to_owned());
        let target = TargetId::Device(id.clone());
        self.0.courier.send(OutgoingMessage { target, tag, make }, move |outcome| {
            if outcome == DeliveryOutcome::Gone {
                notifier.remove_gone(id);
            }
        });
    }

    /// Makes the requests that carry a message to a device. A message to a device whose token has ended is not made.
    fn make_push(&self, device: Device, content: PushContent) -> Result<MakePost, NotifyRefusal> {
        let (key, notifier) = (self.key()?, self.clone());
        Ok(Box::new(move || {
            let inner = &notifier.0;
            if !inner.devices.told().iter().any(|told| told.id == device.id) {
                return Err("the device was removed, or its token has ended".to_owned());
            }
            let now = inner.env.clock.now().0;
            message::post(&content, &device, &key, &inner.config.contact, inner.env.random.as_ref(), now)
        }))
    }

    fn remove_gone(&self, id: String) {
        tracing::info!(device = %id, "a device has ended its subscription and is removed");
        let notifier = self.clone();
        let remove = move || {
            if let Err(refusal) = notifier.0.devices.remove_gone(&id) {
                tracing::warn!(%refusal, "a device that is gone cannot be removed");
            }
        };
        self.0.env.spawn.spawn_blocking(Box::new(remove));
    }

    /// The key of the host, which is made and stored when it is first needed. It blocks then.
    fn key(&self) -> Result<Arc<VapidKey>, NotifyRefusal> {
        if let Some(key) = self.0.key.get() {
            return Ok(key.clone());
        }
        let _making = self.0.making_key.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: &dyn fmt::Display| NotifyRefusal::new(RefusalKind::Failed, error.to_string());
        let key = match self.0.storage.load(NotifyFile::Key).map_err(|error| failed(&error))? {
            Some(text) => VapidKey::read(&text).map_err(|error| failed(&error))?,
            None => {
                let key = VapidKey::generate().map_err(|error| failed(&error))?;
                self.0.storage.store(NotifyFile::Key, &key.stored()).map_err(|error| failed(&error))?;
                key
            }
        };
        Ok(self.0.key.get_or_init(|| Arc::new(key)).clone())
    }

    /// Runs work that blocks.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, NotifyRefusal> + Send + 'static,
    ) -> Result<T, NotifyRefusal> {
        let notifier = self.clone();
        let done = self.0.env.spawn.run_blocking(move || work(&notifier)).await;
        done.unwrap_or_else(|error| Err(NotifyRefusal::new(RefusalKind::Failed, error.to_string())))
    }

    /// Sends a test message, and waits for the answer of the push service.
    async fn test(&self, caller: &NotifyCaller, id: String) -> Result<TestNotificationResult, NotifyRefusal> {
        let unknown =
            || NotifyRefusal::new(RefusalKind::NotFound, "there is no such device: set up notifications again");
        let device = self.0.devices.find(caller, &id).ok_or_else(unknown)?;
        let content = PushContent::Test { tag: TEST_TAG.to_owned(), language: device.language.clone() };
        let make = self.blocking(move |notifier| notifier.make_push(device, content)).await?;
        let outcome = self.0.courier.attempt_once(&make).await;
        let error = match outcome {
            DeliveryOutcome::Delivered => None,
            DeliveryOutcome::Gone => {
                self.remove_gone(id);
                Some("the push service does not know the device any more: set up notifications again".to_owned())
            }
            DeliveryOutcome::Failed(reason) => Some(reason),
            DeliveryOutcome::Replaced => Some("another message has replaced it".to_owned()),
        };
        self.0.env.metrics.notifications.of(NotificationLabel::Tested).increment();
        Ok(TestNotificationResult { delivered: error.is_none(), error })
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier").field("devices", &self.0.devices).finish_non_exhaustive()
    }
}

#[async_trait]
impl NotificationService for Notifier {
    async fn call(&self, caller: NotifyCaller, call: NotifyCall) -> Result<NotifyOutcome, NotifyRefusal> {
        let now = self.0.env.clock.now().0;
        match call {
            NotifyCall::Key => {
                let key = self.blocking(|notifier| Ok(notifier.key()?.public())).await?;
                let detail = self.0.config.detail.as_str().to_owned();
                Ok(NotifyOutcome::Key(NotifyKeyResult { key, detail }))
            }
            NotifyCall::Subscribe(params) => {
                let id = self.blocking(move |notifier| notifier.0.devices.add(&caller, *params, now)).await?;
                Ok(NotifyOutcome::Subscribed(SubscribeDeviceResult { id }))
            }
            NotifyCall::Unsubscribe(params) => {
                let removed = self.blocking(move |notifier| notifier.0.devices.remove(&caller, &params)).await?;
                Ok(NotifyOutcome::Unsubscribed(UnsubscribeDeviceResult { removed }))
            }
            NotifyCall::List => Ok(NotifyOutcome::Devices(DevicesResult { devices: self.0.devices.rows(&caller) })),
            NotifyCall::Test(params) => self.test(&caller, params.id).await.map(NotifyOutcome::Tested),
        }
    }
}

/// Says whether a person has a session open.
fn is_attended(host: &Host, session: &SessionId) -> bool {
    let attached = host.presence().list(session);
    attached.clients.iter().take(MAX_LOOKED_AT).any(|client| client.kind == AttachedKind::Client)
}
