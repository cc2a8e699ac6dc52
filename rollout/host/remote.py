"""One game in a Ray actor, stepped by remote calls: for a game that must run on another machine.

Each step costs a millisecond or more of transport, so this is for slow games and third-party loops.
Our own loop runs on the machine of the game (see ``rollout.host.fleet``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ray

from rollout.api import Bridge, Columns, Frame, Start
from rollout.errors import GameCrashed, GameError, InputError
from rollout.host.actors import ActorLost
from rollout.host.handle import InProcessHandle
from rollout.host.processes import owned_workdir, remove_workdir
from rollout.host.ray_actors import fetch

_FETCH_S = 30.0


class RemoteGame:
    """A game and its folder, on the machine that Ray chooses."""

    def __init__(self, bridge: Bridge, ports: Sequence[int], width: int) -> None:
        self._workdir = owned_workdir("gamut-game-")
        self._handle = InProcessHandle(bridge, self._workdir, ports, width)

    def call(self, method: str, *arguments: Any) -> Frame | None:
        """Executes a command and returns its result, which Ray copies out of the game's buffers."""
        getattr(self._handle, method)(*arguments)
        return self._handle.result()

    def close(self) -> None:
        """Ends the game."""
        self._handle.close(0.0)
        remove_workdir(self._workdir)


class RayHandle:
    """See ``rollout.host.handle.Handle``; pass the class as ``make_handle`` of a pool."""

    def __init__(self, bridge: Bridge, workdir: Path, ports: Sequence[int], width: int) -> None:
        del workdir  # a folder of this machine; the game may be on another
        needs = bridge.spec.resources
        actor = ray.remote(num_cpus=needs.cpus, num_gpus=needs.gpus, resources=dict(needs.custom))
        self._actor: Any = actor(RemoteGame).remote(bridge, ports, width)
        self._reference: Any = None
        # Ray reports a result in its own thread; a byte in a pipe notifies the pool, which waits on
        # descriptors and so treats remote and local games alike.
        self._reader, self._writer = os.pipe()

    @property
    def waitable(self) -> int:
        """See ``Handle``."""
        return self._reader

    def launch(self, timeout_s: float) -> None:
        """See ``Handle``."""
        self._ask("launch", timeout_s)

    def reset(self, slots: Sequence[int], starts: Sequence[Start], timeout_s: float) -> None:
        """See ``Handle``."""
        self._ask("reset", list(slots), list(starts), timeout_s)

    def step(self, actions: Columns, timeout_s: float) -> None:
        """See ``Handle``."""
        self._ask("step", actions, timeout_s)

    def _ask(self, *call: Any) -> None:
        self._reference = self._actor.call.remote(*call)
        # A separate descriptor for the callback: the handle may be closed first.
        writer = os.dup(self._writer)

        def notify(_: Any) -> None:
            try:
                os.write(writer, b"!")
            except BrokenPipeError:
                pass  # the handle is closed
            finally:
                os.close(writer)

        self._reference.future().add_done_callback(notify)

    def result(self) -> Frame | None:
        """See ``Handle``."""
        os.read(self._reader, 1)
        try:
            frame: Frame | None = fetch(self._reference, _FETCH_S)
        except (GameError, InputError):
            raise
        except ActorLost as error:
            raise GameCrashed(f"the actor of the game is gone: {error}") from error
        except Exception as error:
            raise GameCrashed(str(error)) from error
        return frame

    def death_notice(self) -> str:
        """See ``Handle``."""
        return "in a Ray actor"

    def close(self, timeout_s: float) -> None:
        """See ``Handle``."""
        if self._actor is None:
            return
        if timeout_s > 0:
            ray.wait([self._actor.close.remote()], timeout=timeout_s)
        ray.kill(self._actor)
        self._actor = None
        os.close(self._reader)
        os.close(self._writer)
