"""The interface of training algorithms and of their learners."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, runtime_checkable

from rollout.api.bridge import BridgeSpec
from rollout.api.fragment import Fragment
from rollout.api.types import Array, Columns


@dataclass(frozen=True)
class Progress:
    """Progress of a run when an update is made.

    Attributes:
        update: number of updates made before this one.
        env_steps: steps played before those of this update.
        budget: steps that the run plays in all.
        seed: seed of the run. Random numbers of an update must depend on ``seed`` and ``update``
            only, so that a resumed run makes the same updates.
    """

    update: int
    env_steps: int
    budget: int
    seed: int

    @property
    def share(self) -> float:
        """The share of the budget that was used before this update, 0 to 1."""
        return min(1.0, self.env_steps / self.budget)


class Learner(Protocol):
    """Improves the weights of one network, in place."""

    def update(self, batch: Mapping[str, Array], progress: Progress) -> dict[str, float]:
        """Makes one update.

        Args:
            batch: columns of ``Algorithm.gather``, joined; this learner's share of them. It may
                hold no step at all. Arrays may be read-only.
            progress: progress of the run.

        Returns:
            figures of the update, written to ``metrics.jsonl`` as ``train/<name>``; NaN for one
            that is undefined.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Returns the state of the learner beside the weights: tensors and plain data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores a state that ``state`` returned."""
        ...


LearnsFrom: TypeAlias = Literal["fragments", "groups", "answers", "actions"]
"""Source of an algorithm's data, which determines the configuration keys of a training.

``fragments``: steps that the policy plays meanwhile (``Algorithm``). ``groups``: episodes that a
language model plays from the same start (``GroupAlgorithm``). ``answers``: answers of a model, or
actions put in its words, in a dataset. ``actions``: actions in a dataset.
"""


@dataclass(frozen=True)
class PlayedEpisode:
    """An episode that a language model played.

    Attributes:
        rewards: of each step, ``(T,)``.
        states: an identifier of the observation before each step.
        answers: number of answers in each step.
    """

    rewards: Array
    states: Sequence[str]
    answers: Sequence[int]


class StepLearner(Protocol):
    """Improves the weights of one network, in place, on recorded sequences of steps.

    A batch has ``observation/<key>``, ``action/<key>``, what the algorithm needs, ``first`` (an
    episode begins) and ``valid`` (there is a step), each ``(T, N, ...)``; and ``weight``, that of
    each step, where the training has weights. The sequences of a batch continue those of the one
    before, unless an episode begins.
    """

    def update(
        self, batch: Mapping[str, Array], memory: Mapping[str, Any], progress: Progress
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Makes one update.

        Args:
            batch: the steps; at least one.
            memory: of the network before the batch, ``{key: (N, size)}``.
            progress: where the training stands; its steps are counted in batches.

        Returns:
            means of figures over the steps, ``loss`` among them, and the memory after the batch.
        """
        ...

    def measure(
        self, batch: Mapping[str, Array], memory: Mapping[str, Any]
    ) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns the same without learning."""
        ...

    def state(self) -> dict[str, Any]:
        """Returns what an update depends on beside the weights: tensors and plain data."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Takes back what ``state`` returned."""
        ...


class StepAlgorithm(Protocol):
    """Learns from the steps of a dataset; a frozen dataclass of options.

    ``rollout.train.offline_config.OfflineOptions`` has the options that it needs: ``epochs``,
    ``minibatch`` and ``bptt``.

    Attributes:
        needs: columns beside observations and actions: ``reward`` (and ``terminated``), ``return``
            (discounted by the option ``gamma``), ``next`` (``next/<key>``, the observations that
            followed).
    """

    learns_from: ClassVar[LearnsFrom]
    needs: ClassVar[frozenset[str]]

    def learner(self, network: Any) -> StepLearner:
        """Returns a learner of a network, a ``torch.nn.Module``.

        For trainings with several learners it takes ``reduce_gradients``, too, see
        ``Algorithm.learner``; it averages over all steps of a minibatch, and a share of one may
        hold no step.
        """
        ...


class GroupAlgorithm(Protocol):
    """Compares episodes of a language model; a frozen dataclass of options.

    Its entry point is in ``gamut.algorithms``. ``rollout.train.language.algorithms.GroupOptions``
    has the options that it needs, such as the number of episodes of an update.
    """

    learns_from: ClassVar[LearnsFrom]

    def advantages(
        self, groups: Sequence[Sequence[PlayedEpisode]]
    ) -> Sequence[Sequence[Sequence[float] | Array]]:
        """Returns the advantage of each step.

        Args:
            groups: the episodes of an update, grouped by their start. A group may lack episodes.

        Returns:
            for each group and episode, a number for each step; 0 where nothing is to be learned.
        """
        ...


@runtime_checkable
class ChecksFit(Protocol):
    """Offered by an algorithm that does not fit every policy and game."""

    def check_fit(self, network: Any, spec: BridgeSpec) -> None:
        """Checks a network and a game before anything is launched.

        Raises:
            ConfigError: the algorithm does not fit them.
        """
        ...


class Algorithm(Protocol):
    """Learns from fragments; a frozen dataclass of options.

    The entry point in ``gamut.algorithms`` names its class.

    Its options are the keys under ``algorithm`` in a training configuration. ``gather`` runs where
    games are played, ``learner`` where weights are updated. The policy it trains offers a network,
    see ``rollout.train.network``.

    Attributes:
        extras: columns that the policy must record beside its actions.
    """

    extras: ClassVar[frozenset[str]]

    @property
    def batch(self) -> int:
        """Steps that are played for each update."""
        ...

    @property
    def max_staleness(self) -> int:
        """Maximum number of updates between playing a step and learning from it.

        With 0, no game is played during an update.
        """
        ...

    def check(self, fragment_steps: int) -> None:
        """Checks that the options fit fragments of so many steps.

        Raises:
            ConfigError: they do not.
        """
        ...

    def references(self) -> Mapping[str, str]:
        """Returns checkpoints of further networks that updates need, by the option naming each."""
        ...

    def gather(
        self, fragment: Fragment, network: Any, *, reads: Sequence[str], steps: int
    ) -> Columns:
        """Returns the rows of a batch that are made of a fragment.

        Args:
            fragment: the fragment, with at least one row.
            network: with the weights that acted; must not be changed.
            reads: the observation columns that the network reads.
            steps: number of steps of a whole fragment; this one may be shorter.

        Returns:
            arrays ``(B, ...)`` of the same ``B`` rows: ``valid``, ``(B, steps)`` bool, marks the
            steps, and ``version``, ``(B,)`` int64, is that of the weights that acted. See
            ``rollout.train.batch.from_fragment``, which makes what most algorithms need.
        """
        ...

    def learner(
        self,
        network: Any,
        *,
        references: Mapping[str, Any],
        reduce_gradients: Callable[[list[Any]], None] | None,
    ) -> Learner:
        """Returns a learner of a network.

        Args:
            network: a ``torch.nn.Module`` on the device where it learns.
            references: the networks of ``references()``, frozen, on the same device.
            reduce_gradients: averages gradients, in place, over several learners that share each
                batch; None for one learner. Every learner must call it equally often in an
                update, however many steps its share holds, or the others wait for it.
        """
        ...
