/* tslint:disable */
/* eslint-disable */

/**
 * A client of one world, for a browser page.
 */
export class ClientCore {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Runs the steps that are due and queues inputs and pings.
     */
    advance(now_ms: number): void;
    /**
     * Requests the server's tick timings; the answer is a `figures` event.
     */
    ask_figures(): void;
    /**
     * Casts a spell; the parameters as a JSON list of one value.
     */
    cast_spell(spell_id: string, params_json: string): void;
    /**
     * Sends a chat message to all players in the world.
     */
    chat(text: string): void;
    /**
     * Entities within a sphere, in order of ids.
     */
    entities_in_radius(x: number, y: number, z: number, radius: number): Uint32Array;
    /**
     * An attribute as JSON of a `WireValue`.
     */
    entity_attribute(id: number, name: string): string | undefined;
    /**
     * Its colour; none also when nothing gives it one.
     */
    entity_color(id: number): string | undefined;
    /**
     * Whether an entity exists as far as this client knows.
     */
    entity_exists(id: number): boolean;
    /**
     * What an NPC is up to, as in a frame; 0 for anything else.
     */
    entity_mood(id: number): number;
    /**
     * Its name.
     */
    entity_name(id: number): string | undefined;
    /**
     * The pattern of its surface.
     */
    entity_pattern(id: number): string | undefined;
    /**
     * Its tags.
     */
    entity_tags(id: number): string[];
    /**
     * One of its vectors, by a constant `VECTOR`: three floats.
     */
    entity_vector(id: number, vector: number): Float32Array;
    /**
     * Entities with this name or tag, in order of ids.
     */
    find_entities(word: string): Uint32Array;
    /**
     * `Network.FireServer`; the arguments as a JSON list. Not `reliable`: it may
     * be lost.
     */
    fire_server(name: string, args_json: string, reliable: boolean): void;
    /**
     * Everything that moves, as records of the layout `FRAME`.
     */
    frame(now_ms: number): Float32Array;
    /**
     * Queues the handshake.
     */
    handshake(ticket?: string | null, resume_token?: string | null): void;
    /**
     * Hides the chat with another player of this world, or shows it again.
     */
    hide(player_id: string, hidden: boolean): void;
    /**
     * `Network.InvokeServer`; the answer arrives as an `invokeResult` event.
     */
    invoke_server(id: number, name: string, args_json: string): void;
    /**
     * Leaves the world; send what `take_reliable` then returns.
     */
    leave(): void;
    /**
     * The state of the connection: one of the constants `LIVENESS`.
     */
    liveness(): number;
    /**
     * The corners of a mesh shape's triangles, three numbers each, in their
     * order: three corners are a triangle. None when there is no such mesh.
     */
    mesh(asset: string): Float32Array | undefined;
    /**
     * What is to be fetched, in the order of need, as JSON; after everything that
     * is cached was offered.
     */
    missing_scripts(): string;
    /**
     * A client that has not sent anything yet.
     */
    constructor();
    /**
     * NPCs in view, in order of ids.
     */
    npcs(): Uint32Array;
    /**
     * Accepts a script, a bundle or the list (`@manifest`) from the page's cache
     * or its URL; true when it matches.
     */
    offer_script(path: string, bytes: Uint8Array | number[]): boolean;
    /**
     * A player as JSON of `PlayerInfo`, also one who left not long ago.
     */
    player(number: number): string | undefined;
    /**
     * Number of the player whose character this is, or 0.
     */
    player_of(entity: number): number;
    /**
     * All players as JSON of `PlayerInfo[]`, disconnected ones among them, in order
     * of numbers.
     */
    players(): string;
    /**
     * The prompt of the entity that the player can interact with while looking in a
     * direction, in radians.
     */
    prompt(yaw: number, pitch: number): string | undefined;
    /**
     * The first entity that stops a ray (origin and direction, six floats), with a
     * tag unless `tag` is empty: the entity (the bits of the float are the number),
     * the distance and the normal, five floats; empty when nothing stops it. Terrain
     * is entity 0.
     */
    raycast(ray: Float32Array | number[], distance_max: number, tag: string, ignore: Uint32Array | number[], characters: boolean): Float32Array;
    /**
     * Receives one WebSocket message or one datagram. False when the event queue
     * is full: then it was not applied.
     */
    receive(packet: Uint8Array | number[], now_ms: number): boolean;
    /**
     * Receives the next bytes of the reliable stream, in any split. False as in
     * `receive`.
     */
    receive_stream(bytes: Uint8Array | number[], now_ms: number): boolean;
    /**
     * Entities removed since the last call.
     */
    removed(): Uint32Array;
    /**
     * Requests these units from the server.
     */
    request_scripts(paths: string[]): void;
    /**
     * Asks for a new life of the own character.
     */
    reset_character(): void;
    /**
     * The newest token that resumes this session.
     */
    resume_token(): string | undefined;
    /**
     * Verified bytecode of a script.
     */
    script(path: string): Uint8Array | undefined;
    /**
     * Every script of the world as JSON, after the `scriptList` event.
     */
    script_list(): string | undefined;
    /**
     * The list as received, for the page's cache.
     */
    script_list_bytes(): Uint8Array | undefined;
    /**
     * Sends output and errors of scripts to the game's creator, as the JSON of a
     * `ClientLog`.
     */
    send_log(log_json: string): void;
    /**
     * Sets the held input from now on. Axes −1…1 (x right, y forward), angles in
     * radians, buttons: 1 jump, 2 run, 4 fire, 8 interact.
     */
    set_input(move_x: number, move_y: number, yaw: number, pitch: number, buttons: number): void;
    /**
     * Shots in flight as of the last frame, as records of the layout `SHOT`.
     */
    shots(): Float32Array;
    /**
     * Statistics for the overlay, as JSON.
     */
    stats(now_ms: number): string;
    /**
     * One datagram, or one WebSocket message.
     */
    take_datagram(): Uint8Array | undefined;
    /**
     * The next event as JSON: `{"type": …}`; see `event.rs` for the kinds.
     */
    take_event(): string | undefined;
    /**
     * Resumes the session of a core whose connection is lost; call it before the
     * handshake.
     */
    take_over(old: ClientCore): void;
    /**
     * The parts that appeared, changed or disappeared since the last call, as the
     * JSON of `PartChanges`; none when there were no changes. The first call after
     * the `scene` event returns all parts.
     */
    take_part_changes(): string | undefined;
    /**
     * Bytes for the reliable stream, or one WebSocket message. There may be more:
     * call it until it returns none.
     */
    take_reliable(): Uint8Array | undefined;
    /**
     * The message of the last event, when it was a `terrain` event: for a copy of
     * the terrain.
     */
    take_terrain(): Uint8Array | undefined;
    /**
     * Asks the server to change the terrain. `size` has one number for a ball and
     * three for a box. False when it is invalid.
     */
    terraform(op: string, center: Float32Array | number[], size: Float32Array | number[], material?: string | null): boolean;
    /**
     * The name of the material at a place; empty for air.
     */
    terrain_block(x: number, y: number, z: number): string;
    /**
     * The height of the terrain.
     */
    terrain_height(x: number, z: number): number | undefined;
    /**
     * Lowest and highest corner and the size of a block, seven floats; none
     * without a terrain.
     */
    terrain_info(): Float32Array;
    /**
     * The first solid block along a ray of length one: distance, normal, centre of
     * the block, number of its material. Eight floats, or none.
     */
    terrain_raycast(ray: Float32Array | number[], distance_max: number): Float32Array;
    /**
     * Settings of the terrain as JSON, for [`crate::terrain::TerrainMesher`]; none
     * without a terrain.
     */
    terrain_settings(): string | undefined;
    /**
     * Whether a place is under water.
     */
    terrain_water(x: number, y: number, z: number): boolean;
    /**
     * Sets the key that must have signed the world's scripts: the platform's key
     * in hex, from its answer to the join. False when it is not a key: then no
     * scripts can be trusted.
     */
    trust(public_key: string, game_id: string): boolean;
    /**
     * Seconds since the world started, by the server's clock.
     */
    world_time(now_ms: number): number;
}

/**
 * Whether and when the page connects again; one per visit. Next steps are the JSON
 * of a `NextStep`.
 */
export class ReconnectPolicy {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * The connection is closed; returns what to do next.
     */
    closed(reason: string, unreadable: boolean, now_ms: number): string;
    /**
     * A handshake was sent on a new connection, with or without a resume token.
     */
    connected(resuming: boolean): void;
    /**
     * The server has sent an error.
     */
    error(code: string, message: string): void;
    /**
     * An attempt to return failed, with the HTTP status of the join or 0.
     */
    failed(http_status: number, now_ms: number): string;
    /**
     * The server closes the connection. Returns the JSON of a `SessionEnd` if that
     * ends the visit.
     */
    kicked(reason: string): string | undefined;
    /**
     * The policy of a visit that has no connection yet.
     */
    constructor();
    /**
     * The page was suspended and runs again.
     */
    rested(): void;
    /**
     * The next attempt to return.
     */
    try_again(now_ms: number): string;
    /**
     * The server has welcomed the player.
     */
    welcomed(): void;
}

/**
 * A copy of the terrain that generates meshes, for a worker.
 */
export class TerrainMesher {
    free(): void;
    [Symbol.dispose](): void;
    /**
     * Applies a server message. Returns the chunks to draw again, three numbers
     * each.
     */
    apply(message: Uint8Array | number[]): Int32Array;
    /**
     * The index at which transparent triangles begin.
     */
    clear_from(): number;
    /**
     * First chunk, chunks along each axis, and metres along a chunk: seven numbers.
     */
    grid(): Float32Array;
    /**
     * Generates the mesh of a chunk, to be taken one array after the other. False
     * when there is nothing to draw.
     */
    make(x: number, y: number, z: number): boolean;
    /**
     * From the `terrain` of the scene, as JSON.
     */
    constructor(settings: string);
    /**
     * Linear colours of each corner.
     */
    take_colors(): Uint8Array;
    /**
     * Three corners per triangle.
     */
    take_indices(): Uint32Array;
    /**
     * The normal of each corner.
     */
    take_normals(): Int8Array;
    /**
     * x, y and z of each corner, in blocks from the chunk's lowest corner.
     */
    take_positions(): Uint8Array;
}

/**
 * Digest of a long random walk, in hex: equal on every machine, or
 * prediction is broken. The tests compare it with the native one.
 */
export function determinism_digest(seed: number, steps: number): string;

/**
 * The same in deep water.
 */
export function determinism_digest_in_water(seed: number, steps: number): string;

/**
 * The same on block terrain that changes.
 */
export function determinism_digest_on_blocks(seed: number, steps: number): string;

/**
 * Like [`determinism_digest`], over hills of triangles.
 */
export function mesh_digest(seed: number, steps: number): string;

/**
 * The parts of a scene without a world, as the JSON of a list of `Part`.
 */
export function parts_of_scene(scene_json: string): string;

/**
 * Every material in the order of its number, as JSON: name, colour, whether it is
 * transparent.
 */
export function terrain_materials(): string;
