# Walks in a circle through a world (docs/protocol/websocket.md): python walk.py [PLATFORM] [NAME] [SECONDS] [ROOM CODE]
import asyncio, json, math, sys, time, urllib.request as web, websockets
from websockets.asyncio.client import connect
platform, name, seconds, room = sys.argv[1:] + ["http://127.0.0.1:5000", "Ada", "20", ""][len(sys.argv) - 1:]
until = time.monotonic() + float(seconds)
through = f"{platform.replace('http', 'ws', 1)}/api/rooms/{room}/ws"  # the same world, by the platform's own port

class my:
    welcome, world, kept, players, near = {}, {}, {}, {}, set()  # kept: worlds by tick, the baselines of deltas
    commands = inputs = acks = walked = ping = 0

def post(path, body, session=""):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {session}"}
    return json.load(web.urlopen(web.Request(platform + path, json.dumps(body).encode(), headers), timeout=9))

async def send(socket, feature, action, **payload):
    my.commands += 1  # each gets an ack or an error that names this number
    command = {"v": 2, "kind": "command", "seq": my.commands, "feature": feature, "action": action, "payload": payload}
    await socket.send(json.dumps(command))

async def snapshot(socket, tick, baseline, features, **_):  # a full one has no baseline; a delta builds on it
    own, before, moved = my.welcome["entityId"], my.world, features["movement"]
    changed = my.kept.get(baseline, {}) | {entity["id"]: entity for entity in moved["entities"]}
    my.world = {id: entity for id, entity in changed.items() if id not in moved["removed"]}
    my.kept = {old: world for old, world in my.kept.items() if old >= (baseline or 0)} | {tick: my.world}
    await send(socket, "session", "ack", tick=tick)
    first, my.inputs = my.inputs + 1, my.inputs + my.welcome["tickHz"] // my.welcome["snapshotHz"]  # one per tick
    held = [{"seq": seq, "up": True, "yaw": seq / 18, "jump": seq % 60 < 5} for seq in range(first, my.inputs + 1)]
    await send(socket, "movement", "input_batch", inputs=held)
    my.walked += math.dist(before[own]["p"], my.world[own]["p"]) if own in before else 0
    my.players.update((player["entityId"], player["name"]) for player in features.get("presence", {}).get("players", []))
    for id in (my.players.keys() & my.world.keys()) - my.near - {own}:
        my.near.add(id)
        print(f"near: {my.players[id]} at {my.world[id]['p']}", flush=True)

async def receive(socket, message):
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
    session = post("/login", {"username": name})["session_token"]
    while time.monotonic() < until:
        try:  # join again each time: a restarted server has another address
            joined = post("/join", {"room_code": room or my.welcome.get("roomCode")}, session)
            async with connect(through if room else joined["server_address"], subprotocols=["frolic.v2.json"]) as socket:
                await send(socket, "session", "handshake", ticket=joined["ticket"], resumeToken=my.welcome.get("resumeToken"))
                while time.monotonic() < until: await receive(socket, json.loads(await socket.recv()))
                return await send(socket, "session", "leave")
        except (OSError, websockets.WebSocketException) as cause: print("connection lost" if my.welcome else cause, flush=True)
        await asyncio.sleep(0.3)

asyncio.run(main())
print(f"walked {my.walked:.1f} m, got {my.acks} acks for {my.commands} commands, met {len(my.near)}, ping {my.ping:.0f} ms")
