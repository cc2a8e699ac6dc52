"""The chaos game as a bridge: its options, its spaces, its launch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from bridges.chaos.game import CRASHES, DIFFICULTIES, GARBAGE, GRANDCHILDREN, Walk
from bridges.chaos.instance import (
    ACTION,
    ACTIONS,
    DIFFICULTY,
    RSS,
    SEED,
    STEPS,
    WALKER,
    ChaosInstance,
    Engine,
    LocalEngine,
    ProcessEngine,
)
from bridges.chaos.plan import ANY, PHASES, USAGE, FaultPlan, Rates, parse_latency
from bridges.chaos.process import GameProcess
from rollout.api import (
    BridgeSpec,
    ColumnSpec,
    Deadlines,
    Factor,
    Instance,
    Resources,
    StateSpace,
    option,
)
from rollout.errors import ConfigError, UnknownNameError

NAME = "chaos"
VERSION = "1"
TASKS = Path(__file__).parent / "tasks"
MAX_WIDTH = 64
_SEEDS = 2**31
_LARGEST_STEPS = 1_000_000  # above it cells are not exact as float32
_LEAST_CAP_MB = 64  # the interpreter's own address space, and a reserve


@dataclass(frozen=True)
class ChaosBridge:
    """Hosts a small walk on a ring whose process is as bad as the options ask for.

    The game is a process of its own with a process of its own, spoken to over pipes. What goes
    wrong is decided by ``chaos_seed``, the seed and the attempt of the episode and the number of
    the step, so a run that failed fails again in the same way; a start knows no episode and goes
    by the name of the instance's folder. What never changes by any of it are the observations and
    rewards of the episodes that finish. All slots of an instance share its process.
    """

    mean_steps: int = option(100, "mean time limit of an episode", unit="steps")
    slip: float = option(0.05, "probability that a move goes elsewhere, decided by the seed")
    chaos_seed: int = option(0, "chooses which requests are slow and which fail")
    same_every_attempt: bool = option(False, "an episode that fails once fails on every attempt")
    zero_cost: bool = option(
        False, "no process, no latency, no fault, regardless of the other options"
    )
    # Returns how long each phase takes.
    start_latency: float | str = option(0.0, f"duration of the launch: {USAGE}", unit="s")
    reset_latency: float | str = option(0.0, f"duration of a reset: {USAGE}", unit="s")
    step_latency: float | str = option(0.0, f"duration of a step: {USAGE}", unit="s")
    close_latency: float | str = option(0.0, f"duration of a close: {USAGE}", unit="s")
    start_deadline_s: float = option(60.0, "deadline of a start", unit="s")
    reset_deadline_s: float = option(30.0, "deadline of a reset", unit="s")
    step_deadline_s: float = option(10.0, "deadline of a step", unit="s")
    close_deadline_s: float = option(5.0, "deadline of a close", unit="s")
    # The shares of requests that fail, each from 0 to 1.
    start_hang: float = option(0.0, "share of starts that never return")
    start_crash: float = option(0.0, "share of starts in which it crashes")
    start_garbage: float = option(0.0, "share of starts with an invalid reply")
    reset_hang: float = option(0.0, "share of resets that never return")
    reset_crash: float = option(0.0, "share of resets in which it crashes")
    reset_garbage: float = option(0.0, "share of resets with an invalid reply")
    step_hang: float = option(0.0, "share of steps that never return")
    step_crash: float = option(0.0, "share of steps in which it crashes")
    step_garbage: float = option(0.0, "share of steps with an invalid reply")
    close_hang: float = option(0.0, "share of closes that never return")
    close_crash: float = option(0.0, "share of closes in which it crashes")
    episode_hang: float = option(0.0, "share of episodes that hang in one of their steps")
    episode_crash: float = option(0.0, "share of episodes that crash in one of their steps")
    # Options of its misbehaviour.
    crash_kind: str = option(
        "exit", "kind of crash: an exit code, a signal, out of memory", choices=(*CRASHES, ANY)
    )
    exit_code: int = option(3, "exit code of the crash kind exit")
    garbage_kind: str = option(
        "bytes",
        "kind of invalid reply: random bytes, a wrong length, or NaN observations",
        choices=(*GARBAGE, ANY),
    )
    last_words: bool = option(True, "whether it writes to stderr why it crashes or hangs")
    leak_bytes: int = option(0, "memory that every step of an instance leaks", unit="bytes")
    memory_cap_mb: int = option(0, "limit of the address space; 0 for none", unit="MB")
    show_memory: bool = option(
        False, f"adds the signal {RSS}; memory never repeats, so the game no longer does"
    )
    ignore_sigterm: bool = option(False, "it ignores SIGTERM")
    ignore_eof: bool = option(False, "it keeps running after its bridge is gone")
    grandchild: str = option(
        "child",
        "the process it starts: none, one in its group, one that leaves it (setsid), or an orphan "
        "that is no longer a descendant and is not ended by close",
        choices=GRANDCHILDREN,
    )
    orphan_s: float = option(3600.0, "how long an orphan lives if it is not killed", unit="s")

    def __post_init__(self) -> None:
        self._check_ranges()
        for name, valid in (
            ("crash_kind", (*CRASHES, ANY)),
            ("garbage_kind", (*GARBAGE, ANY)),
            ("grandchild", GRANDCHILDREN),
        ):
            if getattr(self, name) not in valid:
                raise UnknownNameError(name, str(getattr(self, name)), valid)
        self.plan()

    def _check_ranges(self) -> None:
        for name, low, high in (
            ("mean_steps", 2, _LARGEST_STEPS),
            ("slip", 0, 1),
            ("exit_code", 1, 255),
            ("leak_bytes", 0, 2**40),
            ("orphan_s", 0, 1e9),
        ):
            if not low <= getattr(self, name) <= high:
                raise ConfigError(
                    f"{name}: expected {low:g} to {high:g}, got {getattr(self, name)}"
                )
        for phase in PHASES:
            seconds = getattr(self, f"{phase}_deadline_s")
            if not 0 < seconds < float("inf"):
                raise ConfigError(f"{phase}_deadline_s: expected more than 0, got {seconds}")
        if self.memory_cap_mb and self.memory_cap_mb < _LEAST_CAP_MB:
            raise ConfigError(
                f"memory_cap_mb: expected 0 for none, or {_LEAST_CAP_MB} and more, which it needs "
                f"to come up, got {self.memory_cap_mb}"
            )

    def plan(self) -> FaultPlan:
        """Returns the plan of latencies and faults for these options.

        Raises:
            ConfigError: a latency cannot be parsed, or the shares of failures are not valid.
        """
        phases = {
            phase: Rates(
                parse_latency(getattr(self, f"{phase}_latency"), f"{phase}_latency"),
                getattr(self, f"{phase}_hang"),
                getattr(self, f"{phase}_crash"),
                getattr(self, f"{phase}_garbage", 0.0),  # a close has no reply
            )
            for phase in PHASES
        }
        shares = [(phase, (one.hang, one.crash, one.garbage)) for phase, one in phases.items()]
        for name, each in (*shares, ("episode", (self.episode_hang, self.episode_crash))):
            if not all(share >= 0 for share in each) or not sum(each) <= 1:
                raise ConfigError(
                    f"{name}_hang, {name}_crash and {name}_garbage are shares: expected each from "
                    f"0 and at most 1 together, got {each}"
                )
        return FaultPlan(
            self.chaos_seed,
            phases,
            self.episode_hang,
            self.episode_crash,
            self.crash_kind,
            self.garbage_kind,
            self.same_every_attempt,
        )

    @cached_property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch."""
        signals = {
            "reward": ColumnSpec(doc="1 on reaching the target, else -0.01; 0 at the reset"),
            "position": ColumnSpec(unit="cells", doc="where the walker is on its ring"),
            "distance": ColumnSpec(unit="cells", doc="way to the target, the shorter one"),
            STEPS: ColumnSpec("int64", unit="steps", doc="steps since the reset"),
        }
        if self.show_memory:
            signals[RSS] = ColumnSpec(unit="MB", doc="memory of the game's process in use")
        return BridgeSpec(
            name=NAME,
            version=VERSION,
            observation_space=spaces.Dict(
                {
                    WALKER: spaces.Box(-1.0, 1.0, (4,), np.float32),
                    STEPS: spaces.Box(0, 2 * _LARGEST_STEPS, (1,), np.int64),
                }
            ),
            action_space=spaces.Dict({ACTION: spaces.Discrete(ACTIONS)}),
            state_space=StateSpace(
                (
                    Factor(SEED, range(_SEEDS), doc="the ring, both cells and the time there is"),
                    Factor(DIFFICULTY, tuple(DIFFICULTIES), doc="how far the target is"),
                )
            ),
            signals=signals,
            max_width=MAX_WIDTH,
            reproducible=not self.show_memory,
            uses_seed=self.slip > 0,
            # In a subprocess, although it keeps its deadlines itself: a step that waits for its
            # process would also delay the other games of a host.
            process="in_process" if self.zero_cost else "subprocess",
            deadlines=Deadlines(
                self.start_deadline_s,
                self.reset_deadline_s,
                self.step_deadline_s,
                self.close_deadline_s,
            ),
            resources=Resources(cpus=0.01, memory_mb=10 if self.zero_cost else 120),
            tasks=TASKS,
            action_labels={ACTION: ("stay", "up", "down")},
        )

    def launch(
        self, workdir: Path, ports: Sequence[int], *, width: int, timeout_s: float
    ) -> Instance:
        """Starts one game; see ``rollout.api.Bridge``."""
        del ports
        if not 1 <= width <= MAX_WIDTH:
            raise ConfigError(f"chaos: width must be from 1 to {MAX_WIDTH}, got {width}")
        plan = None if self.zero_cost else self.plan()
        engine: Engine
        if plan is None:
            walk = Walk(width, self.mean_steps, self.slip)
            engine = LocalEngine(walk, show_memory=self.show_memory)
        else:
            settings = self._settings(plan, Path(workdir).name, width)
            process = GameProcess(
                Path(workdir), settings, timeout_s=timeout_s, close_s=self.close_deadline_s
            )
            engine = ProcessEngine(process, width)
        return ChaosInstance(
            engine,
            plan,
            self.spec.state_space,
            mean_steps=self.mean_steps,
            show_memory=self.show_memory,
        )

    def _settings(self, plan: FaultPlan, name: str, width: int) -> dict[str, Any]:
        strike = plan.start(name)
        names = (
            *("mean_steps", "slip", "grandchild", "orphan_s", "ignore_sigterm", "ignore_eof"),
            *("exit_code", "last_words", "leak_bytes", "memory_cap_mb", "show_memory"),
        )
        return {
            "width": width,
            "latency": strike.seconds,
            "fault": strike.fault,
            **{each: getattr(self, each) for each in names},
        }
