"""Calls of an agent's function: each in a thread, coroutines in one event loop."""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, wait
from typing import Any

log = logging.getLogger(__name__)

_LOOK_S = 5.0  # between looks at the event loop


class Run:
    """A call of the function that is in progress."""

    def __init__(self, runner: Runner) -> None:
        self.result: Future[Any] = Future()
        self.task: Future[Any] | None = None
        self._runner, self._until = runner, 0.0

    def wait(self, until: float) -> bool:
        """Waits until the function has returned; returns False after ``until``, monotonic."""
        while not wait([self.result], max(0.0, min(_LOOK_S, until - time.monotonic()))).done:
            if time.monotonic() >= until:
                return False
            self._runner.look()
        return True

    def cancel(self) -> None:
        """Cancels a coroutine; a plain function runs on in its thread, and is of no effect."""
        if self.task is not None:
            self.task.cancel()


class Runner:
    """Calls a function, plain or a coroutine function; thread-safe.

    All coroutines run in one event loop, so that they may share clients and locks.

    Args:
        name: its ``module:function``, for messages.
        function: the function.
        at_end: called in the event loop when it ends.
    """

    def __init__(
        self, name: str, function: Callable[..., Any], at_end: Callable[[], Awaitable[None]]
    ) -> None:
        self._name, self._function, self._at_end = name, function, at_end
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._beat: tuple[float, threading.Event] | None = None
        self._warned = False

    def start(self, *arguments: Any) -> Run:
        """Calls the function in a thread of its own, a daemon: it may never return."""
        run = Run(self)
        threading.Thread(target=self._run, args=(run, arguments), name="agent", daemon=True).start()
        return run

    def _run(self, run: Run, arguments: tuple[Any, ...]) -> None:
        try:
            value = self._function(*arguments)
            if inspect.isawaitable(value):
                run.task = asyncio.run_coroutine_threadsafe(_outcome(value), self._running_loop())
                value, error = run.task.result()
                if error is not None:
                    raise error
            run.result.set_result(value)
        except BaseException as error:  # noqa: BLE001 - raised again where the result is collected
            run.result.set_exception(error)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
                arguments = (ready, self._at_end)
                threading.Thread(target=_serve, args=arguments, name="agents", daemon=True).start()
                self._loop, self._stop = ready.result()
            return self._loop

    def look(self) -> None:
        """Warns once if the event loop is blocked, so that all games wait for one."""
        with self._lock:
            if self._loop is None or self._warned:
                return
            now = time.monotonic()
            if self._beat is None or self._beat[1].is_set():
                self._beat = (now, threading.Event())
                self._loop.call_soon_threadsafe(self._beat[1].set)
            elif now - self._beat[0] >= _LOOK_S / 2:
                self._warned = True
                log.warning(
                    "%s blocks its event loop for seconds, and all games wait for it: write def "
                    "instead of async def, or await asyncio.to_thread(...) for what blocks",
                    self._name,
                )

    def close(self) -> None:
        """Ends the event loop; coroutines in it are cancelled."""
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)


def _serve(
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]],
    at_end: Callable[[], Awaitable[None]],
) -> None:
    async def main() -> None:
        stop = asyncio.Event()
        ready.set_result((asyncio.get_running_loop(), stop))
        await stop.wait()
        await at_end()

    asyncio.run(main())


async def _outcome(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Returns the result or the error; an exit raised in a task would end the event loop.

    A cancellation would lose its place.
    """
    try:
        return await awaitable, None
    except (SystemExit, KeyboardInterrupt, asyncio.CancelledError) as error:
        return None, error
