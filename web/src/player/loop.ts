// The heartbeat of the page: frames for drawing, and a timer so that the world goes on when frames are rare
// (software rendering) or stop (hidden tab).

const TIMER_MS = 16;
/** Longer gaps are a paused tab, not a slow frame. */
const FRAME_S_MAX = 0.1;

export interface Loop {
  advance(nowMs: number): void;
  draw(nowMs: number, dtSeconds: number): void;
}

/** Runs until the returned function is called. */
export function runLoop(loop: Loop): () => void {
  let last = performance.now();
  let request = requestAnimationFrame(function frame() {
    request = requestAnimationFrame(frame);
    // Not the frame's own timestamp: it can lie before packets that have already been received.
    const now = performance.now();
    const dt = Math.min(FRAME_S_MAX, (now - last) / 1000);
    last = now;
    loop.advance(now);
    loop.draw(now, dt);
  });
  const timer = setInterval(() => loop.advance(performance.now()), TIMER_MS);
  return () => {
    cancelAnimationFrame(request);
    clearInterval(timer);
  };
}
