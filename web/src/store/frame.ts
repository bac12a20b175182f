/** Deferred work: done once per animation frame, however often it was requested. */

const due = new Set<() => void>();
let frame: number | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;

/** The maximum delay on a hidden page, which gets no animation frames. */
const HIDDEN_MS = 250;

export function onNextFrame(task: () => void): void {
  due.add(task);
  if (document.hidden) timer ??= setTimeout(run, HIDDEN_MS);
  else frame ??= requestAnimationFrame(run);
}

function run(): void {
  if (frame !== undefined) cancelAnimationFrame(frame);
  clearTimeout(timer);
  frame = timer = undefined;
  const tasks = [...due];
  due.clear();
  for (const task of tasks) task();
}

/** A frame that was requested before the page was hidden would only come once it is visible again. */
if (typeof document !== 'undefined') {
  document.addEventListener('visibilitychange', () => {
    if (due.size > 0) run();
  });
}
