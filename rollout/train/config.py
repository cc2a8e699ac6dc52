"""The configuration of training runs; imports neither torch nor Ray."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from rollout.api import LearnsFrom, Resources
from rollout.api.options import check_function_name
from rollout.config import (
    Directory,
    FragmentConfig,
    GameConfig,
    HostConfig,
    LogConfig,
    PluginConfig,
    PolicyConfig,
    RayConfig,
    RunConfig,
    Section,
    StateSetConfig,
    WandbConfig,
    key,
)
from rollout.errors import InputError
from rollout.evaluate.legs import Actions
from rollout.evaluate.scoreboard import Metric
from rollout.registry import Group
from rollout.train.jobs import learns_from


class AlgorithmConfig(PluginConfig):
    """An algorithm that learns from fragments, and its options."""

    group: ClassVar[Group] = "algorithms"
    learns_from: ClassVar[LearnsFrom] = "fragments"

    name: str = key("ppo", "Name of an installed plug-in.")

    @model_validator(mode="after")
    def _of_this_kind(self) -> AlgorithmConfig:
        if (found := learns_from(self.name)) != self.learns_from:
            raise ValueError(
                f"{self.name} learns from {found}, and a training with these keys from "
                f"{self.learns_from}; see --set algorithm={self.name} --help for its keys"
            )
        return self


class SaveConfig(Section):
    """When checkpoints are written."""

    every: int = key(1, "Epochs or updates between checkpoints; the last is written.", gt=0)
    keep: int = key(2, "Number of newest checkpoints to keep.", gt=0)


class LearnersConfig(Section):
    """Learner processes and their resources."""

    count: int = key(0, "Learner processes; 0 learns in the trainer's process.", ge=0)
    gpus: float = key(0.0, "GPUs of each learner; 0 learns on the CPU.", ge=0)
    resources: dict[str, Annotated[float, Field(gt=0)]] = key(
        dict,
        "Other resources of each learner, by the names of Ray's resources: "
        "{gamut_learner: 1} places it on a machine that has this resource.",
    )
    threads: int = key(
        1,
        "Torch threads of each learner; 0 for all. More than one helps for CNNs on an otherwise "
        "idle machine, and is much slower otherwise.",
        ge=0,
    )

    @model_validator(mode="after")
    def _placed(self) -> LearnersConfig:
        if self.resources and not self.count:
            raise ValueError(
                "resources: with count=0 the trainer's process learns, wherever it runs; set "
                "count to 1 or more"
            )
        return self

    @property
    def needs(self) -> Resources:
        """Resources of each learner that cannot be shared."""
        return Resources(cpus=0.0, memory_mb=0, gpus=self.gpus, custom=dict(self.resources))


class CheckpointConfig(SaveConfig):
    """When checkpoints are written, and which are opened."""

    every: int = key(100, "Updates between checkpoints; one is always written at the end.", gt=0)
    fallback: bool = key(
        False, "Whether --resume uses an older checkpoint if the newest are damaged."
    )


class CurriculumConfig(Section):
    """Which training state an episode starts from."""

    sampler: Literal["cycle", "score"] = key(
        "cycle",
        "cycle plays the states in turn; score plays those more often in which the values were "
        "most wrong: prioritized level replay (Jiang et al., 2021).",
    )
    temperature: float = key(
        0.1, "Of the ranks of scores; small values prefer the highest scores.", gt=0
    )
    staleness: float = key(
        0.1, "Weight of states that were not played for long, beside that of scores.", ge=0, le=1
    )


class EpisodesConfig(Section):
    """Recording of every episode that ended."""

    write: bool = key(True, "Whether to write a line of episodes.jsonl for each.")
    signals: tuple[str, ...] = key(
        (),
        "Signals whose last values it contains: names, or patterns such as achievement/*.",
        strict=False,
    )


class ValidationConfig(Section):
    """Evaluation on validation states during training."""

    every: int | None = key(
        None, "Steps between validations; null for none.", unit="steps of single slots", gt=0
    )
    states: int = key(
        64,
        "Number of validation states, from which one episode each is played; they are of the part "
        "validation of state_set.",
        unit="states",
        gt=0,
    )
    metric: Metric = key("return", "The score: return, or progress or success of the task.")
    actions: Actions = key("sampled", "Whether actions are sampled or deterministic.")
    patience: int | None = key(
        None,
        "Validations without a higher score after which the training ends; null for never.",
        unit="validations",
        gt=0,
    )

    @model_validator(mode="after")
    def _needed(self) -> ValidationConfig:
        if self.patience is not None and self.every is None:
            raise ValueError("patience: there are no validations; set every, or leave it out")
        return self


def _from_a_number(given: Any) -> Any:
    """Returns the seeds from 0 where only their number is given."""
    if isinstance(given, list | tuple):
        return given
    whole = isinstance(given, int) and not isinstance(given, bool)
    if not whole or not 0 < given <= _MOST_SEEDS:
        raise ValueError(f"expected 1 to {_MOST_SEEDS}, or a list of seeds, got {given!r}")
    return range(given)


def _distinct(seeds: tuple[int, ...]) -> tuple[int, ...]:
    twice = sorted({seed for seed in seeds if seeds.count(seed) > 1})
    if twice:
        raise ValueError(
            f"{', '.join(map(str, twice))} is given more than once, and would train the same "
            f"again; remove it, or give the number of seeds alone, e.g. seeds={len(seeds)}"
        )
    if not seeds:
        raise ValueError("is empty; give a number of seeds, or a list of them")
    return seeds


_MOST_SEEDS = 1000
Seeds: TypeAlias = Annotated[
    tuple[Annotated[int, Field(ge=0)], ...],
    BeforeValidator(_from_a_number),
    AfterValidator(_distinct),
]
"""Different training seeds; a number means those from 0."""


class SeededConfig(RunConfig):
    """Base of the configurations of trainings, which may have several seeds."""

    may_grow: ClassVar[tuple[str, ...]] = ("seeds",)

    seeds: Seeds | None = key(
        None,
        "Training seeds, each a run in a folder of its own, side by side as the machine's room "
        "allows: a list, or their number for 0, 1, ...; null for the one of seed.",
        strict=False,
    )

    @model_validator(mode="after")
    def _seed_or_seeds(self) -> SeededConfig:
        seed = getattr(self, "seed", 0)
        if self.seeds is not None and seed:
            raise ValueError(
                f"seed={seed} and seeds={list(self.seeds)}: each seed is a run of its own; leave "
                f"seed out"
            )
        return self


_MEASURE_S = 2.0
MEASURED = ("runners", "instances", "width", "fragment")
"""Keys that a measurement chooses."""


class TrainConfig(GameConfig, SeededConfig):
    """Trains a policy.

    Attributes:
        of_many_runs: whether it is shared by runs that are compared.
    """

    of_many_runs: ClassVar[bool] = False

    may_change: ClassVar[tuple[str, ...]] = (
        *GameConfig.may_change,
        *("checkpoint", "episodes", "callbacks", "learners.gpus", "measure"),
    )
    may_grow: ClassVar[tuple[str, ...]] = (
        *SeededConfig.may_grow,
        *("env_steps", "validation.patience"),
    )
    renamed: ClassVar[Mapping[str, str]] = {
        "ppo": "algorithm, with the same keys but algorithm.reference, algorithm.reference_coef "
        "and algorithm.reference_decay for ppo.reference.*"
    }

    policy: PolicyConfig = key(
        lambda: PolicyConfig(name="actor_critic"),
        "The policy to train; actor_critic and its options.",
    )
    state_set: StateSetConfig = key(StateSetConfig, "Which states episodes start from.")
    curriculum: CurriculumConfig = key(CurriculumConfig, "Which of them an episode starts from.")
    env_steps: int = key(..., "Steps to train for.", unit="steps of single slots", gt=0)
    runners: int = key(
        0, "Actors that play; 0 plays in the trainer's process.", unit="actors", ge=0
    )
    fragment: FragmentConfig = key(FragmentConfig, "Length of the fragments that runners send.")
    algorithm: AlgorithmConfig = key(lambda: AlgorithmConfig(name="ppo"), "How it learns.")
    learners: LearnersConfig = key(LearnersConfig, "Where it learns.")
    measure: Literal["auto"] | Annotated[float, Field(gt=0, le=600)] | None = key(
        "auto",
        "Duration of a measurement at the start, which chooses the numbers of runners, instances, "
        "slots and steps of a fragment with which this machine is fastest; auto takes two seconds "
        "where none of them is given and the run starts its own Ray; null for none.",
        unit="s",
    )
    initialize_from: str | None = key(
        None, "Checkpoint with the initial weights; null for new ones."
    )
    checkpoint: CheckpointConfig = key(CheckpointConfig, "When checkpoints are written.")
    episodes: EpisodesConfig = key(EpisodesConfig, "What is recorded for every episode.")
    validation: ValidationConfig = key(
        ValidationConfig, "Evaluation on validation states during training."
    )
    callbacks: tuple[str, ...] = key(
        (),
        "Functions of your own that are called after every update and may end the training: "
        "module:function.",
        strict=False,
    )

    def left_open(self) -> list[str]:
        """Returns the keys that the program chooses; see ``RunConfig``."""
        measured = [] if self.measured_s is None else ["measure", *MEASURED]
        return [*super().left_open(), *measured]

    @property
    def measured_s(self) -> float | None:
        """Duration of the measurement at the start, in seconds; None for no measurement."""
        if self.measure != "auto":
            return self.measure
        given = self.model_fields_set.intersection(MEASURED)
        return None if given or self.of_many_runs or self.seeds else _MEASURE_S

    @model_validator(mode="after")
    def _measured_once(self) -> TrainConfig:
        if (self.of_many_runs or self.seeds) and self.measured_s is not None:
            raise ValueError(
                f"measure: runs that are compared have the same {', '.join(MEASURED)}; find them "
                f"with gamut tune speed, and give them here"
            )
        return self

    @field_validator("state_set")
    @classmethod
    def _train_part(cls, states: StateSetConfig) -> StateSetConfig:
        if states.states is None and states.split != "train":
            raise ValueError(
                f"split: expected train, got {states.split}; states of other parts are for "
                f"evaluation and must not be used for training"
            )
        return states

    @field_validator("callbacks")
    @classmethod
    def _names(cls, callbacks: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(check_function_name, callbacks))

    @field_validator("host")
    @classmethod
    def _one_fragment_at_a_time(cls, host: HostConfig) -> HostConfig:
        if host.max_in_flight is not None:
            raise ValueError(
                "max_in_flight: runners are asked for one fragment at a time; leave it out, and "
                "use algorithm.max_staleness to let them play during updates"
            )
        return host

    @model_validator(mode="after")
    def _fits(self) -> TrainConfig:
        if learns_from(self.algorithm.name) != "fragments":
            return self  # a run of a sweep, which learns from demonstrations
        try:
            self.algorithm.build().check(self.fragment.steps)
        except InputError as error:
            raise ValueError(str(error)) from error
        return self


class SharedConfig(TrainConfig):
    """The configuration shared by the runs of a job, which sets the rest for each of them."""

    of_many_runs: ClassVar[bool] = True

    output: Directory = key(Directory, "Set by the job for each run; leave it out.", exclude=True)
    seeds: Seeds | None = key(
        None, "Not of a single run; leave it out.", exclude=True, strict=False
    )
    ray: RayConfig = key(RayConfig, "That of the job; leave it out.", exclude=True)
    wandb: WandbConfig = key(WandbConfig, "That of the job; leave it out.", exclude=True)
    log: LogConfig = key(LogConfig, "That of the job; leave it out.", exclude=True)
