"""How many slots an instance has where none are configured."""

from dataclasses import replace

import pytest

from rollout.collect import CollectPlan
from rollout.config import CollectConfig, make_config
from rollout.errors import ConfigError
from rollout.testing.fakes import FakeBridge

SPEC = replace(FakeBridge().spec, max_width=64, width_step=2, default_width=32)


@pytest.mark.parametrize(
    ("width", "episodes", "chosen"),
    [(None, None, 32), (None, 100, 32), (None, 7, 6), (None, 1, 2), (4, None, 4), (4, 1, 4)],
)
def test_the_usual_width_is_whole_worlds_and_not_more_than_the_episodes(width, episodes, chosen):
    assert SPEC.choose_width(width, episodes=episodes) == chosen


def test_a_configured_width_must_fit():
    with pytest.raises(ConfigError, match=r"width=3: an instance of .* has 2 to 64 slots"):
        SPEC.choose_width(3)


def test_a_plan_has_the_width_that_is_played():
    bridge = {"name": "gymnasium", "id": "CartPole-v1"}
    plan = CollectPlan.make(
        make_config(
            CollectConfig,
            {"output": "runs/x", "bridge": bridge, "policy": "random", "episodes": 100},
        )
    )
    assert (plan.config.width, plan.hosting().width) == (32, 32)
