"""``gamut serve``: serves games to clients of OpenEnv until a signal arrives."""

from __future__ import annotations

import contextlib
import logging
import time

from pydantic import model_validator

from rollout.cli import Session
from rollout.config import BridgeConfig, HostConfig, LogConfig, Section, StateSetConfig, key
from rollout.errors import ConfigError, missing_extra
from rollout.files import local_path, read_document
from rollout.host.interpreter import check_interpreter, interpreter_of
from rollout.interop.addresses import is_loopback
from rollout.interop.games import Games, bridge_of
from rollout.signals import Stop, Stopped, one_line, tell

_LEAST_TOKEN = 16  # characters

log = logging.getLogger(__name__)


class ServeConfig(Section):
    """Serves the games of a task to clients of OpenEnv; see docs/serve.md."""

    bridge: BridgeConfig = key(..., "The game.")
    task: str = key(
        "", "Task of the bridge, or path of a .yaml file; empty for the game's own reward."
    )
    state_set: StateSetConfig = key(
        StateSetConfig, "Where episodes start unless clients say, and how states are divided."
    )
    seed: int = key(0, "Seed of the seeds that clients do not give.", ge=0)
    games: int = key(8, "Games, and with them the most sessions at once.", unit="games", gt=0)
    address: str = key("127.0.0.1", "Address to listen at; one beyond loopback needs token_file.")
    port: int = key(8000, "Port; 0 for any free one, which is told.", ge=0, le=65535)
    token_file: str | None = key(
        None, "File with the token that clients must send; null to serve this machine only."
    )
    idle_s: float = key(3600.0, "Time after which an unused session ends.", unit="s", gt=0)
    message_kb: int = key(256, "Size of the largest request.", unit="KB", gt=0, le=65536)
    connections: int = key(
        2048, "Connections at once; further ones are refused with 503.", unit="connections", gt=0
    )
    drain_s: float = key(
        60.0,
        "Time for episodes in progress to end after SIGTERM; no new ones begin.",
        unit="s",
        ge=0,
    )
    host: HostConfig = key(HostConfig, "How games are hosted and restarted.")
    log: LogConfig = key(LogConfig, "Log output.")

    @model_validator(mode="after")
    def _guarded(self) -> ServeConfig:
        if self.token_file is None and not is_loopback(self.address):
            raise ValueError(
                f"address={self.address} can be reached from other machines: set token_file, or "
                f"address=127.0.0.1"
            )
        return self

    def token(self) -> str | None:
        """Returns the token of the file.

        Raises:
            ConfigError: there is no such file, or it has no token that is long enough.
        """
        if self.token_file is None:
            return None
        try:
            token = read_document(local_path(self.token_file)).decode("ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"token_file={self.token_file} cannot be read: {error}") from error
        if len(token) < _LEAST_TOKEN or not token.isprintable() or set(token) & set(" /?#%"):
            raise ConfigError(
                f"token_file={self.token_file}: expected one word of at least {_LEAST_TOKEN} "
                f"letters and digits; make one with: python -c 'import secrets; "
                f"print(secrets.token_hex(32))'"
            )
        return token


def serve(config: ServeConfig, session: Session) -> str | None:
    """Serves until a signal arrives, then lets the episodes in progress end.

    Raises:
        InputError: the configuration is wrong, or the address is taken; nothing was launched.
    """
    token = config.token()
    bridge, task = bridge_of(config.bridge, config.task)
    python = interpreter_of(config.host.python, bridge)
    if python is not None:
        check_interpreter(python, bridge)
    try:
        from rollout.interop.listening import Listener  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise missing_extra("gamut serve", "serve") from error
    with contextlib.ExitStack() as held:
        listener = held.enter_context(
            Listener(config.address, config.port, config.connections, config.message_kb << 10)
        )
        games = held.enter_context(
            Games(
                bridge,
                task,
                games=config.games,
                state_set=config.state_set,
                host=config.host,
                seed=config.seed,
            )
        )
        tell(one_line(f"{listener.url}  {config.bridge.name}, {config.games} games (Ctrl-C ends)"))
        ending = _Ending(config, session.stop)
        try:
            with session.stop.deferred():
                listener.serve(
                    games, config.bridge.name, token, idle_s=config.idle_s, ending=ending
                )
        except Stopped:
            if session.stop.times > 1:  # the second did not wait
                raise
    return None


class _Ending:
    """Decides when the server ends: once nothing plays, or after the time for it."""

    def __init__(self, config: ServeConfig, stop: Stop) -> None:
        self._config, self._stop, self._since = config, stop, 0.0

    def begins(self) -> bool:
        """Returns whether a signal has arrived."""
        if self._stop.requested and not self._since:
            self._since = time.monotonic()
            log.info("no new episodes begin; at most %g s for the others", self._config.drain_s)
        return self._stop.requested

    def due(self, playing: int) -> bool:
        """Returns whether to end now, with this number of episodes in progress."""
        return not playing or time.monotonic() >= self._since + self._config.drain_s
