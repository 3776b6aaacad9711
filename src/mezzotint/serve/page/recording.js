// The passes of one answer, kept to be looked at again, and a clock to play them by.

/** Frames in order; `at`: milliseconds of the model from the first pass to the end of this one. */
export class Recording {
  frames = [];

  get length() {
    return this.frames.length;
  }

  get duration() {
    return this.frames.at(-1)?.at ?? 0;
  }

  add(canvas) {
    const frame = { ...canvas, at: this.duration + canvas.ms };
    this.frames.push(frame);
    return frame;
  }

  /** How many passes had ended `ms` after the start. */
  before(ms) {
    let [low, high] = [0, this.frames.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.frames[middle].at <= ms) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}

/** Calls draw(ms) as time goes by, `speed` model milliseconds for each real one, to the end. */
export class Clock {
  #running = 0;

  constructor(draw, ended) {
    Object.assign(this, { draw, ended });
  }

  get runs() {
    return this.#running > 0;
  }

  play(from, until, speed) {
    this.stop();
    let last = performance.now();
    let ms = from;
    const tick = (now) => {
      ms = Math.min(ms + Math.max(now - last, 0) * speed(), until);
      last = now;
      this.draw(ms);
      if (ms < until) this.#running = requestAnimationFrame(tick);
      else this.stop();
    };
    this.#running = requestAnimationFrame(tick);
  }

  stop() {
    if (!this.#running) return;
    cancelAnimationFrame(this.#running);
    this.#running = 0;
    this.ended();
  }
}

/** Run `draw` with the newest value, once a picture, and not more often than every `gap` ms:
 * a browser that paints takes time from the model that writes. After `stop()` nothing more is
 * drawn: a late picture would take back what was shown since. */
export function paced(draw, gap = 33) {
  let value;
  let [waits, stopped] = [false, false];
  const show = (next) => {
    value = next;
    if (waits || stopped) return;
    waits = true;
    setTimeout(() => requestAnimationFrame(() => {
      waits = false;
      if (!stopped) draw(value);
    }), gap);
  };
  show.stop = () => (stopped = true);
  return show;
}
