import { expect, test } from 'vitest';
import { read, write } from '../../src/store/route.svelte';

test('the address of a route leads back to it', () => {
  for (const route of [{ kind: 'list' }, { kind: 'new' }, { kind: 'session', uri: 'scripted:/ä b%/c#d' }] as const) {
    expect(read(write(route))).toEqual(route);
  }
});

test('an address that cannot be read leads to the list', () => {
  for (const hash of ['', '#', '#/session/', '#/session/%E0%A4%A', '#/session/%', '#/nothing', '#token=%E0%A4%A']) {
    expect(read(hash), hash).toEqual({ kind: 'list' });
  }
});
