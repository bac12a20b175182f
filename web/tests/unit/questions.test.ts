import { describe, expect, it } from 'vitest';
import { choiceProblem, collect, describeAnswer, describeBounds, initial } from '../../src/text/questions';
import type { ChatInputQuestion, ChatInputRequest } from '../../src/wire/types';

const options = [
  { id: 'a', label: 'A' },
  { id: 'b', label: 'B', recommended: true },
];
const questions: ChatInputQuestion[] = [
  { kind: 'text', id: 'text', message: 'Text?', defaultValue: 'suggested' },
  { kind: 'integer', id: 'number', message: 'Number?' },
  { kind: 'boolean', id: 'boolean', message: 'Boolean?' },
  { kind: 'single-select', id: 'one', message: 'One?', options, allowFreeformInput: true },
  { kind: 'multi-select', id: 'many', message: 'Many?', options },
];
const request: ChatInputRequest = { id: 'r', questions };

describe('answers', () => {
  it('begin with what the agent suggests', () => {
    const answers = initial(request);
    expect(answers['text']?.text).toBe('suggested');
    expect(answers['one']?.chosen).toEqual(['b']);
    expect(answers['boolean']?.yes).toBeUndefined();
  });

  it('begin with what was answered before', () => {
    const before: ChatInputRequest = {
      ...request,
      answers: { text: { state: 'draft', value: { kind: 'text', value: 'typed' } } },
    };
    expect(initial(before)['text']?.text).toBe('typed');
  });

  it('are sent in the kind of their question, and those that are left out as skipped', () => {
    const answers = initial(request);
    answers['number']!.text = '7';
    answers['boolean']!.yes = false;
    answers['many']!.chosen = [];
    expect(collect(questions, answers)).toEqual({
      text: { state: 'submitted', value: { kind: 'text', value: 'suggested' } },
      number: { state: 'submitted', value: { kind: 'number', value: 7 } },
      boolean: { state: 'submitted', value: { kind: 'boolean', value: false } },
      one: { state: 'submitted', value: { kind: 'selected', value: 'b' } },
      many: { state: 'skipped' },
    });
  });

  it('that fit no option are sent as they were typed', () => {
    const answers = initial(request);
    answers['one'] = { ...answers['one']!, chosen: [], other: ' mine ' };
    expect(collect(questions, answers)['one']).toEqual({
      state: 'submitted',
      value: { kind: 'selected', value: '', freeformValues: ['mine'] },
    });
  });

  it('are shown by the names of their options', () => {
    const answer = { state: 'submitted' as const, value: { kind: 'selected-many' as const, value: ['a', 'b'] } };
    expect(describeAnswer(questions[4]!, answer)).toBe('A, B');
    expect(describeAnswer(questions[0]!, undefined)).toBe('–');
  });
});

describe('bounds', () => {
  const question = (more: object) => ({ id: 'q', message: 'How many?', ...more }) as ChatInputQuestion;

  it.each([
    [{ kind: 'integer', min: 1, max: 10 }, '1 to 10'],
    [{ kind: 'number', min: 0.5 }, 'At least 0.5'],
    [{ kind: 'number', max: 0 }, 'At most 0'],
    [{ kind: 'text', max: 80 }, 'At most 80 characters'],
    [{ kind: 'text', min: 1 }, 'At least 1 character'],
    [{ kind: 'multi-select', options: [], min: 2, max: 2 }, 'Exactly 2 choices'],
    [{ kind: 'text' }, ''],
    [{ kind: 'boolean' }, ''],
  ])('of %o are said', (more, words) => expect(describeBounds(question(more))).toBe(words));

  it('of choices are checked before they are sent', () => {
    const answer = (...chosen: string[]) => ({ text: '', yes: undefined, chosen, other: '' });
    const two = question({ kind: 'multi-select', options: [], min: 2, max: 3, required: true });
    expect(
      ['', 'a', 'a b', 'a b c d'].map((ids) => choiceProblem(two, answer(...ids.split(' ').filter(Boolean)))),
    ).toEqual(['2 to 3 choices', '2 to 3 choices', '', '2 to 3 choices']);
    const optional = question({ kind: 'multi-select', options: [], min: 2 });
    expect([choiceProblem(optional, answer()), choiceProblem(optional, answer('a'))]).toEqual([
      '',
      'At least 2 choices',
    ]);
    expect(choiceProblem(question({ kind: 'multi-select', options: [], required: true }), answer())).toBe(
      'Choose at least one',
    );
  });
});
