/** Keeps the first visible element in its place while heights above it change. */

/** How deep an anchor is looked for below a turn: its answer, a part, a group of blocks, a block. */
const MOST_DEPTH = 5;

/** An element with the distance of its upper edge from that of the view. */
interface Held {
  element: WeakRef<Element>;
  offset: number;
}

export class Anchor {
  #turn: { id: string; offset: number } | undefined;
  /** The elements inside of the turn, from the outermost on. Streamed text replaces the inner ones. */
  #inner: Held[] = [];

  /** The id of the turn that is kept in its place. */
  get turn(): string | undefined {
    return this.#turn?.id;
  }

  /** Takes the first visible element of the view. */
  hold(view: HTMLElement, turns: Map<string, HTMLElement>): void {
    const edge = view.getBoundingClientRect().top;
    let first: { id: string; element: Element; top: number } | undefined;
    for (const [id, element] of turns) {
      const { top, bottom } = element.getBoundingClientRect();
      if (bottom > edge + 1 && (first === undefined || top < first.top)) first = { id, element, top };
    }
    if (!first) return;
    this.#turn = { id: first.id, offset: first.top - edge };
    this.#inner = [];
    let element: Element | undefined = first.element;
    for (let depth = 0; depth < MOST_DEPTH; depth++) {
      element = [...element.children].find((child) => child.getBoundingClientRect().bottom > edge + 1);
      if (!element) return;
      const offset = element.getBoundingClientRect().top - edge;
      this.#inner.push({ element: new WeakRef(element), offset });
      if (offset >= 0) return;
    }
  }

  /** Takes the upper edge of a turn that is not drawn yet. */
  aim(turn: string): void {
    this.#turn = { id: turn, offset: 16 };
    this.#inner = [];
  }

  /** Follows the reader, who scrolled by this much. */
  shift(by: number): void {
    if (this.#turn) this.#turn.offset -= by;
    for (const held of this.#inner) held.offset -= by;
  }

  /** Scrolls so that the anchor is where it was. */
  restore(view: HTMLElement, turns: Map<string, HTMLElement>): void {
    const held = this.#found(turns);
    if (!held) return;
    const moved = held.element.getBoundingClientRect().top - view.getBoundingClientRect().top - held.offset;
    if (Math.abs(moved) >= 0.5) view.scrollTop += moved;
  }

  #found(turns: Map<string, HTMLElement>): { element: Element; offset: number } | undefined {
    for (const { element, offset } of this.#inner.toReversed()) {
      const kept = element.deref();
      if (kept?.isConnected) return { element: kept, offset };
    }
    const turn = this.#turn && turns.get(this.#turn.id);
    return turn && { element: turn, offset: this.#turn!.offset };
  }
}
