import { describe, expect, it } from 'vitest';
import {
  commandsOf,
  contextOf,
  costOf,
  placesOf,
  planOf,
  rememberedOf,
  settingsSchemaOf,
  toolKindOf,
  warningsOf,
} from '../../src/state/meta';
import type { SessionState } from '../../src/wire/types';

describe('what comes in _meta', () => {
  it('is read where it has the shape that is expected', () => {
    expect(planOf({ plan: [{ content: 'a', priority: 'high', status: 'inProgress' }] })).toEqual([
      { content: 'a', priority: 'high', status: 'inProgress' },
    ]);
    expect(toolKindOf({ toolKind: 'switchMode' })).toBe('switchMode');
    expect(placesOf({ acp: { locations: [{ path: '/a', line: 3 }, { path: '/b' }] } })).toEqual([
      { path: '/a', line: 3 },
      { path: '/b' },
    ]);
    expect(commandsOf({ commands: [{ name: 'a', description: 'b', hint: 'c' }] })).toEqual([
      { name: 'a', description: 'b', hint: 'c' },
    ]);
    expect(
      rememberedOf({
        remembered: [{ kind: 'shell', about: 'ls', option: { id: '1', label: 'Always', allows: true } }],
      }),
    ).toEqual([{ kind: 'shell', about: 'ls', label: 'Always', allows: true }]);
    expect(contextOf({ context: { used: 1, size: 2 } })).toEqual({ used: 1, size: 2 });
    expect(costOf({ cost: { amount: 0.5, currency: 'USD' } })).toEqual({ amount: 0.5, currency: 'USD' });
  });

  it('that has another shape counts as not there, and nothing fails', () => {
    const odd = [undefined, null, 0, 'x', [], {}, [null], ['x'], [[]], [{}], { locations: 'x' }, { used: 'x' }];
    for (const value of odd) {
      const names = ['plan', 'toolKind', 'acp', 'commands', 'warnings', 'remembered', 'context', 'cost', 'settings'];
      const meta = Object.fromEntries(names.map((name) => [name, value]));
      expect(planOf(meta) ?? []).toEqual([]);
      expect(toolKindOf(meta)).toBeUndefined();
      expect(placesOf(meta)).toEqual([]);
      expect(commandsOf(meta)).toEqual([]);
      expect(warningsOf(meta).filter((warning) => warning !== 'x')).toEqual([]);
      expect(rememberedOf(meta)).toEqual([]);
      expect(contextOf(meta)).toBeUndefined();
      expect(costOf(meta)).toBeUndefined();
      expect(settingsSchemaOf({ _meta: meta } as unknown as SessionState)).toBeUndefined();
    }
  });

  it('that says of a step what is not known keeps the step', () => {
    expect(planOf({ plan: [{ content: 'a', priority: 'urgent', status: 'lost' }, 7] })).toEqual([
      { content: 'a', priority: 'medium', status: 'pending' },
    ]);
  });

  it('warns of each thing once', () => {
    expect(warningsOf({ warnings: ['a', 'b', 'a', 3] })).toEqual(['a', 'b']);
  });
});
