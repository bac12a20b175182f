import { describe, expect, it } from 'vitest';
import { caretAfter, DraftMerge, mergeDrafts } from '../../src/state/draft';

/** A generator of pseudo-random numbers, so that a failed run can be repeated. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) % below;
  };
}

/** A text with a word of its own at a random position, or with a random part deleted. */
function edited(text: string, word: string, pick: (below: number) => number): { text: string; word: string } {
  const at = pick(text.length + 1);
  return { text: text.slice(0, at) + word + text.slice(at), word };
}

const ancestors = ['', 'make it green', 'a b a b a b a b', 'line one\nline two\n\nline three'];

describe('two changes of a draft', () => {
  it('that are the same, or of which one is none, are the other one', () => {
    expect(mergeDrafts('a', 'b', 'b')).toBe('b');
    expect(mergeDrafts('a', 'a', 'b')).toBe('b');
    expect(mergeDrafts('a', 'b', 'a')).toBe('b');
  });

  it('at different places are both made', () => {
    expect(mergeDrafts('make it green', 'please make it green', 'make it green and fast')).toBe(
      'please make it green and fast',
    );
    expect(mergeDrafts('one two three', 'one three', 'one two three four')).toBe('one three four');
  });

  it('at the same place are both kept, and a text that has the other one in it is newer', () => {
    expect(mergeDrafts('', 'mine', 'theirs')).toBe('mine\ntheirs');
    expect(mergeDrafts('', 'make', 'make it')).toBe('make it');
    expect(mergeDrafts('', 'typed', '')).toBe('typed');
  });

  it('lose nothing that was typed, and give every device the same text', () => {
    for (let seed = 1; seed <= 2_000; seed++) {
      const pick = random(seed);
      const ancestor = ancestors[pick(ancestors.length)]!;
      const mine = edited(ancestor, `<${seed}M>`, pick);
      const theirs = edited(ancestor, `<${seed}T>`, pick);
      const merged = mergeDrafts(ancestor, mine.text, theirs.text);
      expect(merged, `seed ${seed}`).toContain(mine.word);
      expect(merged, `seed ${seed}`).toContain(theirs.word);
      expect(mergeDrafts(ancestor, theirs.text, mine.text), `seed ${seed}`).toBe(merged);
    }
  });
});

describe('devices that type one draft', () => {
  /**
   * Two devices and a host that orders what they send; everything is delivered late, and in this order. As on the page,
   * a device sees its own newest text until the host has confirmed it.
   */
  function run(seed: number): { texts: string[]; host: string; words: string[] } {
    const pick = random(seed);
    const devices = [new DraftMerge(), new DraftMerge()];
    const sent: { from: number; text: string }[] = [];
    let host = '';
    const inboxes: { from: number; text: string }[][] = [[], []];
    const unconfirmed = [0, 0];
    const words: string[] = [];
    const deliver = (device: number): void => {
      const heard = inboxes[device]!.shift();
      if (!heard) return;
      if (heard.from === device) unconfirmed[device]!--;
      else if (unconfirmed[device] === 0) devices[device]!.hear(heard.text);
    };
    const order = (): void => {
      const next = sent.shift();
      if (!next) return;
      host = next.text;
      for (const inbox of inboxes) inbox.push(next);
    };
    const send = (device: number): void => {
      const merge = devices[device]!;
      if (!merge.isUnsent) return;
      const text = merge.send();
      sent.push({ from: device, text });
      unconfirmed[device]!++;
      merge.hear(text);
    };
    const settle = (): void => {
      for (let round = 0; round < 20; round++) {
        for (const device of [0, 1]) send(device);
        while (sent.length > 0) order();
        for (const device of [0, 1]) while (inboxes[device]!.length > 0) deliver(device);
      }
      for (const merge of devices) merge.settle();
    };
    for (let step = 0; step < 40; step++) {
      const device = pick(2);
      switch (pick(9)) {
        case 0:
        case 1:
        case 2: {
          const merge = devices[device]!;
          const gaps = [0, ...[...merge.text.matchAll(/]/g)].map((match) => match.index + 1)];
          const at = gaps[pick(gaps.length)]!;
          const word = `[${device}:${words.length}]`;
          merge.text = `${merge.text.slice(0, at)} ${word}${merge.text.slice(at)}`;
          words.push(word);
          break;
        }
        case 3:
        case 4:
          send(device);
          break;
        case 5:
          order();
          break;
        case 6:
        case 7:
          deliver(device);
          break;
        case 8:
          if (pick(3) === 0) settle();
          break;
      }
    }
    settle();
    return { texts: devices.map((device) => device.text), host, words };
  }

  it('end with the same text as the host', () => {
    for (let seed = 1; seed <= 500; seed++) {
      const { texts, host } = run(seed);
      expect(texts, `seed ${seed}`).toEqual([host, host]);
    }
  });

  it('lose no word', () => {
    for (let seed = 1; seed <= 500; seed++) {
      const { host, words } = run(seed);
      for (const word of words) expect(host, `seed ${seed}`).toContain(word);
    }
  });

  it('keep what is typed while an earlier part is on its way', () => {
    const merge = new DraftMerge();
    merge.text = 'hello';
    merge.send();
    merge.text = 'hell';
    expect(merge.hear('hello')).toBe(false);
    expect(merge.text).toBe('hell');
    expect(merge.isUnsent).toBe(true);
  });

  it('see that the prompt was sent elsewhere', () => {
    const merge = new DraftMerge('a prompt', 'a prompt');
    expect(merge.hear('')).toBe(true);
    expect(merge.text).toBe('');
  });

  it('that come back send what was typed meanwhile, together with what came', () => {
    const merge = new DraftMerge('make it green', 'make it');
    merge.hear('please make it');
    expect(merge.text).toBe('please make it green');
    expect(merge.isUnsent).toBe(true);
  });
});

describe('a caret', () => {
  it('stays where it was in the words around it', () => {
    expect(caretAfter('make it', 'please make it', 7)).toBe(14);
    expect(caretAfter('make it', 'make it green', 4)).toBe(4);
    expect(caretAfter('one two three', 'one three', 13)).toBe(9);
  });
});
