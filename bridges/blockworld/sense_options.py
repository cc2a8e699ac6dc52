"""The options of the observations; blockworld's own options are these and more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollout.api import option
from rollout.errors import ConfigError


@dataclass(frozen=True)
class SenseOptions:
    """Sizes and ranges of the observations.

    Raises:
        ConfigError: a value is out of its range, which the message states.
    """

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

    def __post_init__(self) -> None:
        self._check_range("rgb_width", 1, 4096)
        self._check_range("rgb_height", 1, 4096)
        self._check_range("rgb_fov", 10.0, 120.0)
        self._check_range("ray_rows", 1, 64)
        self._check_range("ray_columns", 1, 256)
        self._check_range("ray_fov", 1.0, 170.0)
        self._check_range("ray_rise", 1.0, 170.0)
        self._check_range("ray_reach", 1.0, 64.0)
        self._check_range("grid_size", 3, 63)
        self._check_range("entity_slots", 1, 16)

    def _check_range(self, name: str, least: float, most: float) -> None:
        value = getattr(self, name)
        whole = isinstance(least, int)
        number = isinstance(value, int | np.integer | float) and not isinstance(value, bool)
        if not number or not least <= value <= most or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            raise ConfigError(f"{name} must be {kind} from {least} to {most}, got {value!r}")
