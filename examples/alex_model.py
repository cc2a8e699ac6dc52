"""A stand-in for a model that plays Alex: a server of the chat API with an answer for each role.

    python examples/alex_model.py 8000          # Ctrl-C ends it

It lets Alex build the pillar of the task build_pillar, so that the whole loop can be tried without
a model: gamut evaluate --config configs/mineflayer/alex.yaml (docs/alex.md).
"""

import json
import sys
import threading

from rollout.testing.chat_server import ChatServer, Request, Scripted

CODE = """\
bot.chat(`${bot.username} builds the pillar.`);
const foot = bot.entity.position.floored().offset(1, 0, 0);
for (let y = 0; y < 5; y++) await placeItem('cobblestone', foot.offset(0, y, 0));
"""
# By a key of the answer that a role is asked for.
ANSWERS = {
    "handling": {"reasoning": "It can wait.", "handling": False},
    "image_summary": {"image_summary": "Flat grass to the horizon."},
    "long_term_plan": {"reasoning": "All is there.", "long_term_plan": "Build the pillar."},
    "short_term_plan": {"reasoning": "Now.", "short_term_plan": "Place 5 cobblestone as a pillar"},
    "code": {"explain": "One on the other.", "plan": "Say it, then place five.", "code": CODE},
    "success": {"reasoning": "Five are placed.", "success": True, "critique": ""},
    "description": {
        "name": "pillar",
        "description": "Builds a pillar of 5 cobblestone beside you.",
    },
}


def answer(request: Request) -> Scripted:
    """Returns the answer to a request, by the form that its last message shows."""
    content = request["messages"][-1]["content"]
    parts = [content] if isinstance(content, str) else [each.get("text", "") for each in content]
    form = parts[-1].rstrip().splitlines()[-1]
    found = next(value for key, value in ANSWERS.items() if f'"{key}"' in form)
    return Scripted(json.dumps(found))


if __name__ == "__main__":
    with ChatServer(answer, port=int(sys.argv[1]) if len(sys.argv) > 1 else 8000) as server:
        print(server.url, flush=True)
        threading.Event().wait()
