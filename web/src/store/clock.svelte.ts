/** The current time, for components that show ages. */

const STEP_MS = 20_000;

class Clock {
  now = $state(Date.now());

  constructor() {
    setInterval(() => {
      this.now = Date.now();
    }, STEP_MS);
  }
}

export const clock = new Clock();
