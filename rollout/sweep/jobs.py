"""The job and the configuration of ``gamut train``: of one seed, or of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rollout.train import jobs


def job_of(data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the function that trains as a configuration says, and the configuration's class.

    Args:
        data: the configuration as plain data; one with ``seeds`` has a run for each of them.
    """
    function, config = jobs.job_of(data)
    if data.get("seeds") is not None:
        from rollout.sweep.seeds import train_seeds  # noqa: PLC0415 - the chosen job alone

        return train_seeds, config
    return function, config
