// @vitest-environment jsdom
import { expect, it, test } from 'vitest';
import type { WaitingItem } from '../../src/state/rows';
import { Inbox } from '../../src/store/inbox.svelte';
import { KeyPairs } from '../../src/store/keys';

const item = (id: string): WaitingItem => ({
  session: 'p:1',
  resource: 'r',
  title: 't',
  providerId: 'p',
  providerLabel: 'P',
  updatedAt: 1,
  id,
});

it('hides an answered request until the host has taken it from the list', async () => {
  let items = [item('a'), item('b')];
  const inbox = new Inbox(() => Promise.resolve({ items, more: 3 }));
  await inbox.refresh();
  expect(inbox.count).toBe(5);
  inbox.answered(items[0]!);
  expect(inbox.items.map(({ id }) => id)).toEqual(['b']);
  // The host may list it once more.
  await inbox.refresh();
  expect(inbox.items.map(({ id }) => id)).toEqual(['b']);
  inbox.unanswered(items[0]!);
  expect(inbox.items.map(({ id }) => id)).toEqual(['a', 'b']);
  inbox.answered(items[0]!);
  items = [item('b')];
  await inbox.refresh();
  items = [item('a'), item('b')];
  await inbox.refresh();
  expect(inbox.items.map(({ id }) => id)).toEqual(['a', 'b']);
});

it('asks once for many changes, and keeps what it has without a connection', async () => {
  let asked = 0;
  const inbox = new Inbox(() => {
    asked += 1;
    return asked === 1 ? Promise.resolve({ items: [item('a')], more: 0 }) : Promise.reject(new Error('gone'));
  });
  for (let n = 0; n < 20; n++) inbox.touch();
  await new Promise((resolve) => setTimeout(resolve, 120));
  expect([asked, inbox.count]).toEqual([1, 1]);
  await inbox.refresh();
  expect(inbox.count).toBe(1);
});

test('two keys after each other are a command, for a moment', () => {
  const pairs = new KeyPairs();
  expect(pairs.press('g', 0)).toBeUndefined();
  expect(pairs.press('h', 100)).toBe('g h');
  expect(pairs.press('h', 200)).toBeUndefined();
  expect([pairs.press('g', 0), pairs.press('h', 5000)]).toEqual([undefined, undefined]);
});
