"""One Ray for all tests of this folder."""

import pytest
import ray

from rollout.cluster.addresses import ADDRESS
from rollout.host.session import ray_session


@pytest.fixture(scope="package")
def local_ray():
    """A Ray of this process, until it runs tests of other folders; returns its address."""
    with ray_session(num_cpus=4):
        yield ray.get_runtime_context().gcs_address


@pytest.fixture
def joined_ray(local_ray, monkeypatch):
    """Scripts that a test starts join the Ray of this process, which is faster than their own."""
    monkeypatch.setenv(ADDRESS, local_ray)
