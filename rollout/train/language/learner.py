"""Learners of language models; ``rollout.train.workers`` has the processes in which they are."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rollout.api import Array
from rollout.errors import ContractError
from rollout.models.examples import TrainingExample
from rollout.models.local import decoded, folder_of
from rollout.models.sections import Local
from rollout.models.transformer import Prompt, Transformer
from rollout.threads import set_threads


@dataclass(frozen=True)
class PassOptions:
    """Hyperparameters of a pass over examples.

    Attributes:
        lr: learning rate before the first minibatch and after the last.
        minibatch: examples of a minibatch.
        clip: bounds of the ratio of probabilities, below and above 1; None to imitate.
        max_grad_norm: maximum gradient norm.
        most: most examples in a forward pass; gradients of a minibatch are added up.
    """

    lr: tuple[float, float]
    minibatch: int
    clip: tuple[float, float] | None = None
    max_grad_norm: float = 1.0
    most: int = 64


class LanguageLearner:
    """A model and its optimizer.

    Args:
        transformer: the model; its parameters that need gradients are trained.
        weight_decay: of AdamW.
        rank: number of this learner among those that share every minibatch.
        learners: how many there are.
        add: sums tensors over all learners, in place; None for one.
    """

    def __init__(
        self,
        transformer: Transformer,
        *,
        weight_decay: float = 0.0,
        rank: int = 0,
        learners: int = 1,
        add: Callable[[list[Tensor]], None] | None = None,
    ) -> None:
        self.transformer, self._rank, self._learners = transformer, rank, learners
        self._add = add
        self._parameters = list(transformer.trainable_parameters().values())
        self.optimizer = torch.optim.AdamW(self._parameters, lr=0.0, weight_decay=weight_decay)

    def learn(self, examples: Sequence[TrainingExample], step: PassOptions) -> dict[str, float]:
        """Makes one pass over examples in their order.

        With ``clip`` the loss is that of PPO for every token, ``-min(r A, clip(r) A)``, with ``r``
        the ratio of its probability to that when it was sampled; without, the negative
        log-likelihood. It is the mean over the tokens of a minibatch, as in DAPO (Yu et al. 2025,
        section 3.3), so that long answers count as much per token as short ones.

        Returns:
            ``loss``, ``entropy`` in nats, ``grad_norm``; with ``clip`` also ``kl``, the estimate
            ``E[r - 1 - log r]`` of the divergence since the answers were sampled, ``clipped``, the
            share of tokens whose ratio is out of bounds, and ``ratio``, the largest.
        """
        # Dropout is for imitation: answers were sampled without it.
        self.transformer.model.train(step.clip is None)
        sums: dict[str, float] = defaultdict(float)
        count = -(-len(examples) // step.minibatch)
        first, last = step.lr
        largest, norms = 0.0, 0.0
        for at in range(count):
            batch = examples[at * step.minibatch : (at + 1) * step.minibatch]
            for group in self.optimizer.param_groups:
                group["lr"] = first + (last - first) * at / count
            figures = self._minibatch(batch, step)
            largest = max(largest, figures.pop("ratio", 0.0))
            norms += figures.pop("grad_norm")
            for key, value in figures.items():
                sums[key] += value
        self.transformer.model.eval()
        tokens = sums.pop("tokens")
        found = {key: value / max(1.0, tokens) for key, value in sums.items()}
        found["grad_norm"] = norms / max(1, count)
        return found | ({} if step.clip is None else {"ratio": largest})

    @torch.no_grad()
    def loss(self, examples: Sequence[TrainingExample], most: int = 64) -> dict[str, float]:
        """Returns the mean negative log-likelihood per token, ``loss``, without learning."""
        self.transformer.model.eval()
        total = torch.zeros(2, dtype=torch.float64)
        own = examples[self._rank :: self._learners]
        for at in range(0, len(own), most):
            logp, _, mask = self._logprobs(own[at : at + most])
            total += torch.tensor([float(-logp.sum()), float(mask.sum())], dtype=torch.float64)
        self._sum([total])
        return {"loss": float(total[0] / total[1].clamp(min=1.0))}

    def _minibatch(self, batch: Sequence[TrainingExample], step: PassOptions) -> dict[str, float]:
        outputs = [self._output(example) for example in batch]
        tokens = float(sum(map(len, outputs)))
        own = batch[self._rank :: self._learners]
        self.optimizer.zero_grad(set_to_none=True)
        # Examples of about the same length share a pass, so that little of it is padding.
        own = sorted(own, key=lambda example: len(example.prompt_ids) or len(str(example.messages)))
        names = ("loss", "entropy", "kl", "clipped")
        sums = torch.zeros(len(names), dtype=torch.float64)
        ratio = torch.zeros(1)
        for at in range(0, len(own), step.most):
            part = own[at : at + step.most]
            logp, entropy, mask = self._logprobs(part)
            terms = self._terms(part, logp, mask, step)
            (terms[0].sum() / tokens).backward()  # type: ignore[no-untyped-call] # torch
            known = (terms[0], entropy, *terms[1:3])
            sums += torch.stack([each.detach().double().sum().cpu() for each in known])
            ratio = torch.maximum(ratio, terms[3].detach().max().reshape(1).cpu())
        gradients = [self._gradient(parameter) for parameter in self._parameters]
        self._sum([*gradients, sums])
        norm = nn.utils.clip_grad_norm_(self._parameters, step.max_grad_norm)
        if math.isfinite(float(norm)):
            self.optimizer.step()
        figures = dict(zip(names, sums.tolist(), strict=True))
        if step.clip is None:
            del figures["kl"], figures["clipped"]
        return {**figures, "tokens": tokens, "grad_norm": float(norm), "ratio": float(ratio)}

    @staticmethod
    def _terms(
        part: Sequence[TrainingExample], logp: Tensor, mask: Tensor, step: PassOptions
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Returns loss, estimated divergence, clipping and ratio of each token."""
        none = torch.zeros_like(logp)
        if step.clip is None:
            return -logp, none, none, none
        old = np.zeros(mask.shape, np.float32)
        for row, example in enumerate(part):
            old[row, : len(example.logprobs)] = example.logprobs
        change = (logp - torch.from_numpy(old).to(logp)).masked_fill(~mask, 0.0)
        ratio = change.exp()
        advantage = torch.tensor([each.advantage for each in part]).to(logp)[:, None]
        low, high = 1.0 - step.clip[0], 1.0 + step.clip[1]
        loss = -torch.minimum(ratio * advantage, ratio.clamp(low, high) * advantage)
        outside = ((ratio < low) | (ratio > high)) & mask
        divergence = (ratio - 1.0 - change).masked_fill(~mask, 0.0)
        return loss.masked_fill(~mask, 0.0), divergence, outside.float(), ratio * mask

    def _logprobs(self, examples: Sequence[TrainingExample]) -> tuple[Tensor, Tensor, Tensor]:
        temperatures = {example.temperature for example in examples}
        if len(temperatures) > 1:
            raise ContractError(f"expected examples of one temperature, got {temperatures}")
        prompts = [_prompt(example) for example in examples]
        known = [example.prompt_ids for example in examples]
        outputs = [self._output(example) for example in examples]
        return self.transformer.logprobs(
            prompts, outputs, temperatures.pop(), prompt_ids=known if all(known) else None
        )

    def _output(self, example: TrainingExample) -> Sequence[int]:
        return example.output_ids or self.transformer.answer_ids(example.answer)

    @staticmethod
    def _gradient(parameter: nn.Parameter) -> Tensor:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
        return parameter.grad

    def _sum(self, tensors: list[Tensor]) -> None:
        if self._add is not None:
            self._add(tensors)

    def weights(self) -> dict[str, Tensor]:
        """Returns the parameters that are trained, on the CPU, by name."""
        own = self.transformer.trainable_parameters()
        return {name: each.detach().to("cpu", copy=True) for name, each in own.items()}

    def save(self, folder: Path) -> None:
        """Writes the model; see ``Transformer.save``."""
        self.transformer.save(folder)

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizer."""
        return self.optimizer.state_dict()

    def restore(self, weights: Mapping[str, Any], optimizer: Mapping[str, Any] | None) -> None:
        """Takes saved weights, and the state of the optimizer if it is given."""
        self.transformer.load(weights)
        if optimizer is not None:
            self.optimizer.load_state_dict(dict(optimizer))


def _prompt(example: TrainingExample) -> Prompt:
    digests = [
        part["digest"]
        for message in example.messages
        if isinstance(message["content"], list)
        for part in message["content"]
        if part["type"] == "image"
    ]
    pictures: list[Array] = [decoded(example.images[digest]) for digest in digests]
    return example.messages, pictures


@dataclass(frozen=True)
class LearnerSetup:
    """The setup of a learner; picklable.

    Attributes:
        model: the model to train.
        weight_decay: of AdamW.
        seed: of the initial weights of the adapter.
        threads: torch threads; 0 for all.
        gpu: whether it has a GPU.
    """

    model: Local
    weight_decay: float
    seed: int
    threads: int
    gpu: bool

    def build(self, **shared: Any) -> LanguageLearner:
        """Returns a learner; ``shared`` as in ``LanguageLearner``."""
        set_threads(self.threads)
        # A worker without a GPU of its own must not take that of another.
        device = "cpu" if shared and not self.gpu and self.model.device == "auto" else ""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            transformer = Transformer.of(self.model, folder_of(self.model.model), device)
        return LanguageLearner(transformer, weight_decay=self.weight_decay, **shared)
