// The prompts and answers of the benchmark, the same for every contestant.

export const TURNS = 10_000;

/** The answer of a turn: of several lengths, some with code. */
export function answer(n) {
  const words = 'Some words that an agent says. '.repeat((n * 7) % 23);
  const code = n % 5 === 0 ? `\n\n\`\`\`rust\nfn turn() -> usize {\n    ${n}\n}\n\`\`\`` : '';
  return `Answer ${n}.\n\n${words}${code}`;
}

export const prompt = (n) => `Question ${n}?`;

/** Pieces of a streamed answer: a word each, in paragraphs with a code block now and then. */
export function pieces(count) {
  const found = [];
  for (let n = 0; found.length < count; n++) {
    const paragraph = 'The answer goes on with a sentence of ordinary length that explains the next step in detail.';
    found.push(...paragraph.split(' ').map((word) => `${word} `), '\n\n');
    if (n % 10 === 9) found.push('```rust\n', 'fn step() -> usize {\n', `    ${n}\n`, '}\n', '```\n\n');
  }
  return found.slice(0, count);
}
