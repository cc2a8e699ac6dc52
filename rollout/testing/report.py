"""Reports of conformance suites, and a runner of checks that may hang."""

from __future__ import annotations

import queue
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, Literal, TypeAlias

from rollout.errors import ContractError, GamutError, identity_of, located, trace_of

_MOST_HUNG = 2  # checks that hung, after which the rest is skipped: each costs its whole timeout

Result = Literal["passed", "failed", "skipped"]
CheckFunction: TypeAlias = Callable[..., str]
"""Makes one check and returns its observations; raises ContractError or ``Skipped``."""


class Skipped(Exception):  # noqa: N818 - reads as what happened
    """Raised in a check that is not applicable; the message is the reason."""


@dataclass(frozen=True)
class Check:
    """One check: its name, result, observations, and the traceback of the error that failed it."""

    name: str
    result: Result
    seen: str
    seconds: float = 0.0
    trace: str = ""


@dataclass(frozen=True)
class Report:
    """All checks of a suite, in the order they ran.

    Attributes:
        subject: the object that was checked.
        checks: the checks.
    """

    subject: str
    checks: tuple[Check, ...]

    def __getitem__(self, name: str) -> Check:
        for check in self.checks:
            if check.name == name:
                return check
        raise KeyError(f"no check {name!r}; there are: {[c.name for c in self.checks]}")

    def names(self, result: Result) -> list[str]:
        """Returns the names of the checks with that result."""
        return [check.name for check in self.checks if check.result == result]

    @property
    def passed(self) -> bool:
        """True if no check failed."""
        return not self.names("failed")

    def raise_if_failed(self) -> None:
        """Raises unless every check passed or was skipped.

        Raises:
            ContractError: the message lists every failed check with its observations.
        """
        if failed := self.names("failed"):
            lines = "\n".join(f"  {name}: {self[name].seen}" for name in failed)
            raise ContractError(
                f"{self.subject} fails {len(failed)} of {len(self.checks)} checks:\n{lines}"
            )

    def table(self) -> str:
        """Returns the report as text: check, result, observations; then each traceback once."""
        width = max([len("check"), *(len(check.name) for check in self.checks)])
        rows = [f"{'check':{width}}  {'result':7}  seen"]
        for check in self.checks:
            first, *more = check.seen.splitlines() or [""]
            rows.append(f"{check.name:{width}}  {check.result:7}  {first}".rstrip())
            rows += [f"{'':{width}}  {'':7}  {line}" for line in more]
        counts = [f"{len(self.names(r))} {r}" for r in ("passed", "failed", "skipped")]
        traces = {identity_of(check.trace): check.trace for check in self.checks if check.trace}
        return "\n".join([*traces.values(), *rows, f"{self.subject}: {', '.join(counts)}"])

    def describe(self) -> dict[str, Any]:
        """Returns the report as JSON-able data."""
        return {
            "subject": self.subject,
            "passed": self.passed,
            "checks": [asdict(check) for check in self.checks],
        }


class Hung(Exception):  # noqa: N818 - reads as what happened
    """A call did not return in time; the message says where it was."""


_Calls: TypeAlias = queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None]


def _serve(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        function, answer = call
        try:
            answer.set_result(function())
        except BaseException as error:  # noqa: BLE001 - raised again in the waiting thread
            answer.set_exception(error)


def _where(thread: threading.Thread) -> str:
    """Returns the position of a thread: its last two lines outside Python's own code."""
    frame = sys._current_frames().get(thread.ident or 0)
    if frame is None:
        return "its thread is gone"
    library = sysconfig.get_path("stdlib")
    stack = traceback.extract_stack(frame)
    own = [f for f in stack if "site-packages" in f.filename or not f.filename.startswith(library)]
    lines = [f"{f.name} ({f.filename}:{f.lineno})" for f in (own or stack)[-2:]]
    return "it is in " + ", called by ".join(reversed(lines))


@dataclass
class Suite:
    """Makes and collects checks.

    All calls are made in one thread, because some games may only be used from the thread that
    launched them. It is abandoned when a call hangs, and a daemon, unlike the threads of an
    executor, so that it cannot keep the program from ending.

    Attributes:
        subject: the object under test.
        timeout_s: timeout of each check, in seconds.
        checks: the checks that were made.
    """

    subject: str
    timeout_s: float = 60.0
    checks: list[Check] = field(default_factory=list)
    _hung: int = 0
    _thread: threading.Thread | None = None
    _calls: _Calls = field(default_factory=queue.SimpleQueue)

    def run(
        self, checks: Mapping[str, CheckFunction], *subject: object, required: str = ""
    ) -> Report:
        """Makes checks of one subject, which each function gets as its arguments.

        Args:
            checks: the checks by name.
            subject: arguments of every check.
            required: name of a check without which the others cannot be made.
        """
        for name, function in checks.items():
            if self.check(name, partial(function, *subject)) != "passed" and name == required:
                break
        return self.report()

    def check(self, name: str, function: CheckFunction) -> Result:
        """Makes one check and returns its result; any exception is a failure."""
        began = time.monotonic()
        result: Result = "failed"
        trace = ""
        try:
            if self._hung >= _MOST_HUNG:
                raise Skipped(f"not made: {self._hung} checks before it hung")
            result, seen = "passed", self.call(function)
        except Skipped as reason:
            result, seen = "skipped", str(reason)
        except Hung as error:
            self._hung += 1
            seen = str(error)
        except ContractError as error:
            seen, trace = str(error), error.trace
        except (Exception, SystemExit) as error:  # noqa: BLE001 - reports everything that foreign code raises
            seen = located(type(error).__name__, str(error), error)
            trace = trace_of(error)
        seconds = round(time.monotonic() - began, 3)
        self.checks.append(Check(name, result, seen, seconds, trace))
        return result

    def call(self, function: Callable[[], Any]) -> Any:
        """Returns what the function returns, or raises what it raises.

        Raises:
            Hung: it took longer than the timeout; the call continues in the abandoned thread.
        """
        if self._thread is None:
            self._calls = queue.SimpleQueue()
            self._thread = threading.Thread(
                target=_serve, args=(self._calls,), name="conformance", daemon=True
            )
            self._thread.start()
        answer = Future[Any]()
        self._calls.put((function, answer))
        if wait((answer,), self.timeout_s).done:
            return answer.result()
        self._calls.put(None)  # ends the thread if the call ever returns
        thread, self._thread = self._thread, None
        raise Hung(f"did not come back within {self.timeout_s:g} s; {_where(thread)}")

    def report(self) -> Report:
        """Ends the thread and returns the report."""
        if self._thread is not None:
            self._calls.put(None)
            self._thread.join(1.0)
            self._thread = None
        return Report(self.subject, tuple(self.checks))


def require(condition: object, message: str) -> None:
    """Fails the check unless the condition holds.

    Raises:
        ContractError: it does not hold.
    """
    if not condition:
        raise ContractError(message)


def must_raise(error: type[GamutError], call: Callable[[], object], what: str) -> str:
    """Fails the check unless the call raises this error, whose message is returned.

    Raises:
        ContractError: the call succeeded; the message names ``what`` was accepted.
    """
    try:
        call()
    except error as raised:
        return str(raised)
    raise ContractError(f"{what} was accepted; expected {error.__name__}")
