// @vitest-environment jsdom
import { afterEach, describe, expect, test } from 'vitest';
import { choose, chosen, preferred, texts } from '../../src/text/messages/language';

afterEach(() => choose(undefined));

describe('the language of the page', () => {
  test('is the first of the browser’s that the page has', () => {
    expect(preferred(['fr-FR', 'de-AT', 'en-GB'])).toBe('de');
    expect(preferred(['EN-us'])).toBe('en');
    expect(preferred(['fr'])).toBe('en');
    expect(preferred([])).toBe('en');
  });

  test('can be chosen on a device, and an unknown one counts as none', () => {
    choose('de');
    expect(chosen()).toBe('de');
    localStorage.setItem('grove-language', 'xx');
    expect(chosen()).toBeUndefined();
    choose(undefined);
    expect(chosen()).toBeUndefined();
  });

  test('decides which texts an area has', () => {
    const area = texts({
      en: { hello: 'Hello', files: (count: number) => `${count} files` },
      de: { hello: 'Hallo', files: (count: number) => `${count} Dateien` },
    });
    expect(area.hello).toBe('Hello');
    expect(area.files(2)).toBe('2 files');
  });
});
