# Walks in a circle through a Frolic world: a whole client in another language.
# HTTP to get in, then JSON over a WebSocket; docs/protocol.md explains it all.
#   pip install websockets
#   python walk.py [PLATFORM] [NAME] [SECONDS] [ROOM CODE]
import asyncio, json, math, sys, time, urllib.request
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

platform, name, seconds, room = sys.argv[1:] + ["http://127.0.0.1:5000", "Ada", "20", ""][len(sys.argv) - 1:]
until = time.monotonic() + float(seconds)
token = own = None  # from the welcome: the way back in, and which character is ours
entities, players, kept = {}, {}, {}  # the world now, and as it was at the ticks that deltas build on
commands = inputs = acks = 0
walked, near = 0.0, set()

def post(path, body, session=""):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {session}"}
    request = urllib.request.Request(platform + path, json.dumps(body).encode(), headers)
    return json.load(urllib.request.urlopen(request))

async def send(socket, feature, action, **payload):
    global commands
    commands += 1  # each gets an ack or an error that names this number
    command = {"v": 2, "kind": "command", "seq": commands, "feature": feature, "action": action, "payload": payload}
    await socket.send(json.dumps(command))

async def walk(socket, tick_hz):
    """One input per tick of the server: forward, always turning, a jump every second."""
    global inputs
    await send(socket, "chat", "say", text=f"{name} walks in circles")
    while time.monotonic() < until:
        batch = range(inputs + 1, inputs + 1 + tick_hz // 20)
        held = [{"seq": seq, "up": True, "yaw": seq / 18, "jump": seq % 60 < 5} for seq in batch]
        await send(socket, "movement", "input_batch", inputs=held)
        inputs = batch[-1]
        await asyncio.sleep(1 / 20)
    await send(socket, "session", "leave")

async def snapshot(socket, tick, mode, baseline, features, **_):
    """A full one is the world; a delta is what changed since `baseline`, a snapshot we acknowledged and kept."""
    global entities, walked
    before = entities.get(own)
    entities = {} if mode == "full" else dict(kept[baseline])
    entities.update((entity["id"], entity) for entity in features["movement"]["entities"])
    for gone in features["movement"]["removed"]:
        entities.pop(gone, None)
    players.update((player["entityId"], player) for player in features.get("presence", {}).get("players", []))
    for old in [old for old in kept if old < (baseline or tick)]:
        del kept[old]
    kept[tick] = entities
    await send(socket, "session", "ack", tick=tick)
    if before and own in entities:
        walked += math.dist(before["p"], entities[own]["p"])
    for id, player in players.items():
        if id in entities and id != own and id not in near:
            near.add(id)
            print(f"near: {player['name']} at {entities[id]['p']}", flush=True)

async def play(address, ticket):
    """One connection, from the handshake to its end. A resume token counts more than a ticket."""
    global token, own, acks
    async with connect(address, subprotocols=["frolic.v2.json"], max_size=2**24) as socket:
        await send(socket, "session", "handshake", ticket=ticket, resumeToken=token)
        async for text in socket:
            message = json.loads(text)
            if message["kind"] == "welcome":
                print("back as" if token else "in as", message["entityId"], "in room", message["roomCode"], flush=True)
                token, own = message["resumeToken"], message["entityId"]
                walking = asyncio.create_task(walk(socket, message["tickHz"]))
                walking.add_done_callback(lambda task: task.exception())  # a lost line; told below
            elif message["kind"] == "snapshot":
                await snapshot(socket, **message)
            elif message["kind"] == "ack":
                acks += 1
            elif message["kind"] == "error":
                print("error:", message["code"], message["message"], flush=True)
            elif message["kind"] == "event" and message["feature"] == "chat":
                print(f"chat: {message['from']}: {message['text']}", flush=True)

async def main():
    guest = post("/login", {"username": name})
    joined = post("/join", {"room_code": room} if room else {}, guest["session_token"])
    # The world's own address, or the same world through the platform's one port.
    through = f"{platform.replace('http', 'ws', 1)}/api/rooms/{room}/ws"
    while time.monotonic() < until:
        try:
            await play(through if room else joined["server_address"], joined["ticket"])
        except (ConnectionClosed, OSError):  # within a minute the token brings us back to where we were
            print("the line is lost", flush=True)
        await asyncio.sleep(0.3)
    print(f"walked {walked:.1f} m, got {acks} acks for {commands} commands, met {len(near)}")

asyncio.run(main())
