"""Starting, joining and leaving a Ray cluster."""

from __future__ import annotations

import atexit
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from rollout.cluster.addresses import (
    ADDRESS,
    Mode,
    configured_mode,
    find_token,
    require_cluster,
    set_mode,
    write_own_token,
)
from rollout.errors import ConfigError, RayUnavailable
from rollout.host.processes import RUN_ID, remove_workdir
from rollout.host.ray_start import (
    agent_ports,
    extended_timeouts,
    kill_parts,
    known_ports,
    log_errors,
    private_folder,
    remove_session,
    session_folder,
    stoppable_imports,
)
from rollout.host.ray_watch import forget, lost, watched
from rollout.signals import leave_abruptly

log = logging.getLogger(__name__)

_IN_JOB = "RAY_JOB_CONFIG_JSON_ENV_VAR"  # set by Ray inside `ray job submit`
_HERE = ("", "local")  # addresses for which a cluster is started
_AUTO = "auto"  # address of the cluster on this machine


def _set_own_authentication(folder: Path) -> None:
    """Sets the authentication of our own cluster: by a token in its private folder.

    Its ports listen on every interface, so without authentication anyone could run code. Other
    settings in the environment take precedence.
    """
    mode = configured_mode()
    if mode == "disabled" or (mode == "token" and find_token() is not None):
        return
    set_mode("token", write_own_token(folder))


def alone(address: str | None) -> bool:
    """Returns whether ``ray_session`` starts a cluster of its own."""
    return _target_of(address)[0] is None


def _target_of(address: str | None) -> tuple[str | None, str]:
    """Returns the address to join (None to start a cluster) and its name for messages."""
    given = os.environ.get(ADDRESS, "") if address is None else address
    key = ADDRESS if address is None else "ray.address"
    if given not in _HERE:
        return given, key
    return (_AUTO if _IN_JOB in os.environ else None), key


def _find_cluster(address: str, key: str) -> tuple[str, Mode]:
    """Returns the address and the authentication of a cluster, after a request to it.

    Raises:
        ConfigError: it is not there, or it refuses us; raised within seconds.
    """
    if address == _AUTO:
        address = _running_here(key)
    return address, require_cluster(address, key=key)


def _running_here(key: str) -> str:
    """Returns the address of the cluster that runs on this machine, as Ray finds it.

    Raises:
        ConfigError: there is none.
    """
    # This imports Ray before the mode is decided, which is why `set_mode` tells Ray, too.
    from ray._private.services import (  # noqa: PLC0415
        canonicalize_bootstrap_address_or_die,
    )

    try:
        return str(canonicalize_bootstrap_address_or_die(_AUTO))
    except ConnectionError as error:
        raise ConfigError(
            f"{key}={_AUTO}: no cluster runs here; start one by `ray start --head`, give "
            f"the HOST:PORT of another, or leave ray.address empty"
        ) from error


def _is_running() -> bool:
    return "ray" in sys.modules and bool(sys.modules["ray"].is_initialized())


def require_session(address: str | None = None) -> None:
    """Checks that ``ray_session`` would find and could join its cluster; joins and starts nothing.

    For programs that create files before they need Ray: invalid input should leave none behind.

    Args:
        address: as for ``ray_session``.

    Raises:
        ConfigError: there is no cluster at the address, or it refuses us.
    """
    target, key = _target_of(address)
    if target is not None and not _is_running():
        _find_cluster(target, key)


def _start(
    folder: Path,
    ports: Mapping[str, int],
    *,
    num_cpus: int | None,
    stopping: Callable[[], int],
) -> None:
    """Starts a cluster on this machine, with its files in a private folder.

    Raises:
        RayUnavailable: Ray does not start.
        KeyboardInterrupt: ``stopping`` named a signal.
    """
    _set_own_authentication(folder)
    try:
        with stoppable_imports(stopping):
            ray = _load()
            log.info("starting Ray on this machine")
            with (
                _keep_sigterm_handler(ray._private.utils),
                known_ports(ray, ports),
                extended_timeouts(ray, stopping),
            ):
                ray.init(
                    address="local",
                    num_cpus=num_cpus,
                    include_dashboard=False,
                    logging_level=logging.WARNING,
                    _temp_dir=str(session_folder(folder)),
                )
    except KeyboardInterrupt:
        leave_abruptly()
        _abandon(folder)
        remove_workdir(folder)
        raise
    except Exception as error:  # Ray raises any kind
        for session in session_folder(folder).glob("session_2*"):
            log_errors(session)
        _abandon(folder)
        raise RayUnavailable(
            f"Ray cannot start on this machine: {error}; check its memory, its disk and what "
            f"else runs here, or give ray.address the HOST:PORT of a running cluster; then "
            f"continue with --resume"
        ) from error


def _abandon(folder: Path) -> None:
    """Ends what has started of a cluster."""
    if "ray" in sys.modules:  # else a signal came while it was imported
        sys.modules["ray"].shutdown()
    kill_parts(folder)  # those that Ray has not noted
    remove_session(folder)


def _load() -> Any:
    """Returns the package of Ray, which must be imported after the mode is decided."""
    log.info("loading Ray")
    import ray  # noqa: PLC0415 - see above

    return ray


def _join(target: str, *, as_in_job: bool) -> None:
    """Joins the cluster at an address, whose authentication is decided.

    Args:
        target: ``HOST:PORT`` of its head.
        as_in_job: whether the job says where the cluster is.

    Raises:
        ConfigError: it refuses us.
    """
    ray = _load()
    # Workers of an existing cluster have the environment of their machine, not ours.
    run = os.environ.get(RUN_ID)
    more: dict[str, Any] = {"runtime_env": {"env_vars": {RUN_ID: run}}} if run else {}
    log.info("joining the cluster at %s", target)
    # The job itself sets the address, the working directory and the environment. Ray refuses them
    # a second time, but accepts other settings.
    if not as_in_job:
        more["address"] = target
    try:
        with _keep_sigterm_handler(ray._private.utils):
            ray.init(**more, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "ersion mismatch" not in str(error):
            raise
        raise ConfigError(
            f"the cluster at {target} cannot be joined: {error}; check that it runs, with the same "
            f"versions of Python and Ray, and that RAY_AUTH_MODE and its token match, or leave "
            f"ray.address empty"
        ) from error


@contextmanager
def ray_session(
    address: str | None = None,
    *,
    num_cpus: int | None = None,
    stopping: Callable[[], int] = lambda: 0,
) -> Iterator[None]:
    """Joins a Ray cluster, or starts one on this machine, and leaves it at the end.

    The authentication is always set before Ray is asked, never left to Ray's guess: a new cluster
    gets its own token, and an existing one is first asked whether it accepts ours. The files of a
    new cluster are in a folder that only this user can open, and are removed at the end.

    Args:
        address: ``HOST:PORT`` of a running cluster's head, or ``auto``. None uses ``RAY_ADDRESS``
            or the cluster of the current Ray job, and otherwise starts one, as ``local`` does.
        num_cpus: number of CPUs of a new cluster; None for those of the machine.
        stopping: returns the number of a signal that arrived, which ends the start of a cluster; 0
            for none.

    Raises:
        ConfigError: there is no cluster at the address, or it refuses us; the message has one line
            and comes within seconds.
        RayUnavailable: a new cluster does not start, within minutes.
    """
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    if _is_running():
        yield
        return
    target, key = _target_of(address)
    with ExitStack() as held:
        folder = None
        if target is None:
            folder = private_folder()
            ports = held.enter_context(agent_ports())
            _start(folder, ports, num_cpus=num_cpus, stopping=stopping)
        else:
            target, mode = _find_cluster(target, key)
            set_mode(mode)
            _join(target, as_in_job=_IN_JOB in os.environ and address is None)
        try:
            with watched(sys.modules["ray"]):
                yield
        finally:
            died = _leave(sys.modules["ray"])
            if folder is not None:
                remove_session(folder)
            if folder is not None and died:
                remove_workdir(folder)


def _leave(ray: Any) -> bool:
    """Shuts Ray down; one that has died is left as it is, since it would end this process.

    Returns:
        whether it has died.
    """
    died = bool(lost())
    if died:
        leave_abruptly()
        atexit.unregister(ray._private.worker.shutdown)
        node = ray._private.worker._global_node
        if node is not None:  # ends what we started
            node.kill_all_processes(check_alive=False, allow_graceful=False)
    else:
        ray.shutdown()
    forget()
    return died


@contextmanager
def _keep_sigterm_handler(utils: Any) -> Iterator[None]:
    """Keeps the program's handler of SIGTERM, if it has one, while Ray starts.

    Ray would replace it by one that exits: in the middle of its start, or not at all, where Python
    ignores exceptions, as after a fork.
    """
    before = utils.set_sigterm_handler
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_DFL, None):
        utils.set_sigterm_handler = lambda _: None
    try:
        yield
    finally:
        utils.set_sigterm_handler = before
