// The main loop: animation frames for drawing, and a timer so that the simulation continues when frames are rare
// (software rendering) or stop (hidden tab).

const TIMER_MS = 16;
/** Longer gaps mean a suspended tab, not a slow frame. */
const FRAME_S_MAX = 0.1;
/** How long presenting a frame may block before the loop yields to other work. */
const BLOCKED_MS = 12;
const PAUSE_MS_MAX = 100;

export interface Loop {
  advance(nowMs: number): void;
  draw(nowMs: number, dtSeconds: number): void;
}

/** Runs until the returned function is called. */
export function runLoop(loop: Loop): () => void {
  const shown = new MessageChannel();
  let last = performance.now();
  let drawn = last;
  let request = 0;
  let pause: ReturnType<typeof setTimeout> | undefined;

  const frame = () => {
    // Not the frame's own timestamp: it can lie before packets that have already been received.
    const now = performance.now();
    const dt = Math.min(FRAME_S_MAX, (now - last) / 1000);
    last = now;
    loop.advance(now);
    loop.draw(now, dt);
    drawn = performance.now();
    shown.port2.postMessage(null);
  };
  const next = () => (request = requestAnimationFrame(frame));

  // With software rendering the browser blocks the page until the frame is presented, then requests the next one before
  // anything else: packets would wait for several frames. So other work gets as much time as the frame took.
  shown.port1.onmessage = () => {
    const blocked = performance.now() - drawn;
    if (blocked < BLOCKED_MS) next();
    else pause = setTimeout(next, Math.min(blocked, PAUSE_MS_MAX));
  };
  next();
  const timer = setInterval(() => loop.advance(performance.now()), TIMER_MS);
  return () => {
    shown.port1.close();
    cancelAnimationFrame(request);
    clearTimeout(pause);
    clearInterval(timer);
  };
}
