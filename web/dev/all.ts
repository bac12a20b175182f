import type { Stories } from './story';

/** All stories, by the part of the page. */
export const ALL: Record<string, Stories> = Object.fromEntries(
  Object.entries(import.meta.glob<{ stories: Stories }>('./stories/*.ts', { eager: true })).map(([path, module]) => [
    /(\w+)\.ts$/.exec(path)![1]!,
    module.stories,
  ]),
);
