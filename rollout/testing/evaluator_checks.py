"""The conformance suite of evaluators."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollout.api import (
    Array,
    BridgeSpec,
    Columns,
    ColumnSpec,
    Evaluator,
    EvaluatorRecipe,
    Frame,
    Outcome,
    Start,
    Verdict,
    sample,
)
from rollout.testing.compare import difference, random_start, same
from rollout.testing.report import Report, Suite, require

WIDTHS = (1, 3, 17)
_STEPS = 12
_FIELDS = ("reward", "progress", "outcome")


@dataclass
class _Case:
    """A recipe under test, with generated frames."""

    recipe: EvaluatorRecipe
    spec: BridgeSpec
    seed: int

    def starts(self, width: int, key: int = 0) -> list[Start]:
        rng = np.random.default_rng([self.seed, 0, key])
        return [random_start(self.spec.state_space, rng, episode) for episode in range(width)]

    def frames(self, width: int) -> list[Frame]:
        """Frames with random signals; slots end one after another and then repeat their row."""
        rng = np.random.default_rng([self.seed, 1])
        over = np.zeros(width, bool)
        frames: list[Frame] = []
        for step in range(_STEPS + 1):
            signals = {k: _signal(s, width, rng) for k, s in self.spec.signals.items()}
            frame = Frame(
                sample(self.spec.observation_space, width, rng),
                signals,
                over.copy(),
                np.zeros(width, bool),
                np.full(width, step, np.int64),
            )
            if frames:
                _repeat(frames[-1], frame, over)
                ending = ~over & (rng.random(width) < 0.15)
                frame.game_over |= ending
                over |= ending
            frames.append(frame)
        return frames

    def actions(self, width: int) -> Columns:
        return sample(self.spec.action_space, width, np.random.default_rng([self.seed, 2]))

    def judge(self, evaluator: Evaluator, frames: Sequence[Frame]) -> list[Verdict]:
        """Returns copied verdicts of all frames after the first, which is the reset's."""
        width = len(frames[0].game_over)
        evaluator.reset(range(width), self.starts(width), frames[0])
        actions = self.actions(width)
        return [copy.deepcopy(evaluator.judge(actions, frame)) for frame in frames[1:]]


def _signal(column: ColumnSpec, width: int, rng: np.random.Generator) -> Array:
    dtype, shape = np.dtype(column.dtype), (width, *column.shape)
    high = 2 if dtype == np.bool_ else 10
    draws = rng.random(shape) * high if dtype.kind == "f" else rng.integers(0, high, shape)
    return draws.astype(dtype)


def _repeat(before: Frame, frame: Frame, over: Array) -> None:
    for name in ("observations", "signals"):
        for key, column in getattr(frame, name).items():
            column[over] = getattr(before, name)[key][over]
    frame.tick[over] = before.tick[over]


def check_evaluator(
    recipe: EvaluatorRecipe, bridge_spec: BridgeSpec, *, seed: int = 0, timeout_s: float = 60.0
) -> Report:
    """Returns whether the evaluator keeps its contract; no game is launched.

    Frames are generated: signals are random numbers of their dtype, and details are missing.

    Args:
        recipe: the evaluator recipe.
        bridge_spec: spec of a game with the signals that it reads.
        seed: seed of the frames.
        timeout_s: timeout of each check, in seconds.
    """
    checks = {
        "requires": _requires,
        "verdicts": _verdicts,
        "same frames, same verdicts": _deterministic,
        "over slots repeat their verdict": _over,
        "reset forgets the past": _forgets,
        "rows are independent": _rows_independent,
        "inputs are left as they are": _inputs_untouched,
    }
    suite = Suite(f"evaluator {type(recipe).__name__}", timeout_s)
    return suite.run(checks, _Case(recipe, bridge_spec, seed), required="requires")


def _requires(case: _Case) -> str:
    missing = sorted(case.recipe.requires - case.spec.signals.keys())
    require(not missing, f"reads signals that {case.spec.name} does not have: {missing}")
    return ", ".join(sorted(case.recipe.requires)) or "no signal"


def _verdicts(case: _Case) -> str:
    for width in WIDTHS:
        for verdict in case.judge(case.recipe.build(width), case.frames(width)):
            for name, dtype in zip(_FIELDS, (np.float32, np.float32, np.int8), strict=True):
                got = np.asarray(getattr(verdict, name))
                require(
                    got.dtype == dtype and got.shape == (width,),
                    f"{name}: expected {np.dtype(dtype)}[{width}], got {got.dtype}"
                    f"{list(got.shape)}",
                )
            require(np.isfinite(verdict.reward).all(), "reward holds NaN or infinite values")
            share = verdict.progress[~np.isnan(verdict.progress)]
            require(((share >= 0) & (share <= 1)).all(), f"progress outside 0 to 1: {share}")
            known = np.isin(verdict.outcome, [int(o) for o in Outcome])
            require(known.all(), f"outcome: expected values of Outcome, got {verdict.outcome}")
    return f"widths {', '.join(map(str, WIDTHS))}"


def _check_same(
    expected: Verdict, got: Verdict, where: str, rows: Array | slice = slice(None)
) -> None:
    for name in _FIELDS:
        left, right = getattr(expected, name)[rows], getattr(got, name)[rows]
        require(same(left, right), f"{where}: {name} {left.tolist()} became {right.tolist()}")


def _deterministic(case: _Case) -> str:
    width = WIDTHS[-1]
    pair = [case.judge(case.recipe.build(width), case.frames(width)) for _ in range(2)]
    for step, (left, right) in enumerate(zip(*pair, strict=True)):
        _check_same(left, right, f"step {step}")
    return f"{_STEPS} steps, twice"


def _over(case: _Case) -> str:
    """A slot is over if the game ended its episode or the evaluator decided it."""
    width = WIDTHS[-1]
    frames = case.frames(width)
    verdicts = case.judge(case.recipe.build(width), frames)
    over = np.zeros(width, bool)
    for step, (frame, verdict) in enumerate(zip(frames[1:], verdicts, strict=True)):
        if step:
            before = verdicts[step - 1]
            rows = np.flatnonzero(over)
            want = Verdict(np.zeros_like(before.reward), before.progress, before.outcome)
            _check_same(want, verdict, f"slots {rows.tolist()} were over at step {step}", rows)
        over |= frame.game_over | frame.game_truncated | (verdict.outcome != Outcome.RUNNING)
    return f"{int(over.sum())} slots ended and stayed as they were"


def _forgets(case: _Case) -> str:
    width = WIDTHS[-1]
    fresh = case.judge(case.recipe.build(width), case.frames(width))
    used = case.recipe.build(width)
    case.judge(used, case.frames(width)[::-1])
    again = case.judge(used, case.frames(width))
    for step, (left, right) in enumerate(zip(fresh, again, strict=True)):
        _check_same(left, right, f"step {step} after other episodes")
    return "after a reset as when new"


def _rows_independent(case: _Case) -> str:
    """Resetting one slot in mid-episode does not change the verdicts of others."""
    width, others = WIDTHS[1], np.arange(1, WIDTHS[1])
    frames = case.frames(width)
    expected = case.judge(case.recipe.build(width), frames)
    evaluator, actions = case.recipe.build(width), case.actions(width)
    evaluator.reset(range(width), case.starts(width), frames[0])
    for step, frame in enumerate(frames[1:]):
        if step == _STEPS // 2:
            evaluator.reset([0], case.starts(1, key=1), frames[0].take([0]))
        verdict = evaluator.judge(actions, frame)
        _check_same(expected[step], verdict, f"step {step}, while slot 0 was reset", others)
    return f"{len(others)} slots as before while another was reset"


def _inputs_untouched(case: _Case) -> str:
    width = WIDTHS[1]
    evaluator, actions = case.recipe.build(width), case.actions(width)
    frames = case.frames(width)
    evaluator.reset(range(width), case.starts(width), frames[0])
    for frame in frames[1:]:
        kept_actions, kept = copy.deepcopy((actions, frame))
        evaluator.judge(actions, frame)
        for key, column in kept_actions.items():
            require(same(column, actions[key]), f"judge changed actions/{key}")
        found = difference(kept, frame)
        require(not found, f"judge changed the frame: {found}")
    return "unchanged"
