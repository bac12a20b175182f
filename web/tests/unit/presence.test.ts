import { describe, expect, it } from 'vitest';
import { answererOf, presenceOf } from '../../src/state/presence';

describe('the clients of a session', () => {
  it('have the names of their tokens, their own names and initials', () => {
    const list = {
      clients: [
        { clientId: 'a', token: 'my-phone', name: 'Grove’s page', kind: 'client', dialect: 'ahp', since: 1 },
        { clientId: 'b', token: 'host', kind: 'agent', dialect: 'v1', since: 2 },
        { clientId: 'c', token: 'in-process', kind: 'hub', dialect: 'ahp', since: 3 },
      ],
      more: 3,
    };
    expect(presenceOf(list)).toEqual({
      clients: [
        { id: 'a', label: 'my-phone (Grove’s page)', initials: 'MP', isAgent: false },
        { id: 'b', label: 'host', initials: 'H', isAgent: true },
      ],
      more: 3,
    });
  });

  it('of another shape are none, and nothing fails', () => {
    for (const odd of [undefined, null, 0, 'x', [], {}, { clients: 'x' }, { clients: [null, {}, []], more: -1 }]) {
      expect(presenceOf(odd)).toEqual({ clients: [], more: 0 });
    }
    expect(presenceOf({ clients: [{ clientId: 'a' }] }).clients[0]?.initials).toBe('?');
  });
});

describe('the party that answered', () => {
  it('is a client or a rule', () => {
    expect(answererOf({ answeredBy: { token: 'phone', client: 'Page' } })).toBe('phone (Page)');
    expect(answererOf({ answeredBy: { token: 'phone' } })).toBe('phone');
    expect(answererOf({ answeredBy: { rule: 'allow ls' } })).toBe('rule allow ls');
    for (const odd of [undefined, {}, { answeredBy: 'x' }, { answeredBy: {} }]) expect(answererOf(odd)).toBeUndefined();
  });
});
