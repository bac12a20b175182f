/** Times, paths and sizes as people write them. */

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

/** One line of text; of Markdown, the marks are left out. */
export function plain(text: StringOrMarkdown | null | undefined): string {
  if (text == null) return '';
  if (typeof text === 'string') return text;
  return text.markdown.replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]+/g, '');
}

/** A folder's path, from a file URI; other URIs stay as they are. */
export function pathOf(uri: Uri): string {
  if (!uri.startsWith('file://')) return uri;
  const path = uri.slice('file://'.length);
  try {
    return decodeURIComponent(path) || '/';
  } catch {
    return path;
  }
}

/** The other way round: what a person typed as a folder. */
export function fileUri(path: string): Uri {
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(path)) return path;
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  return `file://${encoded.startsWith('/') ? '' : '/'}${encoded}`;
}

/** A path's last folder, for narrow places. */
export function folderName(uri: Uri): string {
  return pathOf(uri).replace(/\/+$/, '').split('/').at(-1) || '/';
}
