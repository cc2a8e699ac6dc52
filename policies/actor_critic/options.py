"""The options that define a network; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass

from rollout.api import option
from rollout.errors import ConfigError


@dataclass(frozen=True)
class NetworkOptions:
    """The architecture of a network."""

    hidden: tuple[int, ...] = option((128, 128), "widths of the hidden layers", unit="units")
    activation: str = option("tanh", "activation function", choices=("tanh", "relu", "silu"))
    embedding: int = option(
        0,
        "size of the embedding of each symbol, shared by all positions; 0 for one-hot",
        unit="units",
        ge=0,
    )
    cnn: str = option("nature", "network for images", choices=("nature", "impala"))
    cnn_width: float = option(1.0, "factor for the number of channels of the CNN", gt=0)
    cnn_features: int = option(256, "features per image", unit="units", gt=0)
    memory: str = option("none", "recurrent layer", choices=("none", "lstm", "gru"))
    memory_size: int = option(128, "size of the recurrent layer", unit="units", gt=0)
    shared: bool = option(True, "whether policy and value share all layers except the last")
    continuous: str = option(
        "gaussian",
        "continuous actions: normally distributed, and clipped to their bounds or squashed into "
        "them by tanh",
        choices=("gaussian", "squashed"),
    )

    def __post_init__(self) -> None:
        if not self.hidden or min(self.hidden) < 1:
            raise ConfigError(f"hidden must list widths of at least 1, got {list(self.hidden)}")
