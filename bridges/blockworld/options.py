"""The options of blockworld, and the spaces that result from them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gymnasium import spaces

from bridges.blockworld.factors import state_space
from rollout.api import BridgeSpec, Deadlines, Resources, option
from rollout.errors import ConfigError, UnknownNameError

if TYPE_CHECKING:
    from bridges.blockworld.senses import Observation, SenseOptions

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
_LARGEST_PICTURE = 4096


@dataclass(frozen=True)
class BlockworldOptions:
    """What an instance of blockworld is made from; ``BlockworldBridge`` launches it."""

    observe: tuple[str, ...] = option(
        (RGB,), f"observations, a subset of:  {', '.join(OBSERVATIONS)}"
    )
    actions: str = option(
        "human", "action layout: keys and mouse, or one of 20 named actions", choices=ACTIONS
    )
    compact_actions: tuple[str, ...] = option(
        (), "actions of the layout compact, in this order; empty for all twenty"
    )
    rgb_width: int = option(64, "width of the image", unit="pixels")
    rgb_height: int = option(64, "height of the image", unit="pixels")
    rgb_fov: float = option(70.0, "vertical field of view of the image", unit="degrees")
    hud: bool = option(True, "whether the image shows hotbar, health and food")
    ray_rows: int = option(4, "rows of semantic_rays")
    ray_columns: int = option(8, "columns of semantic_rays")
    ray_fov: float = option(100.0, "horizontal field of view of semantic_rays", unit="degrees")
    ray_rise: float = option(50.0, "vertical field of view of semantic_rays", unit="degrees")
    ray_reach: float = option(16.0, "range of semantic_rays", unit="blocks")
    grid_size: int = option(9, "height and width of the grids", unit="blocks")
    entity_slots: int = option(9, "maximum number of creatures in entities")
    recipes: tuple[str, ...] = option((), "available recipes; empty for all")
    oracle: str = option("", f"skill of the expert in {ORACLE}; '' for none")
    start_pitch: float = option(0.0, "initial pitch, down from the horizon", unit="degrees")
    auto_jump: bool = option(
        False, "whether walking against a step jumps onto it, like Minecraft's auto-jump"
    )
    ticks_per_step: int = option(1, "ticks of 50 ms for which a step holds its keys", unit="ticks")
    threads: int = option(1, "threads that share the worlds of an instance")

    def __post_init__(self) -> None:
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
        for name, most in (("rgb_width", _LARGEST_PICTURE), ("rgb_height", _LARGEST_PICTURE)):
            self._check_range(name, 1, most)
        for name, most in (("ray_rows", 64), ("ray_columns", 256), ("entity_slots", 16)):
            self._check_range(name, 1, most)
        self._check_range("grid_size", 3, 63)
        self._check_range("ticks_per_step", 1, 1200)
        self._check_range("threads", 1, 256)
        self._check_range("rgb_fov", 10.0, 120.0)
        self._check_range("start_pitch", -90.0, 90.0)
        self._check_range("ray_fov", 1.0, 170.0)
        self._check_range("ray_rise", 1.0, 170.0)
        self._check_range("ray_reach", 1.0, 64.0)
        self._check_names()

    def _check_range(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        if not least <= value <= most:
            raise ConfigError(f"{name} must be from {least} to {most}, got {value}")

    def _check_names(self) -> None:
        from bridges.blockworld.recipes import recipe  # noqa: PLC0415 - only if it is needed

        for name in self.recipes:
            recipe(name)
        if self.compact_actions:
            from bridges.blockworld.layouts import layout_of  # noqa: PLC0415 - likewise

            layout_of(self.actions, self.compact_actions)
        if self.oracle:
            from bridges.blockworld.oracle import skill  # noqa: PLC0415 - likewise

            skill(self.oracle)
        if self.oracle and self.compact_actions:
            raise ConfigError("the oracle needs all actions; leave compact_actions or oracle empty")

    @property
    def spec(self) -> BridgeSpec:
        """Returns what is known before launch; compiles nothing."""
        from bridges.blockworld.layouts import layout_of  # noqa: PLC0415 - imports numba
        from bridges.blockworld.signals import SIGNALS  # noqa: PLC0415 - likewise

        layout = layout_of(self.actions, self.compact_actions)
        observed: dict[str, spaces.Space[object]] = {}
        for observation in self.observations():
            observed.update(observation.space(self.sense_options()))
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
            process="in_process",
            ticks_per_second=20.0,
            deadlines=Deadlines(start_s=300.0, reset_s=60.0, step_s=60.0),
            resources=Resources(cpus=float(self.threads), memory_mb=400),
            tasks=TASKS,
            action_labels=layout.names,
        )

    def observations(self) -> list[Observation]:
        """Returns the names of the observations, in the order of ``observe``."""
        from bridges.blockworld.senses import OBSERVATIONS as SENSES  # noqa: PLC0415 - imports numba

        return [SENSES[name] for name in self.observe]

    def sense_options(self) -> SenseOptions:
        """Returns the options of the observations."""
        from bridges.blockworld.senses import SenseOptions  # noqa: PLC0415 - imports numba

        return SenseOptions(
            rgb_width=self.rgb_width,
            rgb_height=self.rgb_height,
            rgb_fov=self.rgb_fov,
            hud=self.hud,
            ray_rows=self.ray_rows,
            ray_columns=self.ray_columns,
            ray_fov=self.ray_fov,
            ray_rise=self.ray_rise,
            ray_reach=self.ray_reach,
            grid_size=self.grid_size,
            entity_slots=self.entity_slots,
        )
