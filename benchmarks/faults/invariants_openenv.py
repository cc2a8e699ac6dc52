"""The chaos game behind OpenEnv's own server, and clients of OpenEnv; ``invariants`` starts both.

Runs in an environment with OpenEnv: ``serve PORT FAULTS SESSIONS`` hosts the program of the chaos
game as a user of OpenEnv would, without anything of ours between, and ``play URL JOBS`` plays
episodes at once and prints what became of each as JSON.
"""

import asyncio
import contextlib
import json
import runpy
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from openenv.core import GenericEnvClient
from openenv.core.env_server import Action, Environment, Observation, State, create_app

PROGRAM = Path(__file__).resolve().parents[2] / "bridges" / "chaos" / "game.py"
GAME = runpy.run_path(str(PROGRAM), run_name="game")
LENGTH, HEADER, ROW = GAME["LENGTH"], GAME["HEADER"], GAME["ROW"]


class Move(Action):  # type: ignore[misc] # an optional dependency, not followed
    """A move of the walker."""

    action: str


class Seen(Observation):  # type: ignore[misc] # likewise
    """What is seen of the ring."""

    position: float
    distance: float


class ChaosEnvironment(Environment):  # type: ignore[misc] # likewise
    """The game in a process of its own, asked without timeouts; a new one if it has ended."""

    SUPPORTS_CONCURRENT_SESSIONS = True
    settings: dict[str, Any]
    faults: dict[str, list[tuple[float, str]]]

    def __init__(self) -> None:
        super().__init__()
        self._game: subprocess.Popen[bytes] | None = None
        self._state = State()

    def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Seen:
        """Begins an episode."""
        if self._game is None or self._game.poll() is not None:
            command = [sys.executable, "-S", "-I", str(PROGRAM)]
            pipe = subprocess.PIPE
            self._game = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL
            )
            self._ask(json.dumps(self.settings).encode())
        self._seed = seed or 0
        self._state = State(episode_id=episode_id, step_count=0)
        begin = GAME["BEGIN"].pack(0, self._seed, self._seed, 0)
        return self._seen(self._ask(HEADER.pack(GAME["RESET"], 0.0, 0) + begin))

    def step(self, action: Move, timeout_s: float | None = None, **_: Any) -> Seen:
        """Makes a move."""
        self._state.step_count += 1
        seconds, fault = self.faults[str(self._seed)][self._state.step_count - 1]
        move = bytes([("stay", "up", "down").index(action.action)])
        head = HEADER.pack(GAME["STEP"], seconds, GAME["FAULTS"].index(fault))
        return self._seen(self._ask(head + move))

    @property
    def state(self) -> State:
        """Returns the state of the episode."""
        return self._state

    def close(self) -> None:
        """Ends the game."""
        if self._game is not None:
            self._game.kill()
            self._game.wait(10)

    def _ask(self, message: bytes) -> bytes:
        assert self._game is not None
        assert self._game.stdin is not None
        assert self._game.stdout is not None
        self._game.stdin.write(LENGTH.pack(len(message)) + message)
        self._game.stdin.flush()
        head = self._game.stdout.read(LENGTH.size)
        if len(head) < LENGTH.size:
            raise RuntimeError(f"the game ended with {self._game.wait(10)}")
        return self._game.stdout.read(LENGTH.unpack(head)[0])[1:]

    def _seen(self, row: bytes) -> Seen:
        _, position, _, distance, _, reward, *_, over = ROW.unpack(row)
        return Seen(position=position, distance=distance, reward=reward, done=over)


def serve(port: int, file: str, sessions: int) -> None:
    """Serves until it is ended."""
    import uvicorn  # clients do not need it

    told = json.loads(Path(file).read_text())
    ChaosEnvironment.settings, ChaosEnvironment.faults = told["settings"], told["faults"]
    app = create_app(ChaosEnvironment, Move, Seen, "chaos", max_concurrent_envs=sessions)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning")


class Player:
    """A client that plays one episode after another, each once, and connects again after errors.

    Args:
        url: of the server.
        limit_s: how long it waits for an answer.
        patience_s: how long it tries to connect.
    """

    begun = False  # whether any has ended an episode, which is told by a line

    def __init__(self, url: str, limit_s: float, patience_s: float) -> None:
        self._url, self._limit_s, self._patience_s = url, limit_s, patience_s
        self._env: GenericEnvClient | None = None

    async def play(self, seeds: list[int]) -> list[dict[str, Any]]:
        """Returns what became of each episode."""
        found = []
        for seed in seeds:
            found.append(await self._episode(seed))
            if not Player.begun:
                Player.begun = True
                sys.stdout.write("begun\n")
                sys.stdout.flush()
        await self._leave()
        return found

    async def _episode(self, seed: int) -> dict[str, Any]:
        told: dict[str, Any] = {"seed": seed, "rewards": [], "longest": 0.0, "error": ""}
        try:
            env = await self._connected()
            state = {"seed": seed, "difficulty": "easy"}
            shown = await env.reset(seed=seed, state=state)
            while not shown.done:
                began = time.monotonic()
                shown = await env.step({"action": "up"})
                told["longest"] = max(told["longest"], time.monotonic() - began)
                told["rewards"].append(shown.reward)
            return {**told, "kind": "result"}
        except TimeoutError as error:
            await self._leave()
            return {**told, "kind": "stuck", "error": repr(error)}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what the client is told
            # The session goes on after an error of the game, and not after one of the connection.
            if not isinstance(error, RuntimeError):
                await self._leave()
            return {**told, "kind": "told", "error": f"{type(error).__name__}: {error}"[:200]}

    async def _connected(self) -> GenericEnvClient:
        end = time.monotonic() + self._patience_s
        while self._env is None:
            env = GenericEnvClient(base_url=self._url, message_timeout_s=self._limit_s)
            try:
                await env.connect()
                self._env = env
            except Exception:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(0.2)
        return self._env

    async def _leave(self) -> None:
        env, self._env = self._env, None
        if env is not None:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(env.close(), 5)


async def play(url: str, jobs: dict[str, Any]) -> None:
    """Plays with all clients at once."""
    players = [Player(url, jobs["limit_s"], jobs["patience_s"]) for _ in jobs["seeds"]]
    found = await asyncio.gather(*[p.play(s) for p, s in zip(players, jobs["seeds"], strict=True)])
    sys.stdout.write(json.dumps([each for some in found for each in some]))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
    else:
        asyncio.run(play(sys.argv[2], json.loads(sys.argv[3])))
