"""The PPO update (Schulman et al., 2017) on a batch of columns: plain torch, no Ray.

The batch contains the behaviour policy's log-probabilities and values, which are never recomputed.
So the ratio refers to the policy that acted, however old its weights are.
"""

from __future__ import annotations

import logging
import math
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rollout.api import Array, Progress
from rollout.train.batch import ACTION, MEMORY, OBSERVATION, part
from rollout.train.compiling import compiler_fault, keep_compiled
from rollout.train.gae import advantages
from rollout.train.gradients import FlatOptimizer, Optimizer
from rollout.train.network import HandNetwork
from rollout.train.ppo.by_hand import backward
from rollout.train.ppo.options import REPAID, PpoOptions, Rates
from rollout.train.ppo.rows import Rows, Tensors

log = logging.getLogger(__name__)

_KEPT = {"logp", "value", "first", "valid"}
"""Columns of a batch that the loss reads as they are."""


def uses_bfloat16(precision: str, device: torch.device) -> bool:
    """Returns whether a learner on a device computes in bfloat16; ``auto`` does in hardware only.

    Warns if bfloat16 was requested and the device emulates it: on such a processor convolutions
    were 13 times slower in bfloat16 than in float32.

    Args:
        precision: ``auto``, ``float32`` or ``bfloat16``.
        device: device of the network.
    """
    if precision == "float32":
        return False
    if device.type == "cuda":
        hardware = bool(torch.cuda.is_bf16_supported(including_emulation=False))
    else:  # avx512_bf16 and amx_bf16 of x86, bf16 of ARM
        known = torch.cpu.get_capabilities()
        hardware = any(has for name, has in known.items() if name.endswith("bf16"))
    if precision == "auto":
        log.info("precision: auto chose %s", "bfloat16" if hardware else "float32")
    elif not hardware:
        log.warning(
            "precision: bfloat16, and the %s that learns has no hardware for it, which makes "
            "updates many times slower; use auto or float32",
            "GPU" if device.type == "cuda" else "processor",
        )
    return hardware or precision == "bfloat16"


def _convolutional(network: nn.Module) -> bool:
    return any(
        isinstance(module, nn.Conv1d | nn.Conv2d | nn.Conv3d) for module in network.modules()
    )


class PpoLearner:
    """Improves a network with AdamW (Adam where ``weight_decay`` is 0).

    Args:
        network: a ``rollout.train.network.Network``.
        settings: the options.
        reference: a frozen network with the same spaces, to which the policy stays close.
        reduce_gradients: averages gradients over several learners, weighted by their steps; called
            before each step, and for the moments of the advantages.
    """

    def __init__(
        self,
        network: Any,
        settings: PpoOptions,
        *,
        reference: Any = None,
        reduce_gradients: Callable[[list[Tensor]], None] | None = None,
    ) -> None:
        self.network, self.settings = network, settings
        self._reference, self._reduce = reference, reduce_gradients
        self._device = next(network.parameters()).device
        precision = settings.precision
        if precision == "auto" and not _convolutional(network):
            precision = "float32"
        self._bfloat16 = uses_bfloat16(precision, self._device)
        in_numpy = getattr(network, "in_numpy", None)
        self._by_hand: HandNetwork | None = None
        if in_numpy is not None and not self._bfloat16 and settings.accumulate == 1:
            self._by_hand = in_numpy()
        options: dict[str, Any] = {
            "lr": settings.lr,
            "max_grad_norm": settings.max_grad_norm,
            "reduce_gradients": reduce_gradients,
            "weight_decay": settings.weight_decay,
            "eps": settings.adam_eps,
        }
        parameters = list(network.parameters())
        if self._by_hand is None:
            self.optimizer = Optimizer(parameters, **options)
        else:
            flat = self._by_hand.weights, self._by_hand.gradient
            self.optimizer = FlatOptimizer(parameters, *flat, **options)
        self._compiled: Callable[..., tuple[Tensor, Tensors]] | None = None
        self._compiles: bool | None = False
        if self._by_hand is None:
            self._compiles = None if settings.compile == "auto" else self._compile(settings.compile)

    def update(self, batch: Mapping[str, Array], progress: Progress) -> dict[str, float]:
        """Makes one update; adds ``learning_rate`` and ``reference_coef`` to its figures."""
        rates = self.settings.rates(progress)
        if self._compiles is None:
            left = self.settings.minibatches_left(progress)
            small = not (self.network.memory_keys or _convolutional(self.network))
            worth = small and self._device.type == "cpu" and left >= REPAID
            self._compiles = self._compile(worth)
        figures = self.learn(batch, rates, np.random.default_rng((progress.seed, progress.update)))
        return {**figures, "learning_rate": rates.lr, "reference_coef": rates.reference_coef}

    def state(self) -> dict[str, Any]:
        """Returns the state of the optimizer, and how the network learns."""
        chosen = {"bfloat16": self._bfloat16, "compile": self._compiles}
        return {**self.optimizer.state(), "chosen": chosen}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the state of the optimizer; what ``auto`` chose stays chosen."""
        state = dict(state)
        chosen = state.pop("chosen", {})  # checkpoints of version 0.1 lack it
        self.optimizer.restore(state)
        bfloat16, compiles = chosen.get("bfloat16"), chosen.get("compile")
        if self.settings.precision == "auto" and bfloat16 not in (None, self._bfloat16):
            # Emulated, it would take many times as long; the reverse costs little.
            log.warning(
                "precision: the run learned in %s so far; it goes on in float32%s",
                "bfloat16" if bfloat16 else "float32",
                ", as this machine has no hardware for bfloat16" if bfloat16 else "",
            )
            self._bfloat16 = False
        if self.settings.compile == "auto" and compiles not in (None, self._compiles):
            self._compiles = self._compile(compiles)

    def _compile(self, wanted: bool) -> bool:
        """Compiles the loss, when it is first computed; returns whether it does."""
        if wanted and (fault := compiler_fault()):
            log.warning("compile: %s. This run learns without compilation", fault)
            wanted = False
        if wanted:
            log.info("compile: the loss is compiled in the next update, for about a minute")
            keep_compiled()
        return wanted

    def _gradients(
        self, columns: Tensors, memory: Tensors | None, rates: Rates
    ) -> Mapping[str, Tensor]:
        """Adds to the gradients of the parameters; returns the figures of the loss."""
        entropy, coef = rates.entropy, rates.reference_coef
        if self._compiles:
            try:
                if self._compiled is None:
                    self._compiled = torch.compile(self._loss)
                # As tensors, since numbers would be compiled into the loss.
                weights = torch.tensor(entropy), torch.tensor(coef)
                loss, figures = self._compiled(columns, memory, *weights)
                (loss / self.settings.accumulate).backward()  # type: ignore[no-untyped-call] # torch
                return figures
            except Exception as error:  # noqa: BLE001 - of any of torch's compilers
                why = (str(error).strip() or type(error).__name__).splitlines()[0]
                log.warning(
                    "compile: failed (%s). This run goes on without compilation; "
                    "algorithm.compile=false does not try",
                    why[:300],
                )
                self._compiles = False
        loss, figures = self._loss(columns, memory, entropy, coef)
        (loss / self.settings.accumulate).backward()  # type: ignore[no-untyped-call] # torch
        return figures

    def learn(
        self, batch: Mapping[str, Array], rates: Rates, order: np.random.Generator
    ) -> dict[str, float]:
        """Makes ``epochs`` passes over a batch.

        Args:
            batch: a batch of ``rollout.train.ppo.gather``.
            rates: learning rate and weights of the loss.
            order: random generator for the order of the minibatches.

        Returns:
            means over the minibatches: ``policy_loss``, ``value_loss``, ``entropy``, ``approx_kl``
            (Schulman's low-variance estimator), ``old_approx_kl``, ``clip_fraction``,
            ``grad_norm``, ``reference_kl``; and ``explained_variance``, ``skipped_steps`` (steps
            whose gradient was not finite).
        """
        rows = self._rows(batch)
        self.optimizer.set_lr(rates.lr)
        self.network.train()
        totals: dict[str, Tensor | float] = {}
        count, norms = 0, list[Tensor | float]()
        together = self.settings.accumulate  # divides the number of minibatches
        for number, (columns, memory) in enumerate(rows.minibatches(order, self.settings)):
            if columns["logp"].numel():
                figures: Mapping[str, Tensor | float]
                if self._by_hand is None:
                    figures = self._gradients(columns, memory, rates)
                else:
                    arrays = {key: column.numpy() for key, column in columns.items()}
                    figures = backward(self._by_hand, arrays, self.settings, rates)
                for key, value in figures.items():
                    totals[key] = totals[key] + value if key in totals else value
                count += 1
            if (number + 1) % together == 0:
                norm = self.optimizer.apply()
                norms += [] if norm is None else [norm]
        out = {key: float(value) / count for key, value in totals.items()}
        finite = [n for n in map(float, norms) if math.isfinite(n)]
        skipped = len(norms) - len(finite)
        out["grad_norm"] = sum(finite) / len(finite) if finite else math.nan
        out |= {"skipped_steps": float(skipped), "explained_variance": rows.explained}
        return out

    def _rows(self, batch: Mapping[str, Array]) -> Rows:
        s = self.settings
        batch, advantage, target = self._estimated(batch)
        valid = batch["valid"]
        explained = _explained(batch["value"][valid], target[valid])
        if s.normalize_advantages:
            middle, deviation = self._moments(advantage[valid])
            advantage = ((advantage - middle) / (deviation + 1e-8)).astype(np.float32)
        kept = {k for k in batch if k.startswith((OBSERVATION, MEMORY))} | _KEPT
        arrays = {"advantage": advantage, "target": target, **{k: batch[k] for k in kept}}
        with warnings.catch_warnings():
            # Arrays from Ray are read-only, and nothing here writes to them.
            warnings.filterwarnings("ignore", "The given NumPy array is not writable")
            columns = {k: torch.from_numpy(v).to(self._device) for k, v in arrays.items()}
            columns["choices"] = self.network.layout.encode(part(batch, ACTION)).to(self._device)
        memory = {k.removeprefix(MEMORY): columns.pop(k) for k in kept if k.startswith(MEMORY)}
        rows = Rows(columns, memory, explained)
        if self._reference is not None:
            rows.columns["reference"] = self._reference_logits(rows)
        if self.network.memory_keys:
            # Rows without a step stay in their sequences; their action may be invalid.
            columns["choices"] = columns["choices"] * columns["valid"].unsqueeze(-1)
            rows.cut(s.bptt, self.network)
        else:
            rows.flatten()
        if self._by_hand is not None:
            seen = part({k: v.numpy() for k, v in rows.columns.items()}, OBSERVATION)
            others = {k: v for k, v in rows.columns.items() if not k.startswith(OBSERVATION)}
            prepared = self._by_hand.prepare(seen)
            rows.columns = others | {k: torch.from_numpy(v) for k, v in prepared.items()}
        return rows

    def _estimated(
        self, batch: Mapping[str, Array]
    ) -> tuple[Mapping[str, Array], NDArray[np.float32], NDArray[np.float32]]:
        """Returns a batch, with advantages and value targets ``(N, T)`` for it."""
        s = self.settings
        return batch, *advantages(
            batch["reward"],
            batch["value"],
            batch["next_value"],
            batch["end"],
            gamma=s.gamma,
            lambda_=s.gae_lambda,
        )

    def _moments(self, values: Array) -> tuple[float, float]:
        """Returns mean and standard deviation over all learners, so that they share one scale.

        Otherwise the gradient of two learners is not that of one with both of their batches.
        """
        own = values.astype(np.float64) if len(values) else np.zeros(1)
        moments = torch.tensor(
            [own.mean(), (own**2).mean()], dtype=torch.float64, device=self._device
        )
        if self._reduce is not None:
            self._reduce([moments])  # weighted by steps, as gradients are
        middle, square = moments.tolist()
        return middle, math.sqrt(max(square - middle**2, 0.0))

    @torch.no_grad()
    def _reference_logits(self, rows: Rows) -> Tensor:
        """Logits of the reference, computed once: they do not change within an update.

        A recurrent reference begins each fragment with a zero memory.
        """
        network = self._reference
        slots = rows.columns["first"].shape[0]
        blank = {
            k: torch.zeros(slots, network.memory_size, device=self._device)
            for k in network.memory_keys
        }
        seen = {k: v.swapaxes(0, 1) for k, v in part(rows.columns, OBSERVATION).items()}
        first = rows.columns["first"].T
        logits, _, _ = network.unroll(seen, blank, first)
        return logits.swapaxes(0, 1).contiguous()  # type: ignore[no-any-return] # a tensor

    def _loss(
        self,
        columns: Tensors,
        memory: Tensors | None,
        entropy_coef: float | Tensor,
        reference_coef: float | Tensor,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        s, weight = self.settings, columns.get("weight")

        def mean(values: Tensor) -> Tensor:
            """The mean over rows that contain a step."""
            if weight is None:
                return values.mean()
            return (values * weight).sum() / weight.sum().clamp(min=1.0)

        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._bfloat16):
            if memory is None:
                logits, value, _ = self.network(part(columns, OBSERVATION), {})
            else:
                logits, value, _ = self.network.unroll(
                    part(columns, OBSERVATION), memory, columns["first"]
                )
        if self._bfloat16:
            logits, value = logits.float(), value.float()
        distribution = self.network.distribution(logits)
        logp = distribution.log_prob(columns["choices"])
        advantage = columns["advantage"]
        if s.logp_floor is not None:
            logp = torch.where(advantage < 0, logp.clamp(min=s.logp_floor), logp)
        log_ratio = (logp - columns["logp"]).clamp(max=s.log_ratio_cap)
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1.0 - s.clip, 1.0 + s.clip)
        policy_loss = -mean(torch.minimum(ratio * advantage, clipped * advantage))
        error = (value - columns["target"]).square()
        if s.value_clip is not None:
            near = columns["value"] + (value - columns["value"]).clamp(-s.value_clip, s.value_clip)
            error = torch.maximum(error, (near - columns["target"]).square())
        value_loss = 0.5 * mean(error)
        entropy = mean(distribution.entropy())
        loss = policy_loss + s.value_coef * value_loss - entropy_coef * entropy
        with torch.no_grad():
            figures = {
                "policy_loss": policy_loss,
                "value_loss": value_loss,
                "entropy": entropy,
                "approx_kl": mean(ratio - 1.0 - log_ratio),
                "old_approx_kl": mean(-log_ratio),
                "clip_fraction": mean(((ratio - 1.0).abs() > s.clip).float()),
            }
        if "reference" in columns:
            kl = mean(distribution.kl(self.network.distribution(columns["reference"])))
            loss = loss + reference_coef * kl
            figures["reference_kl"] = kl
        return loss, {key: figure.detach() for key, figure in figures.items()}


def _explained(value: Array, target: Array) -> float:
    """Explained variance of the value targets; NaN where they have no variance."""
    if not target.size:
        return math.nan
    variance = float(target.var())
    return 1.0 - float((target - value).var()) / variance if variance > 0 else math.nan
