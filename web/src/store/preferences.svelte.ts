/** Choices of a person about panels and diffs, kept on this device. */

export type DiffLayout = 'unified' | 'split';

const LAYOUT = 'grove-diff-layout';
const WIDTH = 'grove-panel-width';

/** In CSS pixels. */
export const PANEL_MIN = 300;
export const PANEL_MAX = 1_400;
const PANEL_DEFAULT = 480;

class Preferences {
  diffLayout = $state<DiffLayout>(stored(LAYOUT) === 'split' ? 'split' : 'unified');
  panelWidth = $state(clamped(Number(stored(WIDTH) ?? PANEL_DEFAULT)));

  setDiffLayout(layout: DiffLayout): void {
    this.diffLayout = layout;
    store(LAYOUT, layout);
  }

  setPanelWidth(width: number): void {
    this.panelWidth = clamped(width);
    store(WIDTH, String(this.panelWidth));
  }
}

export function clamped(width: number): number {
  return Number.isFinite(width) ? Math.round(Math.min(PANEL_MAX, Math.max(PANEL_MIN, width))) : PANEL_DEFAULT;
}

function stored(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The browser stores nothing: the choice holds as long as the page.
  }
}

export const preferences = new Preferences();
