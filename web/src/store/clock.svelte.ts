/** The time, for whoever shows how long ago something was. */

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
