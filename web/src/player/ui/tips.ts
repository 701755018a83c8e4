// Short, true things to read while a world loads.
export const TIPS: readonly string[] = [
  'Hold Shift to run. Running jumps go further.',
  'Scroll in all the way to look through your own eyes.',
  'Press Esc for the menu: settings, invite link, leave.',
  'Tab shows how good your connection is.',
  'On a phone, push the stick to its edge to run.',
  'Send the invite link to a friend and they land in your world.',
  'Every world here is a folder with a scene and some Luau. You can make one too.',
];
