import { describe, expect, it } from 'vitest';
import { duration, fileUri, folderName, pathOf, plain } from '../../src/text/format';

describe('folders', () => {
  it.each([
    ['/home/you/project', 'file:///home/you/project'],
    ['/with space/and#hash', 'file:///with%20space/and%23hash'],
    ['file:///as/it/is', 'file:///as/it/is'],
  ])('%s is %s', (path, uri) => expect(fileUri(path)).toBe(uri));

  it('are shown as people write them', () => {
    expect(pathOf('file:///with%20space')).toBe('/with space');
    expect(pathOf('file:///broken%')).toBe('/broken%');
    expect(pathOf('ssh://elsewhere/x')).toBe('ssh://elsewhere/x');
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
