/** Short messages to the user: errors, and announcements for screen readers. */

export interface Notice {
  id: number;
  text: string;
}

const SHOWN_MS = 10_000;

export class Notices {
  items = $state.raw<Notice[]>([]);
  /** The next announcement of a screen reader. */
  spoken = $state('');
  #next = 1;

  add(text: string): void {
    const notice = { id: this.#next++, text };
    this.items = [...this.items, notice];
    setTimeout(() => this.dismiss(notice.id), SHOWN_MS);
  }

  dismiss(id: number): void {
    this.items = this.items.filter((notice) => notice.id !== id);
  }

  say(text: string): void {
    this.spoken = text;
  }
}
