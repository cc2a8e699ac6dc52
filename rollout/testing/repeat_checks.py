"""Checks that a trajectory depends only on its start, seed and actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from rollout.api import Columns, Frame, Instance, Snapshots
from rollout.testing.compare import check_same, copy_frame, difference, roll
from rollout.testing.report import Skipped, require
from rollout.testing.trial import Trial

_WIDE = 8
_SAVED_AT = 8  # early, so that the slot is still playing


def reproduces(trial: Trial) -> str:
    """Two new instances give the same frames for the same starts, seeds and actions."""
    trial.require_reproducible()
    with trial.fresh() as instance:
        again = roll(trial.spec, instance, trial.starts(0), trial.actions(0))
    check_same(trial.reference, again, "a second instance, same start, seed and actions")
    return f"{trial.steps} steps, twice"


def seed(trial: Trial) -> str:
    """Another seed changes the frames, unless the spec says that seeds are not used."""
    trial.require_reproducible()
    starts = [dataclasses.replace(s, seed=s.seed ^ 0x5EED) for s in trial.starts(0)]
    frames = roll(trial.spec, trial.shared, starts, trial.actions(0))
    pairs = enumerate(zip(trial.reference, frames, strict=True))
    parted = next((step for step, (old, new) in pairs if difference(old, new)), None)
    if trial.spec.uses_seed:
        if parted is None:
            return f"note: other seeds made no difference in {trial.steps} steps"
        return f"other seeds, other frames from step {parted}"
    require(
        parted is None,
        f"the spec says uses_seed=False, yet another seed gave another frame {parted}",
    )
    return "not used, as the spec says"


def history(trial: Trial) -> str:
    """What was played in a slot before a reset does not affect what follows it."""
    trial.require_reproducible()
    trial.random_play(trial.shared, key=5000)
    again = roll(trial.spec, trial.shared, trial.starts(0), trial.actions(0))
    check_same(trial.reference, again, "the same start after other episodes")
    return f"the same {trial.steps} steps after other episodes"


def replay(trial: Trial) -> str:
    """Repeating the calls of a random agent, including resets, gives the same frames."""
    trial.require_reproducible()
    events, frames = trial.random_play(trial.shared, key=6000)
    check_same(frames, trial.replay(trial.shared, events), "replay of a random agent")
    resets = sum(event.actions is None for event in events)
    return f"{trial.steps} steps and {resets} resets replayed"


def reset_alone(trial: Trial) -> str:
    """Resetting one slot in mid-episode does not change the trajectories of others."""
    trial.require_reproducible()
    middle, first, others = trial.steps // 2, trial.first, trial.others
    frames = [copy_frame(trial.reset(trial.shared, range(trial.width), trial.starts(0)), others)]
    for number, actions in enumerate(trial.actions(0)):
        if number == middle:
            trial.reset(trial.shared, first, trial.starts(7)[: len(first)])
        frames.append(copy_frame(trial.step(trial.shared, actions), others))
    expected = [frame.take(others) for frame in trial.reference]
    check_same(expected, frames, f"slots {others} while slots {first} were reset")
    return f"slots {first} reset at step {middle}, {len(others)} others as before"


def width(trial: Trial) -> str:
    """A slot gives the same frames in a narrow and in a wide instance."""
    trial.require_reproducible()
    wide = trial.fitting(max(_WIDE, trial.width))
    widths = sorted({trial.spec.width_step, wide} - {trial.width})
    if not widths:
        raise Skipped(f"the game has no width but {trial.width}")
    for other in widths:
        common = np.arange(min(other, trial.width))
        with trial.fresh(other) as instance:
            actions = _resize(trial.actions(0), other)
            frames = roll(trial.spec, instance, trial.starts(0, other), actions)
        got = [frame.take(common) for frame in frames]
        expected = [frame.take(common) for frame in trial.reference]
        check_same(expected, got, f"width {other} instead of {trial.width}")
    return f"the same at widths {', '.join(map(str, sorted({*widths, trial.width})))}"


def _resize(actions: Sequence[Columns], to: int) -> list[Columns]:
    """Repeats or drops rows; the first ones stay unchanged."""
    return [{k: c[np.arange(to) % len(c)] for k, c in each.items()} for each in actions]


def side_by_side(trial: Trial) -> str:
    """Another instance that plays and closes in between changes nothing."""
    trial.require_reproducible()
    everyone, closes = range(trial.width), trial.steps * 3 // 4
    with trial.fresh() as one, trial.fresh() as two:
        trial.reset(two, everyone, trial.starts(8))
        frames = [copy_frame(trial.reset(one, everyone, trial.starts(0)))]
        pairs = zip(trial.actions(0), trial.actions(8), strict=True)
        for number, (actions, others) in enumerate(pairs):
            if number < closes:
                trial.step(two, others)
            elif number == closes:
                two.close()
            frames.append(copy_frame(trial.step(one, actions)))
    check_same(trial.reference, frames, "an instance beside another")
    return f"{trial.steps} steps beside another instance, which closed at step {closes}"


def snapshots(trial: Trial) -> str:
    """A restored slot has the same frame as before and continues in the same way."""
    instance = trial.shared
    if not isinstance(instance, Snapshots):
        raise Skipped(f"{type(instance).__name__} offers no snapshots")
    slot, before = trial.width - 1, min(_SAVED_AT, trial.steps // 2)
    actions = trial.actions(9)
    then = roll(trial.spec, instance, trial.starts(9), actions[:before])[-1].take([slot])
    saved = instance.snapshot(slot)
    require(isinstance(saved, bytes), f"snapshot: expected bytes, got {type(saved).__name__}")
    went = _follow(trial, instance, actions[before:], slot)
    frame = copy_frame(instance.restore(slot, saved))
    found = difference(then, frame)
    require(not found, f"the restored slot does not show what it showed: {found}")
    if trial.spec.reproducible:
        goes = _follow(trial, instance, actions[before:], slot)
        check_same(went, goes, "a restored slot")
    return f"{len(saved)} bytes, exact for {len(went)} steps"


def _follow(trial: Trial, instance: Instance, actions: Sequence[Columns], slot: int) -> list[Frame]:
    return [copy_frame(trial.step(instance, each), [slot]) for each in actions]
