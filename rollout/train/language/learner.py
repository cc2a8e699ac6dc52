"""Learners of language models, in this process or in workers of Ray Train."""

from __future__ import annotations

import contextlib
import math
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn

from rollout.api import Array
from rollout.errors import BudgetExhausted, ContractError
from rollout.models.examples import TrainingExample
from rollout.models.local import decoded, folder_of
from rollout.models.sections import Local
from rollout.models.transformer import Prompt, Transformer
from rollout.train.config import LearnersConfig


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


_POLL_S = 5.0
_FETCH_S = 600.0  # deadline for what is ready: weights of gigabytes take a while


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
        torch.set_num_threads(self.threads or torch.get_num_threads())
        # A worker without a GPU of its own must not take that of another.
        device = "cpu" if shared and not self.gpu and self.model.device == "auto" else ""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            transformer = Transformer.of(self.model, folder_of(self.model.model), device)
        return LanguageLearner(transformer, weight_decay=self.weight_decay, **shared)


class LocalLearner:
    """The learner in this process."""

    def __init__(self, plan: LearnerSetup) -> None:
        self._learner = plan.build()

    def call(self, method: str, *arguments: Any) -> Any:
        """Returns what a method of the learner returns."""
        return getattr(self._learner, method)(*arguments)

    def save(self, folder: Path) -> None:
        """Writes the model; see ``Transformer.save``."""
        self._learner.transformer.save(folder)


class TrainLearners:
    """Learners in workers of Ray Train, which share every minibatch.

    Each call is carried out by all workers with the same arguments; the result is that of the
    first. If a worker dies, the run ends, and goes on from its last checkpoint when it is resumed.

    Args:
        plan: the setup of each learner.
        config: their number and resources.
        folder: a folder for files of Ray Train.
    """

    def __init__(self, plan: LearnerSetup, config: LearnersConfig, folder: Path) -> None:
        import ray  # noqa: PLC0415 - after the session has set how Ray authenticates

        # num_cpus=0: it only passes on what others compute.
        self._mailbox: Any = ray.remote(num_cpus=0, max_concurrency=2 + config.count)(
            _Mailbox
        ).remote()
        self._number, self._failed = 0, deque[BaseException](maxlen=1)
        self._thread = threading.Thread(
            target=self._fit, args=(plan, config, folder), name="ray-train", daemon=True
        )
        self._thread.start()

    def _fit(self, plan: LearnerSetup, config: LearnersConfig, folder: Path) -> None:
        from ray.train import RunConfig, ScalingConfig  # noqa: PLC0415 - see above
        from ray.train.torch import TorchTrainer  # noqa: PLC0415 - likewise

        from rollout.train.learner_processes import LearnerConfig  # noqa: PLC0415 - likewise

        resources: dict[str, float] = {"CPU": 0.0 if config.gpus else 1.0, **config.resources}
        if config.gpus:
            resources["GPU"] = config.gpus
        trainer = TorchTrainer(
            _serve,
            train_loop_config={"plan": plan, "mailbox": self._mailbox},
            scaling_config=ScalingConfig(
                num_workers=config.count,
                use_gpu=bool(config.gpus),
                resources_per_worker=resources,
            ),
            run_config=RunConfig(name="learners", storage_path=str(folder)),
            torch_config=LearnerConfig(),
        )
        try:
            trainer.fit()
        except Exception as error:  # noqa: BLE001 - raised again where the caller waits
            self._failed.append(error)

    def call(self, method: str, *arguments: Any) -> Any:
        """Returns what a method of the learners returns.

        Raises:
            BudgetExhausted: a learner died.
        """
        import ray  # noqa: PLC0415 - see above

        self._number += 1
        posted = self._mailbox.post.remote(self._number, method, [ray.put(arguments)])
        ray.get(posted, timeout=_FETCH_S)
        answer = self._mailbox.answer.remote(self._number)
        while not ray.wait([answer], timeout=_POLL_S)[0]:
            if not self._thread.is_alive():
                why = self._failed[0] if self._failed else "they ended"
                raise BudgetExhausted(f"the learners of Ray Train ended: {why}")
        return ray.get(answer, timeout=_FETCH_S)

    def save(self, folder: Path) -> None:
        """Writes the model; the first learner must see the folder."""
        self.call("save", str(folder))

    def close(self) -> None:
        """Ends the workers."""
        with contextlib.suppress(Exception):
            import ray  # noqa: PLC0415 - see above

            ray.get(self._mailbox.post.remote(self._number + 1, "", None), timeout=_POLL_S)
        self._thread.join(30.0)


class _Mailbox:
    """Passes calls to the workers, and their answers back; runs in an actor."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._task: tuple[int, str, Any] = (0, "", None)
        self._answers: dict[int, Any] = {}

    def post(self, number: int, method: str, arguments: Any) -> None:
        with self._changed:
            self._task = (number, method, arguments)
            self._changed.notify_all()

    def task(self, number: int) -> tuple[int, str, Any]:
        """Waits for the task with this number."""
        with self._changed:
            self._changed.wait_for(lambda: self._task[0] >= number)
            return self._task

    def reply(self, number: int, answer: Any) -> None:
        with self._changed:
            self._answers = {number: answer}
            self._changed.notify_all()

    def answer(self, number: int) -> Any:
        with self._changed:
            self._changed.wait_for(lambda: number in self._answers)
            return self._answers[number]


def _serve(config: Mapping[str, Any]) -> None:
    """Runs the loop of a worker of Ray Train."""
    import ray  # noqa: PLC0415 - see above

    context = ray.train.get_context()
    rank, count = context.get_world_rank(), context.get_world_size()

    def add(tensors: list[Any]) -> None:
        for tensor in tensors:
            on = tensor.to(ray.train.torch.get_device()) if dist.get_backend() == "nccl" else tensor
            dist.all_reduce(on)
            if on is not tensor:
                tensor.copy_(on)

    plan: LearnerSetup = config["plan"]
    torch.manual_seed(plan.seed)
    learner = plan.build(rank=rank, learners=count, add=add if count > 1 else None)
    mailbox, number = config["mailbox"], 0
    while True:
        number += 1
        asked = mailbox.task.remote(number)
        while not ray.wait([asked], timeout=_POLL_S)[0]:  # until its owner has something to do
            pass
        _, method, arguments = ray.get(asked, timeout=_FETCH_S)
        if not method:
            return
        if method == "save":
            answer = None
            if rank == 0:
                learner.transformer.save(Path(ray.get(arguments[0], timeout=_FETCH_S)[0]))
        else:
            answer = getattr(learner, method)(*ray.get(arguments[0], timeout=_FETCH_S))
        if rank == 0:
            ray.get(mailbox.reply.remote(number, answer), timeout=_FETCH_S)


Learners = LocalLearner | TrainLearners


@contextlib.contextmanager
def open_learners(plan: LearnerSetup, config: LearnersConfig, folder: Path) -> Iterator[Learners]:
    """Builds the learners, and ends them at the end."""
    if not config.count:
        yield LocalLearner(plan)
        return
    learners = TrainLearners(plan, config, folder)
    try:
        yield learners
    finally:
        learners.close()
