// API calls for characters, blocks, invitations, reports and notices.
import type {
  AppealList,
  AppealState,
  AuditLog,
  BlockList,
  Character,
  CharacterList,
  CharacterLooks,
  Decided,
  Decision,
  Invite,
  InviteInfo,
  Notice,
  NoticeList,
  Report,
  ReportList,
  ReportStatus,
} from '../generated/rest';
import { call, saveFile } from './api';

const at = (id: string): string => encodeURIComponent(id);

export const listCharacters = (signal?: AbortSignal) =>
  call<CharacterList>('GET', '/api/characters', { as: 'guest', signal });
export const createCharacter = (name: string, looks: CharacterLooks) =>
  call<Character>('POST', '/api/characters', { as: 'guest', body: { name, looks } });
/** Refused when it was edited elsewhere in the meantime. */
export const saveCharacter = ({ character_id, version }: Character, name: string, looks: CharacterLooks) =>
  call<Character>('PUT', `/api/characters/${at(character_id)}`, { as: 'me', body: { name, looks, version } });
export const deleteCharacter = (id: string) => call<void>('DELETE', `/api/characters/${at(id)}`, { as: 'me' });
export const activateCharacter = (id: string) =>
  call<Character>('POST', `/api/characters/${at(id)}/activate`, { as: 'me' });

export const listBlocks = (page = 1, signal?: AbortSignal) =>
  call<BlockList>('GET', '/api/blocks', { as: 'me', query: { page, per_page: 100 }, signal });
export const block = (userId: string) => call<void>('PUT', `/api/blocks/${at(userId)}`, { as: 'me' });
export const unblock = (userId: string) => call<void>('DELETE', `/api/blocks/${at(userId)}`, { as: 'me' });

export const createInvite = (worldId: string) =>
  call<Invite>('POST', '/api/invites', { as: 'me', body: { world_id: worldId } });
export const getInvite = (code: string, signal?: AbortSignal) =>
  call<InviteInfo>('GET', `/api/invites/${at(code)}`, { signal });

export const listNotices = (page: number, signal?: AbortSignal) =>
  call<NoticeList>('GET', '/api/notices', { as: 'me', query: { page }, signal });
export const seeNotice = (id: string) => call<void>('POST', `/api/notices/${at(id)}/seen`, { as: 'me' });
export const appeal = (id: string, text: string) =>
  call<void>('POST', `/api/notices/${at(id)}/appeal`, { as: 'me', body: { text } });

export const listReports = (status: ReportStatus, page: number, signal?: AbortSignal) =>
  call<ReportList>('GET', '/api/moderation/reports', { as: 'me', query: { status, page }, signal });
export const decideReport = (report: Report, decision: Decision) =>
  call<Decided>('POST', `/api/moderation/reports/${at(report.report_id)}/decide`, { as: 'me', body: decision });
/** The recording of a world, for `frolic replay`. */
export const saveRecording = ({ report_id }: Report, file: string) =>
  saveFile(`/api/moderation/reports/${at(report_id)}/recording`, file);
export const listAppeals = (state: AppealState, page: number, signal?: AbortSignal) =>
  call<AppealList>('GET', '/api/moderation/appeals', { as: 'me', query: { state, page }, signal });
export const decideAppeal = (id: string, grant: boolean, answer: string) =>
  call<Notice>('POST', `/api/moderation/appeals/${at(id)}/decide`, { as: 'me', body: { grant, answer } });
export const moderationLog = (page: number, signal?: AbortSignal) =>
  call<AuditLog>('GET', '/api/moderation/log', { as: 'me', query: { page, per_page: 50 }, signal });
