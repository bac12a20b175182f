/** An agent's questions: the values of their form, and the sent answers. */

import type { ChatInputAnswer, ChatInputQuestion, ChatInputRequest } from '../wire/types';

/** The form values of one question. */
export type Answer = {
  text: string;
  /** Undefined until the user chooses. */
  yes: boolean | undefined;
  chosen: string[];
  /** The typed text, if no option fits. */
  other: string;
};

export type Answers = Record<string, Answer>;

/** The initial form values: earlier answers, or the agent's suggestions. */
export function initial(request: ChatInputRequest): Answers {
  return Object.fromEntries(
    (request.questions ?? []).map((question) => [question.id, begin(question, request.answers?.[question.id])]),
  );
}

function begin(question: ChatInputQuestion, before: ChatInputAnswer | undefined): Answer {
  const answer: Answer = { text: '', yes: undefined, chosen: [], other: '' };
  const value = before && before.state !== 'skipped' ? before.value : undefined;
  switch (question.kind) {
    case 'text':
      answer.text = value?.kind === 'text' ? value.value : (question.defaultValue ?? '');
      break;
    case 'number':
    case 'integer': {
      const number = value?.kind === 'number' ? value.value : question.defaultValue;
      answer.text = number == null ? '' : String(number);
      break;
    }
    case 'boolean':
      answer.yes = value?.kind === 'boolean' ? value.value : (question.defaultValue ?? undefined);
      break;
    case 'single-select':
      if (value?.kind === 'selected') answer.chosen = [value.value];
      else
        answer.chosen = question.options
          .filter((option) => option.recommended)
          .slice(0, 1)
          .map((o) => o.id);
      break;
    case 'multi-select':
      if (value?.kind === 'selected-many') answer.chosen = value.value;
      else answer.chosen = question.options.filter((option) => option.recommended).map((option) => option.id);
      break;
  }
  return answer;
}

/** The answer after a key: digits choose an option by its position, `y` and `n` decide. Undefined if the key has no effect. */
export function choose(question: ChatInputQuestion, answer: Answer, key: string): Answer | undefined {
  if (question.kind === 'boolean') return /^[yn]$/.test(key) ? { ...answer, yes: key === 'y' } : undefined;
  if (question.kind !== 'single-select' && question.kind !== 'multi-select') return undefined;
  const option = /^[1-9]$/.test(key) ? question.options[Number(key) - 1] : undefined;
  if (!option) return undefined;
  if (question.kind === 'single-select') return { ...answer, chosen: [option.id], other: '' };
  const chosen = answer.chosen.includes(option.id)
    ? answer.chosen.filter((other) => other !== option.id)
    : [...answer.chosen, option.id];
  return { ...answer, chosen };
}

/** The sent answers: one for each question; omitted ones are skipped. */
export function collect(questions: ChatInputQuestion[], answers: Answers): Record<string, ChatInputAnswer> {
  return Object.fromEntries(
    questions.map((question) => {
      const answer = answers[question.id];
      return [question.id, (answer && submitted(question, answer)) ?? { state: 'skipped' }];
    }),
  );
}

function submitted(question: ChatInputQuestion, answer: Answer): ChatInputAnswer | undefined {
  const text = answer.text.trim();
  const freeform = answer.other.trim() ? { freeformValues: [answer.other.trim()] } : {};
  switch (question.kind) {
    case 'text':
      return text ? { state: 'submitted', value: { kind: 'text', value: answer.text } } : undefined;
    case 'number':
    case 'integer': {
      const value = Number(text);
      return text && Number.isFinite(value) ? { state: 'submitted', value: { kind: 'number', value } } : undefined;
    }
    case 'boolean':
      return answer.yes === undefined
        ? undefined
        : { state: 'submitted', value: { kind: 'boolean', value: answer.yes } };
    case 'single-select': {
      if (answer.chosen[0] === undefined && !freeform.freeformValues) return undefined;
      return { state: 'submitted', value: { kind: 'selected', value: answer.chosen[0] ?? '', ...freeform } };
    }
    case 'multi-select': {
      if (answer.chosen.length === 0 && !freeform.freeformValues) return undefined;
      return { state: 'submitted', value: { kind: 'selected-many', value: answer.chosen, ...freeform } };
    }
  }
}

/** The limits of a question as text; empty if it has none. */
export function describeBounds(question: ChatInputQuestion): string {
  if (!('min' in question || 'max' in question)) return '';
  const { min, max } = question;
  const unit = UNITS[question.kind];
  if (min == null && max == null) return '';
  const amount = (count: number): string => (unit ? `${count} ${count === 1 ? unit.one : unit.many}` : String(count));
  if (min != null && max != null) return min === max ? `Exactly ${amount(min)}` : `${min} to ${amount(max)}`;
  return min != null ? `At least ${amount(min)}` : `At most ${amount(max!)}`;
}

const UNITS: Record<ChatInputQuestion['kind'], { one: string; many: string } | undefined> = {
  text: { one: 'character', many: 'characters' },
  number: undefined,
  integer: undefined,
  boolean: undefined,
  'single-select': undefined,
  'multi-select': { one: 'choice', many: 'choices' },
};

/** The error of a wrong number of choices; empty if it is right, or if an optional question has none. */
export function choiceProblem(question: ChatInputQuestion, answer: Answer): string {
  if (question.kind !== 'multi-select') return '';
  const count = answer.chosen.length + (answer.other.trim() ? 1 : 0);
  if (count === 0 && !question.required) return '';
  const isWithin = count >= (question.min ?? (question.required ? 1 : 0)) && count <= (question.max ?? Infinity);
  return isWithin ? '' : describeBounds(question) || 'Choose at least one';
}

/** An answer as text. */
export function describeAnswer(question: ChatInputQuestion, answer: ChatInputAnswer | undefined): string {
  if (!answer || answer.state === 'skipped') return '–';
  const { value } = answer;
  const label = (id: string): string =>
    ('options' in question ? question.options.find((option) => option.id === id)?.label : undefined) ?? id;
  switch (value.kind) {
    case 'text':
      return value.value;
    case 'number':
      return String(value.value);
    case 'boolean':
      return value.value ? 'Yes' : 'No';
    case 'selected':
      return [...(value.value ? [label(value.value)] : []), ...(value.freeformValues ?? [])].join(', ');
    case 'selected-many':
      return [...value.value.map(label), ...(value.freeformValues ?? [])].join(', ');
  }
}
