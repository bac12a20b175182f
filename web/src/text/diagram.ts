/**
 * Diagrams in the language of Mermaid as pictures.
 *
 * Mermaid itself draws by writing styles and markup into the page, which the page's policy forbids. This program reads
 * the same language for flowcharts, sequences, states, classes and entities, and returns the text of an SVG. It is only
 * ever shown as a picture from a `data:` address: a picture runs no script and loads nothing.
 */

/** Longer texts stay texts: their layout takes too long. */
export const MOST_DIAGRAM_CHARACTERS = 8_000;
const MOST_DIAGRAM_LINES = 150;

export interface DiagramColours {
  ground: string;
  text: string;
  line: string;
  accent: string;
}

/** The address of the picture; undefined for a diagram that cannot be drawn. */
export async function diagram(source: string, colours: DiagramColours): Promise<string | undefined> {
  if (source.length > MOST_DIAGRAM_CHARACTERS || source.split('\n').length > MOST_DIAGRAM_LINES) return undefined;
  const { renderMermaid } = await import('beautiful-mermaid');
  try {
    const svg = await renderMermaid(source.trim(), {
      bg: colours.ground,
      fg: colours.text,
      line: colours.line,
      accent: colours.accent,
      font: 'system-ui',
      padding: 12,
      transparent: true,
    });
    return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(withoutFonts(svg))}`;
  } catch {
    return undefined;
  }
}

/** The kind of a diagram, as its first line names it. */
export function diagramKind(source: string): string {
  return /^\s*([\w-]{1,40})/.exec(source)?.[1] ?? 'mermaid';
}

/** A picture may not load a font anyway. */
function withoutFonts(svg: string): string {
  return svg.replace(/@import url\([^)]*\);?/g, '');
}
