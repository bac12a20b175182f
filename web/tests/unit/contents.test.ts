import { describe, expect, it } from 'vitest';
import { compare, MOST_SHOWN_BYTES, nameOf } from '../../src/store/contents';
import { MOST_CHARACTERS, MOST_LINES } from '../../src/text/diff';
import type { FileEdit, FileEditSide, ResourceReadResult } from '../../src/wire/types';

const side = (content: string, sizeHint = 10): FileEditSide => ({
  uri: 'file:///a',
  content: { uri: `grove-content://s/${content}`, sizeHint },
});

/** Compares with a host that has these texts, and returns which were fetched. */
async function comparing(edit: FileEdit, texts: Record<string, string | ResourceReadResult>) {
  const fetched: string[] = [];
  const shown = await compare(edit, async (uri) => {
    const name = uri.split('/').at(-1)!;
    fetched.push(name);
    const found = texts[name];
    if (found === undefined) throw new Error(`there is no ${name}`);
    return typeof found === 'string' ? { data: found, encoding: 'utf-8' } : found;
  });
  return { shown, fetched };
}

describe('a changed file', () => {
  it('shows the lines that differ', async () => {
    const { shown } = await comparing({ before: side('old'), after: side('new') }, { old: 'a\nb\n', new: 'a\nc\n' });
    expect(shown.kind === 'lines' && shown.lines.map((line) => line.kind)).toEqual(['same', 'removed', 'added']);
  });

  it('that is new or gone shows all of its lines', async () => {
    const created = await comparing({ after: side('new') }, { new: 'a\n' });
    expect(created.shown).toMatchObject({ lines: [{ kind: 'added', text: 'a' }] });
    const removed = await comparing({ before: side('old') }, { old: 'a\n' });
    expect(removed.shown).toMatchObject({ lines: [{ kind: 'removed', text: 'a' }] });
  });

  it('that is too long to be compared shows its new text, and the old one is not fetched', async () => {
    const edit = { before: side('old', MOST_CHARACTERS + 1), after: side('new') };
    expect(await comparing(edit, { new: 'a' })).toEqual({ shown: { kind: 'text', text: 'a' }, fetched: ['new'] });
    const lines = 'x\n'.repeat(MOST_LINES + 1);
    const { shown } = await comparing({ before: side('old'), after: side('new') }, { old: 'a', new: lines });
    expect(shown).toEqual({ kind: 'text', text: lines });
  });

  it('that is huge, gone and long, no text, or the same says so', async () => {
    const huge = await comparing({ after: side('new', MOST_SHOWN_BYTES + 1) }, {});
    expect(huge).toMatchObject({ shown: { kind: 'nothing' }, fetched: [] });
    expect((await comparing({ before: side('old', MOST_CHARACTERS + 1) }, {})).shown).toMatchObject({
      kind: 'nothing',
    });
    const bytes = await comparing({ after: side('new') }, { new: { data: 'AAAA', encoding: 'base64' } });
    expect(bytes.shown).toMatchObject({ kind: 'nothing', why: 'This is not text.' });
    const same = await comparing({ before: side('old'), after: side('new') }, { old: 'a', new: 'a' });
    expect(same.shown).toMatchObject({ kind: 'nothing' });
  });

  it('that is a picture shows the old and the new one, and nothing else as a picture', async () => {
    const named = (name: string, content: string) => ({ uri: `file:///w/${name}`, content: side(content).content });
    const bytes: ResourceReadResult = { data: 'AAAA', encoding: 'base64' };
    const edit = { before: named('a.PNG', 'old'), after: named('a.PNG', 'new') };
    expect((await comparing(edit, { old: bytes, new: { ...bytes, data: 'BBBB' } })).shown).toEqual({
      kind: 'pictures',
      before: 'data:image/png;base64,AAAA',
      after: 'data:image/png;base64,BBBB',
    });
    for (const name of ['a.svg', 'a.html', 'constructor', 'png']) {
      const shown = (await comparing({ after: named(name, 'new') }, { new: bytes })).shown;
      expect([name, shown.kind]).toEqual([name, 'nothing']);
    }
  });

  it('that cannot be fetched fails with the reason', async () => {
    await expect(comparing({ after: side('lost') }, {})).rejects.toThrow('there is no lost');
  });
});

describe('what is saved', () => {
  it.each([
    ['file:///home/you/notes.md', undefined, 'notes.md'],
    ['grove-content://s/0123456789abcdef', 'image/png', '0123456789ab.png'],
    ['grove-content://s/0123', 'text/plain', '0123.txt'],
    ['grove-content://s/0123', undefined, '0123'],
    ['grove-content://s/0123', 'application/x-strange', '0123'],
  ])('of %s as %s is called %s', (uri, contentType, name) => expect(nameOf({ uri, contentType })).toBe(name));
});
