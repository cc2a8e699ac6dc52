"""Process groups of learners, without a port where all are on one machine.

Torch's default is a server that listens on every interface, requires no token and accepts what
anyone writes.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

import ray
from ray.train._internal.worker_group import WorkerGroup
from ray.train.torch import config as of_ray
from ray.train.torch.config import TorchConfig

from rollout.host.processes import owned_workdir, remove_workdir

_INTERFACES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME")
_LOOPBACK = "lo"


class LearnerBackend(of_ray._TorchBackend):  # type: ignore[misc] # Ray is untyped
    """Ray's backend for torch; learners on one machine meet in a file, not a server."""

    def on_start(self, worker_group: Any, backend_config: Any) -> None:
        """Starts the process group, see Ray."""
        if len(set(worker_group.execute(_machine))) > 1:
            super().on_start(worker_group, backend_config)
            return
        if not isinstance(worker_group, WorkerGroup):  # as Ray does
            worker_group.execute(of_ray._set_torch_distributed_env_vars)
        gpus = worker_group.get_resources_per_worker().get("GPU", 0)
        common = {
            "backend": "nccl" if gpus else "gloo",
            "world_size": len(worker_group),
            "init_method": worker_group.execute_single(0, _rendezvous_url),
            "timeout_s": backend_config.timeout_s,
        }
        joined = [
            worker_group.execute_single_async(rank, _join_group, world_rank=rank, **common)
            for rank in range(len(worker_group))
        ]
        ray.get(joined, timeout=backend_config.timeout_s)


class _OwnDevice(LearnerBackend):
    """As RLlib's: each learner sees its own GPU only."""

    share_cuda_visible_devices = False


class LearnerConfig(TorchConfig):  # type: ignore[misc] # Ray is untyped
    """Ray's configuration of torch with our backend."""

    @property
    def backend_cls(self) -> type[LearnerBackend]:
        """See Ray."""
        return LearnerBackend


class RllibLearnerConfig(LearnerConfig):
    """Configuration of torch for the learners of RLlib."""

    @property
    def backend_cls(self) -> type[LearnerBackend]:
        """See Ray."""
        return _OwnDevice


def _machine() -> str:
    return str(ray.get_runtime_context().get_node_id())


def _rendezvous_url() -> str:
    """Returns the URL of a file that only this user can open."""
    folder = owned_workdir("gamut-learners-")
    atexit.register(remove_workdir, folder)
    return f"file://{folder}/store"


def _join_group(**given: Any) -> None:
    for name in _INTERFACES:
        os.environ.setdefault(name, _LOOPBACK)
    of_ray._setup_torch_process_group(**given)
