// Display texts of verdicts, states and target kinds.
import type { Notice, NoticeState, TargetKind, Verdict } from '../../generated/rest';

type Tone = 'plain' | 'leaf' | 'sun' | 'coral' | 'sky';

export const STATES: Record<NoticeState, { label: string; tone: Tone }> = {
  active: { label: 'in effect', tone: 'coral' },
  expired: { label: 'over', tone: 'plain' },
  lifted: { label: 'lifted', tone: 'leaf' },
  overturned: { label: 'overturned', tone: 'leaf' },
};

export const VERDICTS: readonly { value: Verdict; label: string }[] = [
  { value: 'dismiss', label: 'Dismiss: no rule was broken' },
  { value: 'warn', label: 'Warn' },
  { value: 'takedown', label: 'Take it down' },
  { value: 'suspend', label: 'Suspend the user' },
];

export const KINDS: Record<TargetKind, string> = { game: 'Game', user: 'Player', spell: 'Spell', chat: 'Chat' };

/** The title of a notice. */
export function titleOf({
  verdict,
  target_kind,
  target_name,
}: Pick<Notice, 'verdict' | 'target_kind' | 'target_name'>): string {
  if (verdict === 'takedown') return `“${target_name}” was taken down`;
  if (verdict === 'suspend') return 'You are suspended';
  return target_kind === 'game' || target_kind === 'spell' ? `A warning about “${target_name}”` : 'A warning';
}
