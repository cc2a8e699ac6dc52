"""Set-up shared by all tests."""

import gc
import logging
import os
import re
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

# Isolated: no token file in the user's home, no twenty-second wait for one. Before anything
# imports Ray, which reads it once.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("WANDB_MODE", "disabled")
# A node of Ray ends itself when its own helpers or workers are not up in half a minute or one,
# which a busy machine may well need.
os.environ.setdefault("RAY_agent_register_timeout_ms", "600000")
os.environ.setdefault("RAY_worker_register_timeout_seconds", "600")
# Ray starts a worker for each CPU before anything asks for one; most tests need one or two.
os.environ.setdefault("RAY_prestart_worker_first_driver", "0")
# Ray lowers the priority of its workers by 15, so that the tests of other files would stop them.
os.environ.setdefault("RAY_worker_niceness", "0")
# Threads of torch and numpy wait actively, and here every core has other work.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Tests call the parts of blockworld's compiled code, not only its entry points.
os.environ.setdefault("GAMUT_CALL_INNER", "1")
# nohup ignores SIGHUP in all its children, and our programs leave an ignored signal as it is.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# The speed of examples depends on the load of the machine, not on the tested code.
settings.register_profile("gamut", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("gamut")


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undoes the log of a script that a test called, whose level would silence this one."""
    root, ours = logging.getLogger(), map(logging.getLogger, ("rollout", "policies", "bridges"))
    for handler in root.handlers[:]:  # a fixture of a module may have called a script, too
        if type(handler).__module__ == "rollout.observe.logs":
            root.removeHandler(handler)
            handler.close()
    handlers = root.handlers[:]
    for logger in ours:
        logger.setLevel(logging.NOTSET)
    yield
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
            handler.close()


_MARKS = re.compile(r"^pytestmark = (\[\n.*?^\]|[^\n]*)", re.MULTILINE | re.DOTALL)
_LEFT_OUT = re.compile(r"not (\w+)")


def pytest_ignore_collect(collection_path, config):
    """Leaves out modules that would only be imported to deselect all of them, by every worker."""
    terms = [_LEFT_OUT.fullmatch(term) for term in config.option.markexpr.split(" and ")]
    if collection_path.suffix != ".py" or not all(terms):
        return None
    left_out = re.compile(rf"\.({'|'.join(term[1] for term in terms)})\b")
    marks = _MARKS.search(collection_path.read_text())
    return True if marks and left_out.search(marks[1]) else None


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Lets no collector of garbage look at what collecting makes: a million objects, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Each worker begins elsewhere in a folder: in a new clone none compiles what another did."""
    report = yield
    worker = getattr(collector.config, "workerinput", None)
    if worker and isinstance(collector, pytest.Dir) and report.passed:
        first = int(worker["workerid"][2:]) * len(report.result) // worker["workercount"]
        report.result = report.result[first:] + report.result[:first]
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Puts the tests into the order of the folders, the same for all workers."""
    items.sort(key=lambda item: item.path)
