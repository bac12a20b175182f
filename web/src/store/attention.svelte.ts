/** The number of sessions that wait for a person, in the window's title and on its icon. */

import { titlePrefix } from '../state/attention';

const SIZE = 64;
const ICON = './favicon.svg';
/** The colour of the badge: it is read on light and dark tabs. */
const BADGE = '#b3261e';

/** The title of the window: the number of waiting sessions, the open session, the host. */
export function windowTitle(count: number, open: string | undefined, host: string): string {
  const names = [open, host || 'Grove'].filter((name) => name !== undefined && name !== '');
  return titlePrefix(count) + names.join(' – ');
}

/** Draws the number on the icon of the page. The icon of the page's document is the plain one. */
export class AttentionBadge {
  #link: HTMLLinkElement | null;
  #plain: HTMLImageElement | undefined;
  #shown = 0;

  constructor(link = document.querySelector<HTMLLinkElement>('link[rel="icon"]')) {
    this.#link = link;
  }

  /** Shows a number; none if it is 0. */
  async show(count: number): Promise<void> {
    if (count === this.#shown) return;
    this.#shown = count;
    // An installed page has its badge on the home screen or in the dock.
    void (count > 0 ? navigator.setAppBadge?.(count) : navigator.clearAppBadge?.())?.catch(() => {});
    if (!this.#link) return;
    if (count === 0) return this.#set(ICON, 'image/svg+xml');
    const plain = await this.#loaded().catch(() => undefined);
    const drawn = plain && draw(plain, count);
    // Meanwhile another number may have come.
    if (drawn && this.#shown === count) this.#set(drawn, 'image/png');
  }

  #set(href: string, type: string): void {
    if (!this.#link) return;
    this.#link.type = type;
    this.#link.href = href;
  }

  async #loaded(): Promise<HTMLImageElement> {
    if (this.#plain) return this.#plain;
    const image = new Image(SIZE, SIZE);
    image.src = ICON;
    await image.decode();
    return (this.#plain = image);
  }
}

/** The icon with the number, as a picture in the address; undefined if the browser does not draw. */
function draw(plain: HTMLImageElement, count: number): string | undefined {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = SIZE;
  const context = canvas.getContext('2d');
  if (!context) return undefined;
  context.drawImage(plain, 0, 0, SIZE, SIZE);
  const radius = SIZE * 0.3;
  context.fillStyle = BADGE;
  context.beginPath();
  context.arc(SIZE - radius, SIZE - radius, radius, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = '#ffffff';
  context.font = `bold ${radius * 1.3}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(count > 9 ? '9+' : String(count), SIZE - radius, SIZE - radius * 0.95, radius * 1.6);
  return canvas.toDataURL('image/png');
}
