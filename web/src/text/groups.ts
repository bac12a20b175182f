/** Blocks of a text in groups. A group whose blocks are the same is the same array, so that nothing of it is done again. */

import type { SafeHtml } from './markdown';

export const BLOCKS_IN_GROUP = 24;

export class BlockGroups {
  #groups: SafeHtml[][] = [];

  update(blocks: SafeHtml[]): SafeHtml[][] {
    const groups: SafeHtml[][] = [];
    for (let at = 0; at < blocks.length; at += BLOCKS_IN_GROUP) {
      const before = this.#groups[groups.length];
      const end = Math.min(at + BLOCKS_IN_GROUP, blocks.length);
      groups.push(before && isSame(before, blocks, at, end) ? before : blocks.slice(at, end));
    }
    this.#groups = groups;
    return groups;
  }
}

function isSame(group: SafeHtml[], blocks: SafeHtml[], from: number, to: number): boolean {
  return group.length === to - from && group.every((block, n) => block === blocks[from + n]);
}
