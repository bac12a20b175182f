/** A component in one state. */

import type { Component } from 'svelte';
import { Host } from '../src/store/host.svelte';
import type { ResourceReadResult } from '../src/wire/types';

export interface Story {
  of: Component;
  props: Record<string, unknown>;
  /** Contents that the component reads from the host, by their URIs. */
  contents?: Record<string, ResourceReadResult>;
}

/** The stories of a part of the page: by component, then by state. */
export type Stories = Record<string, Record<string, Story>>;

// The type checker does not see the props of components.
export const story = (of: unknown, props: Record<string, unknown>, contents?: Story['contents']): Story => ({
  of: of as Component,
  props,
  contents,
});

/** A host that is never reached, and has these contents. */
export function recordedHost(contents: Story['contents'] = {}): Host {
  const host = new Host({ openSocket: () => Promise.reject(new Error('there is no host behind a story')) });
  host.read = async (uri) => contents[uri] ?? Promise.reject(new Error(`there is no ${uri}`));
  return host;
}

/** The store of a channel that never changes. What is dispatched is logged. */
export function recordedChannel<S>(uri: string, state: S): unknown {
  return {
    uri,
    state,
    pending: [],
    problem: undefined,
    dispatch: (action: unknown) => (console.info('dispatched', action), 0),
    close: () => {},
  };
}
