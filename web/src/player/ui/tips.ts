// Tips shown while a world loads, for the current device.

const EVERYWHERE: readonly string[] = [
  'Send the invite link to a friend and they land in your world.',
  'Every world here is a folder with a scene and some Luau. You can make one too.',
];

const WITH_KEYS: readonly string[] = [
  'Hold Shift to run. Running jumps go further.',
  'Scroll in all the way to look through your own eyes.',
  'Press Esc for the menu: settings, controls, invite link, leave.',
  'Press Enter to chat, and P to show or hide the leaderboard.',
  'The arrow keys turn the view.',
  'Tab shows how good your connection is.',
];

const WITH_FINGERS: readonly string[] = [
  'Push the stick to its edge to run. Running jumps go further.',
  'Drag anywhere to look around, and pinch to zoom.',
  'The menu at the top left has settings, the invite link and the players.',
];

export function tipsFor(touch: boolean): readonly string[] {
  return [...(touch ? WITH_FINGERS : WITH_KEYS), ...EVERYWHERE];
}
