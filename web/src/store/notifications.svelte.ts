/** Notifications of this device: whether the browser has them, whether they are on, and the devices that the host tells. */

import { type Activities, activities, type Happening, happenings, settled } from '../state/attention';
import { KINDS, type Kind, notificationOf, tagOf } from '../sw/message';
import { hasWorkers, isCertain, register, registered } from '../sw/registration';
import { deviceName } from '../text/device';
import { language } from '../text/messages/language';
import type { SessionSummary } from '../wire/types';
import type { Host } from './host.svelte';

/** The reason why notifications cannot be turned on here, or `ready`. */
export type Support = 'ready' | 'insecure' | 'install' | 'unsupported' | 'blocked';

/** `push`: also while the page is closed. `page`: while it is open. */
export type Delivery = 'off' | 'push' | 'page';

/** A device that the host tells. */
export interface Device {
  id: string;
  name: string;
  events: string[];
  quiet?: string;
  createdAt: number;
}

/** The wishes of a person for this device, which its browser stores. */
export interface Wishes {
  on: boolean;
  /** The person has turned notifications on, or did not want them: they are not asked again. */
  asked: boolean;
  events: Kind[];
  quiet: { from: string; to: string } | undefined;
}

const STORED = 'grove-notifications';
const DEFAULTS: Wishes = { on: false, asked: false, events: ['waiting', 'failed'], quiet: undefined };
const TIME = /^(?:[01]\d|2[0-3]):[0-5]\d$/;

export class Notifications {
  wishes = $state.raw<Wishes>(readWishes(stored()));
  support = $state<Support>(supportNow());
  delivery = $state<Delivery>('off');
  devices = $state.raw<readonly Device[]>([]);
  /** The host tells devices; undefined until it has said so. */
  served = $state<boolean | undefined>();
  /** What a message contains: `none`, `title` or `text`. */
  detail = $state('title');
  /** The id of this device at the host. */
  own = $state<string | undefined>();
  busy = $state(false);
  /** Something for the person to hear of: a turn has finished, or a question waits, for the first time. */
  worth = $state(false);

  #host: Host;
  #before: Activities | undefined;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The card that asks is shown: once, and not before there was something to hear of. */
  get asks(): boolean {
    return this.worth && !this.wishes.asked && this.support === 'ready' && this.served === true;
  }

  /** Follows the connection: after each handshake, the host knows this device as it is now. */
  start(): () => void {
    const connected = (): void => void this.sync().catch(() => {});
    this.#host.onConnected.add(connected);
    const hear = (event: MessageEvent): void => {
      if ((event.data as { type?: unknown } | null)?.type === 'grove-subscription') connected();
    };
    if (hasWorkers()) {
      navigator.serviceWorker.addEventListener('message', hear);
      // The page without its host, and an icon on the home screen.
      if (isCertain()) void register().catch(() => {});
    }
    return () => {
      this.#host.onConnected.delete(connected);
      if (hasWorkers()) navigator.serviceWorker.removeEventListener('message', hear);
    };
  }

  /** Compares this device with what the host and the browser know of it. */
  async sync(): Promise<void> {
    this.support = supportNow();
    await this.#refresh();
    if (!this.wishes.on || this.support !== 'ready') {
      this.delivery = 'off';
      return;
    }
    await this.#subscribe();
  }

  async turnOn(): Promise<void> {
    await this.#busily(async () => {
      this.#keep({ asked: true });
      // The browser asks the person, and only in answer to a click.
      if ((await Notification.requestPermission()) !== 'granted') {
        this.support = supportNow();
        return;
      }
      this.#keep({ on: true });
      await this.#subscribe();
    });
  }

  async turnOff(): Promise<void> {
    await this.#busily(async () => {
      this.#keep({ on: false });
      this.delivery = 'off';
      const subscription = await (await registered())?.pushManager?.getSubscription();
      if (subscription) {
        await this.#request('unsubscribe', { endpoint: subscription.endpoint });
        await subscription.unsubscribe();
      }
      this.own = undefined;
      await this.#refresh();
    });
  }

  dismiss(): void {
    this.#keep({ asked: true });
  }

  /** Changes what this device is told. */
  async choose(wanted: Partial<Pick<Wishes, 'events' | 'quiet'>>): Promise<void> {
    this.#keep(wanted);
    if (this.delivery !== 'off') await this.#busily(() => this.#subscribe());
  }

  /** Sends a test to this device, and returns the reason if that failed. */
  async test(): Promise<string | undefined> {
    if (this.delivery === 'page' || this.own === undefined) {
      await this.#show(notificationOf({ type: 'test', tag: 'test', language }));
      return undefined;
    }
    const result = (await this.#request('test', { id: this.own })) as { delivered: boolean; error?: string };
    return result.delivered ? undefined : (result.error ?? '');
  }

  async remove(id: string): Promise<void> {
    if (id === this.own) return this.turnOff();
    await this.#busily(async () => {
      await this.#request('unsubscribe', { id });
      await this.#refresh();
    });
  }

  /** Takes note of the list of sessions. A hidden page that gets no push shows what has happened. */
  note(list: readonly SessionSummary[]): void {
    const before = this.#before;
    this.#before = activities(list);
    if (!before) return;
    const news = happenings(before, list);
    this.worth ||= news.some(({ kind }) => kind !== 'failed');
    for (const { session, kind } of settled(before, list)) void this.#close(tagOf(session, kind));
    if (this.delivery !== 'page' || !document.hidden || isQuiet(this.wishes.quiet, new Date())) return;
    for (const happening of news)
      if (this.wishes.events.includes(happening.kind)) void this.#show(notificationFor(happening));
  }

  /** Subscribes with the browser and the host. Without a push subscription, the open page shows notifications. */
  async #subscribe(): Promise<void> {
    const registration = await register();
    this.delivery = 'page';
    if (!this.served) return;
    const subscription = await this.#pushSubscription(registration);
    if (!subscription) return;
    const { endpoint, keys } = subscription.toJSON();
    const { quiet, events } = this.wishes;
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const result = (await this.#request('subscribe', {
      endpoint,
      keys: { p256dh: keys?.['p256dh'], auth: keys?.['auth'] },
      name: deviceName(navigator.userAgent),
      events,
      quiet: quiet ? `${quiet.from}-${quiet.to} ${zone}` : undefined,
      language,
    })) as { id: string };
    this.own = result.id;
    this.delivery = 'push';
    await this.#refresh();
  }

  async #pushSubscription(registration: ServiceWorkerRegistration): Promise<PushSubscription | undefined> {
    const { key } = (await this.#request('key', {})) as { key: string };
    const applicationServerKey = bytes(key);
    try {
      const known = await registration.pushManager.getSubscription();
      if (known && sameKey(known.options.applicationServerKey, applicationServerKey)) return known;
      // A subscription for another key is of another host.
      await known?.unsubscribe();
      return await registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey });
    } catch {
      // The browser has no push service, or cannot reach it.
      return undefined;
    }
  }

  async #refresh(): Promise<void> {
    try {
      const { detail } = (await this.#request('key', {})) as { detail: string };
      const { devices } = (await this.#request('list', {})) as { devices: Device[] };
      this.detail = detail;
      this.devices = devices;
      this.served = true;
    } catch {
      this.served = false;
    }
  }

  async #show({ title, options }: ReturnType<typeof notificationOf>): Promise<void> {
    await (await registered())?.showNotification(title, options);
  }

  async #close(tag: string): Promise<void> {
    for (const shown of (await (await registered())?.getNotifications({ tag })) ?? []) shown.close();
  }

  #request(method: string, params: Record<string, unknown>): Promise<unknown> {
    return this.#host.client.requestOwn(`x-grove/notify/${method}`, params);
  }

  #keep(changed: Partial<Wishes>): void {
    this.wishes = { ...this.wishes, ...changed };
    try {
      localStorage.setItem(STORED, JSON.stringify(this.wishes));
    } catch {
      // A browser that stores nothing asks again after a reload.
    }
  }

  async #busily(work: () => Promise<void>): Promise<void> {
    this.busy = true;
    try {
      await work();
    } finally {
      this.busy = false;
    }
  }
}

function notificationFor({ session, kind, title }: Happening): ReturnType<typeof notificationOf> {
  const tag = tagOf(session, kind);
  return notificationOf({ type: 'show', tag, kind, session, title, text: '', at: Date.now(), language });
}

function stored(): string {
  try {
    return localStorage.getItem(STORED) ?? '';
  } catch {
    return '';
  }
}

/** Reads stored wishes. Parts of another shape are as they are at first. */
export function readWishes(json: string): Wishes {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return DEFAULTS;
  }
  if (typeof value !== 'object' || value === null) return DEFAULTS;
  const { on, asked, events, quiet } = value as Record<string, unknown>;
  const { from, to } = (typeof quiet === 'object' && quiet !== null ? quiet : {}) as Record<string, unknown>;
  const isTime = (time: unknown): time is string => typeof time === 'string' && TIME.test(time);
  return {
    on: on === true,
    asked: asked === true,
    events: Array.isArray(events) ? KINDS.filter((kind) => events.includes(kind)) : DEFAULTS.events,
    quiet: isTime(from) && isTime(to) && from !== to ? { from, to } : undefined,
  };
}

/** Says whether a time of the day is in quiet hours, which may go over midnight. */
export function isQuiet(quiet: Wishes['quiet'], now: Date): boolean {
  if (!quiet) return false;
  const time = `${String(now.getHours()).padStart(2, '0')}:${String(now.getMinutes()).padStart(2, '0')}`;
  const { from, to } = quiet;
  return from < to ? from <= time && time < to : from <= time || time < to;
}

function supportNow(): Support {
  if (!isSecureContext) return 'insecure';
  if (!hasWorkers() || !('Notification' in globalThis)) return isPhoneOfApple() ? 'install' : 'unsupported';
  return Notification.permission === 'denied' ? 'blocked' : 'ready';
}

/** Its browsers have notifications only for pages on the home screen. */
function isPhoneOfApple(): boolean {
  const isPad = navigator.userAgent.includes('Macintosh') && navigator.maxTouchPoints > 1;
  return isPad || /iPhone|iPad|iPod/.test(navigator.userAgent);
}

function bytes(base64url: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64url.replaceAll('-', '+').replaceAll('_', '/')), (letter) => letter.charCodeAt(0));
}

function sameKey(known: ArrayBuffer | null, wanted: Uint8Array): boolean {
  const one = new Uint8Array(known ?? new ArrayBuffer(0));
  return one.length === wanted.length && one.every((byte, place) => byte === wanted[place]);
}
