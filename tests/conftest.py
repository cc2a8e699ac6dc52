"""Set-up shared by all tests."""

import os
import re

from hypothesis import HealthCheck, settings

# Hermetic: no token file in the user's home, no twenty-second wait for one. Before anything
# imports Ray, which reads it once.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("WANDB_MODE", "disabled")
# A node of Ray ends itself when its own helpers or workers are not up in half a minute or one,
# which a busy machine may well need.
os.environ.setdefault("RAY_agent_register_timeout_ms", "600000")
os.environ.setdefault("RAY_worker_register_timeout_seconds", "600")
# Tests call the parts of blockworld's compiled code, not only its entry points.
os.environ.setdefault("GAMUT_CALL_INNER", "1")

# How fast examples come says how busy the machine is, nothing about what is tested.
settings.register_profile("gamut", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gamut")

_MARKS = re.compile(r"^pytestmark = (\[\n.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)


def pytest_ignore_collect(collection_path, config):
    """Leaves out modules that ``make unit`` would only import to deselect all of them."""
    if collection_path.suffix != ".py" or "not heavy" not in config.option.markexpr:
        return None
    marks = _MARKS.search(collection_path.read_text())
    return True if marks and ".heavy" in marks[1] else None
