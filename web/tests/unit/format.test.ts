import { describe, expect, it } from 'vitest';
import {
  visible,
  duration,
  fileName,
  folderName,
  lastLines,
  money,
  pathOf,
  plain,
  tokens,
  typedFolder,
} from '../../src/text/format';

describe('folders', () => {
  it.each([
    ['/home/you/project', 'file:///home/you/project'],
    ['/with space/and#hash', 'file:///with%20space/and%23hash'],
    ['file:///as/it/is', 'file:///as/it/is'],
    ['~', '~'],
    ['~/src', '~/src'],
    ['relative/path', undefined],
    ['./here', undefined],
    ['~you/src', undefined],
    ['//server/share', 'file:///server/share'],
    ['\\\\server\\share\\a b', 'file://server/share/a%20b'],
  ])('%s is %s', (path, uri) => expect(typedFolder(path)).toBe(uri));

  it('are shown as people write them', () => {
    expect(pathOf('file:///with%20space')).toBe('/with space');
    expect(pathOf('file:///broken%')).toBe('/broken%');
    expect(pathOf('ssh://elsewhere/x')).toBe('ssh://elsewhere/x');
    expect(pathOf('file://server/share/a%20b')).toBe('\\\\server\\share\\a b');
    expect(folderName('file://server/share/a%20b')).toBe('a b');
    expect(folderName('file:///home/you/project/')).toBe('project');
  });
});

describe('text', () => {
  it('of durations is short', () => {
    expect(duration(900)).toBe('0.9 s');
    expect(duration(59_000)).toBe('59 s');
    expect(duration(119_700)).toBe('2 min 0 s');
  });

  it('of Markdown on one line has no marks', () => {
    expect(plain({ markdown: 'Ran `ls` in [src](file:///src)' })).toBe('Ran ls in src');
    expect(plain('Ran `ls`')).toBe('Ran `ls`');
  });
});

describe('text that could mislead', () => {
  it('is shown with escapes, and other text as it is', () => {
    expect(visible('rm\u202e fr-\u2069\u009b2J\u0000')).toBe('rm\\u202e fr-\\u2069\\u009b2J\\u0000');
    expect(visible('ä\n\tשלום 👩\u200d👧')).toBe('ä\n\tשלום 👩\u200d👧');
  });
});

describe('numbers', () => {
  it.each([
    [0, '0'],
    [999, '999'],
    [1_000, '1k'],
    [12_345, '12.3k'],
    [128_000, '128k'],
    [999_499, '999k'],
    [999_500, '1M'],
    [1_234_567, '1.23M'],
  ])('%i tokens are %s', (count, text) => expect(tokens(count)).toBe(text));

  it.each([
    [0.4213, 'USD', '0.42 USD'],
    [12, 'EUR', '12.00 EUR'],
    [0.00042, 'USD', '0.00042 USD'],
    [0, 'USD', '0.00 USD'],
    [1, '', '1.00'],
  ])('%f %s are %s', (amount, currency, text) => expect(money({ amount, currency })).toBe(text));
});

describe('the end of a text', () => {
  it('is its last lines, and says that something stands before', () => {
    expect(lastLines('a\nb\n', 2)).toBe('a\nb');
    expect(lastLines('a\nb\nc\n', 2)).toBe('…\nb\nc');
  });

  it('is bounded where a line never ends', () => {
    expect(lastLines('x'.repeat(1_000_000), 5).length).toBeLessThan(5_000);
  });

  it('of a path is a name', () => {
    expect(fileName('file:///with%20space/a.rs')).toBe('a.rs');
    expect(fileName('/plain/folder/')).toBe('folder');
    expect(fileName('')).toBe('');
  });
});
