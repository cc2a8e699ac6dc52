"""Fragments of a fake game, made without a host, for tests of code that takes fragments."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rollout.api import (
    Array,
    Bridge,
    Columns,
    Decision,
    Details,
    EpisodeResult,
    Evaluator,
    EvaluatorRecipe,
    Fragment,
    Frame,
    Instance,
    Loss,
    Outcome,
    Policy,
    PolicyRecipe,
    Start,
    Task,
    Verdict,
)
from rollout.api.fragment import End
from rollout.testing.compare import copy_frame
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
        instance: number of the instance in the fragments.
        episodes: number of episodes after which slots become idle; None for no end.
        lost_after: fragments after which the instance is lost with all its episodes.
        bridge: the game; by default a ``FakeBridge`` with short episodes.
        policy: the policy; ``FakePolicy`` by default.
        evaluator: the evaluator; ``FakeEvaluator`` by default.
    """
    bridge = bridge or FakeBridge(side=4, max_steps=20)
    spec = bridge.spec
    evaluator = evaluator or FakeEvaluator()
    task = Task("fragments", "reach the target", spec.state_space, evaluator)
    with tempfile.TemporaryDirectory() as folder:
        game = bridge.launch(Path(folder), (), width=width, timeout_s=spec.deadlines.start_s)
        player = (policy or FakePolicy()).build(spec, task, seed=seed)
        starts = _Starts(bridge, np.random.default_rng(seed), episodes)
        play = _Play(game, player, evaluator.build(width), starts, instance, width)
        try:
            play.begin(range(width))
            return [play.fragment(length, lost=number in lost_after) for number in range(count)]
        finally:
            game.close()


@dataclass
class _Starts:
    bridge: Bridge
    rng: np.random.Generator
    left: int | None
    number: int = 0

    def next(self) -> Start | None:
        if self.left is not None and self.number >= self.left:
            return None
        space = self.bridge.spec.state_space
        index = int.from_bytes(self.rng.bytes(32), "little") % space.size
        seed = int(self.rng.integers(2**63))
        self.number += 1
        return Start(space.state(index), seed, self.number - 1, state_set="train")


@dataclass
class _Episode:
    """The episode of a slot."""

    start: Start
    step: int = 0
    reward: float = 0.0


@dataclass
class _Tape:
    """A fragment under construction: a list per column, an entry per step."""

    starts: list[Start] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)
    final: list[tuple[int, int]] = field(default_factory=list)
    final_rows: list[Frame] = field(default_factory=list)
    results: list[EpisodeResult] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    def index(self, start: Start) -> int:
        if start not in self.starts:
            self.starts.append(start)
        return self.starts.index(start)


class _Play:
    """Plays episode after episode in the slots of one instance."""

    def __init__(
        self,
        game: Instance,
        policy: Policy,
        judge: Evaluator,
        starts: _Starts,
        number: int,
        width: int,
    ) -> None:
        self.game, self.policy, self.judge, self.starts = game, policy, judge, starts
        self.number, self.width = number, width
        self.incarnation, self.total = 0, 0
        self.playing: list[_Episode | None] = [None] * width
        self.memory: Columns = {}
        self.observations: Columns = {}
        self.details: list[Details | None] = [None] * width

    def begin(self, slots: Sequence[int], again: Sequence[Start | None] = ()) -> None:
        """Starts an episode in each slot while there are any; lost ones before new ones."""
        for number, slot in enumerate(slots):
            start = (again[number] if again else None) or self.starts.next()
            fresh = not self.memory
            if start is None and not fresh:
                self.playing[slot] = None
                continue
            # Even a slot that never plays is reset: its rows need valid contents.
            at = start or Start(self.starts.bridge.spec.state_space.state(0), 0)
            if fresh:
                self._fill(at)
            self._reset(slot, at)
            self.playing[slot] = None if start is None else _Episode(start)

    def _fill(self, start: Start) -> None:
        starts = [start] * self.width
        frame = copy_frame(self.game.reset(range(self.width), starts, timeout_s=60))
        self.judge.reset(range(self.width), starts, frame)
        self.observations = frame.observations
        self.memory = self.policy.initial_memory(starts)

    def _reset(self, slot: int, start: Start) -> None:
        frame = self.game.reset([slot], [start], timeout_s=60)
        self.judge.reset([slot], [start], frame)
        for key, column in frame.observations.items():
            self.observations[key][slot] = column[0]
        for key, column in self.policy.initial_memory([start]).items():
            self.memory[key][slot] = column[0]
        self.details[slot] = None if frame.details is None else frame.details[0]

    def fragment(self, length: int, *, lost: bool) -> Fragment:
        """Plays the next fragment."""
        tape = _Tape()
        memory = {key: column.copy() for key, column in self.memory.items()}
        for t in range(length):
            self._step(tape, t, lost=lost and t == length - 1)
        fragment = self._collect(tape, memory)
        self.incarnation += lost
        return fragment

    def _step(self, tape: _Tape, t: int, *, lost: bool) -> None:
        details = None if self.details[0] is None else [d or {} for d in self.details]
        decision = self.policy.act(self.observations, self.memory, details=details, explore=True)
        frame = copy_frame(self.game.step(decision.actions, timeout_s=60))
        verdict = self.judge.judge(decision.actions, frame)
        row = self._row(tape, decision, frame, verdict)
        row["lost"] |= (row["start_index"] >= 0) & ~row["terminated"] & ~row["truncated"] & lost
        tape.rows.append(row)
        self.observations, self.memory = frame.observations, decision.memory
        self.details = [None] * self.width if frame.details is None else list(frame.details)
        self.total += 1
        ended = np.flatnonzero(row["terminated"] | row["truncated"] | row["lost"])
        kept = copy_frame(frame)
        again = [self._end(tape, t, int(slot), row, kept) for slot in ended]
        if len(ended):
            self.begin([int(slot) for slot in ended], again)

    def _row(
        self, tape: _Tape, decision: Decision, frame: Frame, verdict: Verdict
    ) -> dict[str, Any]:
        index = [-1 if e is None else tape.index(e.start) for e in self.playing]
        step = np.array([0 if e is None else e.step for e in self.playing], np.int32)
        valid = np.array(index) >= 0
        for slot in np.flatnonzero(valid):
            episode = self.playing[slot]
            if episode is not None:
                episode.step += 1
                episode.reward += float(verdict.reward[slot])
        decided = frame.game_over | (verdict.outcome != Outcome.RUNNING)
        return {
            "observations": {k: c.copy() for k, c in self.observations.items()},
            "actions": decision.actions,
            "extras": decision.extras,
            "signals": frame.signals,
            "start_index": np.array(index, np.int32),
            "step": step,
            "reward": verdict.reward,
            "progress": verdict.progress,
            "outcome": verdict.outcome,
            "tick": frame.tick,
            "first": valid & (step == 0),
            "terminated": valid & decided,
            "truncated": valid & frame.game_truncated & ~decided,
            "lost": np.zeros(self.width, bool),
            "details": self.details,
        }

    def _end(
        self, tape: _Tape, t: int, slot: int, row: dict[str, Any], frame: Frame
    ) -> Start | None:
        """Records the end of an episode; returns the start of the next attempt if it was lost."""
        episode = self.playing[slot]
        if episode is None:
            raise AssertionError(f"slot {slot} ended without playing")
        end: End = next(e for e in ("terminated", "truncated", "lost") if row[e][slot])
        tape.final.append((t, slot))
        tape.final_rows.append(frame.take([slot]))
        tape.results.append(
            EpisodeResult(
                episode.start,
                self.number,
                slot,
                end,
                Outcome(int(row["outcome"][slot])),
                episode.step,
                episode.reward,
                float(row["progress"][slot]),
                episode.step * _STEP_S,
            )
        )
        if end != "lost":
            return None
        loss = Loss(episode.start, self.number, slot, "step", _REASON, episode.step)
        tape.losses.append(loss)
        return dataclasses.replace(episode.start, attempt=episode.start.attempt + 1)

    def _collect(self, tape: _Tape, memory: Columns) -> Fragment:
        rows, length = tape.rows, len(tape.rows)
        scalars = ("start_index", "step", "reward", "progress", "outcome", "tick", "first")
        names = (*scalars, "terminated", "truncated", "lost")
        plain: dict[str, Any] = {k: np.stack([row[k] for row in rows]) for k in names}
        groups: dict[str, Any] = {
            group: _stack([row[group] for row in rows])
            for group in ("observations", "actions", "extras", "signals")
        }
        final = [frame.observations for frame in tape.final_rows]
        has_details = rows[0]["details"][0] is not None
        wall = _EPOCH_S + _STEP_S * np.arange(self.total - length, self.total, dtype=np.float64)
        return Fragment(
            instance=self.number,
            incarnation=self.incarnation,
            starts=tuple(tape.starts),
            version=np.full(length, self.policy.version, np.int64),
            wall_time=wall,
            latency=np.full(length, _STEP_S, np.float32),
            final_index=np.array(tape.final, np.int64).reshape(-1, 2),
            final_observations={
                key: np.concatenate([f[key] for f in final]) if final else column[:0].copy()
                for key, column in self.observations.items()
            },
            next_observations={k: c.copy() for k, c in self.observations.items()},
            memory=memory,
            details=[list(row["details"]) for row in rows] if has_details else None,
            final_details=_first_details(tape.final_rows) if has_details else None,
            results=tuple(tape.results),
            losses=tuple(tape.losses),
            **plain,
            **groups,
        )


def _first_details(frames: Sequence[Frame]) -> list[Details | None]:
    return [None if frame.details is None else frame.details[0] for frame in frames]


def _stack(rows: Sequence[dict[str, Array]]) -> Columns:
    return {key: np.stack([row[key] for row in rows]) for key in rows[0]}
