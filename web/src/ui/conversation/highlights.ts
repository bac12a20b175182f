/** Marks text in the page with the browser's highlights, which change no element. */

const ALL = 'grove-find';
const CURRENT = 'grove-find-current';

/** Marks are not made beyond this number of matches in the drawn turns. */
const MOST_RANGES = 500;

/** The places of a text in an element, whatever elements it is spread over. */
export function rangesOf(element: HTMLElement, query: string): Range[] {
  const wanted = query.trim().toLowerCase();
  if (wanted === '') return [];
  const nodes: { node: Text; start: number }[] = [];
  let text = '';
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, (node) =>
    isShown(node.parentElement) ? NodeFilter.FILTER_ACCEPT : NodeFilter.FILTER_REJECT,
  );
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    nodes.push({ node: node as Text, start: text.length });
    text += node.nodeValue ?? '';
  }
  const lower = text.toLowerCase();
  // Lower case may have another length, as that of "İ".
  if (lower.length !== text.length) return [];
  const ranges: Range[] = [];
  let last = 0;
  const locate = (place: number): [Text, number] => {
    while (last + 1 < nodes.length && nodes[last + 1]!.start <= place) last++;
    const { node, start } = nodes[last]!;
    return [node, place - start];
  };
  for (
    let at = lower.indexOf(wanted);
    at >= 0 && ranges.length < MOST_RANGES;
    at = lower.indexOf(wanted, at + wanted.length)
  ) {
    const range = new Range();
    range.setStart(...locate(at));
    const [node, offset] = locate(at + wanted.length - 1);
    range.setEnd(node, offset + 1);
    ranges.push(range);
  }
  return ranges;
}

/** The HTML of blocks that are not drawn, by the element that stands for them. */
export const undrawn = new WeakMap<Element, () => string>();
export const UNDRAWN = 'data-undrawn';

/** A match of the searched text: its range, or its number in an element whose blocks are not drawn. */
export type TextMatch = Range | { element: Element; nth: number };

/** The places of a text in a turn in their order. */
export function placesIn(turn: HTMLElement, query: string): TextMatch[] {
  const wanted = query.trim().toLowerCase();
  const ranges = rangesOf(turn, query);
  const places: TextMatch[] = [];
  for (const element of turn.querySelectorAll(`[${UNDRAWN}]`)) {
    while (ranges.length > 0 && isBefore(ranges[0]!, element)) places.push(ranges.shift()!);
    const text = textOf(undrawn.get(element)?.() ?? '').toLowerCase();
    let nth = 0;
    for (let at = text.indexOf(wanted); wanted && at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      places.push({ element, nth: nth++ });
    }
  }
  return [...places, ...ranges];
}

function isBefore(range: Range, element: Element): boolean {
  return (range.startContainer.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0;
}

const ENTITIES: Record<string, string> = { lt: '<', gt: '>', amp: '&', quot: '"', '#39': "'", nbsp: '\u00a0' };

function textOf(html: string): string {
  return html.replace(/<[^>]*>/g, '').replace(/&(#39|[a-z]+);/g, (entity, name: string) => ENTITIES[name] ?? entity);
}

/** Words of the page itself are no part of what was said. */
const NOT_SAID = 'button, .visually-hidden, .state, .code-head, figure details';

function isShown(element: Element | null): boolean {
  return element !== null && element.closest(NOT_SAID) === null;
}

/** Browsers without the interface show matches by scrolling alone. */
export function mark(all: Range[], current: Range | undefined): void {
  const highlights = globalThis.CSS?.highlights;
  if (!highlights) return;
  highlights.set(ALL, new Highlight(...all));
  const now = new Highlight(...(current ? [current] : []));
  now.priority = 1;
  highlights.set(CURRENT, now);
}

export function unmark(): void {
  globalThis.CSS?.highlights?.delete(ALL);
  globalThis.CSS?.highlights?.delete(CURRENT);
}
