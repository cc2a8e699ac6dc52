"""Plays many sessions at once with OpenEnv's own client; prints what each episode gave as JSON.

Runs in an environment with OpenEnv: ``python openenv_sessions.py URL SESSIONS EPISODES ACTIONS``.
An episode that the server lost is played again; how often is told.
"""

import asyncio
import json
import sys

from openenv.core.generic_client import GenericEnvClient

URL, SESSIONS, EPISODES = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
COLUMN, *VALUES = json.loads(sys.argv[4])


async def episode(env, seed):
    """Returns the rewards, the last metadata, and the reasons of errors of one episode."""
    errors = []
    while True:
        rewards = []
        try:
            shown = await env.reset(seed=seed, split="test", index=seed)
            pictures = [p["data"] for p in shown.observation["pictures"]]
            while not shown.done:
                action = VALUES[(seed + len(rewards)) % len(VALUES)]
                shown = await env.step({COLUMN: action})
                rewards.append(shown.reward)
            return {"rewards": rewards, "metadata": shown.metadata, "errors": errors,
                    "pictures": pictures}  # fmt: skip
        except RuntimeError as error:
            errors.append(str(error))


async def session(number):
    """Returns the episodes of one session."""
    async with GenericEnvClient(base_url=URL) as env:
        return [await episode(env, number * EPISODES + k) for k in range(EPISODES)]


async def main():
    """Plays all sessions at once."""
    found = await asyncio.gather(*[session(number) for number in range(SESSIONS)])
    sys.stdout.write(json.dumps(found))


asyncio.run(main())
