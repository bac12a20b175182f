/** The title and the icon of the tab, with the number of requests that wait. */

/** The title of the tab. */
export function tabTitle(view: string | undefined, waiting: number): string {
  const name = view ? `${view} – Grove` : 'Grove';
  return waiting > 0 ? `(${waiting}) ${name}` : name;
}

const SIZE = 64;
const ICON = 'M16 2 26 14h-5l6 8H18v7h-4v-7H5l6-8H6z';

/** Shows the number on the icon. The icon is drawn here, so that it is a picture of the page's own. */
export function badge(waiting: number): void {
  const link = document.querySelector<HTMLLinkElement>('link[rel="icon"]');
  if (!link) return;
  link.dataset['plain'] ??= link.href;
  const drawn = waiting > 0 ? draw(waiting) : undefined;
  link.type = drawn ? 'image/png' : 'image/svg+xml';
  link.href = drawn ?? link.dataset['plain'];
}

function draw(waiting: number): string | undefined {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = SIZE;
  const context = canvas.getContext('2d');
  if (!context) return undefined;
  context.save();
  context.scale(SIZE / 32, SIZE / 32);
  context.fillStyle = '#2a7150';
  context.fill(new Path2D(ICON));
  context.restore();
  context.fillStyle = '#c07a00';
  context.beginPath();
  context.arc(44, 44, 20, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = '#ffffff';
  context.font = `bold ${waiting > 9 ? 22 : 28}px system-ui, sans-serif`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(waiting > 99 ? '99' : String(waiting), 44, 46);
  return canvas.toDataURL('image/png');
}
