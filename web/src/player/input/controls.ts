// Describes the controls of this game for the player: the platform's own controls and the
// actions bound by the game's scripts.
import type { BoundAction } from './actions.svelte';
import type { Device } from './input';

export interface Control {
  /** Key labels as printed on the keyboard. */
  keys: string[];
  does: string;
}

export interface Situation {
  device: Device;
  actions: readonly BoundAction[];
  /** Whether the player holds a weapon. */
  armed: boolean;
  /** Whether there is something to interact with. */
  usable: boolean;
}

const PAD_LABELS: Record<string, string> = {
  ButtonA: 'A',
  ButtonB: 'B',
  ButtonX: 'X',
  ButtonY: 'Y',
  ButtonL1: 'LB',
  ButtonR1: 'RB',
  ButtonL2: 'LT',
  ButtonR2: 'RT',
  ButtonSelect: 'View',
  ButtonStart: 'Start',
  ButtonL3: 'Left stick press',
  ButtonR3: 'Right stick press',
  DPadUp: 'D-pad up',
  DPadDown: 'D-pad down',
  DPadLeft: 'D-pad left',
  DPadRight: 'D-pad right',
};

const KEY_LABELS: Record<string, string> = {
  MouseLeft: 'Left click',
  MouseRight: 'Right click',
  MouseMiddle: 'Middle click',
  LeftShift: 'Shift',
  RightShift: 'Shift',
  LeftControl: 'Ctrl',
  RightControl: 'Ctrl',
  LeftAlt: 'Alt',
  RightAlt: 'Alt',
  Up: '↑',
  Down: '↓',
  Left: '←',
  Right: '→',
  Comma: ',',
  Period: '.',
  Minus: '-',
  Equals: '=',
  Slash: '/',
  Semicolon: ';',
  Quote: "'",
  LeftBracket: '[',
  RightBracket: ']',
  Zero: '0',
  One: '1',
  Two: '2',
  Three: '3',
  Four: '4',
  Five: '5',
  Six: '6',
  Seven: '7',
  Eight: '8',
  Nine: '9',
};

const isPad = (key: string): boolean => key in PAD_LABELS;

/** The label for a key name used by scripts. */
export const keyLabel = (key: string): string => PAD_LABELS[key] ?? KEY_LABELS[key] ?? key;

/** The game's actions with the keys that exist on this device. */
function ofGame({ device, actions }: Situation): Control[] {
  const here = (key: string) => (device === 'Gamepad' ? isPad(key) : device === 'Keyboard' && !isPad(key));
  const controls = actions.map(({ name, keys }) => ({
    keys: [...new Set(keys.filter(here).map(keyLabel))],
    does: name,
  }));
  return device === 'Touch' ? [] : controls.filter(({ keys }) => keys.length > 0);
}

/** All controls, for the pause menu. */
export function allControls(situation: Situation): Control[] {
  const { device, armed, usable } = situation;
  const one = (keys: string, does: string): Control => ({ keys: keys.split('|'), does });
  const when = (holds: boolean, ...controls: Control[]) => (holds ? controls : []);
  const game = ofGame(situation);
  if (device === 'Touch') {
    return [
      one('Stick', 'Walk; push it to the edge to run'),
      one('Drag', 'Look around'),
      one('Pinch', 'Zoom'),
      ...when(armed, one('Round red button', 'Fire; drag it to aim')),
      ...when(situation.actions.length > 0, {
        keys: ['Buttons'],
        does: situation.actions.map(({ name }) => name).join(', '),
      }),
    ];
  }
  if (device === 'Gamepad') {
    return [
      one('Left stick', 'Walk; push it to the edge to run'),
      one('Right stick', 'Look around'),
      one('A', 'Jump'),
      ...when(armed, one('RT', 'Fire')),
      ...when(usable, one('X', 'Use')),
      ...game,
      one('Start', 'Menu'),
    ];
  }
  return [
    one('W|A|S|D', 'Walk'),
    one('Space', 'Jump'),
    one('Shift', 'Run'),
    one('Mouse', 'Look around'),
    one('←|→', 'Turn'),
    one('Page Up|Page Down', 'Look up and down'),
    one('Wheel', 'Zoom'),
    ...when(armed, one('Left click', 'Fire')),
    ...when(usable, one('E', 'Use')),
    ...game,
    one('Enter', 'Chat'),
    one('P', 'Leaderboard'),
    one('Tab', 'Network stats'),
    one('Esc', 'Menu'),
  ];
}

/** Left out of the first hint: rarely needed or discovered without help. */
const NOT_AT_FIRST = ['Turn', 'Look up and down', 'Zoom', 'Network stats', 'Look around'];

/** What a new player needs in the first seconds. On-screen buttons need no explanation. */
export function firstControls(situation: Situation): Control[] {
  if (situation.device === 'Touch')
    return [
      { keys: ['Drag'], does: 'Look around' },
      { keys: ['Stick to the edge'], does: 'Run' },
    ];
  return allControls(situation).filter(({ does }) => !NOT_AT_FIRST.includes(does));
}
