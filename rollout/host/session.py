"""Starting, finding and leaving Ray."""

from __future__ import annotations

import atexit
import logging
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rollout.errors import ConfigError

_TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"  # noqa: S105 - a name, not a token
_IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray inside `ray job submit`


def _set_auth_mode(*, local: bool) -> None:
    """Decides on Ray's token authentication before Ray does, which differs by situation.

    A cluster of our own gets a token that only this user can read: its ports listen on every
    interface. A cluster that is already there is joined the way the environment says.
    """
    if "RAY_AUTH_MODE" in os.environ or not local:
        return
    if "ray" in sys.modules:
        return  # Ray reads the mode once, on import: too late to choose, and its default is sound
    folder = Path(tempfile.mkdtemp(prefix="gamut-ray-"))  # mode 0700
    token = folder / "token"
    token.write_text(secrets.token_hex(32))
    token.chmod(0o600)
    os.environ["RAY_AUTH_MODE"] = "token"
    os.environ[_TOKEN_PATH] = str(token)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)


@contextmanager
def ray_session(address: str | None = None, *, num_cpus: int | None = None) -> Iterator[None]:
    """Joins a Ray cluster, or starts one on this machine, and leaves it at the end.

    Args:
        address: of a running cluster; None to start one, unless this is a Ray job.
        num_cpus: for a new one; None for what the machine has.

    Raises:
        ConfigError: there is no cluster at the address.
    """
    inside_job = _IN_JOB in os.environ
    local = address is None and not inside_job and "RAY_ADDRESS" not in os.environ
    _set_auth_mode(local=local)
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    import ray  # noqa: PLC0415 - only after the authentication mode is decided

    already = ray.is_initialized()
    if not already:
        try:
            if local:
                ray.init(
                    address="local",
                    num_cpus=num_cpus,
                    include_dashboard=False,
                    logging_level=logging.WARNING,
                )
            else:
                # Inside a job the address and the working directory come from the job itself.
                ray.init(address=address or "auto", logging_level=logging.WARNING)
        except ConnectionError as error:
            raise ConfigError(
                f"ray.address={address!r}: no cluster answers there ({error}); check that it runs "
                f"and that RAY_AUTH_MODE and its token match, or leave ray.address empty"
            ) from error
    try:
        yield
    finally:
        if not already:
            ray.shutdown()
