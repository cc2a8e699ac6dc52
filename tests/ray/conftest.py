"""One Ray for all tests of this folder."""

from contextlib import ExitStack
from pathlib import Path

import pytest
import ray

from rollout.cluster.addresses import ADDRESS
from rollout.host.ray_watch import lost
from rollout.host.session import ray_session

HERE = Path(__file__).parent
_started = ExitStack()


@pytest.fixture
def local_ray():
    """A Ray of this process; returns its address."""
    if not ray.is_initialized():
        _started.enter_context(ray_session(num_cpus=4))
    assert not lost(), "an earlier test, or something beside it, has ended this Ray"
    return ray.get_runtime_context().gcs_address


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem):
    """Ends Ray with the tests of this folder: an idle cluster takes 4 % of a processor."""
    if nextitem is None or not nextitem.path.is_relative_to(HERE):
        _started.close()


@pytest.fixture
def joined_ray(local_ray, monkeypatch):
    """Scripts that a test starts join the Ray of this process, which is faster than their own."""
    monkeypatch.setenv(ADDRESS, local_ray)
