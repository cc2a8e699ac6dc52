"""Jobs: submitted to a cluster and followed to their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rollout.cluster.addresses import ADDRESS, API_SERVER, Dashboard
from rollout.cluster.package import Package
from rollout.cluster.resources import GROUP, Node, require_bundles
from rollout.errors import ConfigError, GamutError

# Variables of a job: seconds from SIGTERM to SIGKILL when it is stopped, and which of SIGTERM and
# SIGINT stops it.
STOP_WAIT = "RAY_JOB_STOP_WAIT_TIME_S"
STOP_SIGNAL = "RAY_JOB_STOP_SIGNAL"

_REQUEST_S = 60.0  # timeout without a byte in one request; an upload may take longer in total
_AGENT_S = 60.0  # timeout until a cluster that has just started accepts jobs
_AGAIN_S = 2.0  # between two tries
_NO_AGENT = "No available agent to submit job"
_POLL_S = 5.0  # interval of status requests while the log is followed
_SETTLE_S = 30.0  # timeout for the last lines after a job has ended
_LOST_S = 120.0  # timeout without a reply before following a job ends
_ENDED = ("SUCCEEDED", "FAILED", "STOPPED")


class NoAnswerError(GamutError):
    """The cluster no longer responds; the job may still be running."""


@dataclass(frozen=True)
class RayJob:
    """A job for a cluster.

    Attributes:
        entrypoint: the command line, for a shell, in the working directory.
        package: the working directory.
        env: environment variables of the driver and of every actor.
        needs: resources that are reserved for the driver, by Ray's names: ``CPU``, ``GPU``,
            ``memory`` in bytes, or custom ones.
        check: shell code before the entrypoint; empty for none.
        name: name of the job, unique on its cluster.
    """

    entrypoint: str
    package: Package
    env: Mapping[str, str] = field(default_factory=dict)
    needs: Mapping[str, float] = field(default_factory=dict)
    check: str = ""
    name: str = field(
        default_factory=lambda: f"gamut-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    )

    def runtime_env(self) -> dict[str, Any]:
        """Returns the runtime environment, with few keys: Ray refuses keys that are set twice."""
        out: dict[str, Any] = {"working_dir": str(self.package.folder), "env_vars": dict(self.env)}
        if self.package.excludes:
            out["excludes"] = list(self.package.excludes)
        return out


def connect(dashboard: Dashboard) -> Any:
    """Returns Ray's client of a dashboard.

    Raises:
        ConfigError: the dashboard does not take jobs.
    """
    from ray.exceptions import AuthenticationError  # noqa: PLC0415
    from ray.job_submission import JobSubmissionClient  # noqa: PLC0415 - takes seconds

    headers = {}
    if dashboard.token is not None:
        # Set here: Ray's own mode may be that of a cluster that this process started.
        headers["Authorization"] = f"Bearer {dashboard.token.value}"
    # Either would override the given address.
    others = {name: os.environ.pop(name) for name in (API_SERVER, ADDRESS) if name in os.environ}
    try:
        client = JobSubmissionClient(dashboard.url, headers=headers)
    except (ConnectionError, RuntimeError) as error:
        raise ConfigError(f"{dashboard.url} takes no jobs: {error}") from error
    finally:
        os.environ.update(others)
    plain = client._do_request

    def request(method: str, endpoint: str, **more: Any) -> Any:
        # Ray's requests have no timeout, and an unplugged cable would block forever.
        try:
            return plain(method, endpoint, timeout=_REQUEST_S, **more)
        except AuthenticationError as error:
            raise ConnectionError("it no longer accepts the token") from error

    client._do_request = request
    return client


def read_machines(client: Any) -> list[Node]:
    """Returns the machines of a cluster, from its dashboard; none if it does not list them."""
    with contextlib.suppress(OSError, RuntimeError, ValueError, KeyError, TypeError):
        reply = client._do_request("GET", "/api/v0/nodes?detail=1&limit=10000")
        reply.raise_for_status()
        return [
            Node(node["node_ip"], dict(node["resources_total"]), node["labels"].get(GROUP, ""))
            for node in reply.json()["data"]["result"]["result"]
            if node["state"] == "ALIVE"
        ]
    return []


def send(client: Any, job: RayJob) -> None:
    """Submits a job; waits for a cluster that has just started to accept it.

    Raises:
        ConfigError: the cluster refuses it, or has no machine for its driver, for which Ray would
            let it wait.
    """
    needs = dict(job.needs)
    machines = read_machines(client) if needs else []
    if machines:
        require_bundles([needs], nodes=machines, what="driver")
    given: dict[str, Any] = {
        "entrypoint_num_cpus": needs.pop("CPU", None),
        "entrypoint_num_gpus": needs.pop("GPU", None),
        "entrypoint_memory": needs.pop("memory", None),
        "entrypoint_resources": needs or None,
    }
    options = {k: v for k, v in given.items() if v is not None}
    options |= {"runtime_env": job.runtime_env(), "submission_id": job.name}
    end = time.monotonic() + _AGENT_S
    while True:
        try:
            with _quiet():
                client.submit_job(entrypoint=job.check + job.entrypoint, **options)
                return
        except (OSError, RuntimeError, ValueError) as error:
            # Ray says so before it has checked the job: no node's agent is running yet.
            if _NO_AGENT in str(error) and time.monotonic() < end:
                threading.Event().wait(_AGAIN_S)
                continue
            raise ConfigError(
                f"the cluster refuses the job: {error}; nothing runs, unless it is in the list of "
                f"`ray job list`"
            ) from error


def follow(client: Any, name: str, write: Callable[[str], object]) -> Any:
    """Follows the log of a job to its end, and returns Ray's details of it.

    Args:
        client: of ``connect``.
        name: of the job.
        write: called with the text of the log as it arrives.

    Raises:
        NoAnswerError: the cluster did not answer for two minutes.
        KeyboardInterrupt: by the user; the job continues.
    """
    with _quiet():
        return asyncio.run(_Follower(client, name, write).run())


class _Follower:
    """Follows one job, and reconnects if the connection breaks."""

    def __init__(self, client: Any, name: str, write: Callable[[str], object]) -> None:
        self._client, self._name, self._write = client, name, write
        self._shown = 0  # characters of the log that were written
        self._last_answer = time.monotonic()

    async def run(self) -> Any:
        while True:
            tail = asyncio.ensure_future(self._tail())
            try:
                info = await self._watch(tail)
            finally:
                tail.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await tail
            if info is not None:
                return info

    async def _tail(self) -> None:
        """Writes the log from the current position until the connection ends."""
        import aiohttp  # noqa: PLC0415 - comes with Ray, and takes its time

        seen = 0  # a log is always sent from its beginning
        with contextlib.suppress(RuntimeError, OSError, aiohttp.ClientError):
            async for text in self._client.tail_job_logs(self._name):
                new = text[max(0, self._shown - seen) :]
                seen += len(text)
                self._shown = max(self._shown, seen)
                if new:
                    self._write(new)

    async def _watch(self, tail: asyncio.Future[None]) -> Any:
        """Waits for the end of the job or of the connection; returns the job if it has ended."""
        ended_at: float | None = None
        while True:
            broken = tail.done()
            await asyncio.wait({tail}, timeout=_POLL_S)
            info = await self._read_info()
            if info is not None and info.status in _ENDED:
                ended_at = ended_at or time.monotonic()
                if tail.done() or time.monotonic() - ended_at > _SETTLE_S:
                    return info
            elif tail.done():
                if broken:
                    await asyncio.sleep(_POLL_S)
                    return None
                await asyncio.sleep(0.2)  # the state changes shortly after the end of the log

    async def _read_info(self) -> Any:
        """Returns the cluster's details of the job; None if it does not respond.

        Raises:
            NoAnswerError: it has not responded for too long.
        """
        try:
            info = await asyncio.to_thread(self._client.get_job_info, self._name)
        except (OSError, RuntimeError) as error:
            silent = time.monotonic() - self._last_answer
            if silent > _LOST_S:
                raise NoAnswerError(
                    f"the cluster has not answered for {silent:.0f} s ({error}); job {self._name} "
                    f"may still be running"
                ) from error
            return None
        self._last_answer = time.monotonic()
        return info


def exit_status(info: Any, env: Mapping[str, str] | None = None) -> int:
    """Returns the exit status of a job's driver.

    For a driver that was ended by a signal it is 128 plus its number, as in a shell. Ray stores
    none for a job that was stopped: it counts as ended by the stop signal, which ``env`` may name.
    """
    if info.driver_exit_code is not None:
        code = int(info.driver_exit_code)
        return code if code >= 0 else 128 - code
    if info.status == "STOPPED":
        name = (env or {}).get(STOP_SIGNAL, "SIGTERM")
        return 128 + (signal.SIGINT if name == "SIGINT" else signal.SIGTERM)
    return 0 if info.status == "SUCCEEDED" else 1


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppresses messages of Ray that repeat ours."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)
