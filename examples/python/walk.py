# Walks in a circle through a world (docs/protocol.md): python walk.py [PLATFORM] [NAME] [SECONDS] [ROOM CODE]
import asyncio, json, math, sys, time, urllib.request
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

platform, name, seconds, room = sys.argv[1:] + ["http://127.0.0.1:5000", "Ada", "20", ""][len(sys.argv) - 1:]
until = time.monotonic() + float(seconds)

class my:
    welcome, world, kept, players, near = {}, {}, {}, {}, set()  # kept: the worlds that deltas may build on, by tick
    commands = inputs = acks = walked = ping = 0

def post(path, body, session=""):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {session}"}
    return json.load(urllib.request.urlopen(urllib.request.Request(platform + path, json.dumps(body).encode(), headers)))

async def send(socket, feature, action, **payload):
    my.commands += 1  # each gets an ack or an error that names this number
    command = {"v": 2, "kind": "command", "seq": my.commands, "feature": feature, "action": action, "payload": payload}
    await socket.send(json.dumps(command))

async def snapshot(socket, tick, baseline, features, **_):  # a full one has no baseline; a delta builds on it
    own, before, moved = my.welcome["entityId"], my.world, features["movement"]
    changed = my.kept.get(baseline, {}) | {entity["id"]: entity for entity in moved["entities"]}
    my.world = {id: entity for id, entity in changed.items() if id not in moved["removed"]}
    my.kept = {old: world for old, world in my.kept.items() if old >= (baseline or tick)} | {tick: my.world}
    await send(socket, "session", "ack", tick=tick)
    batch = range(my.inputs + 1, my.inputs + 1 + my.welcome["tickHz"] // my.welcome["snapshotHz"])  # one per tick
    my.inputs = batch[-1]
    held = [{"seq": seq, "up": True, "yaw": seq / 18, "jump": seq % 60 < 5} for seq in batch]
    await send(socket, "movement", "input_batch", inputs=held)
    my.walked += math.dist(before[own]["p"], my.world[own]["p"]) if own in before else 0
    my.players.update((player["entityId"], player["name"]) for player in features.get("presence", {}).get("players", []))
    for id in (my.players.keys() & my.world.keys()) - my.near - {own}:
        my.near.add(id)
        print(f"near: {my.players[id]} at {my.world[id]['p']}", flush=True)

async def hear(socket, message):
    match message["kind"]:
        case "welcome":  # its token brings us back to where we were, within a minute of a lost line
            print("back as" if my.welcome else "in as", message["entityId"], "in room", message["roomCode"], flush=True)
            my.welcome = message
            await send(socket, "session", "ping", t=time.monotonic())
        case "snapshot": await snapshot(socket, **message)
        case "pong": my.ping = (time.monotonic() - message["t"]) * 1000
        case "ack": my.acks += 1
        case "error": print("error:", message["code"], message["message"], flush=True)

async def main():
    joined = post("/join", {"room_code": room} if room else {}, post("/login", {"username": name})["session_token"])
    through = f"{platform.replace('http', 'ws', 1)}/api/rooms/{room}/ws"  # the same world, by the platform's own port
    async for socket in connect(through if room else joined["server_address"], subprotocols=["frolic.v2.json"]):
        try:
            await send(socket, "session", "handshake", ticket=joined["ticket"], resumeToken=my.welcome.get("resumeToken"))
            while time.monotonic() < until: await hear(socket, json.loads(await socket.recv()))
            return await send(socket, "session", "leave")
        except ConnectionClosed: print("the line is lost", flush=True)

asyncio.run(main())
print(f"walked {my.walked:.1f} m, got {my.acks} acks for {my.commands} commands, met {len(my.near)}, ping {my.ping:.0f} ms")
