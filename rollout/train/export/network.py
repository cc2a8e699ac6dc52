"""A network as a function of tensors in a fixed order."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from rollout.train.checkpoint import Checkpoint

MEMORY, ACTION, NEXT = "memory/", "action/", "next/"
OUTPUTS, VALUE = "outputs", "value"


class ExportedNetwork(nn.Module):
    """A network that takes and returns tensors in a fixed order.

    Attributes:
        inputs: names of the inputs: observation columns, then memory.
        outputs: names of the outputs: actions, outputs, value, the next memory.
    """

    def __init__(self, network: Any, checkpoint: Checkpoint) -> None:
        super().__init__()
        self.network = network
        self._reads, self._memory = list(checkpoint.observation_space), list(network.memory_keys)
        self._acts = list(checkpoint.action_space)
        self.inputs = [*self._reads, *(MEMORY + key for key in self._memory)]
        self.outputs = [
            *(ACTION + key for key in self._acts),
            *(OUTPUTS, VALUE),
            *(NEXT + MEMORY + key for key in self._memory),
        ]

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Returns the outputs for the inputs, each ``(B, ...)``."""
        count = len(self._reads)
        seen = dict(zip(self._reads, tensors[:count], strict=True))
        memory = dict(zip(self._memory, tensors[count:], strict=True))
        actions, outputs, value, after = self.network.decide(seen, memory)
        found = [*(actions[key] for key in self._acts), outputs, value]
        return (*found, *(after[key] for key in self._memory))
