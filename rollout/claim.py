"""The claim of one process on an address: the lock of a run whose output is in a store.

A store has no lock that ends with its holder, so the holder writes an object,
``.gamut-writer.json``, again every ten seconds. Another process that finds it watches whether it
changes.

What holds: two processes that can both read the store do not write to one address for longer than
``DEAD_S``; a process whose claim was taken over stops copying at its next check, which precedes
every file. What does not: a process that is cut off from the store, or suspended, for longer than
``DEAD_S`` loses its claim without knowing, and may complete the copy of one file afterwards.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

from rollout.data.remote import explained
from rollout.errors import RunDirectoryError
from rollout.host.guard import read
from rollout.host.processes import owner_lives, owner_mark

OBJECT = ".gamut-writer.json"
BEAT_S = 10.0
DEAD_S = 45.0  # without a beat, the holder counts as dead
_SETTLE_S = 0.3  # in which a process that began at the same time has written its claim too

_log = logging.getLogger(__name__)


class Claim:
    """The right to write to an address; made by ``take``.

    Args:
        system: file system of the address.
        base: path of the address in it.
        address: the address, for messages.

    Attributes:
        token: names this claim; the object keeps it after the release.
        lost: why the claim is lost; empty while it is held.
        gone: called in another thread if the object is gone, with other files perhaps; may be set.
    """

    def __init__(self, system: Any, base: str, address: str) -> None:
        self.token, self.lost = secrets.token_hex(8), ""
        self._system, self._place, self._address = system, f"{base}/{OBJECT}", address
        self.gone: Callable[[], object] = lambda: None
        self._beats = 0
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def read(self) -> dict[str, Any]:
        """Returns the contents of the object; empty if there is none."""
        self._system.invalidate_cache()
        try:
            found = json.loads(self._system.cat_file(self._place))
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def take(self, own: Collection[str] = ()) -> None:
        """Takes the claim and keeps it until ``release``.

        Args:
            own: tokens of earlier claims that are known to have ended.

        Raises:
            RunDirectoryError: another process has it.
        """
        held = self.read()
        if held and not held.get("released") and held.get("token") not in own:
            self._require_dead(held)
        self._write(released=False)
        threading.Event().wait(_SETTLE_S)
        if self.read().get("token") != self.token:
            raise RunDirectoryError(
                f"another process began to work on the run at {self._address} at the same time; "
                f"wait for it, or choose another output"
            )
        self._thread = threading.Thread(target=self._run, name="claim", daemon=True)
        self._thread.start()

    def release(self, *, remove: bool = False) -> None:
        """Ends the claim, or with ``remove`` removes the object. Idempotent."""
        if self._thread is None:
            return
        self._ended.set()
        self._thread.join(DEAD_S)
        self._thread = None
        if self.lost:
            return
        try:
            if remove:
                self._system.rm_file(self._place)
            else:
                self._write(released=True)
        except Exception as error:  # noqa: BLE001 - of a library of stores
            _log.warning(
                "the claim on %s remains for %.0f s: %s", self._address, DEAD_S, explained(error)
            )

    def _require_dead(self, held: dict[str, Any]) -> None:
        """Waits until it is known whether the holder of another claim lives."""
        who = f"process {held.get('pid')} on {held.get('host')}"
        if held.get("machine") == _machine() and not owner_lives(str(held.get("mark"))):
            return
        _log.info(
            "%s was working on the run at %s; waiting up to %.0f s for a sign that it lives",
            *(who, self._address, DEAD_S),
        )
        end = time.monotonic() + DEAD_S
        while time.monotonic() < end:
            threading.Event().wait(BEAT_S / 4)
            now = self.read()
            if not now or now.get("released"):
                return
            if (now.get("token"), now.get("beats")) != (held.get("token"), held.get("beats")):
                raise RunDirectoryError(
                    f"{who} is working on the run at {self._address}; wait for it or stop it, or "
                    f"choose another output"
                )
        _log.warning("%s gives no sign any more; its claim is taken over", who)

    def _run(self) -> None:
        while not self._ended.wait(BEAT_S):
            # A store that does not answer is reported by the copies.
            with suppress(Exception):
                now = self.read()
                if now and now.get("token") != self.token:
                    self.lost = (
                        f"process {now.get('pid')} on {now.get('host')} works on the run at "
                        f"{self._address} now, since this process was cut off"
                    )
                    _log.warning("%s; nothing more is copied", self.lost)
                    return
                if not now:
                    self.gone()
                self._write(released=False)

    def _write(self, *, released: bool) -> None:
        self._beats += 1
        about = {
            "token": self.token,
            "host": socket.gethostname(),
            "machine": _machine(),
            "pid": os.getpid(),
            "mark": owner_mark(),
            "beats": self._beats,
            "released": released,
        }
        self._system.pipe_file(self._place, json.dumps(about, indent=2).encode())


def _machine() -> str:
    """Returns what tells this machine from others, from one start of it to the next."""
    with suppress(OSError):
        boot = read("/proc/sys/kernel/random/boot_id").decode().strip()
        return f"{socket.gethostname()} {boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    return secrets.token_hex(8)  # unknown: no other process is on it
