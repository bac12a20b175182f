/**
 * The prompts that are being written, one for each chat. The host has them as drafts, so that other devices show them;
 * the tab's storage has their texts, so that a reload without a connection loses nothing.
 */

import { caretAfter, DraftMerge } from '../state/draft';
import { object } from '../state/meta';
import type { Uri } from '../wire/protocol';
import type { Action, ChatState, Message, MessageAttachment, Turn } from '../wire/types';
import { draft, message } from './intents';

/** The pause in typing after which the host gets the draft. */
export const PAUSE_MS = 600;
/** The time without typing after which every device has seen the draft. */
const SETTLED_MS = 1_500;
/** Attachments of a draft above this size (of their JSON) stay on this device. */
const MOST_SHARED = 32 * 1024;
/** The tab stores at most so many characters of a text, and so many texts; others are kept in memory alone. */
const MOST_STORED = 128 * 1024;
const MOST_STORED_TEXTS = 50;
const KEY = 'grove-draft ';

type Dispatch = (chat: Uri, action: Action) => void;

export class Prompt {
  text = $state('');
  attachments = $state.raw<readonly MessageAttachment[]>([]);
  /** The turn whose message is being edited, to send it again. */
  editing = $state.raw<Turn | undefined>();
  /** Moves the caret of the field after the text was changed by another device. */
  onMerged: ((caret: (before: number) => number) => void) | undefined;

  #chat: Uri;
  #dispatch: Dispatch;
  #merge: DraftMerge;
  /** The attachments of the host's draft. */
  #shared = fingerprint([]);
  #heard: { draft: Message | undefined } | undefined;
  #isConfirmed = true;
  /** The attachments were changed here, and the host does not know it. */
  #attachmentsChanged = false;
  #isShared = true;
  #pause: ReturnType<typeof setTimeout> | undefined;
  #settling: ReturnType<typeof setTimeout> | undefined;
  /** The prompt that waits while a message is edited. */
  #aside: { text: string; attachments: readonly MessageAttachment[] } | undefined;

  constructor(chat: Uri, dispatch: Dispatch) {
    this.#chat = chat;
    this.#dispatch = dispatch;
    const { text, ancestor } = load(chat);
    this.text = text;
    this.#merge = new DraftMerge(text, ancestor);
  }

  get isEmpty(): boolean {
    return this.text.trim() === '' && this.attachments.length === 0;
  }

  /** The person changed the text or the attachments. */
  changed(): void {
    if (this.editing) return;
    this.#merge.text = this.text;
    store(this.#chat, this.text, this.#merge.ancestor);
    clearTimeout(this.#pause);
    this.#pause = setTimeout(() => this.flush(), PAUSE_MS);
    this.#restless();
  }

  attach(more: readonly MessageAttachment[]): void {
    this.attachments = [...this.attachments, ...more];
    this.#attachmentsChanged = true;
    this.changed();
  }

  detach(one: MessageAttachment): void {
    this.attachments = this.attachments.filter((other) => other !== one);
    this.#attachmentsChanged = true;
    this.changed();
  }

  /** Puts a text into the prompt, in place of the present one. */
  put(text: string): void {
    if (this.editing) this.stopEditing();
    this.text = text;
    this.changed();
  }

  /** The state of the chat, with the host's draft. `isConfirmed` is false while one of this device is on its way. */
  hear(state: ChatState, isConfirmed = true): void {
    this.#isConfirmed = isConfirmed;
    // Most states differ in what streams.
    if (this.#heard && this.#heard.draft === state.draft) return;
    this.#heard = { draft: state.draft };
    const before = this.text;
    const theirs = state.draft?.text ?? '';
    // A draft that was sent elsewhere has ended here too, however recently it was typed.
    if (theirs === '' && wasSent(state, this.#merge.text)) this.#merge.settle();
    const merged = this.#merge.hear(theirs);
    const attachments = state.draft?.attachments ?? [];
    const shared = fingerprint(attachments);
    if (shared !== this.#shared && !this.#attachmentsChanged) {
      this.#shared = shared;
      const own = this.attachments.filter((one) => !isSmall([one]));
      if (this.#aside) this.#aside.attachments = attachments;
      else this.attachments = [...own, ...attachments];
    }
    if (merged) {
      if (this.#aside) this.#aside.text = this.#merge.text;
      else {
        this.text = this.#merge.text;
        this.onMerged?.((caret) => caretAfter(before, this.text, caret));
      }
      store(this.#chat, this.#merge.text, this.#merge.ancestor);
    }
    // Also after a reconnect: the host has not got what was typed meanwhile.
    if (this.#merge.isUnsent) {
      clearTimeout(this.#pause);
      this.#pause = setTimeout(() => this.flush(), PAUSE_MS);
    }
    if (merged) this.#restless();
  }

  /** Sends the draft to the host now, if that has another one. */
  flush(): void {
    clearTimeout(this.#pause);
    if (this.editing || !this.#isShared) return;
    const shared = this.attachments.filter((one) => isSmall([one]));
    const attached = isSmall(shared) ? shared : [];
    const print = fingerprint(attached);
    this.#attachmentsChanged = false;
    if (!this.#merge.isUnsent && print === this.#shared) return;
    this.#shared = print;
    const text = this.#merge.send();
    this.#dispatch(this.#chat, draft(text || attached.length > 0 ? message(text, attached) : undefined));
  }

  /** The host refuses drafts: this one stays here. */
  keepHere(): void {
    this.#isShared = false;
  }

  /** Takes the message out of the prompt. `flush` ends the draft after the message was sent. */
  take(): Message {
    const given = message(this.text.trim(), this.attachments);
    if (this.editing) this.stopEditing();
    else this.#replace('', []);
    return given;
  }

  /** Puts a message into the prompt that could not be sent, unless something else was written meanwhile. */
  restore(given: Message): void {
    if (!this.isEmpty || this.editing) return;
    this.#replace(given.text, given.attachments ?? []);
    this.changed();
  }

  edit(turn: Turn): void {
    this.#aside ??= { text: this.text, attachments: this.attachments };
    this.flush();
    this.editing = turn;
    this.text = turn.message.text;
    this.attachments = turn.message.attachments ?? [];
  }

  stopEditing(): void {
    const { text, attachments } = this.#aside ?? { text: '', attachments: [] };
    this.editing = undefined;
    this.#aside = undefined;
    this.text = text;
    this.attachments = attachments;
  }

  #replace(text: string, attachments: readonly MessageAttachment[]): void {
    this.text = text;
    this.attachments = attachments;
    this.#merge.text = text;
    store(this.#chat, text, this.#merge.ancestor);
  }

  #restless(): void {
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => {
      // Without an answer of the host nobody else has seen the text.
      if (this.#isConfirmed) this.#merge.settle();
      else this.#restless();
    }, SETTLED_MS);
  }
}

export class Prompts {
  #all = new Map<Uri, Prompt>();
  #dispatch: Dispatch;

  constructor(dispatch: Dispatch) {
    this.#dispatch = dispatch;
  }

  of(chat: Uri): Prompt {
    let prompt = this.#all.get(chat);
    if (!prompt) {
      prompt = new Prompt(chat, this.#dispatch);
      this.#all.set(chat, prompt);
    }
    return prompt;
  }

  /** The chat is shown no more: an empty prompt need not be kept. */
  release(chat: Uri): void {
    const prompt = this.#all.get(chat);
    prompt?.flush();
    if (prompt?.isEmpty) this.#all.delete(chat);
  }
}

/** Deletes the drafts that this tab stores, as when its key is forgotten. */
export function forgetDrafts(): void {
  for (const key of storedKeys()) sessionStorage.removeItem(key);
}

/** Returns whether the newest message of a chat has the text. */
function wasSent(state: ChatState, text: string): boolean {
  const newest = [state.turns.at(-1), state.activeTurn, state.queuedMessages?.at(-1), state.steeringMessage];
  return text !== '' && newest.some((one) => one?.message.text === text.trim());
}

/** The same for attachments that differ in the order of their members alone, as after their way through a host. */
function fingerprint(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) => {
    const members = object(member);
    return members ? Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => (a < b ? -1 : 1))) : member;
  });
}

function isSmall(attachments: readonly MessageAttachment[]): boolean {
  return JSON.stringify(attachments).length <= MOST_SHARED;
}

function store(chat: Uri, text: string, ancestor: string): void {
  try {
    if (text === '') sessionStorage.removeItem(KEY + chat);
    else if (text.length + ancestor.length <= MOST_STORED) {
      const keys = storedKeys();
      if (keys.length >= MOST_STORED_TEXTS && !keys.includes(KEY + chat)) sessionStorage.removeItem(keys[0]!);
      sessionStorage.setItem(KEY + chat, JSON.stringify([text, ancestor]));
    }
  } catch {
    // A browser that stores nothing: the host has the draft.
  }
}

function load(chat: Uri): { text: string; ancestor: string } {
  try {
    const [text, ancestor] = JSON.parse(sessionStorage.getItem(KEY + chat) ?? '[]') as unknown[];
    if (typeof text === 'string' && typeof ancestor === 'string') return { text, ancestor };
  } catch {
    // Nothing is stored, or something else.
  }
  return { text: '', ancestor: '' };
}

function storedKeys(): string[] {
  return Object.keys(sessionStorage).filter((key) => key.startsWith(KEY));
}
