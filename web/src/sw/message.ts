/** A push message of the host, as the service worker and the page show it. It is read without trust: its bytes come over other machines. */

import { LANGUAGES, type Language, preferred } from '../text/messages/language';
import { notificationTexts } from '../text/messages/notifications';

export const KINDS = ['waiting', 'finished', 'failed'] as const;
export type Kind = (typeof KINDS)[number];

export type PushMessage =
  | {
      type: 'show';
      tag: string;
      kind: Kind;
      session: string;
      title: string;
      text: string;
      at: number;
      language: Language;
    }
  | { type: 'close'; tag: string }
  | { type: 'test'; tag: string; language: Language };

/** A notification as `showNotification` takes it. */
export interface Shown {
  title: string;
  options: NotificationOptions & { data: { session?: string }; actions?: { action: string; title: string }[] };
}

const MAX_TEXT = 200;

const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, MAX_TEXT) : '');

/** Reads a message; undefined if it is none. */
export function readMessage(json: string, languages: readonly string[]): PushMessage | undefined {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    return undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const { type, tag, kind, session, title, text: words, at, language } = value as Record<string, unknown>;
  if (typeof tag !== 'string' || tag === '') return undefined;
  const spoken = LANGUAGES.find((one) => one === text(language).split('-', 1)[0]) ?? preferred(languages);
  if (type === 'close') return { type, tag };
  if (type === 'test') return { type, tag, language: spoken };
  const known = KINDS.find((one) => one === kind);
  if (type !== 'show' || !known || typeof session !== 'string') return undefined;
  const time = typeof at === 'number' && Number.isFinite(at) ? at : 0;
  return { type, tag, kind: known, session, title: text(title), text: text(words), at: time, language: spoken };
}

/** The notification of a message, with pictures relative to the page. */
export function notificationOf(message: Exclude<PushMessage, { type: 'close' }>): Shown {
  const words = notificationTexts(message.language);
  const pictures = { icon: 'icon-192.png', badge: 'badge.png' };
  if (message.type === 'test')
    return { title: 'Grove', options: { body: words.test, tag: message.tag, ...pictures, data: {} } };
  return {
    title: message.title || words.someSession,
    options: {
      body: [words[message.kind], message.text].filter((part) => part !== '').join(': '),
      tag: message.tag,
      lang: message.language,
      // A question may stay until somebody has seen it.
      requireInteraction: message.kind === 'waiting',
      ...({ renotify: true, timestamp: message.at || undefined } as object),
      ...pictures,
      data: { session: message.session },
      actions: [{ action: 'open', title: words.open }],
    },
  };
}

/** The tag of the notification of a session and a kind: the host has the same. */
export function tagOf(session: string, kind: Kind): string {
  return `${session.slice(session.lastIndexOf(':/') + 2)}/${kind}`;
}

/** The address of a session below the page, as the router writes it. */
export const addressOf = (session: string): string => `#/session/${encodeURIComponent(session)}`;
