"""Checks of a running game: frames, actions, start and end, and what a trajectory depends on."""

from __future__ import annotations

import dataclasses
import itertools
import os
import shutil
from collections.abc import Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]

from rollout.api import Array, Columns, Frame, Instance, Snapshots
from rollout.errors import ContractError, GameStartError, InputError, OutOfTurnError
from rollout.testing.compare import check_finite, check_frame, check_same, copy_frame, difference
from rollout.testing.report import Skipped, must_raise, require
from rollout.testing.trial import Trial, children, corner_actions

_WIDE = 8
_SAVED_AT = 8  # early, so that the slot is still playing
_IDLE_STEPS = 10
_TRIES = 5  # trajectories to play until an episode ends


def launches(trial: Trial) -> str:
    """The game launches, and the instance has all required members."""
    instance = trial.shared
    missing = [m for m in ("reset", "step", "close") if not callable(getattr(instance, m, None))]
    require(not missing, f"{type(instance).__name__} has no {missing}")
    return f"{type(instance).__name__}, width {trial.width}"


def refuses_widths(trial: Trial) -> str:
    """No slots, more slots than the spec allows, and an incomplete world are refused."""
    widths = sorted({0, trial.spec.width_step - 1, trial.spec.max_width + 1})
    for width in widths:
        try:
            instance = trial.launch(width)
        except (GameStartError, InputError):
            continue
        instance.close()
        raise ContractError(
            f"launch with width={width} was accepted; expected GameStartError or an InputError"
        )
    return f"widths {', '.join(map(str, widths))} refused"


def step_before_reset(trial: Trial) -> str:
    """An instance that was never reset refuses to step, and still works afterwards."""
    with closing(trial.launch()) as instance:
        actions = trial.actions(1, steps=1)[0]
        step = partial(trial.step, instance, actions)
        seen = must_raise(OutOfTurnError, step, "a step before the first reset")
        trial.reset(instance, range(trial.width), trial.starts(1))
        step()
    return seen


def never_reset(trial: Trial) -> str:
    """Slots that were never reset show zeros and do not affect the slot that plays."""
    idle, playing, starts = trial.others, trial.first, trial.starts(0)
    with closing(trial.launch()) as instance:
        frames = [copy_frame(trial.reset(instance, playing, starts[: len(playing)]))]
        for actions in trial.actions(0)[:_IDLE_STEPS]:
            frame = trial.step(instance, actions)
            frames.append(copy_frame(frame, playing))
            for what in ("observations", "signals"):
                for key, column in getattr(frame, what).items():
                    require(
                        not column[idle].astype(bool).any(),
                        f"slots {idle[0]} to {idle[-1]} were never reset, yet {what}/{key} "
                        f"holds something in their rows; expected zeros",
                    )
        next_world = idle[: len(playing)]
        frame = trial.reset(instance, next_world, [starts[slot] for slot in next_world])
        check_frame(trial.spec, frame, len(next_world))
    if trial.spec.reproducible:
        expected = [frame.take(playing) for frame in trial.reference[: len(frames)]]
        check_same(expected, frames, f"slots {playing} beside slots that were never reset")
    return f"{len(idle)} slots stayed empty for {len(frames) - 1} steps"


def reset_frame(trial: Trial) -> str:
    """A reset returns one row per requested slot, in the given order, all inside their spaces."""
    width, starts = trial.width, trial.starts(2)
    frame = copy_frame(trial.reset(trial.shared, range(width), starts))
    check_frame(trial.spec, frame, width)
    over = frame.game_over | frame.game_truncated
    require(not over.any(), f"slots {np.flatnonzero(over).tolist()} are over on reset")
    slots = sorted({*trial.first, *range(width)[-len(trial.first) :]}, reverse=True)
    some = copy_frame(trial.reset(trial.shared, slots, [starts[s] for s in slots]))
    check_frame(trial.spec, some, len(slots))
    if trial.spec.reproducible:
        found = difference(frame.take(slots), some)
        require(not found, f"rows of reset({slots}) are not in the order of the slots: {found}")
    return f"{len(frame.observations)} observations, {len(frame.signals)} signals"


def step_frame(trial: Trial) -> str:
    """All frames of steps match the spec."""
    _, frames = trial.random_play(trial.shared, key=1000)
    for frame in frames:
        check_frame(trial.spec, frame, len(frame.game_over))
    details = "with details" if frames[-1].details is not None else "no details"
    return f"{len(frames)} frames as in the spec, {details}"


def actions_untouched(trial: Trial) -> str:
    """The instance does not modify the actions it receives."""
    trial.reset(trial.shared, range(trial.width), trial.starts(3))
    for actions in trial.actions(3, steps=min(5, trial.steps)):
        kept = {key: column.copy() for key, column in actions.items()}
        trial.step(trial.shared, actions)
        for key, column in kept.items():
            same = actions.keys() == kept.keys() and np.array_equal(column, actions[key])
            require(same, f"action {key!r} was changed by the step")
    return "unchanged"


def every_action(trial: Trial) -> str:
    """The bounds of every action, and each value of the discrete ones, can be played."""
    corners = corner_actions(trial.spec.action_space, trial.width)
    over = np.ones(trial.width, bool)
    for number, actions in enumerate(corners):
        slots = [int(slot) for slot in np.flatnonzero(over)]
        if slots:
            fresh = trial.starts(2000 + number)
            trial.reset(trial.shared, slots, [fresh[slot] for slot in slots])
        frame = trial.step(trial.shared, actions)
        over = frame.game_over | frame.game_truncated
    return f"{len(corners)} actions"


def random_agent(trial: Trial) -> str:
    """A random agent plays several episodes and observes finite values."""
    _, frames = trial.random_play(trial.shared, key=3000)
    for frame in frames:
        check_finite(frame)
    ended = sum(int((frame.game_over | frame.game_truncated).sum()) for frame in frames)
    return f"{trial.steps} steps in {trial.width} slots, {ended} episodes ended"


def stacks(trial: Trial) -> str:
    """In each stack of frames, the older ones are the newer ones of the step before."""
    if not trial.spec.stacks:
        return "the spec names none"
    for step, (before, now) in enumerate(itertools.pairwise(trial.reference), 1):
        live = ~(before.game_over | before.game_truncated)
        for key, axis in trial.spec.stacks.items():
            old, new = (np.moveaxis(f.observations[key], 1 + axis, 1)[live] for f in (before, now))
            same = np.array_equal(old[:, 1:], new[:, :-1])
            require(
                same, f"step {step}: the older frames of {key!r} are not those of step {step - 1}"
            )
    return f"{', '.join(trial.spec.stacks)}: {trial.steps} steps"


def over_slots(trial: Trial) -> str:
    """The row of a slot that is over repeats until the reset, for any action."""
    for attempt in range(_TRIES):
        key = 4000 + attempt
        trial.reset(trial.shared, range(trial.width), trial.starts(key))
        for actions in trial.actions(key):
            frame = copy_frame(trial.step(trial.shared, actions))
            over = np.flatnonzero(frame.game_over | frame.game_truncated)
            if len(over):
                return _stays(trial, frame.take(over), over)
    raise Skipped(f"no episode ended within {_TRIES} x {trial.steps} random steps; use more steps")


def _stays(trial: Trial, expected: Frame, over: Array) -> str:
    for actions in trial.actions(4999, steps=8):
        now = trial.step(trial.shared, actions).take(over)
        found = difference(expected, now)
        require(not found, f"slots {over.tolist()} were over and still changed: {found}")
    return f"slots {over.tolist()} stayed as they were for 8 steps"


def reproduces(trial: Trial) -> str:
    """Two new instances give the same frames for the same starts, seeds and actions."""
    trial.require_reproducible()
    with closing(trial.launch()) as instance:
        again = trial.roll(instance, trial.starts(0), trial.actions(0))
    check_same(trial.reference, again, "a second instance, same start, seed and actions")
    return f"{trial.steps} steps, twice"


def seed(trial: Trial) -> str:
    """Another seed changes the frames, unless the spec says that seeds are not used."""
    trial.require_reproducible()
    starts = [dataclasses.replace(s, seed=s.seed ^ 0x5EED) for s in trial.starts(0)]
    frames = trial.roll(trial.shared, starts, trial.actions(0))
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
    """Earlier episodes of a slot do not affect those after a reset."""
    trial.require_reproducible()
    trial.random_play(trial.shared, key=5000)
    again = trial.roll(trial.shared, trial.starts(0), trial.actions(0))
    check_same(trial.reference, again, "the same start after other episodes")
    return f"the same {trial.steps} steps after other episodes"


def replay(trial: Trial) -> str:
    """Repeating the calls of a random agent, including resets, gives the same frames."""
    trial.require_reproducible()
    calls, frames = trial.random_play(trial.shared, key=6000)
    again = [copy_frame(call(trial.shared)) for call in calls]
    check_same(frames, again, "replay of a random agent")
    return f"{trial.steps} steps and {len(calls) - trial.steps} resets replayed"


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
        with closing(trial.launch(other)) as instance:
            actions = _resize(trial.actions(0), other)
            frames = trial.roll(instance, trial.starts(0, other), actions)
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
    with closing(trial.launch()) as one, closing(trial.launch()) as two:
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
    then = trial.roll(instance, trial.starts(9), actions[:before])[-1].take([slot])
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


def close(trial: Trial) -> str:
    """Closing in mid-episode works, and closing again does nothing."""
    instance = trial.shared
    trial.reset(instance, range(trial.width), trial.starts(5))
    trial.step(instance, trial.actions(5, steps=1)[0])
    trial.take_shared()
    instance.close()
    instance.close()
    return "twice"


def leaves_nothing(trial: Trial) -> str:
    """A closed instance leaves no process and no open file, and its folder can be removed."""
    before = children()
    instance = trial.launch()
    trial.reset(instance, range(trial.width), trial.starts(6))
    for actions in trial.actions(6, steps=3):
        trial.step(instance, actions)
    started = children() - before
    trial.processes += started
    instance.close()
    left = sorted(str(process) for process in started if is_left(process))
    require(
        not left,
        f"close left {len(left)} of {len(started)} processes: {', '.join(left)}; "
        f"end the whole process group and wait for it",
    )
    workdir = trial.workdirs[-1]
    paths = [file.path for file in psutil.Process().open_files()]
    held = [path for path in paths if Path(path).is_relative_to(workdir)]
    require(not held, f"close left files open: {held}")
    shutil.rmtree(workdir)
    return f"{len(started)} processes ended, folder removed"


def is_left(process: psutil.Process) -> bool:
    """Returns whether a process runs, or is a zombie that this process did not wait for."""
    try:
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return process.is_running() and (not zombie or process.ppid() == os.getpid())
    except psutil.NoSuchProcess:
        return False
