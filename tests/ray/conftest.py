"""One Ray for all tests of this folder."""

import pytest

from rollout.host.session import ray_session


@pytest.fixture(scope="session")
def local_ray():
    with ray_session(num_cpus=4):
        yield
