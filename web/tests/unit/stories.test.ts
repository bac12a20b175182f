// @vitest-environment jsdom
/** Every story can be drawn, so the story page shows components as they are. */

import { flushSync, mount, unmount } from 'svelte';
import { beforeEach, expect, it, vi } from 'vitest';
import Stage from '../../dev/Stage.svelte';
import { ALL } from '../../dev/all';
import type { Story } from '../../dev/story';

const all: [string, Story][] = Object.entries(ALL).flatMap(([part, stories]) =>
  Object.entries(stories).flatMap(([component, states]) =>
    Object.entries(states).map(([state, story]): [string, Story] => [`${part}/${component}: ${state}`, story]),
  ),
);

beforeEach(() => {
  vi.stubGlobal('matchMedia', () => ({ matches: false, addEventListener: () => {}, removeEventListener: () => {} }));
  const observer = class {
    observe(): void {}
    unobserve(): void {}
    disconnect(): void {}
  };
  vi.stubGlobal('IntersectionObserver', observer);
  vi.stubGlobal('ResizeObserver', observer);
});

it.each(all)('%s is drawn', async (_name, story) => {
  const target = document.createElement('div');
  const shown = mount(Stage, { target, props: { of: story } });
  flushSync();
  expect(target.textContent?.trim() || target.querySelector('svg, img, button, input')).toBeTruthy();
  await unmount(shown);
});
