/** The name of a device for lists, from what its browser says of itself. */

import { notifications } from './messages/notifications';

/** Each browser also names those that it descends from, so the order counts. */
const BROWSERS = [
  ['Edg', 'Edge'],
  ['OPR/', 'Opera'],
  ['SamsungBrowser', 'Samsung Internet'],
  ['Firefox', 'Firefox'],
  ['FxiOS', 'Firefox'],
  ['Chrome', 'Chrome'],
  ['CriOS', 'Chrome'],
  ['Safari', 'Safari'],
] as const;
const SYSTEMS = [
  ['iPhone', 'iPhone'],
  ['iPad', 'iPad'],
  ['Android', 'Android'],
  ['Windows', 'Windows'],
  ['Macintosh', 'macOS'],
  ['CrOS', 'ChromeOS'],
  ['Linux', 'Linux'],
] as const;

const named = (list: readonly (readonly [string, string])[], agent: string): string | undefined =>
  list.find(([mark]) => agent.includes(mark))?.[1];

export function deviceName(userAgent: string): string {
  const browser = named(BROWSERS, userAgent) ?? notifications.browser;
  const system = named(SYSTEMS, userAgent);
  return system ? notifications.deviceName(browser, system) : browser;
}
