/** Times, paths and sizes for people. */

import { isEnforced } from '../checks';
import type { Cost } from '../state/meta';
import type { Uri } from '../wire/protocol';
import type { StringOrMarkdown } from '../wire/types';

const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto', style: 'short' });
const DATE = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'short' });

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export function ago(timestamp: string, now: number): string {
  const then = Date.parse(timestamp);
  if (Number.isNaN(then)) return '';
  const passed = now - then;
  if (passed < MINUTE) return 'now';
  if (passed < HOUR) return RELATIVE.format(-Math.floor(passed / MINUTE), 'minute');
  if (passed < DAY) return RELATIVE.format(-Math.floor(passed / HOUR), 'hour');
  if (passed < 7 * DAY) return RELATIVE.format(-Math.floor(passed / DAY), 'day');
  return DATE.format(then);
}

export function fullDate(timestamp: string): string {
  const then = Date.parse(timestamp);
  return Number.isNaN(then) ? timestamp : FULL.format(then);
}

export function duration(milliseconds: number): string {
  const seconds = milliseconds / 1000;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

export function bytes(size: number): string {
  if (size < 1024) return `${size} B`;
  if (size < 1024 * 1024) return `${(size / 1024).toFixed(1)} KiB`;
  return `${(size / 1024 / 1024).toFixed(1)} MiB`;
}

/** A number of tokens with three digits. */
export function tokens(count: number): string {
  const figures = (value: number): string => String(Number(value.toPrecision(3)));
  if (count < 1_000) return String(count);
  // Values that would be rounded to 1000k are 1M.
  return count < 999_500 ? `${figures(count / 1_000)}k` : `${figures(count / 1_000_000)}M`;
}

/** An amount of money, with enough digits for small amounts. */
export function money({ amount, currency }: Cost): string {
  const figures = amount === 0 || Math.abs(amount) >= 0.01 ? amount.toFixed(2) : String(Number(amount.toPrecision(2)));
  return currency ? `${figures} ${currency}` : figures;
}

/** One line of text, without Markdown syntax. */
export function plain(text: StringOrMarkdown | null | undefined): string {
  if (text == null) return '';
  if (typeof text === 'string') return text;
  return text.markdown.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]+/g, '');
}

/** The last lines of a long text; of a long line, its end. */
export function lastLines(text: string, most: number): string {
  const MOST_CHARACTERS = 4_000;
  const whole = text.trimEnd();
  const end = whole.slice(-MOST_CHARACTERS);
  const lines = end.split('\n');
  const isCut = end.length < whole.length || lines.length > most;
  return isCut ? ['…', ...lines.slice(-most)].join('\n') : end;
}

/**
 * Text of an agent, with the characters shown as escapes that would change the direction of other text or that cannot be
 * seen: a command must be read as it is run.
 */
export function visible(text: string): string {
  if (!isEnforced('page-text')) return text;
  const escape = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, escape);
}

/** Percent-encoded text, decoded. Text that anybody can write into an address may be encoded wrongly: then it is undefined. */
export function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch (error) {
    if (!isEnforced('page-address')) throw error;
    return undefined;
  }
}

/** The path of a file URI; other URIs are unchanged. */
export function pathOf(uri: Uri): string {
  if (!uri.startsWith('file://')) return uri;
  const encoded = uri.slice('file://'.length);
  const path = decoded(encoded);
  if (path === undefined) return encoded;
  // A server before the path: a network share.
  return path.startsWith('/') || path === '' ? path || '/' : `\\\\${path.replaceAll('/', '\\')}`;
}

/**
 * The inverse: the folder that a user typed. The host resolves `~`. Undefined for a relative path, which the host
 * cannot resolve.
 */
export function typedFolder(path: string): Uri | undefined {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return path;
  if (path === '~' || path.startsWith('~/')) return path;
  const encode = (text: string) => text.split('/').map(encodeURIComponent).join('/');
  if (path.startsWith('\\\\')) return `file://${encode(path.slice(2).replaceAll('\\', '/'))}`;
  return path.startsWith('/') ? `file:///${encode(path.replace(/^\/+/, ''))}` : undefined;
}

/** The last part of a path or URI. */
export function fileName(uri: Uri): string {
  return parts(pathOf(uri)).at(-1) ?? uri;
}

/** The last folder of a path, for narrow layouts. */
export function folderName(uri: Uri): string {
  return parts(pathOf(uri)).at(-1) ?? '/';
}

/** The parts of a path; those of a share are separated by backslashes. */
function parts(path: string): string[] {
  return path.split(path.startsWith('\\\\') ? '\\' : '/').filter((part) => part !== '');
}
