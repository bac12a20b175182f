/** Descriptions of tool calls: the command, the changed text, or the members of the input. */

import { diff, type Line } from './diff';
import { fileName, plain } from './format';
import { toolKindOf, type ToolKind } from '../state/meta';
import { conversation as words } from './messages/conversation';
import type { FileEdit, ToolCallState } from '../wire/types';

/** One member of a tool's input. */
export interface Field {
  name: string;
  value: string;
}

/** A file change that is only in the input: agents that send no diff have the old and the new text there. */
export interface TextChange {
  path: string;
  lines: Line[];
}

export interface Subject {
  command?: string;
  /** The file of the call, if its input names one. */
  path?: string;
  changes: TextChange[];
  fields: Field[];
}

const COMMANDS = ['command', 'cmd', 'script'];
const PATHS = ['file_path', 'filePath', 'path', 'target_file', 'notebook_path', 'abs_path', 'file', 'filename'];
const OLD_TEXTS = ['old_string', 'oldString', 'old_str', 'oldText', 'old_text'];
const NEW_TEXTS = ['new_string', 'newString', 'new_str', 'newText', 'new_text'];
const WHOLE_TEXTS = ['content', 'contents', 'file_text', 'new_source'];

/** Parses a call's input. `kind` tells the meaning of text that is not JSON. */
export function subjectOf(call: ToolCallState, kind: ToolKind | undefined): Subject {
  const input = inputOf(call);
  const members = membersOf(input);
  if (!members) {
    const isCommand = input !== '' && (kind === 'terminal' || (kind === undefined && isShell(call)));
    if (isCommand) return { command: input, changes: [], fields: [] };
    return { changes: [], fields: input ? [{ name: 'Input', value: input }] : [] };
  }
  const command = first(members, COMMANDS, commandLine);
  const path = first(members, PATHS, textOf);
  const changes = path === undefined || command !== undefined ? [] : changesIn(path, members, kind);
  const fields = Object.entries(members).map(([name, value]) => ({ name, value: shown(value) }));
  return { command, path, changes, fields };
}

/** The question of a permission request. The agent's own title is used if it is a question. */
export function questionOf(
  call: ToolCallState,
  title: string,
  kind: ToolKind | undefined,
  subject: Subject,
  edits: FileEdit[],
): string {
  const paths = new Set([...edits.map((edit) => edit.after?.uri ?? edit.before?.uri ?? ''), ...changedPaths(subject)]);
  if (paths.size > 1) return `Change ${paths.size} files?`;
  if (paths.size === 1) return `${editWord(edits)} ${fileName([...paths][0]!) || 'a file'}?`;
  if (subject.command !== undefined) return 'Run this command?';
  // A question that does not name the tool is replaced by one that does.
  if (/\?\s*$/.test(title) && title.trim() !== 'Call this tool?') return title.trim();
  if (kind && subject.path !== undefined) return `${KIND_WORDS[kind]} ${fileName(subject.path)}?`;
  return `Allow ${call.displayName}?`;
}

/** The text of a call's row beside the tool's name. A denied call never ran, so it gets no description. */
export function rowText(call: ToolCallState): string {
  const said = (): string => {
    switch (call.status) {
      case 'completed':
        return plain(call.pastTenseMessage) || plain(call.invocationMessage);
      case 'cancelled':
        return '';
      default:
        return plain(call.invocationMessage);
    }
  };
  const text = said() || call.intention || '';
  // "Running make" adds nothing to the name "make" and the status "Running".
  const name = call.displayName.toLowerCase();
  return [name, `running ${name}`, `ran ${name}`].includes(text.toLowerCase()) ? '' : text;
}

/** The verb of a call's row. Protocols that name a call by its kind get the page's word for it; a title that says it already needs none. */
export function verbOf(call: ToolCallState, kind: ToolKind | undefined, title: string): string {
  const name = call.displayName;
  const verb = kind && PROTOCOL_KINDS.has(name.toLowerCase()) ? KIND_VERBS[kind] : name;
  return title.toLowerCase().startsWith(`${verb.toLowerCase()} `) ? '' : verb;
}

/** The kinds of calls as ACP names them. */
const PROTOCOL_KINDS = new Set([
  'read',
  'edit',
  'delete',
  'move',
  'search',
  'execute',
  'think',
  'fetch',
  'switch_mode',
]);

const KIND_VERBS: Record<ToolKind, string> = {
  terminal: words.run,
  read: words.read,
  edit: words.edit,
  delete: words.delete,
  move: words.move,
  search: words.search,
  think: words.think,
  fetch: words.fetch,
  switchMode: words.switchMode,
};

/** The line of several reads and searches. */
export function runText(calls: ToolCallState[]): { icon: 'read' | 'search'; title: string; files: string } {
  const reads = calls.filter((call) => toolKindOf(call._meta) === 'read');
  const searches = calls.length - reads.length;
  const named = reads.map((call) => subjectOf(call, 'read').path);
  const paths = [...new Set(named.filter((path) => path !== undefined))];
  // A file that is read twice is one file; a read without a path is one too.
  const files = paths.length + named.filter((path) => path === undefined).length;
  const names = paths.map((path) => fileName(path));
  const shown = names.slice(0, FILES_IN_RUN).join(', ');
  const rest = names.length - FILES_IN_RUN;
  return {
    icon: reads.length > 0 ? 'read' : 'search',
    title:
      reads.length === 0
        ? words.searchedAlone(searches)
        : [words.readFiles(files), ...(searches > 0 ? [words.searched(searches)] : [])].join(', '),
    files: rest > 0 ? `${shown}${words.more(rest)}` : shown,
  };
}

const FILES_IN_RUN = 4;

export function firstLine(text: string): string {
  const [line = '', ...more] = text.trim().split('\n');
  return more.length > 0 ? `${line} …` : line;
}

const KIND_WORDS: Record<ToolKind, string> = {
  terminal: 'Run',
  read: 'Read',
  edit: 'Edit',
  delete: 'Delete',
  move: 'Move',
  search: 'Search',
  think: 'Think about',
  fetch: 'Fetch',
  switchMode: 'Switch to',
};

function editWord(edits: FileEdit[]): string {
  if (edits.length > 0 && edits.every((edit) => !edit.before)) return 'Create';
  if (edits.length > 0 && edits.every((edit) => !edit.after)) return 'Delete';
  return 'Edit';
}

function changedPaths(subject: Subject): string[] {
  return subject.changes.map((change) => change.path);
}

function inputOf(call: ToolCallState): string {
  if (call.status === 'streaming') return call.partialInput ?? '';
  return typeof call.toolInput === 'string' ? call.toolInput : '';
}

function isShell(call: ToolCallState): boolean {
  const names = [call.toolName, call.displayName].map((name) => name.toLowerCase());
  const asks = call.status === 'pending-confirmation' ? plain(call.confirmationTitle) : '';
  return asks === 'Run this command?' || names.some((name) => ['bash', 'sh', 'shell', 'terminal'].includes(name));
}

function membersOf(input: string): Record<string, unknown> | undefined {
  if (!input.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(input);
    return value !== null && typeof value === 'object' ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

function first<T>(
  members: Record<string, unknown>,
  names: string[],
  read: (value: unknown) => T | undefined,
): T | undefined {
  for (const name of names) {
    const found = read(members[name]);
    if (found !== undefined) return found;
  }
  return undefined;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

function commandLine(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  if (!Array.isArray(value) || !value.every((word) => typeof word === 'string')) return undefined;
  const words = value as string[];
  // `bash -lc "…"` is shown as the quoted text.
  if (words.length === 3 && /(^|\/)(ba|z|da)?sh$/.test(words[0]!) && /^-[a-z]*c$/.test(words[1]!)) return words[2];
  return words.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(' ');
}

function changesIn(path: string, members: Record<string, unknown>, kind: ToolKind | undefined): TextChange[] {
  const listed = Array.isArray(members['edits']) ? (members['edits'] as unknown[]) : [];
  const objects = listed.filter((item) => item !== null && typeof item === 'object') as Record<string, unknown>[];
  const pairs = [members, ...objects].flatMap((each) => {
    const after = first(each, NEW_TEXTS, textOf);
    return after === undefined ? [] : [[first(each, OLD_TEXTS, textOf) ?? '', after] as const];
  });
  const whole = first(members, WHOLE_TEXTS, textOf);
  if (pairs.length === 0 && whole !== undefined && (kind === 'edit' || kind === undefined)) pairs.push(['', whole]);
  return pairs.flatMap(([before, after]) => {
    const lines = diff(before, after);
    return lines ? [{ path, lines }] : [];
  });
}

function shown(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}
