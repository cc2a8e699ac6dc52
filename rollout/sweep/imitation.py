"""Runs of a sweep that learn from demonstrations instead of playing.

::

    demonstrations/bc-n16-s0/   episodes of the demonstrating policy from the 16 training states
    clones/bc-n16-s0/           the run directory of a policy cloned from them, if the run plays on
    runs/bc-n16-s0/             the run directory of the training

Each is a job of its own, which continues where it was stopped.
"""

from __future__ import annotations

from typing import Any

from gymnasium import spaces

from rollout.cli import Session
from rollout.collect import CollectPlan, collect
from rollout.errors import ConfigError, named
from rollout.observe.run_files import SUMMARY, read_json
from rollout.sweep.imitation_config import ClonedConfig, ImitationConfig
from rollout.tasks import bridge_and_task
from rollout.train.network import TrainableRecipe


def check(config: ImitationConfig) -> None:
    """Checks a run without launching anything.

    Raises:
        InputError: something in the configuration does not exist or does not fit.
    """
    with named("demonstrations"):
        collection = CollectPlan.make(config.collection)
    _, bridge, task = bridge_and_task(config.bridge, config.task)
    seen = collection.bridge.spec
    learning = config.learning
    recipe: Any = learning.policy.build()
    if not isinstance(recipe, TrainableRecipe):
        raise ConfigError(
            f"policy {learning.policy.name} has no network that could be trained; use "
            f"actor_critic, or a policy that offers network() and reads()"
        )
    reads = recipe.reads(seen.observation_space)
    columns = {key: seen.observation_space.spaces[key] for key in reads}
    _require("observation", columns, bridge.spec.observation_space)
    _require("action", seen.action_space.spaces, bridge.spec.action_space)
    if collection.task.state_space.digest != task.state_space.digest:
        raise ConfigError(
            "demonstrations.bridge: changes the states of the task, and demonstrations are of "
            "training states of the run; leave out the options that change them"
        )
    network = recipe.network(seen.observation_space, seen.action_space, seed=config.seed)
    learning.algorithm.build().learner(network)


def learn_cloned(config: ClonedConfig, session: Session) -> str | None:
    """Clones a policy from demonstrations unless that is done, and trains it.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: something does not fit.
        KeyboardInterrupt: a signal arrived; what was done is saved.
    """
    from rollout.train.train import train  # noqa: PLC0415 - needed only for training

    cloning = config.imitation
    missing = learn(cloning, session)
    if missing is not None:
        return f"clone: {missing}"
    return train(config.training(str(cloning.output)), session)


def _require(what: str, shown: Any, played: spaces.Dict) -> None:
    """Checks that what is demonstrated is what the trained policy plays with."""
    for key, leaf in shown.items():
        if played.spaces.get(key) != leaf:
            raise ConfigError(
                f"demonstrations.bridge: the policy learns with the {what} {key!r}, {leaf}, and is "
                f"evaluated with {played.spaces.get(key, 'none')}; options may add what only the "
                f"demonstrating policy reads, or set policy.columns"
            )


def learn(config: ImitationConfig, session: Session) -> str | None:
    """Records the demonstrations of a run unless that is done, and learns from them.

    Returns:
        None if everything was done; otherwise a sentence that says what is missing.

    Raises:
        InputError: something does not fit.
        KeyboardInterrupt: a signal arrived; what was done is saved.
    """
    from rollout.train.offline import learn_offline  # noqa: PLC0415 - needed only for training

    if read_json(config.output / SUMMARY).get("status") == "done":
        return None
    # Also if they are complete: those of another configuration are refused.
    missing = collect(config.collection, session)
    if missing is not None:
        return f"demonstrations: {missing}"
    return learn_offline(config.learning, session)
