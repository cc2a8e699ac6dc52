"""Fragments of a fake game, made without a host, for tests of code that takes fragments."""

from __future__ import annotations

import itertools
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from rollout.api import (
    Bridge,
    BridgeSpec,
    Columns,
    EvaluatorRecipe,
    Fragment,
    Instance,
    Loss,
    Policy,
    PolicyRecipe,
    Start,
    Task,
)
from rollout.api.fragment import End
from rollout.host.builder import FragmentBuilder
from rollout.host.referee import Referee
from rollout.testing.compare import random_start
from rollout.testing.fakes import FakeBridge
from rollout.testing.players import FakeEvaluator, FakePolicy

_EPOCH_S, _STEP_S = 1_700_000_000.0, 0.05  # constant, so that equal calls give equal fragments
_REASON = "made up"


def make_fragments(
    count: int = 3,
    *,
    length: int = 16,
    width: int = 4,
    seed: int = 0,
    instance: int = 0,
    episodes: int | None = None,
    lost_after: Sequence[int] = (),
    bridge: Bridge | None = None,
    policy: PolicyRecipe | None = None,
    evaluator: EvaluatorRecipe | None = None,
) -> list[Fragment]:
    """Returns consecutive fragments of one instance; equal arguments give equal fragments.

    Args:
        count: number of fragments.
        length: number of steps T of each.
        width: number of slots B.
        seed: seed of starts and policy.
        instance: number of the instance in the fragments; its first episode is 1000 times that.
        episodes: number of episodes after which slots become idle; None for no end.
        lost_after: fragments after which the instance is lost with all its episodes.
        bridge: the game; by default a ``FakeBridge`` with short episodes.
        policy: the policy; ``FakePolicy`` by default.
        evaluator: the evaluator; ``FakeEvaluator`` by default.
    """
    bridge = bridge or FakeBridge(side=4, max_steps=20)
    spec = bridge.spec
    task = Task("fragments", "reach the target", spec.state_space, evaluator or FakeEvaluator())
    numbers = itertools.islice(itertools.count(1000 * instance), episodes)
    rng = np.random.default_rng(seed)
    starts = (random_start(spec.state_space, rng, number, "train") for number in numbers)
    with tempfile.TemporaryDirectory() as folder:
        game = bridge.launch(Path(folder), (), width=width, timeout_s=spec.deadlines.start_s)
        player = (policy or FakePolicy()).build(spec, task, seed=seed)
        play = _Play(game, spec, player, Referee(task, width, instance), instance, width, starts)
        try:
            return [play.fragment(length, lost=number in lost_after) for number in range(count)]
        finally:
            game.close()


@dataclass
class _Play:
    """Plays episode after episode in the slots of one instance."""

    game: Instance
    spec: BridgeSpec
    policy: Policy
    referee: Referee
    number: int
    width: int
    starts: Iterator[Start]
    again: deque[Start] = field(default_factory=deque)  # lost episodes, which come first
    incarnation: int = 0
    steps: int = 0
    memory: Columns = field(default_factory=dict)
    builder: FragmentBuilder | None = None

    def fragment(self, length: int, *, lost: bool) -> Fragment:
        """Plays the next fragment."""
        builder = FragmentBuilder(
            self.spec,
            dict(self.policy.extras),
            width=self.width,
            steps=length,
            instance=self.number,
            incarnation=self.incarnation,
        )
        if self.builder is not None:
            builder.resume(self.builder, self.referee.starts, self.referee.steps)
        self.builder = builder
        while not builder.full:
            self._begin(builder)
            self._step(builder)
        if lost:
            self._lose(builder)
        fragment = builder.build()
        self.steps += length
        steps = np.arange(self.steps - length, self.steps, dtype=np.float64)
        fragment.wall_time = _EPOCH_S + _STEP_S * steps
        fragment.results = tuple(
            replace(result, seconds=result.length * _STEP_S) for result in fragment.results
        )
        return fragment

    def _begin(self, builder: FragmentBuilder) -> None:
        """Starts an episode in each free slot, while there are any."""
        free: list[int] = np.flatnonzero(~self.referee.active).tolist()
        starts = [self.again.popleft() for _ in range(min(len(free), len(self.again)))]
        starts += itertools.islice(self.starts, len(free) - len(starts))
        if not starts:
            return
        slots = free[: len(starts)]
        frame = self.game.reset(slots, starts, timeout_s=60)
        self.referee.reset(slots, starts, frame)
        builder.begin(slots, starts, frame)
        for key, rows in self.policy.initial_memory(starts).items():
            if key not in self.memory:
                self.memory[key] = np.zeros((self.width, *rows.shape[1:]), rows.dtype)
            self.memory[key][slots] = rows

    def _step(self, builder: FragmentBuilder) -> None:
        builder.remember(self.memory)
        decision = self.policy.act(
            builder.observations(),
            self.memory,
            details=builder.details(),
            explore=True,
        )
        self.memory = decision.memory
        builder.write_decision(decision, self.policy.version)
        frame = self.game.step(decision.actions, timeout_s=60)
        ruling = self.referee.judge(decision.actions, frame)
        builder.write_step(frame, ruling, _STEP_S)
        builder.blank_idle(self.referee.active)
        for slot in ruling.ended:
            end: End = "terminated" if ruling.terminated[slot] else "truncated"
            outcome = int(ruling.verdict.outcome[slot])
            said = None if frame.details is None else frame.details[slot]
            builder.end(slot, self.referee.finish(slot, end, outcome, said))

    def _lose(self, builder: FragmentBuilder) -> None:
        for slot, start in enumerate(self.referee.starts):
            if start is not None:
                result = self.referee.finish(slot, "lost", 0)
                loss = Loss(start, self.number, slot, "step", _REASON, result.length)
                builder.end(slot, result, loss)
                self.again.append(replace(start, attempt=start.attempt + 1))
        self.incarnation += 1
