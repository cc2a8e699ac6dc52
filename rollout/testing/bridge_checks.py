"""The conformance suite of bridges, which every game must pass before it is used in runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rollout.api import Bridge
from rollout.errors import InputError, UnknownNameError
from rollout.testing import game_checks, recipe_checks, repeat_checks
from rollout.testing.report import Report, Suite
from rollout.testing.trial import Trial

CheckFunction = Callable[[Trial], str]

BEFORE_LAUNCH: tuple[tuple[str, CheckFunction], ...] = (
    ("spec before launch", recipe_checks.spec_known),
    ("pickles", recipe_checks.pickles),
    ("deadlines", recipe_checks.deadlines),
    ("refuses unknown states", recipe_checks.refuses_states),
)
LAUNCHED: tuple[tuple[str, CheckFunction], ...] = (
    ("launch", game_checks.launches),
    ("impossible widths are refused", game_checks.refuses_widths),
    ("step before reset is refused", game_checks.step_before_reset),
    ("slots never reset are left alone", game_checks.never_reset),
    ("reset frame", game_checks.reset_frame),
    ("step frame", game_checks.step_frame),
    ("actions are left as they are", game_checks.actions_untouched),
    ("every action is accepted", game_checks.every_action),
    ("random agent plays", game_checks.random_agent),
    ("over slots are left alone", game_checks.over_slots),
    ("same start, same frames", repeat_checks.reproduces),
    ("seed", repeat_checks.seed),
    ("history does not matter", repeat_checks.history),
    ("replay gives the same", repeat_checks.replay),
    ("reset leaves other slots alone", repeat_checks.reset_alone),
    ("width does not matter", repeat_checks.width),
    ("instances do not disturb", repeat_checks.side_by_side),
    ("snapshots are exact", repeat_checks.snapshots),
    ("close", game_checks.close),
    ("close leaves nothing", game_checks.leaves_nothing),
)


def check_bridge(
    bridge: Bridge,
    *,
    steps: int = 100,
    width: int | None = None,
    seed: int = 0,
    timeout_s: float = 120.0,
    only: Sequence[str] = (),
) -> Report:
    """Returns the report of the suite; call ``raise_if_failed`` or ``table`` on it.

    The game runs as the bridge launches it, possibly in this process: to check a game that may
    crash its process, pass a bridge whose instances run in their own processes.

    Args:
        bridge: the bridge.
        steps: length of each trajectory; a real-time game needs few.
        width: slots of an instance; about 4 if None. If only one world fits (one slot, or
            ``spec.width_step``), effects of slots on other worlds are not checked.
        seed: seed of starts and actions.
        timeout_s: timeout of each check, in seconds.
        only: names of the checks to run, besides those of spec and launch; all if empty.

    Raises:
        InputError: ``steps`` or ``width`` is invalid.
        UnknownNameError: ``only`` names a check that does not exist.
    """
    every = [name for name, _ in (*BEFORE_LAUNCH, *LAUNCHED)]
    for name in only:
        if name not in every:
            raise UnknownNameError("check", name, every)
    chosen = {*(only or every), "spec before launch", "launch"}
    suite = Suite(f"bridge {type(bridge).__name__}", timeout_s)
    trial = Trial(bridge, steps, width or 1, seed)
    try:
        results = [
            suite.check(name, _bind(check, trial))
            for name, check in BEFORE_LAUNCH
            if name in chosen
        ]
        if results[0] != "passed":
            return suite.report()  # without a spec nothing else can be checked
        if steps < 2:
            raise InputError(f"expected steps >= 2, got {steps}")
        trial.width = trial.fitting(4) if width is None else width
        trial.spec.require_width(trial.width)
        for name, check in LAUNCHED:
            if name not in chosen:
                continue
            if any(c.name == "launch" and c.result == "failed" for c in suite.checks):
                suite.skip(name, "the game does not launch")
            else:
                _check(suite, trial, name, check)
        return suite.report()
    finally:
        suite.worker.stop()
        trial.end()


def _check(suite: Suite, trial: Trial, name: str, check: CheckFunction) -> None:
    """Runs a check; a game that fails one is not reused for the next."""
    if suite.check(name, _bind(check, trial)) != "failed":
        return
    if suite.checks[-1].seen.startswith("did not come back"):
        trial.forget_shared()
        return
    closing = Suite("closing", suite.timeout_s, worker=suite.worker)
    if closing.check("close", trial.drop_shared) == "failed":
        trial.forget_shared()


def _bind(check: CheckFunction, trial: Trial) -> Callable[[], str]:
    return lambda: check(trial)
