/** A worker has no storage of its own. The choice of the language, which the page shares with it, expects that. */
declare const localStorage: {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
};
