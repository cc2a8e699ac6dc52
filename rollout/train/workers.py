"""Learners that share minibatches, in this process or in workers of Ray Train."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import torch
import torch.distributed as dist

from rollout.errors import BudgetExhausted
from rollout.train.config import LearnersConfig

_POLL_S = 5.0
_FETCH_S = 600.0  # deadline for what is ready: weights of gigabytes take a while


class Setup(Protocol):
    """The setup of a learner; picklable."""

    @property
    def seed(self) -> int:
        """Seed of torch in the workers."""
        ...

    def build(self, **shared: Any) -> Any:
        """Returns a learner, any object with the methods that are called.

        Args:
            shared: for a worker ``rank``, its number, ``learners``, how many there are, and
                ``add``, which sums tensors over all of them in place; None for one.
        """
        ...


class LocalLearner:
    """The learner in this process."""

    def __init__(self, plan: Setup) -> None:
        self._learner = plan.build()

    def call(self, method: str, *arguments: Any) -> Any:
        """Returns what a method of the learner returns."""
        return getattr(self._learner, method)(*arguments)

    def save(self, folder: Path) -> None:
        """Calls ``save`` of the learner."""
        self._learner.save(folder)

    def close(self) -> None:
        """Calls ``close`` of the learner, if it has this method."""
        getattr(self._learner, "close", lambda: None)()


class TrainLearners:
    """Learners in workers of Ray Train, which share every minibatch.

    Each call is carried out by all workers with the same arguments; the result is that of the
    first. If a worker dies, the run ends, and goes on from its last checkpoint when it is resumed.

    Args:
        plan: the setup of each learner.
        config: their number and resources.
        folder: a folder for files of Ray Train.
    """

    def __init__(self, plan: Setup, config: LearnersConfig, folder: Path) -> None:
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

    def _fit(self, plan: Setup, config: LearnersConfig, folder: Path) -> None:
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
        """Calls ``save`` of the first learner, which must see the folder."""
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

    plan: Setup = config["plan"]
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
                learner.save(Path(ray.get(arguments[0], timeout=_FETCH_S)[0]))
        else:
            answer = getattr(learner, method)(*ray.get(arguments[0], timeout=_FETCH_S))
        if rank == 0:
            ray.get(mailbox.reply.remote(number, answer), timeout=_FETCH_S)


Learners = LocalLearner | TrainLearners


@contextlib.contextmanager
def open_learners(plan: Setup, config: LearnersConfig, folder: Path) -> Iterator[Learners]:
    """Builds the learners, and ends them at the end."""
    learners = TrainLearners(plan, config, folder) if config.count else LocalLearner(plan)
    try:
        yield learners
    finally:
        learners.close()
