import { describe, expect, it } from 'vitest';
import { combine, editsOf, type TurnEdit, total } from '../../src/state/changes';
import type { FileEdit, FileEditSide, ToolCallState, Turn } from '../../src/wire/types';
import { random } from './support';

const side = (path: string, content: string): FileEditSide => ({
  uri: `file://${path}`,
  content: { uri: `grove-content://s/${content}` },
});
const edit = (before: FileEditSide | undefined, after: FileEditSide | undefined, turn = 't'): TurnEdit => ({
  turn,
  edit: { before, after, diff: { added: 2, removed: 1 } },
});
const change = (path: string, from: string, to: string, turn?: string): TurnEdit =>
  edit(side(path, from), side(path, to), turn);

describe('the edits of turns', () => {
  const call = (more: Partial<ToolCallState> | object): Turn => ({
    id: 'one',
    state: 'complete',
    message: { text: '', origin: { kind: 'user' } },
    responseParts: [
      { kind: 'markdown', id: 'm', content: 'x' },
      {
        kind: 'toolCall',
        toolCall: {
          toolCallId: 'c',
          toolName: 'edit',
          displayName: 'Edit',
          invocationMessage: '',
          confirmed: 'not-needed',
          status: 'completed',
          success: true,
          pastTenseMessage: '',
          content: [
            { type: 'text', text: 'ok' },
            { type: 'fileEdit', after: side('/a', '1') },
          ],
          ...more,
        } as ToolCallState,
      },
    ],
  });

  it('are those of calls that succeeded', () => {
    expect(editsOf([call({})])).toMatchObject([{ turn: 'one', edit: { after: { uri: 'file:///a' } } }]);
    expect(editsOf([call({ status: 'pending-result-confirmation' })])).toHaveLength(1);
    expect(editsOf([call({ success: false })])).toEqual([]);
    expect(editsOf([call({ status: 'running' })])).toEqual([]);
    expect(editsOf([call({ content: undefined })])).toEqual([]);
  });
});

describe('several edits of a file', () => {
  it('are one change, from before the first to after the last', () => {
    const [file] = combine([change('/a', '1', '2', 'x'), change('/b', '1', '2', 'x'), change('/a', '2', '3', 'y')]);
    expect(file).toMatchObject({ uri: 'file:///a', kind: 'changed', turns: ['x', 'y'], added: 4, removed: 2 });
    expect(file!.spans).toMatchObject([{ before: side('/a', '1'), after: side('/a', '3'), edits: 2 }]);
  });

  it('are apart where somebody else changed the file in between', () => {
    const [file] = combine([change('/a', '1', '2'), change('/a', '7', '8')]);
    expect(file!.spans.map(({ before, after }) => [before?.content.uri, after?.content.uri])).toEqual([
      ['grove-content://s/1', 'grove-content://s/2'],
      ['grove-content://s/7', 'grove-content://s/8'],
    ]);
  });

  it('that cancel each other out are no change', () => {
    expect(combine([change('/a', '1', '2'), change('/a', '2', '1')])).toEqual([]);
    expect(combine([edit(undefined, side('/a', '1')), edit(side('/a', '1'), undefined)])).toEqual([]);
  });

  it('tell a new file, a deleted one and one that moved', () => {
    const files = combine([
      edit(undefined, side('/new', '1')),
      edit(side('/gone', '1'), side('/gone', '2')),
      edit(side('/gone', '5'), undefined),
      edit(side('/from', '1'), side('/to', '1')),
      edit(side('/to', '1'), side('/to', '2')),
    ]);
    expect(files.map(({ uri, kind, movedFrom }) => [uri, kind, movedFrom])).toEqual([
      ['file:///new', 'new', undefined],
      ['file:///gone', 'deleted', undefined],
      ['file:///to', 'moved', 'file:///from'],
    ]);
    expect(files[1]!.spans).toMatchObject([{ before: side('/gone', '1'), after: undefined }]);
    expect(total(files)).toEqual({ files: 3, added: 10, removed: 5 });
  });

  it('of a file that was written as a whole keep what was there before', () => {
    const [file] = combine([change('/a', '1', '2'), edit(undefined, side('/a', '3'))]);
    expect(file).toMatchObject({ kind: 'changed', spans: [{ before: side('/a', '1'), after: side('/a', '3') }] });
  });

  it('lead from the files at first to the files at the end, whatever was done', () => {
    const below = random(21);
    for (let round = 0; round < 300; round++) {
      const first = new Map(Array.from({ length: below(4) }, (_, n) => [`/f${n}`, `first ${n}`]));
      const now = new Map(first);
      const edits: TurnEdit[] = [];
      for (let step = 0; step < below(12); step++) {
        const path = `/f${below(6)}`;
        const content = now.get(path);
        const next = below(5) === 0 ? `first ${below(4)}` : `${round} ${step}`;
        if (content === undefined) {
          edits.push(edit(undefined, side(path, next)));
          now.set(path, next);
        } else if (below(4) === 0) {
          edits.push(edit(side(path, content), undefined));
          now.delete(path);
        } else if (below(4) === 0) {
          const to = `/moved ${round} ${step}`;
          edits.push(edit(side(path, content), side(to, content)));
          now.delete(path);
          now.set(to, content);
        } else {
          edits.push(change(path, content, next));
          now.set(path, next);
        }
      }
      const applied = new Map(first);
      const files = combine(edits);
      const pathOf = (uri: string): string => uri.slice('file://'.length);
      for (const { uri, movedFrom, kind } of files) if (kind !== 'new') applied.delete(pathOf(movedFrom ?? uri));
      for (const { uri, movedFrom, spans } of files) {
        expect(spans.length).toBeLessThanOrEqual(1);
        const end = spans.length === 0 ? first.get(pathOf(movedFrom!)) : contentOf(spans[0]!.after);
        if (end !== undefined) applied.set(pathOf(uri), end);
      }
      expect(applied).toEqual(now);
    }
  });
});

const contentOf = (found: FileEdit['after']): string | undefined =>
  found?.content.uri.slice('grove-content://s/'.length);
