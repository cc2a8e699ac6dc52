"""The groups of options of the policy ``vlm``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rollout.models.sections import Options, RunLimits


class History(Options):
    """What the model sees of earlier steps of its episode."""

    texts: int = Field(16, ge=0, description="steps whose observation and answer it sees as text")
    images: int = Field(0, ge=0, description="pictures it sees: 0 none, 1 the current one, ...")


class Picture(Options):
    """The observation column that is sent as a picture."""

    column: str = Field("", description="its name; empty for the only one there is")
    goal: str = Field("", description="column with a picture of the goal, shown first; '' for none")
    scale: int = Field(1, ge=1, description="each pixel becomes a square of this side")
    codec: Literal["png", "jpeg"] = Field("png", description="png is lossless")


class Reflect(Options):
    """Critiques that the model writes of its earlier episodes from the same state."""

    episodes: int = Field(0, ge=0, description="earlier episodes whose critiques it sees; 0 none")
    words: int = Field(150, ge=1, description="longest critique")


class Limits(RunLimits):
    """When an episode is truncated, and when a run pauses; null for no limit."""

    reparse: int = Field(1, ge=0, description="times an unusable answer is asked for again")
    unusable: int | None = Field(
        10, ge=1, description="steps in a row without a usable answer that truncate the episode"
    )
    stuck: int | None = Field(
        None, ge=1, description="steps without a change of what is observed that truncate it"
    )
    episode_calls: int | None = Field(None, ge=1, description="calls of an episode")
