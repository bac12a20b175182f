import { expect, test } from 'vitest';
import { search, score } from '../../src/text/fuzzy';

const found = (items: string[], query: string): string[] => search(items, query, (item) => item, 10);

test('letters in their order find a text, and the best fit is first', () => {
  const items = ['Show all keys', 'New session', 'Unsent drafts', 'Settings'];
  expect(found(items, 'new')[0]).toBe('New session');
  expect(found(items, 'ns')[0]).toBe('New session');
  expect(found(items, 'sak')).toEqual(['Show all keys']);
  expect(found(items, 'zz')).toEqual([]);
});

test('a text without a query keeps its order, and a whole word wins', () => {
  expect(found(['b', 'a'], '  ')).toEqual(['b', 'a']);
  expect(found(['Brush on ice and damp', 'build'], 'build')).toEqual(['build']);
  expect(score('Fix the build', 'build')!).toBeGreaterThan(score('By using islands, leave dust', 'build')!);
});
