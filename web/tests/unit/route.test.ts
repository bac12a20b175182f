import { expect, test } from 'vitest';
import { read, type Route, write } from '../../src/store/route.svelte';

test('the address of a route leads back to it', () => {
  const uri = 'scripted:/ä b%/c#d?e=f';
  const routes: Route[] = [
    { kind: 'home' },
    { kind: 'new' },
    { kind: 'settings', section: 'agents' },
    { kind: 'session', uri },
    { kind: 'session', uri, panel: 'tree' },
    { kind: 'session', uri, chat: 'ahp-chat://default/x&y=z', panel: 'changes', turn: 't 1' },
  ];
  for (const route of routes) expect(read(write(route))).toEqual(route);
});

test('an address that cannot be read leads home', () => {
  for (const hash of ['', '#', '#/session/', '#/session/%E0%A4%A', '#/session/%', '#/nothing', '#token=%E0%A4%A']) {
    expect(read(hash), hash).toEqual({ kind: 'home' });
  }
});

test('options of an address that are unknown or damaged are left out', () => {
  expect(read('#/session/a?panel=none&turn=%E0%A4%A&x=1&chat')).toEqual({ kind: 'session', uri: 'a' });
  expect(read('#/settings')).toEqual({ kind: 'settings', section: 'general' });
  expect(read('#/settings/none')).toEqual({ kind: 'settings', section: 'general' });
});
