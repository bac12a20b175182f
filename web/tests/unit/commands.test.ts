import { describe, expect, it } from 'vitest';
import { complete, givenCommand, matching, typedCommand } from '../../src/text/commands';

const commands = ['compact', 'commit', 'recompile', 'Init'].map((name) => ({ name, description: '' }));

describe('a command', () => {
  it.each([
    ['/', 1, ''],
    ['/com', 4, 'com'],
    ['/com', 2, 'c'],
    ['/com and more', 4, 'com'],
    ['/com and more', 8, undefined],
    ['/com', 0, undefined],
    ['a/com', 3, undefined],
    [' /com', 3, undefined],
    ['', 0, undefined],
  ])('is being typed in %j with the caret at %i: %j', (text, caret, typed) =>
    expect(typedCommand(text, caret)).toBe(typed),
  );

  it('is found by its beginning first, whatever the case', () => {
    const names = (typed: string): string[] => matching(commands, typed).map((command) => command.name);
    expect(names('com')).toEqual(['compact', 'commit', 'recompile']);
    expect(names('INI')).toEqual(['Init']);
    expect(names('')).toHaveLength(4);
    expect(names('x')).toEqual([]);
  });

  it('is offered among at most fifty', () => {
    const many = Array.from({ length: 200 }, (_, n) => ({ name: `c${n}`, description: '' }));
    expect(matching(many, 'c')).toHaveLength(50);
  });

  it('takes the place of what was typed of it, and of nothing else', () => {
    expect(complete('/co', commands[0]!)).toEqual({ text: '/compact ', caret: 9 });
    expect(complete('/co with care', commands[0]!)).toEqual({ text: '/compact with care', caret: 9 });
  });

  it('is known once it is whole', () => {
    expect(givenCommand(commands, '/compact ')?.name).toBe('compact');
    expect(givenCommand(commands, '/compact')).toBeUndefined();
    expect(givenCommand(commands, '/unknown x')).toBeUndefined();
  });
});
