"""The environment server as an application of Ray Serve, for more machines than one.

Each replica has games of its own. A socket stays at the replica that took it; sessions that
requests name do not, so play by sockets. Replicas, autoscaling and their resources are options of
Serve for the deployment ``Games``; see docs/serve.md.
"""

from __future__ import annotations

from typing import Any

from ray import serve
from starlette.types import ASGIApp

from rollout.config import make_config
from rollout.errors import ConfigError
from rollout.interop.games import Games
from rollout.interop.openenv_server import OpenEnvServer
from rollout.interop.serving import ServeConfig

_MORE = 16  # requests beside the sockets: health, tasks, refusals


def application(keys: dict[str, Any]) -> serve.Application:
    """Returns the application of a configuration.

    Args:
        keys: those of ``gamut serve``; ``address``, ``port`` and ``connections`` have no effect,
            since Serve decides where it listens, and ``token_file`` must be readable by replicas.

    Raises:
        ConfigError: a key or a value is wrong, or there is no token.
    """
    config = make_config(ServeConfig, keys)
    if config.token() is None:
        raise ConfigError("Serve may listen beyond loopback: give the games a token_file")

    def build() -> ASGIApp:
        games = Games(
            config.bridge,
            config.task,
            games=config.games,
            state_set=config.state_set,
            host=config.host,
            seed=config.seed,
        )
        server = OpenEnvServer(
            games, config.bridge.name, config.token(), config.idle_s, config.message_kb << 10
        )
        return server.app

    deployment = serve.deployment(
        serve.ingress(build)(),
        name="Games",
        max_ongoing_requests=config.games + _MORE,
        graceful_shutdown_timeout_s=config.drain_s,
    )
    return deployment.bind()
