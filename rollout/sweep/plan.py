"""The plan of a sweep: its runs and their state sets, built and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from rollout.api import Bridge, StateSet, Task
from rollout.api.sets import ALL, EXTRAPOLATION
from rollout.api.state import digest
from rollout.api.subsets import ListStates, choose
from rollout.config import BridgeConfig, PolicyConfig, chosen, make_config, resolved
from rollout.errors import ConfigError, TestStateError, named
from rollout.evaluate.legs import TEST, TRAIN
from rollout.evaluate.scoreboard import check_metric
from rollout.evaluate.videos import video_bridge
from rollout.run_directory import absolute
from rollout.sweep.config import Arm, SweepConfig, SweepEvaluation, TemplateConfig
from rollout.sweep.curves import FULL, INSIDE, of_other_run, set_of_run
from rollout.sweep.decomposition import LEAST_SEEDS
from rollout.sweep.imitation_config import ClonedConfig, ImitationConfig
from rollout.tasks import bridge_and_task
from rollout.train.config import TrainConfig

RUNS, BASELINES = "runs", "baselines"
"""Folders of a sweep: its training runs, and the evaluations of untrained baselines."""

_LIMIT_GUESS = 1000  # steps of an episode without a limit; decides only the order of the runs


@dataclass(frozen=True)
class SweepRun:
    """One run of a sweep: a training with its evaluation, or the evaluation of a baseline.

    Attributes:
        name: unique within the sweep; names its folder.
        folder: its run directory, absolute.
        arm: named variation; empty for a baseline.
        n: number of training states; 0 for a baseline.
        training_seed: its seed; -1 for a baseline.
        config: the training configuration; for a baseline, one with the same game.
        baseline: the untrained policy; None for a training.
        states: training states; None for a baseline.
        sets: the state sets to evaluate on, by name.
        evaluation: options of the evaluation.
        trains: digest of everything that affects the training.
        larger: the run of the same arm and training seed with the largest N; None if it is this
            one, and for a baseline.
    """

    name: str
    folder: Path
    arm: str
    n: int
    training_seed: int
    config: TrainConfig
    baseline: PolicyConfig | None
    states: StateSet | None
    sets: Mapping[str, StateSet]
    evaluation: SweepEvaluation
    trains: str
    larger: SweepRun | None = None

    @cached_property
    def digest(self) -> str:
        """Digest of everything that affects the results."""
        e, sets = self.evaluation, self.sets
        digests = {name: states.digest for name, states in sets.items()}
        # The width has no effect: an episode does not depend on other slots.
        own = e.repeats(TRAIN, sets[TRAIN].size) if TRAIN in sets else 0
        evaluated = [digests, list(e.actions), e.episodes_per_state, own, e.metric, e.seed]
        if INSIDE in sets:
            evaluated.append(e.repeats(INSIDE, sets[INSIDE].size))
        crossed = [e.repeats(name, s.size) for name, s in sets.items() if of_other_run(name)]
        return digest([self.trains, self.folder.name, evaluated, *([crossed] if crossed else [])])

    @property
    def key(self) -> tuple[str, int, int]:
        """Arm, N and training seed."""
        return self.arm, self.n, self.training_seed

    @property
    def processes(self) -> int:
        """Number of processes that it needs, its own among them."""
        return 1 + self.config.runners + self.config.learners.count

    @property
    def gpus(self) -> float:
        """GPUs of its own process."""
        learners = self.config.learners
        return 0.0 if learners.count else learners.gpus

    @property
    def episodes(self) -> int:
        """Number of evaluated episodes."""
        e = self.evaluation
        each = (states.size * e.repeats(name, states.size) for name, states in self.sets.items())
        return sum(each) * len(e.actions)


@dataclass(frozen=True)
class ArmGame:
    """The game and task that the runs of an arm play.

    Attributes:
        arm: the arm.
        shared: the configuration shared by the runs; each run sets its output, states and seed.
        config: the game, with the options that the task needs.
        bridge: recipe of the game.
        task: the task.
        held_out: the state sets on which all runs are evaluated, by name.
    """

    arm: Arm
    shared: TrainConfig
    config: BridgeConfig
    bridge: Bridge
    task: Task
    held_out: Mapping[str, StateSet]


@dataclass(frozen=True)
class SweepPlan:
    """A configuration that is built and checked; nothing has been launched.

    Attributes:
        config: the configuration, with an absolute output.
        games: the game of each arm, by name; the others are compared with the first one.
        runs: the training runs, in the order in which they start.
        baselines: the evaluations of untrained policies.
        video_bridge: the first arm's game with an image observation; None without videos.
    """

    config: SweepConfig
    games: Mapping[str, ArmGame]
    runs: tuple[SweepRun, ...]
    baselines: tuple[SweepRun, ...]
    video_bridge: Bridge | None

    @property
    def everything(self) -> tuple[SweepRun, ...]:
        """The evaluations of baselines, and the training runs."""
        return (*self.baselines, *self.runs)

    @property
    def base(self) -> ArmGame:
        """The game of the first arm."""
        return next(iter(self.games.values()))

    @classmethod
    def make(cls, config: SweepConfig, check: Callable[[TrainConfig], object]) -> SweepPlan:
        """Returns the plan of a configuration.

        Args:
            config: the configuration.
            check: raises an error for what cannot be trained; called once per arm.

        Raises:
            InputError: something in the configuration does not exist or does not fit.
            TestStateError: a run would train on a state that is held out.
        """
        config = config.model_copy(update={"output": absolute(config.output)})
        games = {arm.name: _game(config, arm) for arm in config.expanded()}
        known = {name for game in games.values() for name in game.held_out}
        for factor in config.evaluate.extrapolation:
            if _extrapolation(factor) not in known:
                raise ConfigError(
                    f"evaluate.extrapolation: no arm holds out values of {factor!r}; name the "
                    f"values in train.state_set.hold_out, or drop it"
                )
        runs = []
        for game in games.values():
            own = [
                _run_of(config, game, n, seed) for n in game.arm.sizes for seed in game.arm.seeds
            ]
            with named(f"arm {game.arm.name!r}"):
                check(own[0].config)
            runs += [_with_larger(_with_cross_play(run, own), own) for run in own]
        base = next(iter(games.values()))
        # Longest first, so that the sweep does not end with one long run.
        runs.sort(key=lambda run: (-_cost(run, games[run.arm].task), -run.n, run.training_seed))
        baselines = [_baseline(config, base, name) for name in config.baselines]
        videos, recorded = config.videos, None
        if videos.best + videos.worst:
            with named("videos"):
                recorded = video_bridge(videos, "videos", base.config, base.bridge, base.task)
        return cls(config, games, tuple(runs), tuple(baselines), recorded)


def _game(config: SweepConfig, arm: Arm) -> ArmGame:
    template, e = arm.template, config.evaluate
    with named(f"arm {arm.name!r}"):
        chosen, bridge, task = bridge_and_task(template.bridge, template.task)
        splits = template.state_set.splits(task.state_space)
    with named(f"evaluate, arm {arm.name!r}"):
        check_metric(e.metric, task)
    if (width := e.width or template.width) is not None:
        bridge.spec.require_width(width, "evaluate.width")
    sets = {}
    for name, part, size in ((TEST, e.split, e.test_states), (FULL, ALL, e.full_states)):
        if size:
            with named(f"evaluate.{name}_states, arm {arm.name!r}"):
                sets[name] = splits.take(part, size)
    for factor in e.extrapolation:
        part = _extrapolation(factor)
        if part in splits.names:
            sets[part] = splits.take(part, min(e.test_states, splits.part_size(part)))
    return ArmGame(arm, _shared_config(config, template), chosen, bridge, task, sets)


def _extrapolation(factor: str) -> str:
    return EXTRAPOLATION if factor == "all" else f"{EXTRAPOLATION}/{factor}"


def _run_of(config: SweepConfig, game: ArmGame, n: int, seed: int) -> SweepRun:
    arm = game.arm
    name = f"{arm.name}-n{n}-s{seed}"
    folder = config.output / RUNS / name
    train = _train_config(game.shared, n, seed, folder)
    with named(f"arm {arm.name!r}, N = {n}"):
        states = train.state_set.take(game.task.state_space)
    with named(f"run {name}"):
        _require_held_out(states, game)
        states.require_trainable()
    sets = {TRAIN: first_of(states, config.evaluate.train_states), **game.held_out}
    if config.evaluate.inside_states and isinstance(states, ListStates):
        sets[INSIDE] = states.of_part(config.evaluate.split, config.evaluate.inside_states)
    left_out = (*TrainConfig.may_change, "seeds")  # a run has one
    # A run may go on where there are other GPUs, and with a version that has more keys.
    learners = train.learners.model_copy(update={"gpus": 0.0})
    decides = chosen(train.model_copy(update={"learners": learners}))
    decides = {k: v for k, v in decides.items() if k not in left_out}
    trains = digest([decides, _describe(game)])
    return SweepRun(
        name, folder, arm.name, n, seed, train, None, states, sets, config.evaluate, trains
    )


def _with_cross_play(run: SweepRun, arm: list[SweepRun]) -> SweepRun:
    """Returns the run; with the largest N it also plays training states of the other seeds.

    See ``rollout.sweep.decomposition``. Only the sets are needed for this, not the other runs.
    Other than random samples, sets of all seeds have in common what sets them apart from held-out
    states; the reference, trained on it too, would make that look like ease.
    """
    seeds = {other.training_seed for other in arm}
    reference = run.n == max(other.n for other in arm) and len(seeds) >= LEAST_SEEDS
    if not reference or run.config.state_set.subset != "random":
        return run
    others = [other for other in arm if other.training_seed != run.training_seed]
    sets = {set_of_run(other.n, other.training_seed): other.sets[TRAIN] for other in others}
    return replace(run, sets={**run.sets, **sets})


def _with_larger(run: SweepRun, arm: list[SweepRun]) -> SweepRun:
    same = [other for other in arm if other.training_seed == run.training_seed]
    largest = max(same, key=lambda other: other.n)
    return replace(run, larger=largest if largest.n > run.n else None)


def _shared_config(config: SweepConfig, template: TemplateConfig) -> TrainConfig:
    """Returns the configuration shared by the runs of an arm, with the keys that the sweep sets."""
    data = resolved(template)
    threads = data["learners"]["threads"] or 1  # as many runs as processors run at once
    data["learners"] = {**data["learners"], "threads": threads}
    mirror: dict[str, Any] = resolved(config.wandb)
    mirror["group"] = mirror["group"] or config.output.name
    if not config.mirror_runs:
        mirror["mode"] = "disabled"
    own = {"output": str(config.output / RUNS), "wandb": mirror}
    shared = {"ray": resolved(config.ray), "log": resolved(config.log)}
    data = {**data, **own, **shared}
    if template.demonstrations is None:
        del data["demonstrations"]
        return make_config(TrainConfig, data)
    if template.demonstrations.clone is not None:
        return make_config(ClonedConfig, data)
    return make_config(ImitationConfig, {**data, "env_steps": 0})  # the budget of arms that play


def _train_config(shared: TrainConfig, n: int, seed: int, folder: Path) -> TrainConfig:
    # Every training seed has its own nested sets.
    states = shared.state_set.model_copy(update={"size": n, "order": seed})
    mirror = shared.wandb.model_copy(update={"name": f"{shared.wandb.group}/{folder.name}"})
    own = {"output": folder, "seed": seed, "state_set": states, "wandb": mirror}
    return shared.model_copy(update=own)


def _describe(game: ArmGame) -> list[str]:
    """Returns the parts of a game that files and plug-ins decide, not the configuration."""
    task = game.task
    return [
        game.bridge.spec.version,
        task.name,
        task.goal,
        task.state_space.digest,
        repr(task.evaluator),
        repr(task.limits),
    ]


def _require_held_out(states: StateSet, game: ArmGame) -> None:
    """Refuses a training set that contains a test state."""
    for set_name, held_out in game.held_out.items():
        if set_name == FULL:
            continue  # drawn from all states, including training states
        for state in held_out:
            if state.index in states:
                raise TestStateError(
                    f"state {state.index} is in its training set {states.name} and in the set "
                    f"{set_name!r} that it is tested on, {held_out.name}; draw training states "
                    f"from the train part"
                )


def first_of(states: StateSet, count: int) -> StateSet:
    """Returns the first states of a set, or the set itself if it has no more."""
    if count >= states.size:
        return states
    if type(states) is StateSet:
        return replace(states, size=count)
    # Smaller sets of other kinds are not always the first states of larger ones.
    return choose(states.splits, [states[k].index for k in range(count)])


def _baseline(config: SweepConfig, base: ArmGame, name: str) -> SweepRun:
    player = config.baselines[name]
    with named(f"baselines.{name}"):
        player.build().build(base.bridge.spec, base.task, seed=0)
    folder = config.output / BASELINES / name
    train = _train_config(base.shared, base.arm.sizes[0], 0, folder)
    sets = {TEST: base.held_out[TEST]}
    trains = digest([chosen(player), chosen(base.config), _describe(base)])
    about = (f"baseline {name}", folder, "", 0, -1)
    return SweepRun(*about, train, player, None, sets, config.evaluate, trains)


def _cost(run: SweepRun, task: Task) -> int:
    """Returns the approximate number of steps of a run."""
    return run.config.env_steps + run.episodes * (task.limits.steps or _LIMIT_GUESS)
