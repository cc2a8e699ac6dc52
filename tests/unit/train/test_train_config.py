"""Training configurations: what is refused, what is said, and what follows from the rest."""

import pytest

from rollout.api import Splits
from rollout.config import make_config
from rollout.errors import ConfigError, TestStateError, UnknownNameError
from rollout.testing import FakeBridge
from rollout.train.config import (
    TrainConfig,
    learning_rate,
    plain,
    progress,
    reference_coef,
)
from rollout.train.plan import TrainPlan

pytestmark = pytest.mark.heavy


def config(**changes):
    """A small training run of the fake game; keys with dots set parts of sections."""
    data = {
        "output": "run",
        "bridge": {"name": "fake"},
        "policy": {"name": "actor_critic", "columns": ["position"]},
        "env_steps": 1000,
    }
    for key, value in changes.items():
        *path, last = key.split("__")
        at = data
        for name in path:
            at = at.setdefault(name, {})
        at[last] = value
    return make_config(TrainConfig, data)


WRONG = {
    "split": ({"state_set__split": "test"}, r"expected train, got test; states of other parts"),
    "extrapolation": (
        {"state_set__split": "extrapolation/map"}, "must not be trained on",
    ),
    "all": ({"state_set__split": "all"}, "expected train, got all"),
    "minibatch": (
        {"ppo__batch": 64, "ppo__minibatch": 65}, r"ppo\.minibatch=65 is larger than ppo\.batch=64",
    ),
    "bptt": (
        {"fragment__steps": 64, "ppo__bptt": 48},
        r"fragment\.steps=64 is no multiple of ppo\.bptt=48; choose one that is",
    ),
    "accumulate": (
        {"ppo__batch": 90, "ppo__minibatch": 30, "ppo__epochs": 3, "ppo__accumulate": 2},
        r"ppo\.accumulate=2 does not divide the 9 minibatches of an update",
    ),
    "gamma": ({"ppo__gamma": 1.5}, r"ppo\.gamma"),
    "epochs": ({"ppo__epochs": 0}, r"ppo\.epochs"),
    "typing": ({"ppo__epoch": 3}, r"ppo\.epoch.*[Nn]earest: .*epochs"),
    "schedule": ({"ppo__schedule": "cosine"}, r"ppo\.schedule.*linear.*constant"),
    "precision": ({"ppo__precision": "float16"}, r"ppo\.precision.*bfloat16"),
    "clip": ({"ppo__clip": 0}, r"ppo\.clip"),
    "reward": ({"ppo__reward_clip": -1.0}, r"ppo\.reward_clip"),
    "policy": ({"policy__name": "actor_critc"}, "actor_critic"),
    "option": ({"policy__hiden": [8]}, r"hiden.*hidden"),
    "activation": ({"policy__activation": "gelu"}, r"activation.*tanh, relu, silu"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_before_anything_begins(changes, said):
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        config(**changes)


def test_shorter_fragments_than_chunks_of_memory_are_fine():
    assert config(fragment__steps=24, ppo__bptt=64).fragment.steps == 24
    assert config(fragment__steps=128, ppo__bptt=64).ppo.bptt == 64


def test_held_out_states_are_never_trained_on():
    splits = Splits(FakeBridge().spec.state_space)
    train = [splits.take("train", 5)[i].index for i in range(5)]
    held = splits.take("test", 5)[2].index
    plan = TrainPlan.make(config(state_set__states=train))
    assert [s.index for s in plan.states] == train
    with pytest.raises(TestStateError, match=rf"state {held} belongs to the 'test' part"):
        TrainPlan.make(config(state_set__states=[*train, held]))


IMPOSSIBLE = {
    "no network": (
        {"policy": {"name": "random"}},
        ConfigError, "policy random has no network that could be trained; use actor_critic",
    ),
    "unknown column": (
        {"policy__columns": ["postion"]}, UnknownNameError, r"'postion'\. Nearest: position",
    ),
    "unknown symbols": (
        {"policy__symbols": ["image"]}, UnknownNameError, r"'image'\..*Valid: position",
    ),
    "small picture": (
        {"policy__columns": ["image"]}, ConfigError, "nature needs pictures of 36 x 36",
    ),
    "width": (
        {"width": 4097}, ConfigError, "width=4097: an instance of fake holds 1 to 4096 slots",
    ),
    "unknown task": ({"task": "reach_it"}, UnknownNameError, "task of bridge 'fake' 'reach_it'"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "kind", "said"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_does_not_fit_the_game_is_told_before_anything_is_launched(changes, kind, said):
    own = config(**changes)
    with pytest.raises(kind, match=f"(?s){said}"):
        TrainPlan.make(own)


def test_a_plan_holds_what_the_configuration_says():
    own = config(
        ppo__batch=100, ppo__minibatch=30, ppo__gamma=0.9, ppo__gae_lambda=0.8, ppo__clip=0.1,
        ppo__epochs=3, ppo__accumulate=9, ppo__value_clip=0.3, ppo__logp_floor=-11.0,
        ppo__log_ratio_cap=5.0, ppo__bptt=16, ppo__precision="bfloat16", ppo__entropy=0.02,
        ppo__value_coef=0.7, ppo__max_grad_norm=None, ppo__normalize_advantages=False,
        fragment__steps=32, seed=5,
    )  # fmt: skip
    plan = TrainPlan.make(own)
    settings = plan.settings()
    for name in ("gamma", "gae_lambda", "clip", "epochs", "accumulate", "value_clip", "logp_floor",
                 "log_ratio_cap", "bptt", "entropy", "value_coef", "max_grad_norm",
                 "normalize_advantages"):  # fmt: skip
        assert getattr(settings, name) == getattr(own.ppo, name), name
    assert settings.bfloat16
    assert settings.minibatches == own.minibatches == 3
    assert plan.reads == ("position",)
    # Plans travel, and networks depend on the seed alone.
    weights, same = (p.network().state_dict() for p in (plan, TrainPlan.make(own)))
    assert all((weights[k] == same[k]).all() for k in weights)


def test_rates_follow_the_budget():
    own = config(ppo__lr=0.5)
    assert [learning_rate(own, n) for n in (0, 250, 1000, 2000)] == [0.5, 0.375, 0.0, 0.0]
    assert [progress(own, n) for n in (0, 250, 3000)] == [0.0, 0.25, 1.0]
    assert learning_rate(config(ppo__lr=0.5, ppo__schedule="constant"), 900) == 0.5
    anchored = config(ppo__reference={"checkpoint": "x", "coef": 0.5, "decay": 0.5})
    assert [reference_coef(anchored, n) for n in (0, 1, 3)] == [0.5, 0.25, 0.0625]
    assert reference_coef(own, 0) == 0.0


def test_a_configuration_is_plain_data_and_comes_back():
    own = config(ppo__value_clip=0.2)
    assert make_config(TrainConfig, plain(own)) == own
