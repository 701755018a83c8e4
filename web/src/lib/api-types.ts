// The REST shapes of the control plane, as the site uses them.

export interface GameSummary {
  id: string;
  name: string;
  description: string;
  creator: string;
  thumbnail_url: string | null;
  players_now: number;
  plays: number;
  likes: number;
  tags: string[];
  version: string;
  max_players: number;
}

export interface GameServer {
  world_id: string;
  room_code: string;
  players: number;
  max_players: number;
}

export interface GameVersion {
  version: string;
  revision: string;
  published_at: string;
}

export interface GameDetail extends GameSummary {
  servers: GameServer[];
  versions: GameVersion[];
}

export interface GameList {
  games: GameSummary[];
  total: number;
  page: number;
  page_size: number;
}

export interface LoginResponse {
  session_token: string;
  client_id: string;
  username: string;
}

export interface JoinRequest {
  world_id?: string;
  game_id?: string;
  room_code?: string;
}

export interface JoinResponse {
  server_address: string;
  session_token: string;
  client_id: string;
  world_id: string;
  game_id: string;
  room_code: string;
  ticket: string;
  transports: {
    websocket: { url: string };
    webtransport: { url: string; cert_sha256: string } | null;
  };
}

export type GameSort = 'popular' | 'new' | 'featured';
