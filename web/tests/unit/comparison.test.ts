import { describe, expect, it } from 'vitest';
import { compareBranches, entriesOf, filesOf, type LogEntry, matchOf, pathTo } from '../../src/state/comparison';
import { differences, isOther } from '../../src/text/worddiff';
import { random } from './support';

const entry = (id: string, parent: string | null, line: object): Record<string, unknown> => ({
  id,
  parentId: parent,
  ...line,
});
const user = (text: string) => ({ type: 'message', message: { role: 'user', content: text } });
const agent = (text: string, parts: object[] = []) => ({
  type: 'message',
  message: {
    role: 'assistant',
    content: [{ type: 'text', text }, ...parts.map(() => ({ type: 'toolCall', name: 'edit' }))],
  },
  grove: { parts },
});
const edited = (path: string, after: string | undefined, success = true) => ({
  toolCall: {
    status: {
      completed: { success, attached: [{ edit: { path, after: after && { id: after }, added: 1, removed: 2 } }] },
    },
  },
});
const read = (lines: object[]): LogEntry[] => entriesOf({ entries: lines }).entries;

const log = read([
  { type: 'session', version: 3 },
  entry('a', null, user('Hello')),
  entry('b', 'a', agent('Hi')),
  entry('x', 'b', { type: 'custom', customType: 'grove.turnEnd' }),
  entry('c', 'x', user('Left')),
  entry('d', 'c', agent('L1', [edited('/one', '1'), edited('/two', '2'), edited('/no', '3', false)])),
  entry('e', 'd', { type: 'message', message: { role: 'toolResult', content: [] } }),
  entry('f', 'e', agent('L2', [edited('/one', '4')])),
  entry('g', 'b', { type: 'branch_summary', summary: 'It was tried.' }),
  entry('h', 'g', user('Right')),
  entry('i', 'h', agent('R1', [edited('/one', '4'), edited('/two', '9'), edited('/three', undefined)])),
  entry('l', 'i', { type: 'label', label: 'x' }),
]);

describe('two branches', () => {
  it('are compared from their last common entry on', () => {
    const { ancestor, left, right } = compareBranches(log, 'f', 'l');
    expect(ancestor).toBe('b');
    expect(left.map(({ prompt, answer, tools }) => [prompt, answer, tools.length])).toEqual([['Left', 'L1\n\nL2', 4]]);
    expect(right.map(({ prompt, answer }) => [prompt, answer])).toEqual([
      ['', 'It was tried.'],
      ['Right', 'R1'],
    ]);
  });

  it('of which one is the beginning of the other have nothing on that side', () => {
    expect(compareBranches(log, 'b', 'f')).toMatchObject({ ancestor: 'b', left: [], right: [{ prompt: 'Left' }] });
    expect(compareBranches(log, 'gone', 'a')).toMatchObject({ ancestor: undefined, left: [] });
  });

  it('say which files they changed, and which of them are the same', () => {
    const { left, right } = compareBranches(log, 'f', 'l');
    const [ours, theirs] = [filesOf(left), filesOf(right)];
    expect(ours.map(({ path, after, added }) => [path, after, added])).toEqual([
      ['/one', '4', 2],
      ['/two', '2', 1],
    ]);
    expect(theirs.map((edit) => matchOf(edit, ours))).toEqual(['same', 'different', 'only']);
  });

  it('of a log whose parents go round in a circle end', () => {
    const round = new Map(read([entry('a', 'b', user('1')), entry('b', 'a', user('2'))]).map((one) => [one.id, one]));
    expect(pathTo(round, 'a').map(({ id }) => id)).toEqual(['b', 'a']);
  });

  it('of a log with other shapes are what can be read', () => {
    const odd = read([
      entry('a', null, { type: 'message', message: 7 }),
      entry('b', 'a', {
        type: 'message',
        message: { role: 'assistant', content: [null, { type: 'toolCall' }] },
        grove: { parts: [{ toolCall: 'x' }, 3] },
      }),
    ]);
    expect(compareBranches(odd, 'b', '').left).toEqual([{ id: 'b', prompt: '', answer: '', tools: [''], edits: [] }]);
    expect(entriesOf(null)).toEqual({ entries: [], cursor: undefined, more: false });
  });
});

describe('the words that differ', () => {
  it('are marked on both sides', () => {
    expect(differences('the red house', 'the blue house')).toEqual({
      left: [
        { text: 'the ', isSame: true },
        { text: 'red ', isSame: false },
        { text: 'house', isSame: true },
      ],
      right: [
        { text: 'the ', isSame: true },
        { text: 'blue ', isSame: false },
        { text: 'house', isSame: true },
      ],
    });
  });

  it('say nothing where hardly any is shared', () => {
    expect(isOther(differences('one two three', 'four five six').left)).toBe(true);
    expect(isOther(differences('one two three', 'one two four').left)).toBe(false);
    expect(isOther([])).toBe(false);
  });

  it('leave both texts whole, and mark nothing in equal ones', () => {
    const below = random(4);
    const text = (): string => Array.from({ length: below(2_200) }, () => 'ab \n<'[below(5)]!).join('');
    for (let round = 0; round < 60; round++) {
      const [a, b] = [text(), text()];
      const { left, right } = differences(a, b);
      expect(left.map((one) => one.text).join('')).toBe(a);
      expect(right.map((one) => one.text).join('')).toBe(b);
      expect(differences(a, a).left.every(({ isSame }) => isSame)).toBe(true);
    }
  });
});
