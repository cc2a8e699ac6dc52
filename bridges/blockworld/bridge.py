"""Blockworld as a bridge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import ClassVar

from bridges.blockworld.options import MAX_WIDTH, BlockworldOptions
from rollout.api import Instance
from rollout.errors import ConfigError


@dataclass(frozen=True)
class BlockworldBridge(BlockworldOptions):
    """Blockworld: survive, hunt, mine, build and craft in a world of blocks.

    The state determines everything at the start; the seed of the episode determines what happens
    randomly afterwards. The same state, seed and actions give the same bytes, for any width and
    any number of threads. Death is ``game_over``; the game has no limit of its own,
    and the signal ``reward`` is always 0: choose a task.

    Observations are limited to what the player could know, except those called ``privileged``.
    """

    def launch(
        self,
        workdir: Path,
        ports: Sequence[int],
        *,
        width: int,
        timeout_s: float,
    ) -> Instance:
        """Makes ``width`` worlds in this process; see ``rollout.api.Bridge``.

        The first launch on a machine compiles for about a minute; later ones load the compiled
        code.
        """
        if not 1 <= width <= MAX_WIDTH:
            raise ConfigError(f"blockworld: width must be from 1 to {MAX_WIDTH}, got {width}")
        from bridges.blockworld.instance import BlockworldInstance  # noqa: PLC0415 - imports numba

        return BlockworldInstance(self, width)

    def with_common_noise(self) -> BlockworldBridge:
        """Returns the same game with random events by the seed alone; see ``CommonNoise``."""
        return _CommonNoise(**{each.name: getattr(self, each.name) for each in fields(self)})


@dataclass(frozen=True)
class _CommonNoise(BlockworldBridge):
    common_noise: ClassVar[bool] = True
