/** Completing a command at the beginning of a prompt. */

import type { Command } from '../state/meta';

/** How many are offered; typing on finds the others. */
const MOST = 50;

/** What was typed of a command, without its slash; undefined where none is being typed. */
export function typedCommand(text: string, caret: number): string | undefined {
  const typed = /^\/(\S*)/.exec(text)?.[1];
  return typed !== undefined && caret > 0 && caret <= typed.length + 1 ? typed.slice(0, caret - 1) : undefined;
}

/** The commands that begin with what was typed, and behind them those that have it elsewhere in their names. */
export function matching(commands: Command[], typed: string): Command[] {
  const sought = typed.toLowerCase();
  const at = (command: Command): number => command.name.toLowerCase().indexOf(sought);
  const begin = commands.filter((command) => at(command) === 0);
  const have = commands.filter((command) => at(command) > 0);
  return [...begin, ...have].slice(0, MOST);
}

/** The prompt with the command in the place of what was typed of it, and where the caret goes. */
export function complete(text: string, command: Command): { text: string; caret: number } {
  const rest = text.replace(/^\/\S*\s?/, '');
  const begin = `/${command.name} `;
  return { text: begin + rest, caret: begin.length };
}

/** The command that a prompt begins with, once it is whole. */
export function givenCommand(commands: Command[], text: string): Command | undefined {
  const name = /^\/(\S+)\s/.exec(text)?.[1];
  return name === undefined ? undefined : commands.find((command) => command.name === name);
}
