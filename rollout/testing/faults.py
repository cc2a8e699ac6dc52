"""Faults that a fake game commits on request, for tests of hosts."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rollout.errors import GameCrashed, GameStartError

Kind = Literal["fail", "crash", "hang", "exit"]
GamePhase = Literal["start", "reset", "step", "close"]

EXIT_STATUS = 3  # of a fake that exits on purpose
LAST_WORDS = "the fake game ends its process on request"


@dataclass
class FaultPlan:
    """Decides for each call whether a fake fails, and how.

    Attributes:
        when: amount by ``(kind, phase)``: 0 is never; below 1, a probability per call; from 1 on,
            the number of the one call that fails.
        seed: selects the calls that fail if the amount is a probability.
        name: name of the instance, so that instances with the same seed fail at different calls.
        once_file: marker; see ``FakeBridge.once_file``. Empty for no limit.
        times: number of faults that the marker allows, over all processes.
        hang_s: duration in seconds of an endless hang.
    """

    when: dict[tuple[Kind, GamePhase], float]
    seed: int = 0
    name: str = ""
    once_file: str = ""
    times: int = 1
    hang_s: float = 3600.0
    calls: Counter[str] = field(default_factory=Counter)

    def strike(self, phase: GamePhase) -> None:
        """Commits the faults that are due in this call.

        Raises:
            GameStartError: a failing start is due.
            GameCrashed: a crash is due.
        """
        self.calls[phase] += 1
        for (kind, at), amount in self.when.items():
            if at == phase and self._due(kind, phase, amount) and self._allowed():
                self._commit(kind, phase)

    def _due(self, kind: Kind, phase: GamePhase, amount: float) -> bool:
        call = self.calls[phase]
        if amount <= 0 or amount >= 1:
            return amount > 0 and call == int(amount)
        return unit_hash(self.seed, self.name, kind, phase, call) < amount

    def _allowed(self) -> bool:
        """Whether the marker allows another fault; exclusive file creation is always atomic."""
        if not self.once_file:
            return True
        for number in range(self.times):
            path = Path(self.once_file if number == 0 else f"{self.once_file}.{number}")
            try:
                path.touch(exist_ok=False)
            except FileExistsError:
                continue
            return True
        return False

    def _commit(self, kind: Kind, phase: GamePhase) -> None:
        at = f"{phase} call {self.calls[phase]}"
        if kind == "fail":
            raise GameStartError(f"the fake game refuses to start on request ({at})")
        if kind == "crash":
            raise GameCrashed(f"the fake game crashes on request ({at})")
        if kind == "hang":
            threading.Event().wait(self.hang_s)
            return
        sys.stderr.write(f"{LAST_WORDS} ({at})\n")
        sys.stderr.flush()
        os._exit(EXIT_STATUS)


def unit_hash(*parts: object) -> float:
    """Returns a number in [0, 1) that depends only on ``parts``."""
    data = "\x1f".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=7).digest(), "little") / 2**56
