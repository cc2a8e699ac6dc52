"""The conformance suite of algorithms."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from rollout.api import (
    ACTION,
    OBSERVATION,
    Algorithm,
    Bridge,
    Columns,
    EvaluatorRecipe,
    GroupAlgorithm,
    PlayedEpisode,
    Progress,
    StepAlgorithm,
)
from rollout.testing.fragments import make_fragments
from rollout.testing.report import Report, Suite, require

_STEPS, _WIDTH = 8, 4
_PROGRESS = Progress(update=3, env_steps=100, budget=1000, seed=0)


@dataclass
class _Case:
    """An algorithm, and fragments played by its policy: two complete ones and a short one."""

    algorithm: Algorithm
    recipe: Any
    bridge: Bridge
    evaluator: EvaluatorRecipe | None

    def network(self) -> Any:
        spec = self.bridge.spec
        return self.recipe.network(spec.observation_space, spec.action_space, seed=0)

    @cached_property
    def batches(self) -> list[Columns]:
        made = partial(
            make_fragments,
            width=_WIDTH,
            bridge=self.bridge,
            policy=self.recipe,
            evaluator=self.evaluator,
        )
        fragments = [*made(2, length=_STEPS), *made(1, length=_STEPS - 3, episodes=2)]
        return [
            self.algorithm.gather(
                fragment,
                self.network(),
                reads=self.recipe.reads(self.bridge.spec.observation_space),
                steps=_STEPS,
            )
            for fragment in fragments
        ]

    @property
    def batch(self) -> Columns:
        return {k: np.concatenate([b[k] for b in self.batches]) for k in self.batches[0]}

    def updated(
        self, batches: Sequence[Columns], reduce: Any = None, *, restored: bool = False
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the weights after an update on each batch, and the last figures.

        With ``restored``, the last update is made by a second learner with the state of the first.
        """
        network = self.network()
        make = partial(self.algorithm.learner, references={}, reduce_gradients=reduce)
        learner, figures = make(network), dict[str, Any]()
        for number, batch in enumerate(batches):
            if restored and number == len(batches) - 1:
                state, network = copy.deepcopy(learner.state()), copy.deepcopy(network)
                learner = make(network)
                learner.restore(state)
            figures = learner.update(batch, _PROGRESS)
        return {k: v.numpy() for k, v in network.state_dict().items()}, figures


def check_algorithm(
    algorithm: Algorithm,
    recipe: Any,
    bridge: Bridge,
    *,
    evaluator: EvaluatorRecipe | None = None,
    timeout_s: float = 60.0,
) -> Report:
    """Returns whether the algorithm keeps its contract with this policy and game.

    Args:
        algorithm: the algorithm; one without ``references``.
        recipe: recipe of a policy with a network, see ``rollout.train.network.TrainableRecipe``.
        bridge: a game that is cheap to launch in this process.
        evaluator: an evaluator of the game; by default one for ``FakeBridge``.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "gathers": _gathers,
        "updates": _updates,
        "same batch, same weights": _repeats,
        "state is whole": _restores,
        "every share calls for gradients equally often": _reduces,
    }
    suite = Suite(f"algorithm {type(algorithm).__name__}", timeout_s)
    return suite.run(checks, _Case(algorithm, recipe, bridge, evaluator), required="gathers")


def _gathers(case: _Case) -> str:
    algorithm = case.algorithm
    require(dataclasses.is_dataclass(algorithm), f"{algorithm!r} is not a dataclass")
    require(algorithm.batch > 0, f"batch: expected more than 0, got {algorithm.batch}")
    algorithm.check(_STEPS)
    for batch in case.batches:
        require(batch.keys() == case.batches[0].keys(), "batches have different columns")
        for key, array in batch.items():
            rows = array.shape[0] == _WIDTH
            require(rows, f"{key}: expected {_WIDTH} rows, got the shape {array.shape}")
        shape = batch["valid"].shape
        require(shape == (_WIDTH, _STEPS), f"valid: expected {(_WIDTH, _STEPS)}, got {shape}")
        require(batch["version"].shape == (_WIDTH,), "version: expected one for each row")
    return ", ".join(case.batches[0])


def _updates(case: _Case) -> str:
    before = {k: v.numpy().copy() for k, v in case.network().state_dict().items()}
    after, figures = case.updated([case.batch])
    require(any((before[k] != after[k]).any() for k in before), "no weight has changed")
    require(all(np.isfinite(v).all() for v in after.values()), "a weight is not finite")
    wrong = [k for k, v in figures.items() if not isinstance(v, float)]
    require(not wrong, f"figures: expected floats, got others as {', '.join(wrong)}")
    return ", ".join(figures)


def _repeats(case: _Case) -> str:
    _same(case.updated([case.batch]), case.updated([case.batch]))
    return "bit for bit"


def _restores(case: _Case) -> str:
    twice = [case.batch, case.batch]
    _same(case.updated(twice), case.updated(twice, restored=True))
    return "bit for bit"


def _same(one: tuple[dict[str, Any], Any], other: tuple[dict[str, Any], Any]) -> None:
    different = [k for k in one[0] if (one[0][k] != other[0][k]).any()]
    require(not different, f"weights differ: {', '.join(different[:3])}")


def _reduces(case: _Case) -> str:
    whole, counts = case.batch, []
    empty = {**whole, "valid": np.zeros_like(whole["valid"])}
    for batch in (whole, {k: v[:1] for k, v in whole.items()}, empty):
        calls: list[int] = []
        case.updated([batch], lambda gradients, calls=calls: calls.append(len(gradients)))
        counts.append(len(calls))
    require(len(set(counts)) == 1, f"all rows, one row, no step: called {counts} times")
    return f"{counts[0]} times"


_OPTIONS = (
    *("groups", "size", "epochs", "lr", "minibatch", "memory", "weight_decay"),
    *("max_grad_norm", "clip_low", "clip_high"),
)


def check_group_algorithm(algorithm: GroupAlgorithm, *, timeout_s: float = 60.0) -> Report:
    """Returns whether an algorithm that compares episodes keeps its contract.

    Args:
        algorithm: the algorithm.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "options": _options,
        "an advantage for each step": _advantages,
        "same episodes, same advantages": _same_advantages,
    }
    suite = Suite(f"algorithm {type(algorithm).__name__}", timeout_s)
    return suite.run(checks, algorithm, required="options")


def _options(algorithm: GroupAlgorithm) -> str:
    require(dataclasses.is_dataclass(algorithm), f"{algorithm!r} is not a dataclass")
    found = algorithm.learns_from
    require(found == "groups", f"learns_from: expected groups, got {found!r}")
    missing = [name for name in _OPTIONS if not hasattr(algorithm, name)]
    require(not missing, f"options are missing: {', '.join(missing)}; inherit GroupOptions")
    return ", ".join(_OPTIONS)


def _episodes() -> list[list[PlayedEpisode]]:
    """Groups of equal and different returns and lengths, of one episode, and without answers."""
    rng = np.random.default_rng(0)

    def episode(steps: int, reward: float, answers: int = 1) -> PlayedEpisode:
        rewards = np.append(np.zeros(steps - 1), reward)
        return PlayedEpisode(
            rewards, [str(s) for s in rng.integers(3, size=steps)], [answers] * steps
        )

    return [
        [episode(3, 1.0), episode(5, 0.0), episode(1, -2.0, 3)],
        [episode(2, 1.0), episode(4, 1.0)],
        [episode(3, 1.0)],
        [episode(2, 0.0, 0), episode(2, 1.0, 0)],
    ]


def _found(
    algorithm: GroupAlgorithm, groups: Sequence[Sequence[PlayedEpisode]]
) -> list[list[list[float]]]:
    return [[[float(x) for x in each] for each in group] for group in algorithm.advantages(groups)]


def _advantages(algorithm: GroupAlgorithm) -> str:
    for groups in (_episodes(), _episodes()[:1], []):
        found = _found(algorithm, groups)
        shape = [[len(each) for each in group] for group in found]
        expected = [[len(each.rewards) for each in group] for group in groups]
        require(shape == expected, f"lengths: expected {expected}, got {shape}")
        values = [x for group in found for each in group for x in each]
        require(bool(np.isfinite(values).all()), f"an advantage is not finite: {values}")
    return f"{sum(map(len, _episodes()))} episodes"


def _same_advantages(algorithm: GroupAlgorithm) -> str:
    one, other = (_found(algorithm, _episodes()) for _ in range(2))
    require(one == other, f"expected {one} again, got {other}")
    return "bit for bit"


_NEEDS = frozenset({"reward", "return", "next"})


@dataclass
class _StepCase:
    """An algorithm for recorded steps, and two batches of sequences ``(T, N, ...)``."""

    algorithm: StepAlgorithm
    recipe: Any
    bridge: Bridge
    evaluator: EvaluatorRecipe | None

    @cached_property
    def batches(self) -> list[Columns]:
        spec = self.bridge.spec
        fragments = make_fragments(
            2,
            length=_STEPS,
            width=_WIDTH,
            bridge=self.bridge,
            policy=self.recipe,
            evaluator=self.evaluator,
        )
        made = []
        for fragment in fragments:
            seen = {k: fragment.observations[k] for k in self.recipe.reads(spec.observation_space)}
            batch: Columns = {f"{OBSERVATION}/{k}": v for k, v in seen.items()}
            batch |= {f"{ACTION}/{k}": v for k, v in fragment.actions.items()}
            batch |= {"first": fragment.first, "valid": fragment.valid}
            if self.algorithm.needs & {"reward", "return"}:
                batch |= {"reward": fragment.reward, "terminated": fragment.terminated}
            if "return" in self.algorithm.needs:
                batch["return"] = fragment.reward[::-1].cumsum(0)[::-1].astype(np.float32)
            if "next" in self.algorithm.needs:
                batch |= {f"next/{k}": np.roll(v, -1, axis=0) for k, v in seen.items()}
            made.append(batch)
        return made

    def network(self) -> Any:
        spec = self.bridge.spec
        return self.recipe.network(spec.observation_space, spec.action_space, seed=0)

    def updated(self, *, restored: bool = False) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns the weights after both batches, and the last figures.

        With ``restored``, a second learner with the state of the first learns from the last one.
        """
        network = self.network()
        learner, figures = self.algorithm.learner(network), dict[str, float]()
        memory = self.memory(network)
        for number, batch in enumerate(self.batches):
            if restored and number:
                state, network = copy.deepcopy(learner.state()), copy.deepcopy(network)
                learner = self.algorithm.learner(network)
                learner.restore(state)
            progress = Progress(number, number, len(self.batches), seed=0)
            figures, memory = learner.update(batch, memory or self.memory(network), progress)
        return {k: v.numpy() for k, v in network.state_dict().items()}, figures

    def memory(self, network: Any) -> dict[str, Any]:
        weights = next(network.parameters())
        return {k: weights.new_zeros(_WIDTH, network.memory_size) for k in network.memory_keys}


def check_step_algorithm(
    algorithm: StepAlgorithm,
    recipe: Any,
    bridge: Bridge,
    *,
    evaluator: EvaluatorRecipe | None = None,
    timeout_s: float = 60.0,
) -> Report:
    """Returns whether an algorithm that learns from a dataset keeps its contract.

    Args:
        algorithm: the algorithm.
        recipe: recipe of a policy with a network.
        bridge: a game that is cheap to launch in this process.
        evaluator: an evaluator of the game; by default one for ``FakeBridge``.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "options": _step_options,
        "updates": _step_updates,
        "measures without learning": _step_measures,
        "same batches, same weights": _step_repeats,
        "state is whole": _step_restores,
    }
    suite = Suite(f"algorithm {type(algorithm).__name__}", timeout_s)
    return suite.run(checks, _StepCase(algorithm, recipe, bridge, evaluator), required="options")


def _step_options(case: _StepCase) -> str:
    algorithm = case.algorithm
    require(dataclasses.is_dataclass(algorithm), f"{algorithm!r} is not a dataclass")
    found = algorithm.learns_from
    require(found == "actions", f"learns_from: expected actions, got {found!r}")
    missing = [n for n in ("epochs", "minibatch", "bptt") if not hasattr(algorithm, n)]
    require(not missing, f"options are missing: {', '.join(missing)}; inherit OfflineOptions")
    unknown = sorted(algorithm.needs - _NEEDS)
    require(not unknown, f"needs: unknown {', '.join(unknown)}; valid: {', '.join(sorted(_NEEDS))}")
    return ", ".join(sorted(algorithm.needs)) or "needs nothing more"


def _step_updates(case: _StepCase) -> str:
    before = {k: v.numpy().copy() for k, v in case.network().state_dict().items()}
    after, figures = case.updated()
    require(any((before[k] != after[k]).any() for k in before), "no weight has changed")
    require(all(np.isfinite(v).all() for v in after.values()), "a weight is not finite")
    wrong = [k for k, v in figures.items() if not isinstance(v, float)]
    require(not wrong, f"figures: expected floats, got others as {', '.join(wrong)}")
    require("loss" in figures, f"figures: expected loss among them, got {', '.join(figures)}")
    return ", ".join(figures)


def _step_measures(case: _StepCase) -> str:
    network = case.network()
    learner = case.algorithm.learner(network)
    state = copy.deepcopy(learner.state())
    before = {k: v.clone() for k, v in network.state_dict().items()}
    figures, _ = learner.measure(case.batches[0], case.memory(network))
    changed = [k for k, v in network.state_dict().items() if (v != before[k]).any()]
    require(not changed, f"weights have changed: {', '.join(changed[:3])}")
    require(_equal(state, learner.state()), "the state has changed")
    return ", ".join(figures)


def _equal(one: Any, other: Any) -> bool:
    """True if nested mappings and lists of numbers and tensors are equal."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[k], other[k]) for k in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(np.all(np.asarray(one == other)))


def _step_repeats(case: _StepCase) -> str:
    _same(case.updated(), case.updated())
    return "bit for bit"


def _step_restores(case: _StepCase) -> str:
    _same(case.updated(), case.updated(restored=True))
    return "bit for bit"
