"""The job and the configuration of ``gamut evaluate``: of one task, or of several."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def job_of(data: Mapping[str, Any]) -> tuple[Any, Any]:
    """Returns the function that evaluates as a configuration says, and the configuration's class.

    Args:
        data: the configuration as plain data; one with ``tasks`` is of several tasks.
    """
    if "tasks" in data:
        from rollout.suite.config import SuiteConfig  # noqa: PLC0415 - the chosen job alone
        from rollout.suite.suite import evaluate_suite  # noqa: PLC0415 - likewise

        return evaluate_suite, SuiteConfig
    from rollout.evaluate.config import EvaluateConfig  # noqa: PLC0415 - likewise
    from rollout.evaluate.evaluate import evaluate  # noqa: PLC0415 - likewise

    return evaluate, EvaluateConfig
