/** The chats of a session as tabs: chats of people, and below each the chats that its agent started. */

import type { Uri } from '../wire/protocol';
import type { ChatSummary } from '../wire/types';

export interface ChatTab {
  chat: ChatSummary;
  /** Chats of subagents, whatever their depth, in the session's order. */
  subagents: ChatSummary[];
}

export function tabsOf(chats: readonly ChatSummary[]): ChatTab[] {
  const known = new Map(chats.map((chat) => [chat.resource, chat]));
  const tabs = new Map<Uri, ChatTab>();
  for (const chat of chats) if (!parentOf(chat, known)) tabs.set(chat.resource, { chat, subagents: [] });
  for (const chat of chats) {
    const top = topOf(chat, known);
    if (top !== chat.resource) tabs.get(top)?.subagents.push(chat);
  }
  return [...tabs.values()];
}

/** The tab under which a chat is. */
export function tabOf(tabs: readonly ChatTab[], chat: Uri): ChatTab | undefined {
  return tabs.find((tab) => tab.chat.resource === chat || tab.subagents.some((other) => other.resource === chat));
}

/** The chat whose tool call started a chat, if the session has it. */
function parentOf(chat: ChatSummary, known: ReadonlyMap<Uri, ChatSummary>): ChatSummary | undefined {
  if (chat.origin?.kind !== 'tool') return undefined;
  const parent = known.get(chat.origin.chat);
  return parent === chat ? undefined : parent;
}

/** The uppermost chat above a chat. A chat of a cycle, which no host makes, is its own. */
function topOf(chat: ChatSummary, known: ReadonlyMap<Uri, ChatSummary>): Uri {
  let at = chat;
  for (let step = 0; step < known.size; step++) {
    const parent = parentOf(at, known);
    if (!parent) return at.resource;
    at = parent;
  }
  return chat.resource;
}
