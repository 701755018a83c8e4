# A stranger's Socket.IO client in Python, for socketio.test.mjs.
"""A stranger's Socket.IO client (python-socketio): makes a world, a spell, builds, publishes and casts it, and changes
the ground. Prints one JSON object with the received events. Run by socketio.test.mjs."""
import json
import sys
import threading

import socketio

url = sys.argv[1]
client = socketio.Client(reconnection=False)
received = []
arrived = threading.Condition()


@client.on("*")
def anything(event, data=None):
    with arrived:
        received.append((event, data))
        arrived.notify_all()


def wait(event, test=lambda data: True):
    """The next event of this name; events before it are left."""
    with arrived:
        while True:
            for at, (name, data) in enumerate(received):
                if name == event and test(data):
                    return received.pop(at)[1]
            if not arrived.wait(timeout=30):
                sys.exit(f"no {event}; received {[name for name, _ in received]}")


def ask(event, data, answer):
    client.emit(event, data)
    return wait(answer)


client.connect(url, transports=["websocket"])
hello = wait("connected")
world = ask("world.create", {"name": "From Python"}, "world.created")
world_id = world["world_id"]
joined = ask("world.join", {"world_id": world_id}, "world.joined")
wait("sync_complete")
draft = ask("spell.create_draft", {"display_name": "Python spark"}, "spell.draft_created")
spell_id = draft["spell_id"]
code = "function on_cast(ctx)\n\tctx.world.sound('hit')\nend\n"
started = ask("spell.start_build", {"spell_id": spell_id, "code": code}, "spell.build_started")
done = wait("job.progress", lambda data: data["pct"] == 100)
revision = wait("spell.revision_ready", lambda data: data["spell_id"] == spell_id)["revision_id"]
update = ask("spell.publish", {"spell_id": spell_id, "revision_id": revision, "channel": "stable"}, "spell.active_update")
cast = ask("spell.cast_request", {"spell_id": spell_id, "params": {"target": [1, 20, 2]}}, "spell.cast_event")
op = ask("request_spell", {"type": "subtract", "center": [8, 4, 8], "radius": 2}, "apply_op")
pong = ask("ping", {}, "pong")
left = ask("world.leave", {}, "world.left")
client.disconnect()
print(json.dumps({
    "client_id": hello["client_id"], "world_id": world_id, "spell_id": spell_id, "stage": done["stage"],
    "channel": update["channel"], "cast_world": cast["world_id"], "cast_spell": cast["spell_id"], "seed": cast["seed"],
    "op": op["type"], "pong": pong, "left": left["left_world_id"],
}))
