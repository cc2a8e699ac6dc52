"""Checks of a running game: its frames, actions, start and end."""

from __future__ import annotations

import shutil

import numpy as np

from rollout.api import Array, Frame
from rollout.errors import ContractError, OutOfTurnError
from rollout.testing.compare import check_finite, check_frame, check_same, copy_frame, difference
from rollout.testing.report import Skipped, require
from rollout.testing.trial import Trial, alive, children, corner_actions, open_files, refuses_width

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
        refuses_width(trial, width)
    return f"widths {', '.join(map(str, widths))} refused"


def step_before_reset(trial: Trial) -> str:
    """An instance that was never reset refuses to step, and still works afterwards."""
    with trial.fresh() as instance:
        actions = trial.actions(1, steps=1)[0]
        try:
            trial.step(instance, actions)
        except OutOfTurnError as error:
            trial.reset(instance, range(trial.width), trial.starts(1))
            trial.step(instance, actions)
            return str(error)
    raise ContractError("a step before the first reset was accepted; expected OutOfTurnError")


def never_reset(trial: Trial) -> str:
    """Slots that were never reset show zeros and do not affect the slot that plays."""
    idle, playing, starts = trial.others, trial.first, trial.starts(0)
    with trial.fresh() as instance:
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
    events, frames = trial.random_play(trial.shared, key=3000)
    for frame in frames:
        check_finite(frame)
    ended = sum(len(event.slots) for event in events[1:])
    return f"{trial.steps} steps in {trial.width} slots, {ended} episodes ended"


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


def close(trial: Trial) -> str:
    """Closing in mid-episode works, and closing again does nothing."""
    instance = trial.shared
    trial.reset(instance, range(trial.width), trial.starts(5))
    trial.step(instance, trial.actions(5, steps=1)[0])
    trial.drop_shared()
    instance.close()
    return "twice"


def leaves_nothing(trial: Trial) -> str:
    """A closed instance leaves no process and no open file, and its folder can be removed."""
    before = children()
    copy = trial.launch()
    trial.reset(copy.instance, range(trial.width), trial.starts(6))
    for actions in trial.actions(6, steps=3):
        trial.step(copy.instance, actions)
    started = sorted(children() - before, key=lambda process: process.pid)
    trial.watch(started)
    copy.instance.close()
    left = [str(process) for process in alive(started)]
    require(
        not left,
        f"close left {len(left)} of {len(started)} processes: {', '.join(left)}; "
        f"end the whole process group and wait for it",
    )
    held = open_files(copy.workdir)
    require(not held, f"close left files open: {held}")
    shutil.rmtree(copy.workdir)
    return f"{len(started)} processes ended, folder removed"
