/** How the page looks on this device: its theme and density, as attributes of the document. */

export const THEMES = ['system', 'light', 'dark', 'contrast'] as const;
export type Theme = (typeof THEMES)[number];

export const DENSITIES = ['normal', 'compact'] as const;
export type Density = (typeof DENSITIES)[number];

const THEME_KEY = 'grove-theme';
const DENSITY_KEY = 'grove-density';

export const chosenTheme = (): Theme => stored(THEME_KEY, THEMES) ?? 'system';
export const chosenDensity = (): Density => stored(DENSITY_KEY, DENSITIES) ?? 'normal';

export function chooseTheme(theme: Theme): void {
  store(THEME_KEY, theme, 'system');
  applyAppearance();
}

export function chooseDensity(density: Density): void {
  store(DENSITY_KEY, density, 'normal');
  applyAppearance();
}

/** Applies the stored choices. Called before anything is drawn. */
export function applyAppearance(): void {
  const { dataset } = document.documentElement;
  const [theme, density] = [chosenTheme(), chosenDensity()];
  if (theme === 'system') delete dataset['theme'];
  else dataset['theme'] = theme;
  if (density === 'normal') delete dataset['density'];
  else dataset['density'] = density;
}

function store(key: string, value: string, usual: string): void {
  if (value === usual) localStorage.removeItem(key);
  else localStorage.setItem(key, value);
}

/** A browser that stores nothing has no choice. */
function stored<T extends string>(key: string, known: readonly T[]): T | undefined {
  try {
    const found = localStorage.getItem(key);
    return known.find((one) => one === found);
  } catch {
    return undefined;
  }
}
