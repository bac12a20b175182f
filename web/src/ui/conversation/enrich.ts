/** Draws the code, formulas and diagrams of a finished block of text, a little at a time. */

import { mount, unmount } from 'svelte';
import { diagram, diagramKind } from '../../text/diagram';
import { type CodeToken, MOST_CODE_CHARACTERS, reader } from '../../text/highlight';
import { languageOf } from '../../text/languages';
import { draw } from '../../text/maths';
import Diagram from './Diagram.svelte';

/** The page does other work after this time. */
const SLICE_MS = 8;

/** The work of all blocks runs one after the other. */
let queue: Promise<void> = Promise.resolve();

/** Begins the work, and returns how to stop it; nothing if there is none. */
export function enrich(block: HTMLElement): (() => void) | undefined {
  const codes = [...block.querySelectorAll<HTMLElement>('.code code[class]')];
  const formulas = [...block.querySelectorAll<HTMLElement>('.formula')];
  if (codes.length + formulas.length === 0) return undefined;
  const stopped = new AbortController();
  const mounted: Record<string, unknown>[] = [];
  queue = queue.then(async () => {
    for (const code of codes) await enrichCode(code, stopped.signal, mounted).catch(() => {});
    for (const formula of formulas) await enrichFormula(formula, stopped.signal).catch(() => {});
  });
  return () => {
    stopped.abort();
    for (const component of mounted) void unmount(component);
  };
}

async function enrichCode(code: HTMLElement, stopped: AbortSignal, mounted: Record<string, unknown>[]): Promise<void> {
  if (stopped.aborted) return;
  const name = /(?:^| )language-(\S+)/.exec(code.className)?.[1] ?? '';
  const text = code.textContent ?? '';
  if (name === 'mermaid') return enrichDiagram(code, text, stopped, mounted);
  const language = languageOf(name);
  if (language && text.length <= MOST_CODE_CHARACTERS) await colour(code, text, language, stopped);
}

async function colour(code: HTMLElement, text: string, language: string, stopped: AbortSignal): Promise<void> {
  const key = `${language}\n${text}`;
  let lines = known.get(key);
  if (!lines) {
    const next = await reader(text, language);
    lines = [];
    let since = performance.now();
    for (let more = next(); more; more = next()) {
      lines.push(...more);
      if (performance.now() - since < SLICE_MS) continue;
      await otherWork();
      if (stopped.aborted) return;
      since = performance.now();
    }
    remember(key, lines);
  }
  if (stopped.aborted || !code.isConnected) return;
  const fragment = document.createDocumentFragment();
  lines.forEach((line, n) => {
    if (n > 0) fragment.append('\n');
    for (const token of line) fragment.append(element(token));
  });
  // The grammar must not change the code.
  if (fragment.textContent === text) code.replaceChildren(fragment);
}

function element({ text, class: name }: CodeToken): Node | string {
  if (name === '') return text;
  const span = document.createElement('span');
  span.className = name;
  span.textContent = text;
  return span;
}

/** The tokens of blocks that were drawn, which are drawn again after scrolling away and back. The oldest go first. */
const known = new Map<string, CodeToken[][]>();
const MOST_KNOWN_CHARACTERS = 1_000_000;
let knownCharacters = 0;

function remember(key: string, lines: CodeToken[][]): void {
  known.set(key, lines);
  knownCharacters += key.length;
  for (const oldest of known.keys()) {
    if (knownCharacters <= MOST_KNOWN_CHARACTERS) return;
    known.delete(oldest);
    knownCharacters -= oldest.length;
  }
}

async function enrichFormula(formula: HTMLElement, stopped: AbortSignal): Promise<void> {
  if (stopped.aborted) return;
  const drawn = await draw(formula.textContent ?? '', formula.classList.contains('block'));
  if (!drawn || stopped.aborted || !formula.isConnected) return;
  formula.replaceChildren(drawn);
  formula.classList.add('drawn');
}

async function enrichDiagram(
  code: HTMLElement,
  source: string,
  stopped: AbortSignal,
  mounted: Record<string, unknown>[],
): Promise<void> {
  const style = getComputedStyle(code);
  const value = (name: string): string => style.getPropertyValue(name).trim();
  const colours = {
    ground: value('--surface'),
    text: value('--text'),
    line: value('--text-faint'),
    accent: value('--accent'),
  };
  const address = await diagram(source, colours);
  const box = code.closest('.code');
  if (!address || stopped.aborted || !box?.isConnected) return;
  const target = document.createElement('div');
  box.before(target);
  const show = (): void => {
    target.remove();
    box.classList.remove('hidden');
  };
  box.classList.add('hidden');
  mounted.push(mount(Diagram, { target, props: { address, kind: diagramKind(source), source, failed: show } }));
}

function otherWork(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve));
}
