// Connects the browser's events to the input: keyboard, mouse with pointer lock, fingers that drag to look.
import type { PlayerInput } from './input';

export interface InputActions {
  /** Esc, or the browser took the pointer back. */
  pause(): void;
  toggleDebug(): void;
  showPlayers(shown: boolean): void;
  /** Positive moves the camera away. */
  zoom(steps: number): void;
  /** The first gesture: sound may start. */
  gesture(): void;
}

const PAUSE_ONCE_MS = 150;
/** A finger that went farther or stayed longer did not tap. */
const TAP_PX = 12;
const TAP_MS = 350;

/** Listens until the returned function is called. */
export function listen(canvas: HTMLElement, input: PlayerInput, actions: InputActions): () => void {
  const abort = new AbortController();
  const on = <K extends keyof WindowEventMap>(target: EventTarget, type: K, handler: (event: WindowEventMap[K]) => void) =>
    target.addEventListener(type, handler as EventListener, { signal: abort.signal, passive: false });

  // Some browsers report Esc twice, as a lost pointer lock and as a key: one press must not open and close the menu.
  let pausedAt = -Infinity;
  const pause = () => {
    if (performance.now() - pausedAt < PAUSE_ONCE_MS) return;
    pausedAt = performance.now();
    actions.pause();
  };
  onKeys(on, input, { ...actions, pause });
  onMouse(on, canvas, input, { ...actions, pause }, abort.signal);
  onFingers(on, canvas, input, actions);
  on(window, 'blur', () => input.release());
  return () => {
    abort.abort();
    if (document.pointerLockElement === canvas) document.exitPointerLock();
  };
}

type On = <K extends keyof WindowEventMap>(target: EventTarget, type: K, handler: (event: WindowEventMap[K]) => void) => void;

function onKeys(on: On, input: PlayerInput, actions: InputActions): void {
  on(window, 'keydown', (event) => {
    actions.gesture();
    if (event.code === 'Escape') return actions.pause();
    if (!input.enabled || isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.code === 'Tab') {
      event.preventDefault();
      if (!event.repeat) actions.toggleDebug();
    } else if (event.code === 'KeyP') {
      actions.showPlayers(true);
    } else if (input.key(event.code, true)) {
      event.preventDefault(); // arrows and space would scroll
    }
  });
  on(window, 'keyup', (event) => {
    if (event.code === 'KeyP') actions.showPlayers(false);
    input.key(event.code, false);
  });
}

function onMouse(on: On, canvas: HTMLElement, input: PlayerInput, actions: InputActions, signal: AbortSignal): void {
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
    // A locked pointer has no place: what it points at is the middle.
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
  // While the pointer is locked, the browser keeps Esc for itself: losing the lock is how we learn of it.
  document.addEventListener('pointerlockchange', () => !locked() && input.enabled && document.hasFocus() && actions.pause(), { signal });
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
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}
