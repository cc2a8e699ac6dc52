"""The HTTP server of ``gamut serve``: uvicorn on a socket of ours, which ends as our jobs do."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Protocol, Self

import uvicorn

from rollout.errors import ConfigError
from rollout.interop.games import Games
from rollout.interop.openenv_server import OpenEnvServer

_BACKLOG = 1024  # connections that wait to be accepted
_CLOSE_S = 5  # for answers on their way when the server ends


class Ending(Protocol):
    """When the server ends."""

    def begins(self) -> bool:
        """Returns whether to end soon: no new episodes begin."""
        ...

    def due(self, playing: int) -> bool:
        """Returns whether to end now, with this number of episodes in progress."""
        ...


class Listener:
    """A socket that listens, and the server on it; a context manager.

    Args:
        address: address or name to listen at.
        port: its port, 0 for any free one.
        connections: most connections at once; more get the status 503.
        message_bytes: largest message of a client.

    Attributes:
        url: address for clients, without a token.

    Raises:
        ConfigError: the address is taken, or is not of this machine.
    """

    def __init__(self, address: str, port: int, connections: int, message_bytes: int) -> None:
        self._connections, self._message_bytes = connections, message_bytes
        try:
            found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
            self._socket = socket.create_server(found[4][:2], family=found[0], backlog=_BACKLOG)
        except OSError as error:
            raise ConfigError(
                f"cannot listen at {address}, port {port}: {error.strerror}; choose another port "
                f"or address"
            ) from error
        name = f"[{address}]" if ":" in address else address
        self.url = f"http://{name}:{self._socket.getsockname()[1]}"

    def serve(
        self, games: Games, name: str, token: str | None, *, idle_s: float, ending: Ending
    ) -> None:
        """Serves until the end is due; see ``OpenEnvServer`` for the arguments."""
        app = OpenEnvServer(games, name, token, idle_s, self._message_bytes)
        config = uvicorn.Config(
            app.app,
            http="h11",
            ws="websockets-sansio",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=self._connections,
            ws_max_size=self._message_bytes,
            ws_per_message_deflate=False,
            timeout_graceful_shutdown=_CLOSE_S,
        )
        try:
            asyncio.run(_Server(config, app, ending).serve([self._socket]))
        finally:
            app.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


class _Server(uvicorn.Server):
    """A server that asks us when to end; signals are ours."""

    def __init__(self, config: uvicorn.Config, app: OpenEnvServer, ending: Ending) -> None:
        super().__init__(config)
        self._app, self._ending = app, ending

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leaves the handlers of signals as they are."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Returns whether to end; called ten times a second."""
        self._app.reap()
        if self._ending.begins():
            self._app.draining = True
            self.should_exit = self._ending.due(self._app.playing)
        return await super().on_tick(counter)
