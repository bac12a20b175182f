/**
 * QR codes (ISO/IEC 18004) for links: bytes, error correction level M, versions 1 to 15.
 *
 * A code is a square of modules; `true` is dark. A text that does not fit has no code.
 */

/** A version's error correction codewords per block, and the data codewords of each of its blocks. */
type Blocks = { correction: number; data: number[] };

const blocks = (correction: number, count: number, data: number, more = 0): Blocks => ({
  correction,
  data: [...Array<number>(count).fill(data), ...Array<number>(more).fill(data + 1)],
});

/** Level M, from version 1. */
const VERSIONS: readonly Blocks[] = [
  blocks(10, 1, 16),
  blocks(16, 1, 28),
  blocks(26, 1, 44),
  blocks(18, 2, 32),
  blocks(24, 2, 43),
  blocks(16, 4, 27),
  blocks(18, 4, 31),
  blocks(22, 2, 38, 2),
  blocks(22, 3, 36, 2),
  blocks(26, 4, 43, 1),
  blocks(30, 1, 50, 4),
  blocks(22, 6, 36, 2),
  blocks(22, 8, 37, 1),
  blocks(24, 4, 40, 5),
  blocks(24, 5, 41, 5),
];

/** The centres of the alignment patterns in each direction, from version 1. */
const ALIGNMENT: readonly number[][] = [
  [],
  [6, 18],
  [6, 22],
  [6, 26],
  [6, 30],
  [6, 34],
  [6, 22, 38],
  [6, 24, 42],
  [6, 26, 46],
  [6, 28, 50],
  [6, 30, 54],
  [6, 32, 58],
  [6, 34, 62],
  [6, 26, 46, 66],
  [6, 26, 48, 70],
];

const MASKS: readonly ((row: number, column: number) => boolean)[] = [
  (r, c) => (r + c) % 2 === 0,
  (r) => r % 2 === 0,
  (_, c) => c % 3 === 0,
  (r, c) => (r + c) % 3 === 0,
  (r, c) => (Math.floor(r / 2) + Math.floor(c / 3)) % 2 === 0,
  (r, c) => ((r * c) % 2) + ((r * c) % 3) === 0,
  (r, c) => (((r * c) % 2) + ((r * c) % 3)) % 2 === 0,
  (r, c) => (((r + c) % 2) + ((r * c) % 3)) % 2 === 0,
];

export function qrCode(text: string): boolean[][] | undefined {
  const bytes = new TextEncoder().encode(text);
  const index = VERSIONS.findIndex((version, at) => {
    const room = version.data.reduce((sum, count) => sum + count, 0);
    return Math.ceil((4 + lengthBits(at + 1)) / 8 + bytes.length) <= room;
  });
  const version = VERSIONS[index];
  if (!version) return undefined;
  const codewords = interleave(dataCodewords(bytes, index + 1, version), version);
  const [drawn, fixed] = frame(index + 1);
  fill(drawn, fixed, codewords);
  let best: { modules: boolean[][]; penalty: number } | undefined;
  for (let mask = 0; mask < MASKS.length; mask++) {
    const modules = drawn.map((row, r) => row.map((dark, c) => (fixed[r]![c] ? dark : dark !== MASKS[mask]!(r, c))));
    drawFormat(modules, mask);
    const penalty = penaltyOf(modules);
    if (!best || penalty < best.penalty) best = { modules, penalty };
  }
  return best?.modules;
}

/** The outline of the dark modules as the data of an SVG path, one unit a module. */
export function qrPath(modules: readonly (readonly boolean[])[]): string {
  let path = '';
  modules.forEach((row, r) => {
    for (let c = 0; c < row.length; c++) {
      const from = c;
      while (row[c]) c++;
      if (c > from) path += `M${from} ${r}h${c - from}v1h-${c - from}z`;
    }
  });
  return path;
}

const lengthBits = (version: number): number => (version < 10 ? 8 : 16);

function dataCodewords(bytes: Uint8Array, version: number, { data }: Blocks): number[] {
  const room = data.reduce((sum, count) => sum + count, 0);
  const bits: number[] = [];
  const push = (value: number, length: number): void => {
    for (let bit = length - 1; bit >= 0; bit--) bits.push((value >> bit) & 1);
  };
  push(0b0100, 4);
  push(bytes.length, lengthBits(version));
  for (const byte of bytes) push(byte, 8);
  push(0, Math.min(4, room * 8 - bits.length));
  while (bits.length % 8 !== 0) bits.push(0);
  const words: number[] = [];
  for (let at = 0; at < bits.length; at += 8) words.push(bits.slice(at, at + 8).reduce((byte, bit) => byte * 2 + bit));
  for (let pad = 0xec; words.length < room; pad ^= 0xec ^ 0x11) words.push(pad);
  return words;
}

/** The codewords of all blocks in the order in which they are drawn. */
function interleave(words: number[], { correction, data }: Blocks): number[] {
  let from = 0;
  const parts = data.map((count) => words.slice(from, (from += count)));
  const corrections = parts.map((part) => remainder(part, correction));
  const mixed = (lists: number[][]): number[] =>
    Array.from({ length: Math.max(...lists.map((list) => list.length)) }, (_, at) => at).flatMap((at) =>
      lists.flatMap((list) => (at < list.length ? [list[at]!] : [])),
    );
  return [...mixed(parts), ...mixed(corrections)];
}

/** A product in the field of 256 elements with the polynomial 0x11d. */
function multiply(a: number, b: number): number {
  let product = 0;
  for (let bit = 7; bit >= 0; bit--) {
    product = (product << 1) ^ (product >> 7 ? 0x11d : 0);
    if ((b >> bit) & 1) product ^= a;
  }
  return product;
}

/** The Reed-Solomon codewords of a block. */
function remainder(data: number[], degree: number): number[] {
  let divisor = [1];
  for (let power = 0, root = 1; power < degree; power++, root = multiply(root, 2)) {
    const next = [...divisor, 0];
    divisor.forEach((factor, at) => (next[at + 1]! ^= multiply(factor, root)));
    divisor = next;
  }
  const left = [...data, ...Array<number>(degree).fill(0)];
  for (let at = 0; at < data.length; at++) {
    const factor = left[at]!;
    divisor.forEach((value, offset) => (left[at + offset]! ^= multiply(value, factor)));
  }
  return left.slice(data.length);
}

const square = (size: number): boolean[][] => Array.from({ length: size }, () => Array<boolean>(size).fill(false));

/** The modules that depend on the version alone, and which modules have no data. */
function frame(version: number): [boolean[][], boolean[][]] {
  const size = 17 + 4 * version;
  const [modules, fixed] = [square(size), square(size)];
  const set = (row: number, column: number, dark: boolean): void => {
    if (row < 0 || column < 0 || row >= size || column >= size) return;
    modules[row]![column] = dark;
    fixed[row]![column] = true;
  };
  for (let at = 0; at < size; at++) {
    set(6, at, at % 2 === 0);
    set(at, 6, at % 2 === 0);
  }
  const last = size - 4;
  for (const [row, column] of [
    [3, 3],
    [3, last],
    [last, 3],
  ] as const) {
    for (let r = -4; r <= 4; r++) {
      for (let c = -4; c <= 4; c++) {
        const ring = Math.max(Math.abs(r), Math.abs(c));
        set(row + r, column + c, ring !== 2 && ring !== 4);
      }
    }
  }
  const centres = ALIGNMENT[version - 1]!;
  const [first, end] = [centres[0], centres.at(-1)];
  for (const row of centres) {
    for (const column of centres) {
      // The finder patterns are there.
      if ((row === first && (column === first || column === end)) || (row === end && column === first)) continue;
      for (let r = -2; r <= 2; r++) {
        for (let c = -2; c <= 2; c++) set(row + r, column + c, Math.max(Math.abs(r), Math.abs(c)) !== 1);
      }
    }
  }
  for (const [row, column] of formatPlaces(size).flat()) set(row, column, false);
  set(size - 8, 8, true);
  if (version >= 7) {
    const bits = (version << 12) | checksum(version, 12, 0x1f25);
    for (let bit = 0; bit < 18; bit++) {
      const [far, near] = [size - 11 + (bit % 3), Math.floor(bit / 3)];
      set(far, near, ((bits >> bit) & 1) === 1);
      set(near, far, ((bits >> bit) & 1) === 1);
    }
  }
  return [modules, fixed];
}

function checksum(value: number, length: number, polynomial: number): number {
  let left = value << length;
  for (let bit = 31 - Math.clz32(left); left >> length; bit = 31 - Math.clz32(left))
    left ^= polynomial << (bit - length);
  return left;
}

/** The modules of both copies of the format, from its lowest bit. */
function formatPlaces(size: number): [number, number][][] {
  const around: [number, number][] = [];
  for (let bit = 0; bit <= 5; bit++) around.push([bit, 8]);
  around.push([7, 8], [8, 8], [8, 7]);
  for (let bit = 9; bit < 15; bit++) around.push([8, 14 - bit]);
  const apart: [number, number][] = [];
  for (let bit = 0; bit < 8; bit++) apart.push([8, size - 1 - bit]);
  for (let bit = 8; bit < 15; bit++) apart.push([size - 15 + bit, 8]);
  return [around, apart];
}

function drawFormat(modules: boolean[][], mask: number): void {
  // The two bits of level M are 0.
  const bits = ((mask << 10) | checksum(mask, 10, 0x537)) ^ 0x5412;
  for (const places of formatPlaces(modules.length)) {
    places.forEach(([row, column], bit) => (modules[row]![column] = ((bits >> bit) & 1) === 1));
  }
}

/** Draws the codewords in columns of two, upwards and downwards in turn. */
function fill(modules: boolean[][], fixed: boolean[][], codewords: number[]): void {
  const size = modules.length;
  let bit = 0;
  let upwards = true;
  for (let right = size - 1; right > 0; right -= 2) {
    // The column of the timing pattern is passed over.
    if (right === 6) right--;
    for (let step = 0; step < size; step++) {
      const row = upwards ? size - 1 - step : step;
      for (const column of [right, right - 1]) {
        if (fixed[row]![column]) continue;
        modules[row]![column] = (((codewords[bit >> 3] ?? 0) >> (7 - (bit & 7))) & 1) === 1;
        bit++;
      }
    }
    upwards = !upwards;
  }
}

/** How hard a code is to read: runs, blocks, patterns like finders, and too much of one colour. */
function penaltyOf(modules: boolean[][]): number {
  const size = modules.length;
  let penalty = 0;
  const lines = [...modules, ...modules.map((_, column) => modules.map((row) => row[column]!))];
  for (const line of lines) {
    const text = line.map((dark) => (dark ? '1' : '0')).join('');
    for (const run of text.match(/1{5,}|0{5,}/g) ?? []) penalty += run.length - 2;
    penalty += 40 * (text.match(/(?=10111010000|00001011101)/g) ?? []).length;
  }
  let dark = 0;
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      const value = modules[row]![column];
      if (value) dark++;
      if (
        row > 0 &&
        column > 0 &&
        value === modules[row - 1]![column] &&
        value === modules[row]![column - 1] &&
        value === modules[row - 1]![column - 1]
      )
        penalty += 3;
    }
  }
  return penalty + 10 * Math.floor(Math.abs((dark / size / size) * 100 - 50) / 5);
}
