// What the interface shows of a visit, besides the world itself.
import type { CoreEvent, TickFigures } from '../core/events';
import type { Connection } from '../connection/connection.svelte';
import { HudModel } from '../hud/model.svelte';
import { ActionButtons } from '../input/actions.svelte';
import type { Situation } from '../input/controls';
import type { Device } from '../input/input';
import { ChatLog } from './chat.svelte';
import { Combat } from './combat.svelte';
import { People } from './people.svelte';
import { Prompts } from './prompts.svelte';
import { isTouchScreen } from './touchscreen';

export class PlayModel {
  /** The pause menu is open. */
  paused = $state(false);
  /** What the player used last. */
  device = $state<Device>(isTouchScreen() ? 'Touch' : 'Keyboard');
  /** What happens in the world takes unusually long to be stored. */
  savingDelayed = $state(false);
  /** The server's last tick timings; only while somebody asks. */
  serverFigures: TickFigures | null = null;
  readonly hud = new HudModel();
  readonly actions = new ActionButtons();
  readonly combat = new Combat();
  readonly chat = new ChatLog();
  readonly people = new People();
  readonly prompts = new Prompts();

  constructor(private readonly connection: Connection) {}

  /** Whether keys, mouse, fingers and gamepad play the game: not while a menu or the chat has them. */
  get takesInput(): boolean {
    const { phase } = this.connection;
    return !this.paused && !this.chat.writing && (phase === 'playing' || phase === 'reconnecting');
  }

  /** What there is to press, for hints. */
  get situation(): Situation {
    const { device, actions, combat } = this;
    return { device, actions: actions.all, armed: combat.weapon !== null, usable: this.prompts.shown !== null };
  }

  /** Opens or closes the pause menu; it opens only where there is something to pause. */
  pause(open: boolean): void {
    this.paused = open && this.connection.phase === 'playing';
  }

  /** Handles the events that only the interface shows. */
  handle(event: CoreEvent): void {
    switch (event.type) {
      case 'welcome':
        // The server repeats it after the welcome if it still applies.
        this.savingDelayed = false;
        break;
      case 'saving':
        this.savingDelayed = event.delayed;
        break;
      case 'figures':
        this.serverFigures = event.figures;
        break;
      case 'chat':
        this.chat.add(event.from, event.text, performance.now(), event.playerId);
        break;
      case 'error':
        if (event.code === 'chat_too_fast' || event.code === 'bad_chat') this.chat.add('', event.message);
    }
  }
}
