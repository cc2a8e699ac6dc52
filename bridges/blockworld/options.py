"""The options of blockworld, and the spaces that result from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from gymnasium import spaces

from bridges.blockworld.rules.factors import state_space
from bridges.blockworld.sense_options import SenseOptions
from rollout.api import BridgeSpec, Deadlines, Resources, option
from rollout.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from bridges.blockworld.senses import Observation

NAME = "blockworld"
MAX_WIDTH = 4096
TASKS = Path(__file__).parent / "tasks"
ACTIONS = ("human", "human_flat", "compact")
RGB = "rgb"
ORACLE = "privileged_oracle"
OBSERVATIONS = (
    RGB,
    "semantic_rays",
    "semantic_grid",
    "entities",
    "vitals",
    "inventory",
    "compass",
    "privileged_grid",
    "privileged_entities",
    "privileged_compass",
)


@dataclass(frozen=True)
class BlockworldOptions(SenseOptions):
    """Options of an instance of blockworld; ``BlockworldBridge`` launches it.

    Attributes:
        common_noise: whether random events depend on the seed alone, not on the state, too.
    """

    common_noise: ClassVar[bool] = False

    observe: tuple[str, ...] = option(
        (RGB,), f"observations, a subset of:  {', '.join(OBSERVATIONS)}"
    )
    actions: str = option(
        "human", "action layout: keys and mouse, or one of 20 named actions", choices=ACTIONS
    )
    compact_actions: tuple[str, ...] = option(
        (), "actions of the layout compact, in this order; empty for all twenty"
    )
    recipes: tuple[str, ...] = option((), "available recipes; empty for all")
    oracle: str = option("", f"skill of the expert in {ORACLE}; '' for none")
    start_pitch: float = option(0.0, "initial pitch, down from the horizon", unit="degrees")
    auto_jump: bool = option(
        False, "whether walking against a step jumps onto it, like Minecraft's auto-jump"
    )
    ticks_per_step: int = option(1, "ticks of 50 ms for which a step holds its keys", unit="ticks")
    threads: int = option(1, "threads that share the worlds of an instance")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("observe", "recipes", "compact_actions"):
            value = getattr(self, name)
            if isinstance(value, str) or len(set(value)) != len(tuple(value)):
                raise ConfigError(f"{name} must be a list of different names, got {value!r}")
            object.__setattr__(self, name, tuple(value))
        for name in self.observe:
            if name not in OBSERVATIONS:
                raise UnknownNameError("observation", name, OBSERVATIONS)
        if not self.observe and not self.oracle:
            raise ConfigError(f"observe must name at least one of: {', '.join(OBSERVATIONS)}")
        if self.actions not in ACTIONS:
            raise UnknownNameError("action layout", self.actions, ACTIONS)
        self._check_range("ticks_per_step", 1, 1200)
        self._check_range("threads", 1, 256)
        self._check_range("start_pitch", -90.0, 90.0)
        self._check_names()

    def _check_names(self) -> None:
        from bridges.blockworld.rules.items import recipe  # noqa: PLC0415 - only if it is needed

        for name in self.recipes:
            recipe(name)
        if self.compact_actions:
            from bridges.blockworld.actions import layout_of  # noqa: PLC0415 - likewise

            layout_of(self.actions, self.compact_actions)
        if self.oracle:
            from bridges.blockworld.oracle import skill  # noqa: PLC0415 - likewise

            skill(self.oracle)
        if self.oracle and self.compact_actions:
            raise ConfigError("the oracle needs all actions; leave compact_actions or oracle empty")

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; compiles nothing."""
        from bridges.blockworld.actions import layout_of  # noqa: PLC0415 - imports numba
        from bridges.blockworld.rules.signals import SIGNALS  # noqa: PLC0415 - likewise

        layout = layout_of(self.actions, self.compact_actions)
        observed: dict[str, spaces.Space[object]] = {}
        for observation in self.observations():
            observed.update(observation.space(self))
        if self.oracle:
            observed.update({f"{ORACLE}/{k}": v for k, v in layout.space.spaces.items()})
        return BridgeSpec(
            name=NAME,
            version="1",
            observation_space=spaces.Dict(observed),
            action_space=layout.space,
            state_space=state_space(),
            signals=SIGNALS,
            max_width=MAX_WIDTH,
            default_width=16 if "rgb" in self.observe else 128,  # images take most of the time
            process="in_process",
            ticks_per_second=20.0,
            deadlines=Deadlines(start_s=300.0, reset_s=60.0, step_s=60.0),
            resources=Resources(cpus=float(self.threads), memory_mb=400),
            tasks=TASKS,
            action_labels=layout.names,
        )

    def observations(self) -> list[Observation]:
        """Returns the observations, in the order of ``observe``."""
        from bridges.blockworld.senses import OBSERVATIONS as SENSES  # noqa: PLC0415 - imports numba

        return [SENSES[name] for name in self.observe]
