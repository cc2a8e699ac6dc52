"""The exceptions of Gamut, in one tree below ``GamutError``.

Each also inherits the matching builtin exception, so that generic code can catch it.
"""

from __future__ import annotations

import difflib
import errno
import signal
import sysconfig
import threading
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

_OURS = Path(__file__).parent
_BUILT_IN = tuple(str(_OURS.parent / each) for each in ("bridges", "policies"))
_LONGEST_TRACE = 20_000  # characters
DONE, BROKEN, WRONG_INPUT, ENDED_SHORT = 0, 1, 2, 3
"""Exit statuses of commands; ``rollout.cli`` describes them."""

_ALL = 20  # valid names that a message lists in full
_ROOM = 100  # characters for the first of more


class GamutError(Exception):
    """Base of every error that Gamut raises on purpose.

    Attributes:
        trace: the traceback of the code of a plug-in that caused it, as text, since processes
            cannot exchange tracebacks; empty if there is none.
    """

    trace: str = ""


class InputError(GamutError, ValueError):
    """The user's input is wrong; exit status 2. Raised before anything is launched."""


def nearest(name: str, valid: Iterable[str], *, most: int = 3) -> list[str]:
    """Returns the names of ``valid`` that look most like ``name``, best first."""
    return difflib.get_close_matches(name, [str(v) for v in valid], n=most, cutoff=0.5)


def _fitting(names: list[str]) -> list[str]:
    """Returns as many of the names, at least one, as fit into part of a message."""
    used = 0
    for number, name in enumerate(names):
        used += len(name) + 2
        if number and used > _ROOM:
            return names[:number]
    return names


class UnknownNameError(InputError, LookupError):
    """A name that does not exist.

    Args:
        kind: kind of the name, e.g. ``"bridge"``.
        name: the unknown name.
        valid: every name that exists.
        advice: a sentence on where the name could come from; empty for none.
    """

    def __init__(self, kind: str, name: str, valid: Iterable[str], advice: str = "") -> None:
        self.kind, self.name, self.valid = kind, name, sorted(str(v) for v in valid)
        self.advice = advice
        close = _fitting(nearest(name, self.valid))
        hint = f" Nearest: {', '.join(close)}." if close else ""
        hint += f" {advice}" if advice else ""
        listed = self.valid if len(self.valid) <= _ALL else _fitting(self.valid)
        shown = ", ".join(listed) or "none"
        left = len(self.valid) - len(listed)
        more = f" and {left} more" if left else ""
        super().__init__(f"unknown {kind} {name!r}.{hint} Valid: {shown}{more}.")

    def __reduce__(self) -> tuple[type[UnknownNameError], tuple[str, str, list[str], str]]:
        return type(self), (self.kind, self.name, self.valid, self.advice)


class ConfigError(InputError):
    """A configuration key or value is wrong."""


def missing_extra(what: str, extra: str) -> ConfigError:
    """Returns the error for a part of Gamut whose packages are not installed.

    Args:
        what: the plug-in that needs them, e.g. ``"bridge 'crafter'"``.
        extra: the extra of ``pyproject.toml`` that has them.
    """
    return ConfigError(
        f"{what} needs the extra {extra}; in Gamut's checkout: "
        f"pip install -c constraints.txt -e '.[{extra}]'"
    )


class StateError(InputError):
    """A state, a factor value or a state set does not exist."""


class TestStateError(StateError):
    """A state that is held out for testing would be used for training."""

    __test__ = False  # keeps pytest from collecting the class by its name


@contextmanager
def named(what: str) -> Iterator[None]:
    """Adds to errors in the user's input what they are about, e.g. the key of a configuration."""
    try:
        yield
    except TestStateError as error:
        raise TestStateError(f"{what}: {error}") from error
    except InputError as error:
        raise ConfigError(f"{what}: {error}") from error


class SpaceError(InputError):
    """A space cannot be represented in columns, or data does not belong to its space."""


class UnreadableError(OSError, InputError):
    """A file that a user gives cannot be read: it is no file, too large, or may not be read."""


class RunDirectoryError(InputError):
    """The output directory contains another run, or something that is not a run."""


class DatasetError(InputError):
    """A dataset cannot be opened, or has another schema than the data offered to it."""


class DatasetLockedError(DatasetError):
    """Another live process is writing the dataset."""


class GameError(GamutError):
    """A running game failed. The host replaces the slot and marks its episodes lost."""


class GameStartError(GameError):
    """A game could not be launched within its timeout, or refused to start."""


class GameTimeout(GameError, TimeoutError):  # noqa: N818 - reads as what happened
    """A game did not reply within the timeout of its current phase."""


class GameCrashed(GameError):  # noqa: N818 - reads as what happened
    """A game's process ended or its code raised."""


class DiskFullError(GamutError, OSError):
    """The disk, a quota or a file size limit is full; exit status 3. Earlier data is intact."""


def is_disk_full(error: BaseException) -> bool:
    """Returns whether an error means that the disk is full."""
    full = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
    if isinstance(error, DiskFullError) or (isinstance(error, OSError) and error.errno in full):
        return True
    cause = getattr(error, "cause", None)  # of an error that Ray brought from another process
    return isinstance(cause, BaseException) and is_disk_full(cause)


class PluginError(GamutError):
    """Code of a plug-in raised an error or tried to exit, which ends the run; exit status 1.

    Attributes:
        logged: the log of a run has its traceback.
    """

    logged = False


class NothingLegalError(PluginError):
    """A mask of a game allows no action in a slot that plays; the run ends, everything is saved."""


class BudgetExhausted(GamutError):  # noqa: N818 - reads as what happened
    """A slot failed more often than its restart budget allows; exit status 3."""


class PolicyUnavailable(BudgetExhausted):
    """No policy replied within the timeout; the episodes that waited for it are lost.

    If it is not handled, the run ends early, with everything saved.
    """


class RayUnavailable(BudgetExhausted):
    """Ray did not start, or it or a learner has died; what was finished is saved."""


class InternalError(GamutError, AssertionError):
    """Gamut itself did what it never may; please report it."""


class OutOfTurnError(GamutError, RuntimeError):
    """Methods were called in an order that the contract does not allow."""


class ContractError(GamutError, AssertionError):
    """A plug-in violates the contract of the interface it implements."""


class PluginCode:
    """Context manager around code of a plug-in: its errors become ``PluginError``.

    Errors on purpose pass unchanged. Reusable, and cheap enough for every step of a game.

    Args:
        what: the plug-in, for messages.
    """

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None:
        """Does nothing."""

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        """Converts an error.

        Raises:
            PluginError: for an error of the code.
            DiskFullError: for one that means that the disk is full.
        """
        if error is None or isinstance(error, GamutError):
            return
        raise_signal(error)
        if isinstance(error, Exception):
            kind = DiskFullError if is_disk_full(error) else PluginError
            found = kind(f"{self._what} raised {located(type(error).__name__, str(error), error)}")
            found.trace = trace_of(error)
            raise found from error
        if isinstance(error, SystemExit):
            raise _exit_of(self._what, error) from error
        main = threading.current_thread() is threading.main_thread()
        if isinstance(error, GeneratorExit) or (main and isinstance(error, KeyboardInterrupt)):
            return  # of Python itself, or of a signal
        found = PluginError(f"{self._what} raised {located(type(error).__name__, '', error)}")
        found.trace = trace_of(error)
        raise found from error


@contextmanager
def no_exit(what: str) -> Iterator[None]:
    """Raises ``PluginError`` for exits of a plug-in's code, which must not decide our exit status.

    Args:
        what: the code, for the message.
    """
    try:
        yield
    except SystemExit as error:
        raise_signal(error)
        raise _exit_of(what, error) from error


def _exit_of(what: str, error: SystemExit) -> PluginError:
    found = PluginError(
        f"{what} tried to end the program: {located('SystemExit', str(error), error)}; raise an "
        f"error instead"
    )
    found.trace = trace_of(error)
    return found


def raise_signal(error: BaseException) -> None:
    """Raises the exception of a signal handler if it is ``error`` or what ``error`` came of.

    Other people's code may turn it into another error on its way: a lock whose wait is interrupted
    by a handler ends with a RuntimeError (CPython's ``Condition.wait``).
    """
    found: BaseException | None = error
    while found is not None and not _is_signal(found):
        found = found.__context__
    if found is not None:
        raise found


def _is_signal(error: BaseException) -> bool:
    """Returns whether a signal handler raised an exception.

    Python's own handler of SIGINT raises a plain KeyboardInterrupt, and only in the main thread;
    that of ``rollout.cli`` raises a subclass; Ray's handler of SIGTERM exits with its number.
    """
    if isinstance(error, KeyboardInterrupt):
        return type(error) is not KeyboardInterrupt or (
            threading.current_thread() is threading.main_thread()
            and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        )
    return isinstance(error, SystemExit) and error.code == signal.SIGTERM


def located(kind: str, text: str, error: BaseException) -> str:
    """Returns type and text of an error, and the place in a plug-in where it was raised."""
    place = place_of(error)
    return (f"{kind}: {text}" if text else kind) + (f" ({place})" if place else "")


def place_of(error: BaseException) -> str:
    """Returns ``file:line, in function`` of the innermost frame in the code of a plug-in.

    That is code of the user, if there is any in the traceback; otherwise of the plug-ins that come
    with Gamut, otherwise of a library. Empty if there is none of them.
    """
    frames = [(_rank(f.filename), f) for f in traceback.extract_tb(error.__traceback__)]
    best = max((rank for rank, _ in frames), default=0)
    if best == 0:
        return ""
    *_, frame = (frame for rank, frame in frames if rank == best)
    return f"{frame.filename}:{frame.lineno}, in {frame.name}"


def _rank(file: str) -> int:
    """Returns 3 for the user's code, 2 for our plug-ins, 1 for libraries, 0 for Gamut or Python."""
    if file.startswith(("<frozen ", "<__array_function__", f"{_OURS}/")):
        return 0
    if file.startswith(tuple(f"{folder}/" for folder in _BUILT_IN)):
        return 2
    if "/site-packages/" in file or "/dist-packages/" in file:
        return 1
    return 0 if file.startswith(f"{sysconfig.get_path('stdlib')}/") else 3


def trace_of(error: BaseException) -> str:
    """Returns the traceback of the code of a plug-in as text; empty for errors on purpose."""
    if isinstance(error, GamutError):
        return error.trace
    return "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]


def identity_of(trace: str) -> str:
    """Returns what two tracebacks share if they are of the same error in the same lines.

    That is its type, and the frames outside of Gamut; empty for an empty traceback.
    """
    lines = trace.splitlines() or [""]
    frames = [line for line in lines if line.startswith("  File ") and f"{_OURS}/" not in line]
    return "\n".join([*frames, lines[-1].partition(":")[0]])
