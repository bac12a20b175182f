/** The places of a long list's rows, of which only the visible ones are drawn. */

/** The drawn rows, from `from` up to and without `to`, and the height of those before and after them. */
export interface DrawnRows {
  from: number;
  to: number;
  before: number;
  after: number;
}

/** A row with its name, and the height that it probably has until it is measured. */
export interface Row {
  id: string;
  estimate: number;
}

/**
 * Heights and places by index. Measured heights stay with a row's id, so rows can be added on both sides.
 *
 * Appending and measuring the last row cost nothing for the others; anything else costs one pass over the numbers.
 */
export class Geometry {
  #ids: string[] = [];
  #index = new Map<string, number>();
  #heights: number[] = [];
  /** The place of each row's upper edge, and at the end that of the last row's lower edge. */
  #tops: number[] = [0];
  /** The first index whose place in `#tops` is outdated. */
  #clean = 0;
  #measured = new Map<string, number>();

  get length(): number {
    return this.#ids.length;
  }

  get total(): number {
    return this.#place(this.length);
  }

  idAt(index: number): string | undefined {
    return this.#ids[index];
  }

  indexOf(id: string): number | undefined {
    return this.#index.get(id);
  }

  topOf(index: number): number {
    return this.#place(Math.max(0, Math.min(index, this.length)));
  }

  /** Sets the rows. Those that are already at their index are not touched. */
  setRows(count: number, rowAt: (index: number) => Row): void {
    const kept = this.#unchanged(count, rowAt);
    for (const id of this.#ids.splice(kept)) this.#index.delete(id);
    this.#heights.length = kept;
    for (let index = kept; index < count; index++) {
      const { id, estimate } = rowAt(index);
      this.#ids.push(id);
      this.#index.set(id, index);
      this.#heights.push(this.#measured.get(id) ?? estimate);
    }
    this.#tops.length = count + 1;
    this.#clean = Math.min(this.#clean, kept);
    if (this.#measured.size > 2 * count + SPARE) this.#forget();
  }

  /** Notes the real height of a row, and returns whether that changes anything. */
  measure(id: string, height: number): boolean {
    const index = this.#index.get(id);
    if (index === undefined || !(height >= 0)) return false;
    if (Math.abs(this.#heights[index]! - height) < TOLERANCE) {
      if (!this.#measured.has(id)) this.#measured.set(id, this.#heights[index]!);
      return false;
    }
    this.#measured.set(id, height);
    this.#heights[index] = height;
    this.#clean = Math.min(this.#clean, index);
    return true;
  }

  /** The row at a place; the nearest one if there is none. */
  indexAt(place: number): number {
    let low = 0;
    let high = this.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#place(middle) <= place) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** The rows that touch the places from `top` to `bottom`: at least one, if there is any. */
  drawn(top: number, bottom: number): DrawnRows {
    if (this.length === 0) return { from: 0, to: 0, before: 0, after: 0 };
    const from = this.indexAt(Math.max(0, top));
    const to = Math.max(from, this.indexAt(Math.max(top, bottom))) + 1;
    return { from, to, before: this.topOf(from), after: Math.max(0, this.total - this.topOf(to)) };
  }

  #place(index: number): number {
    if (this.#clean < index) {
      this.#tops[0] = 0;
      for (let at = this.#clean; at < index; at++) this.#tops[at + 1] = this.#tops[at]! + this.#heights[at]!;
      this.#clean = index;
    }
    return this.#tops[index] ?? 0;
  }

  /** The number of rows at the beginning that are as before. Rows are only added or removed at the ends, so few are compared. */
  #unchanged(count: number, rowAt: (index: number) => Row): number {
    const both = Math.min(count, this.length);
    if (both === 0) return 0;
    for (const index of [0, both >> 1, both - 1]) {
      if (rowAt(index).id !== this.#ids[index]) return 0;
    }
    return both;
  }

  #forget(): void {
    for (const id of this.#measured.keys()) if (!this.#index.has(id)) this.#measured.delete(id);
  }
}

/** Heights that differ by less are equal: browsers round them. */
const TOLERANCE = 0.5;

/** Heights of rows that are gone are kept until there are this many more than rows. */
const SPARE = 1_000;
