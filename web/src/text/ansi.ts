/**
 * Output of terminal programs as lines of styled text.
 *
 * Colours and weights become names of classes, never markup. Carriage returns, moves of the cursor and erased lines are
 * carried out, as a progress bar needs them. Every other control sequence is left out. Work and memory are bounded by
 * the length of the text, whatever it contains.
 */

import { visible } from './format';

/** Text in one style. `style` is a list of class names, or empty. */
export interface Span {
  text: string;
  style: string;
}

export type StyledLine = Span[];

/** Only the end of a longer text is read. */
export const MOST_ANSI_CHARACTERS = 512 * 1024;
/** The last lines that are kept, and the columns of each. */
export const MOST_ANSI_LINES = 5_000;
export const MOST_ANSI_COLUMNS = 4_000;

/** Says whether the text contains anything that is carried out rather than shown. */
export function isStyled(text: string): boolean {
  return /[\u001b\u009b\b]|\r(?!\n)/.test(text);
}

/** The lines of a text, and whether its beginning was left out. */
export function parseAnsi(text: string): { lines: StyledLine[]; isCut: boolean } {
  const end = text.slice(-MOST_ANSI_CHARACTERS);
  const screen = new Screen();
  read(end, screen);
  return { lines: screen.lines(), isCut: end.length < text.length || screen.dropped };
}

/** The text without control sequences, as it is copied. */
export function plainAnsi(text: string): string {
  if (!isStyled(text)) return text;
  return parseAnsi(text)
    .lines.map((line) => line.map((span) => span.text).join(''))
    .join('\n');
}

interface Style {
  foreground: string;
  background: string;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  strike: boolean;
  inverse: boolean;
}

const PLAIN: Style = {
  foreground: '',
  background: '',
  bold: false,
  dim: false,
  italic: false,
  underline: false,
  strike: false,
  inverse: false,
};

/** A line: its characters, and the style of each. */
interface Line {
  characters: string[];
  styles: string[];
}

class Screen {
  style = PLAIN;
  dropped = false;
  #lines: Line[] = [{ characters: [], styles: [] }];
  #row = 0;
  #column = 0;

  write(character: string): void {
    if (this.#column >= MOST_ANSI_COLUMNS) return;
    const line = this.#lines[this.#row]!;
    while (line.characters.length < this.#column) {
      line.characters.push(' ');
      line.styles.push('');
    }
    line.characters[this.#column] = character;
    line.styles[this.#column] = this.#classes();
    this.#column++;
  }

  newLine(): void {
    this.#column = 0;
    this.#row++;
    if (this.#row < this.#lines.length) return;
    this.#lines.push({ characters: [], styles: [] });
    if (this.#lines.length > 2 * MOST_ANSI_LINES) {
      this.#lines.splice(0, this.#lines.length - MOST_ANSI_LINES);
      this.#row = this.#lines.length - 1;
      this.dropped = true;
    }
  }

  toColumn(column: number): void {
    this.#column = Math.max(0, Math.min(column, MOST_ANSI_COLUMNS));
  }

  /** Moves inside of the lines that are there: no sequence makes new ones. */
  move(rows: number, columns: number): void {
    this.#row = Math.max(0, Math.min(this.#row + rows, this.#lines.length - 1));
    this.toColumn(this.#column + columns);
  }

  tab(): void {
    this.toColumn((Math.floor(this.#column / 8) + 1) * 8);
  }

  eraseLine(mode: number): void {
    const line = this.#lines[this.#row]!;
    if (mode === 2) line.characters.length = line.styles.length = 0;
    else if (mode === 0) line.characters.length = line.styles.length = Math.min(this.#column, line.characters.length);
    else {
      for (let at = 0; at <= this.#column && at < line.characters.length; at++) {
        line.characters[at] = ' ';
        line.styles[at] = '';
      }
    }
  }

  eraseScreen(mode: number): void {
    if (mode === 0) {
      this.eraseLine(0);
      this.#lines.length = this.#row + 1;
    } else if (mode >= 2) {
      this.#lines = [{ characters: [], styles: [] }];
      this.#row = this.#column = 0;
    }
  }

  lines(): StyledLine[] {
    const lines = this.#lines.map(spansOf);
    // A newline at the end starts no line.
    if (lines.length > 1 && lines.at(-1)!.length === 0) lines.pop();
    if (lines.length > MOST_ANSI_LINES) {
      this.dropped = true;
      return lines.slice(-MOST_ANSI_LINES);
    }
    return lines;
  }

  #known: { style: Style; classes: string } = { style: PLAIN, classes: '' };

  #classes(): string {
    if (this.#known.style !== this.style) this.#known = { style: this.style, classes: classesOf(this.style) };
    return this.#known.classes;
  }
}

function spansOf({ characters, styles }: Line): StyledLine {
  const spans: StyledLine = [];
  for (let at = 0; at < characters.length;) {
    let end = at + 1;
    while (end < characters.length && styles[end] === styles[at]) end++;
    spans.push({ text: visible(characters.slice(at, end).join('')), style: styles[at]! });
    at = end;
  }
  return spans;
}

function classesOf(style: Style): string {
  const [front, back] = style.inverse ? [style.background, style.foreground] : [style.foreground, style.background];
  const names = [front && `fg-${front}`, back && `bg-${back}`];
  for (const name of ['bold', 'dim', 'italic', 'underline', 'strike', 'inverse'] as const) {
    if (style[name]) names.push(name);
  }
  return names.filter(Boolean).join(' ');
}

/** The longest control sequence. What is longer is shown as text after its beginning. */
const LONGEST_SEQUENCE = 256;

function read(text: string, screen: Screen): void {
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at);
    if (code === 0x1b) at = escape(text, at + 1, screen);
    else if (code === 0x9b) at = control(text, at + 1, screen);
    else {
      if (code === 0x0a) screen.newLine();
      else if (code === 0x0d) screen.toColumn(0);
      else if (code === 0x08) screen.move(0, -1);
      else if (code === 0x09) screen.tab();
      else if (code !== 0x07) screen.write(text[at]!);
      at++;
    }
  }
}

/** Reads what follows ESC, and returns where it ends. */
function escape(text: string, at: number, screen: Screen): number {
  const next = text[at];
  if (next === '[') return control(text, at + 1, screen);
  // Titles, links and other strings up to BEL or ESC \.
  if (next !== undefined && ']PX^_'.includes(next)) return afterString(text, at + 1);
  // A character set has one character more.
  if (next !== undefined && '()*+-./#%'.includes(next)) return at + 2;
  return next === undefined ? at : at + 1;
}

function afterString(text: string, from: number): number {
  const last = Math.min(text.length, from + LONGEST_SEQUENCE * 16);
  for (let at = from; at < last; at++) {
    const character = text[at]!;
    if (character === '\u0007' || character === '\u009c') return at + 1;
    if (character === '\u001b') return text[at + 1] === '\\' ? at + 2 : at;
    if (character === '\n') return at;
  }
  return last;
}

/** Reads parameters and the final character of a control sequence. */
function control(text: string, from: number, screen: Screen): number {
  const last = Math.min(text.length, from + LONGEST_SEQUENCE);
  for (let at = from; at < last; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0x40 && code <= 0x7e) {
      carryOut(text[at]!, text.slice(from, at), screen);
      return at + 1;
    }
    // Not a sequence after all.
    if (code < 0x20 || code > 0x3f) return at;
  }
  return last;
}

function carryOut(final: string, given: string, screen: Screen): void {
  const numbers = given
    .split(/[;:]/, MOST_PARAMETERS)
    .map((part) => (/^\d{1,5}$/.test(part) ? Number(part) : undefined));
  const count = Math.max(1, numbers[0] ?? 1);
  switch (final) {
    case 'm':
      // Sequences with a private mark have another meaning.
      if (!/^[<=>?]/.test(given))
        screen.style = withGraphics(
          screen.style,
          numbers.map((number) => number ?? 0),
        );
      return;
    case 'K':
      return screen.eraseLine(numbers[0] ?? 0);
    case 'J':
      return screen.eraseScreen(numbers[0] ?? 0);
    case 'A':
      return screen.move(-count, 0);
    case 'B':
      return screen.move(count, 0);
    case 'C':
      return screen.move(0, count);
    case 'D':
      return screen.move(0, -count);
    case 'E':
    case 'F':
      screen.move(final === 'E' ? count : -count, 0);
      return screen.toColumn(0);
    case 'G':
      return screen.toColumn(count - 1);
  }
}

const MOST_PARAMETERS = 32;

const COLOURS = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];

function withGraphics(before: Style, numbers: number[]): Style {
  const style = { ...before };
  for (let at = 0; at < numbers.length; at++) {
    const number = numbers[at]!;
    if (number === 0) Object.assign(style, PLAIN);
    else if (number === 1) style.bold = true;
    else if (number === 2) style.dim = true;
    else if (number === 3) style.italic = true;
    else if (number === 4) style.underline = true;
    else if (number === 7) style.inverse = true;
    else if (number === 9) style.strike = true;
    else if (number === 22) style.bold = style.dim = false;
    else if (number === 23) style.italic = false;
    else if (number === 24) style.underline = false;
    else if (number === 27) style.inverse = false;
    else if (number === 29) style.strike = false;
    else if (number >= 30 && number <= 37) style.foreground = COLOURS[number - 30]!;
    else if (number >= 90 && number <= 97) style.foreground = `bright-${COLOURS[number - 90]!}`;
    else if (number === 39) style.foreground = '';
    else if (number >= 40 && number <= 47) style.background = COLOURS[number - 40]!;
    else if (number >= 100 && number <= 107) style.background = `bright-${COLOURS[number - 100]!}`;
    else if (number === 49) style.background = '';
    else if (number === 38 || number === 48) {
      const { colour, used } = extended(numbers.slice(at + 1, at + 5));
      if (colour !== undefined) style[number === 38 ? 'foreground' : 'background'] = colour;
      at += used;
    }
  }
  return style;
}

/** One of 256 colours, or of all, as the nearest of the sixteen: those can be read on light and on dark ground. */
function extended([mode, ...rest]: number[]): { colour?: string; used: number } {
  if (mode === 5 && rest[0] !== undefined) return { colour: indexed(rest[0]), used: 2 };
  if (mode === 2 && rest.length === 3) return { colour: nearest(rest[0]!, rest[1]!, rest[2]!), used: 4 };
  return { used: mode === undefined ? 0 : 1 };
}

function indexed(index: number): string | undefined {
  if (index < 8) return COLOURS[index];
  if (index < 16) return `bright-${COLOURS[index - 8]!}`;
  if (index > 255) return undefined;
  if (index >= 232) {
    const grey = 8 + (index - 232) * 10;
    return nearest(grey, grey, grey);
  }
  const level = (value: number): number => (value === 0 ? 0 : 55 + value * 40);
  const cube = index - 16;
  return nearest(level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6));
}

function nearest(red: number, green: number, blue: number): string {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) {
    if (most < 64) return 'black';
    if (most < 140) return 'bright-black';
    return most < 220 ? 'white' : 'bright-white';
  }
  const middle = (most + least) / 2;
  const index = (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
  return most > 200 && least > 60 ? `bright-${COLOURS[index]!}` : COLOURS[index]!;
}
