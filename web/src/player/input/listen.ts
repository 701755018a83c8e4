// Connects browser events to the input: keyboard, mouse with pointer lock, touch drags to look around.
import type { PlayerInput } from './input';
import { PauseKey } from './pausekey';

export interface InputActions {
  /** Esc: the menu opens or closes. */
  togglePause(): void;
  /** The pointer lock was lost: the menu opens. */
  pause(): void;
  toggleDebug(): void;
  toggleLeaderboard(): void;
  /** Positive moves the camera away. */
  zoom(steps: number): void;
  /** The first user gesture: the browser now allows sound. */
  gesture(): void;
}

/** Limits of a tap: longer movements or presses are not taps. */
const TAP_PX = 12;
const TAP_MS = 350;

/** Adds the listeners; the returned function removes them. */
export function listen(canvas: HTMLElement, input: PlayerInput, actions: InputActions): () => void {
  const abort = new AbortController();
  const on = <K extends keyof WindowEventMap>(
    target: EventTarget,
    type: K,
    handler: (event: WindowEventMap[K]) => void,
  ) => target.addEventListener(type, handler as EventListener, { signal: abort.signal, passive: false });

  const pauseKey = new PauseKey();
  onKeys(on, input, actions, pauseKey);
  onMouse(on, canvas, input, actions);
  // While the pointer is locked, the browser consumes Esc; the lost lock is the only signal.
  document.addEventListener(
    'pointerlockchange',
    () => {
      if (document.pointerLockElement === canvas || !input.enabled || !document.hasFocus()) return;
      pauseKey.lockLost(performance.now());
      actions.pause();
    },
    { signal: abort.signal },
  );
  onFingers(on, canvas, input, actions);
  on(window, 'blur', () => input.release());
  return () => {
    abort.abort();
    if (document.pointerLockElement === canvas) document.exitPointerLock();
  };
}

type On = <K extends keyof WindowEventMap>(
  target: EventTarget,
  type: K,
  handler: (event: WindowEventMap[K]) => void,
) => void;

function onKeys(on: On, input: PlayerInput, actions: InputActions, pauseKey: PauseKey): void {
  on(window, 'keydown', (event) => {
    actions.gesture();
    if (event.code === 'Escape')
      return !event.repeat && pauseKey.escape(event.timeStamp) ? actions.togglePause() : undefined;
    if (!input.enabled || isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.code === 'Tab') {
      event.preventDefault();
      if (!event.repeat) actions.toggleDebug();
    } else if (event.code === 'KeyP') {
      if (!event.repeat) actions.toggleLeaderboard();
    } else if (input.key(event.code, true)) {
      event.preventDefault(); // arrows and space would scroll
    }
  });
  on(window, 'keyup', (event) => {
    input.key(event.code, false);
  });
}

function onMouse(on: On, canvas: HTMLElement, input: PlayerInput, actions: InputActions): void {
  const locked = () => document.pointerLockElement === canvas;
  let dragging = false;
  on(canvas, 'pointerdown', (event) => {
    if (event.pointerType === 'touch') return;
    actions.gesture();
    // A browser without pointer lock (or a user who refuses it) still looks by dragging.
    dragging = true;
    input.button(event.button, true);
    if (locked()) return event.button === 0 ? input.fire(true) : undefined;
    void Promise.resolve(canvas.requestPointerLock?.()).catch(() => undefined);
  });
  on(window, 'pointerup', (event) => {
    if (event.pointerType === 'touch') return;
    dragging = false;
    input.button(event.button, false);
    if (event.button === 0) input.fire(false);
  });
  on(window, 'mousemove', (event) => {
    const box = canvas.getBoundingClientRect();
    // A locked pointer has no position; it points at the middle of the screen.
    input.mouse.x = locked() ? box.width / 2 : event.clientX - box.left;
    input.mouse.y = locked() ? box.height / 2 : event.clientY - box.top;
    input.moved.x += event.movementX;
    input.moved.y += event.movementY;
    if (locked() || dragging) input.look(event.movementX, event.movementY);
  });
  on(canvas, 'wheel', (event) => {
    event.preventDefault();
    input.moved.wheel -= Math.sign(event.deltaY);
    actions.zoom(Math.sign(event.deltaY));
  });
  on(canvas, 'contextmenu', (event) => event.preventDefault());
}

function onFingers(on: On, canvas: HTMLElement, input: PlayerInput, actions: InputActions): void {
  const fingers = new Map<number, { x: number; y: number; since: number; way: number }>();
  let spread = 0;
  const spreadNow = () => {
    const [a, b] = [...fingers.values()];
    return a && b ? Math.hypot(a.x - b.x, a.y - b.y) : 0;
  };
  on(canvas, 'pointerdown', (event) => {
    if (event.pointerType !== 'touch') return;
    actions.gesture();
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, { x: event.clientX, y: event.clientY, since: performance.now(), way: 0 });
    spread = spreadNow();
  });
  on(canvas, 'pointermove', (event) => {
    const finger = fingers.get(event.pointerId);
    if (!finger) return;
    const [dx, dy] = [event.clientX - finger.x, event.clientY - finger.y];
    finger.x = event.clientX;
    finger.y = event.clientY;
    finger.way += Math.hypot(dx, dy);
    if (fingers.size === 1) return input.look(dx, dy, true);
    const now = spreadNow();
    actions.zoom((spread - now) / 40);
    spread = now;
  });
  on(canvas, 'pointerup', (event) => {
    const finger = fingers.get(event.pointerId);
    fingers.delete(event.pointerId);
    if (!finger || finger.way > TAP_PX || performance.now() - finger.since > TAP_MS) return;
    const box = canvas.getBoundingClientRect();
    input.tap(event.clientX - box.left, event.clientY - box.top);
  });
  on(canvas, 'pointercancel', (event) => fingers.delete(event.pointerId));
}

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
  );
}
