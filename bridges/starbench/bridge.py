"""The bridge to StarBench's battles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bridges.starbench.instance import NAME, StarbenchInstance
from bridges.starbench.options import (
    SIGNALS,
    Options,
    action_names,
    action_space,
    observation_space,
)
from bridges.starbench.pictures.layout import UI_MAP, UiMap
from bridges.starbench.rules.field import BENCHMARK, SPACE
from rollout.api import BridgeSpec, Deadlines, Instance, Resources, Start, option
from rollout.errors import ConfigError, StateError, UnknownNameError

if TYPE_CHECKING:
    from bridges.starbench.client import Client

MAX_WIDTH = 1024
_PATIENT = Deadlines(start_s=120.0, reset_s=60.0, step_s=60.0)  # on a busy machine
_BY_HAND = Deadlines(start_s=120.0, reset_s=600.0, step_s=60.0)  # a person begins the battles
_DELAY_S = 0.5  # between events, as in StarBench
_WARNING = (
    "client=real sends clicks and keys to a program that is not ours. The terms of service of a "
    "game may forbid that, and an account may be closed for it. Read them; if they permit it, set "
    "real_confirmed=true"
)
CLIENTS = ("emulator", "pixels", "window", "real")


@dataclass(frozen=True)
class StarbenchBridge(Options):
    """Turn-based battles after StarBench: an emulator of its eight tasks, with rules of its own.

    The state is the battle, the level and weaknesses of enemies, the team's order, energy and HP,
    and a number that orders the moves of bosses. The seed decides everything that is random.
    """

    client: str = option(
        "emulator",
        "what is played: the battle in this process; the same by its pixels alone; a window of "
        "ours, by its pixels; or any window, in which a person begins the battles",
        choices=CLIENTS,
    )
    title: str = option("", "client=real: part of the title of the window")
    ui_map: str = option("", "client=real: file of the map of its screen; empty for ours")
    real_confirmed: bool = option(
        False, "client=real: you have read that a game's terms of service may forbid this"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.client not in CLIENTS:
            raise UnknownNameError("client", self.client, CLIENTS)
        if self.client != "emulator" and (not self.pixels or self.snapshots or self.ask):
            raise ConfigError(
                f"client={self.client} shows pixels alone: set view to ta or dc, and snapshots and "
                f"ask to false"
            )
        if self.client == "real" and not self.title:
            raise ConfigError("client=real: expected the title of a window, got none; set title")

    @property
    def spec(self) -> BridgeSpec:
        """The bridge's spaces, signals and limits, known before launch."""
        emulator, here = self.client == "emulator", self.client in ("emulator", "pixels")
        deadlines = Deadlines() if here else _BY_HAND if self.client == "real" else _PATIENT
        return BridgeSpec(
            name=NAME,
            version="1",
            observation_space=observation_space(self),
            action_space=action_space(self),
            state_space=SPACE,
            signals=SIGNALS,
            max_width=MAX_WIDTH if emulator else 1,
            default_width=(4 if self.pixels else 32) if emulator else 1,
            reproducible=self.client != "real",
            process="in_process" if here else "subprocess",
            deadlines=deadlines,
            resources=Resources(memory_mb=300 if here else 900),
            tasks=Path(__file__).parent / "tasks",
            action_labels=action_names(self),
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Makes ``width`` battles in this process, or opens a window; see ``rollout.api.Bridge``.

        Raises:
            ConfigError: a window needs an extra, a display or a confirmation.
        """
        self.spec.require_width(width)
        if self.client == "emulator":
            return StarbenchInstance(self, width)
        return self._window(workdir, timeout_s)

    def _window(self, workdir: Path, timeout_s: float) -> Instance:
        from bridges.starbench.window import client, instance  # noqa: PLC0415 - an extra

        if self.client == "real":
            if not self.real_confirmed:
                raise ConfigError(_WARNING)
            ui = UiMap(path=Path(self.ui_map) if self.ui_map else UI_MAP)
            real = client.WindowClient(self.title, ui=ui, event_delay_s=_DELAY_S)
            return instance.WindowInstance(self, partial(_by_hand, real), real.close, ours=False)
        if self.client == "pixels":
            return instance.WindowInstance(self, self._drawn, lambda: None)
        window = client.HostedWindow(workdir, timeout_s=timeout_s)
        rules = {"windows": self.windows, "raw": self.raw}

        def begin(start: Start) -> Client:
            values = dict(start.state.values)
            return window.begin(str(values.pop("battle")), start.seed, values, rules)

        return instance.WindowInstance(self, begin, window.close)

    def _drawn(self, start: Start) -> Client:
        client: Client = self.screen(self.battle(start))
        return client


def _by_hand(client: Client, start: Start) -> Client:
    """Returns the client of a window in which a person begins the battle of a start.

    Raises:
        StateError: the start is not that of the benchmark, which nobody can set in a game.
    """
    for name, value in start.state.values.items():
        if name not in ("battle", "script") and value != BENCHMARK[name]:
            raise StateError(
                f"client=real plays what its window shows and cannot set {name}={value}; "
                f"take a task that fixes {name} to {BENCHMARK[name]}, e.g. task: cocolia"
            )
    return client
