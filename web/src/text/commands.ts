/** Completing a command at the beginning of a prompt. */

import type { Command } from '../state/meta';

/** The maximum number of suggestions; typing more finds the others. */
const MOST = 50;

/** The typed part of a command, without its slash; undefined if no command is being typed. */
export function typedCommand(text: string, caret: number): string | undefined {
  const typed = /^\/(\S*)/.exec(text)?.[1];
  return typed !== undefined && caret > 0 && caret <= typed.length + 1 ? typed.slice(0, caret - 1) : undefined;
}

/** The commands that begin with the typed text, then those that contain it. */
export function matching(commands: Command[], typed: string): Command[] {
  const sought = typed.toLowerCase();
  const at = (command: Command): number => command.name.toLowerCase().indexOf(sought);
  const begin = commands.filter((command) => at(command) === 0);
  const have = commands.filter((command) => at(command) > 0);
  return [...begin, ...have].slice(0, MOST);
}

/** The prompt with the completed command, and the position of the caret. */
export function complete(text: string, command: Command): { text: string; caret: number } {
  const rest = text.replace(/^\/\S*\s?/, '');
  const begin = `/${command.name} `;
  return { text: begin + rest, caret: begin.length };
}

/** The complete command at the beginning of a prompt. */
export function givenCommand(commands: Command[], text: string): Command | undefined {
  const name = /^\/(\S+)\s/.exec(text)?.[1];
  return name === undefined ? undefined : commands.find((command) => command.name === name);
}
