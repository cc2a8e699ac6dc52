"""The PPO recipe, which the training job uses; imports torch only when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rollout.api import Columns, Fragment, Learner
from rollout.errors import ConfigError
from rollout.train.ppo.options import PpoOptions


@dataclass(frozen=True)
class Ppo(PpoOptions):
    """PPO. The loss is L_clip + value_coef * half the mean square error - entropy bonus.

    With a reference, KL(policy || reference) is added, with a weight that decays.
    """

    extras: ClassVar[frozenset[str]] = frozenset({"logp", "value"})

    def check(self, fragment_steps: int) -> None:
        """Checks that sequences can be cut to ``bptt``; see ``rollout.api.Algorithm``."""
        if fragment_steps % min(self.bptt, fragment_steps):
            raise ConfigError(
                f"fragment.steps={fragment_steps} is not a multiple of algorithm.bptt={self.bptt}; "
                f"choose one that is"
            )

    def references(self) -> dict[str, str]:
        """Returns the checkpoint of the reference, if there is one."""
        return {} if self.reference is None else {"reference": self.reference}

    def gather(
        self, fragment: Fragment, network: Any, *, reads: Sequence[str], steps: int
    ) -> Columns:
        """Returns a fragment as a batch; see ``rollout.train.ppo.gather``."""
        from rollout.train.ppo.gather import gather  # noqa: PLC0415 - imports torch

        batch = gather(fragment, network, reads=reads, steps=steps)
        if self.reward_scale != 1.0:
            batch["reward"] *= np.float32(self.reward_scale)
        if self.reward_clip is not None:
            np.clip(batch["reward"], -self.reward_clip, self.reward_clip, out=batch["reward"])
        return batch

    def learner(
        self,
        network: Any,
        *,
        references: Mapping[str, Any],
        reduce_gradients: Callable[[list[Any]], None] | None,
    ) -> Learner:
        """Returns a learner; see ``rollout.api.Algorithm``."""
        from rollout.train.ppo.learner import PpoLearner  # noqa: PLC0415 - imports torch

        reference = references.get("reference")
        return PpoLearner(network, self, reference=reference, reduce_gradients=reduce_gradients)
