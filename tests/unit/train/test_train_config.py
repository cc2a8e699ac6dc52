"""Training configurations: what is refused, what is said, and what follows from the rest."""

from dataclasses import dataclass

import pytest

from policies.actor_critic import ActorCriticPolicy
from rollout.api import Progress, Splits
from rollout.config import CollectConfig, PolicyConfig, make_config, resolved
from rollout.configuration.explain import valid_keys
from rollout.configuration.problems import SYNONYMS
from rollout.errors import ConfigError, RunDirectoryError, TestStateError, UnknownNameError
from rollout.run_directory import RunDirectory
from rollout.sweep.config import SweepConfig
from rollout.sweep.jobs import job_of
from rollout.sweep.seeds import seed_runs, train_seeds
from rollout.testing import FakeBridge
from rollout.train.config import TrainConfig
from rollout.train.offline_config import OfflineConfig
from rollout.train.plan import TrainPlan
from rollout.train.ppo import Ppo
from rollout.train.search_config import SearchConfig

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
        {"state_set__split": "extrapolation/map"}, "must not be used for training",
    ),
    "all": ({"state_set__split": "all"}, "expected train, got all"),
    "minibatch": (
        {"algorithm__batch": 64, "algorithm__minibatch": 65},
        r"algorithm: minibatch=65 is larger than batch=64",
    ),
    "bptt": (
        {"fragment__steps": 64, "algorithm__bptt": 48},
        r"fragment\.steps=64 is not a multiple of algorithm\.bptt=48; choose one that is",
    ),
    "accumulate": (
        {"algorithm": {"batch": 90, "minibatch": 30, "epochs": 3, "accumulate": 2}},
        r"algorithm: accumulate=2 does not divide the 9 minibatches of an update",
    ),
    "gamma": ({"algorithm__gamma": 1.5}, r"algorithm\.gamma"),
    "epochs": ({"algorithm__epochs": 0}, r"algorithm\.epochs"),
    "typing": ({"algorithm__epoch": 3}, r"algorithm\.epoch.*[Nn]earest: .*epochs"),
    "schedule": ({"algorithm__schedule": "cosine"}, r"algorithm\.schedule.*linear.*constant"),
    "precision": ({"algorithm__precision": "float16"}, r"algorithm\.precision.*bfloat16"),
    "clip": ({"algorithm__clip": 0}, r"algorithm\.clip"),
    "reward": ({"algorithm__reward_clip": -1.0}, r"algorithm\.reward_clip"),
    "policy": ({"policy__name": "actor_critc"}, "actor_critic"),
    "option": ({"policy__hiden": [8]}, r"hiden.*hidden"),
    "activation": ({"policy__activation": "gelu"}, r"activation.*tanh, relu, silu"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_reported_before_anything_begins(changes, said):
    with pytest.raises(ConfigError, match=f"(?s){said}"):
        config(**changes)


def test_shorter_fragments_than_chunks_of_memory_are_fine():
    assert config(fragment__steps=24, algorithm__bptt=64).fragment.steps == 24
    assert config(fragment__steps=128, algorithm__bptt=64).algorithm.bptt == 64


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
        {"width": 4097}, ConfigError, "width=4097: an instance of fake has 1 to 4096 slots",
    ),
    "unknown task": ({"task": "reach_it"}, UnknownNameError, "task of bridge 'fake' 'reach_it'"),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "kind", "said"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_what_does_not_fit_the_game_is_reported_before_anything_is_launched(changes, kind, said):
    own = config(**changes)
    with pytest.raises(kind, match=f"(?s){said}"):
        TrainPlan.make(own)


def test_a_plan_holds_what_the_configuration_says():
    own = config(
        algorithm__batch=100, algorithm__minibatch=30, algorithm__gamma=0.9, algorithm__clip=0.1,
        algorithm__epochs=3, algorithm__accumulate=9, algorithm__max_grad_norm=None,
        algorithm__precision="bfloat16", algorithm__bptt=16, fragment__steps=32, seed=5,
    )  # fmt: skip
    plan = TrainPlan.make(own)
    assert plan.algorithm == Ppo(
        batch=100, minibatch=30, gamma=0.9, clip=0.1, epochs=3, accumulate=9, max_grad_norm=None,
        precision="bfloat16", bptt=16,
    )  # fmt: skip
    assert plan.algorithm.minibatches == 3
    assert plan.reads == ("position",)
    # Plans travel, and networks depend on the seed alone.
    weights, same = (p.network().state_dict() for p in (plan, TrainPlan.make(own)))
    assert all((weights[k] == same[k]).all() for k in weights)


def rates(algorithm, env_steps=0, update=0):
    return algorithm.rates(Progress(update, env_steps, budget=1000, seed=0))


def test_rates_follow_the_budget():
    own = Ppo(lr=0.5, entropy=0.2)
    assert [rates(own, n).lr for n in (0, 250, 1000, 2000)] == [0.5, 0.375, 0.0, 0.0]
    assert rates(Ppo(lr=0.5, schedule="constant"), 900).lr == 0.5
    assert rates(own, 500).entropy == 0.2
    assert rates(Ppo(entropy=0.2, entropy_schedule="linear"), 500).entropy == 0.1
    near = Ppo(reference="x", reference_coef=0.5, reference_decay=0.5)
    assert [rates(near, update=n).reference_coef for n in (0, 1, 3)] == [0.5, 0.25, 0.0625]
    assert rates(own).reference_coef == 0.0


@dataclass(frozen=True)
class Silent:
    """A policy with a network that records nothing beside its actions."""

    inner: ActorCriticPolicy = ActorCriticPolicy(columns=("position",))  # noqa: RUF009 - frozen
    extras = ()

    def build(self, spec, task, *, seed):
        return self

    def network(self, observation_space, action_space, *, seed):
        return self.inner.network(observation_space, action_space, seed=seed)

    def reads(self, observation_space):
        return self.inner.reads(observation_space)


def test_a_policy_that_does_not_record_what_the_algorithm_needs_is_refused(monkeypatch):
    monkeypatch.setattr(PolicyConfig, "build", lambda _: Silent())
    with pytest.raises(ConfigError, match="ppo learns from logp, value, and policy actor_critic"):
        TrainPlan.make(config())


def test_a_configuration_is_plain_data_and_comes_back():
    own = config(algorithm__value_clip=0.2)
    assert make_config(TrainConfig, resolved(own)) == own


def test_options_of_the_default_policy_need_no_name():
    named = config(policy={"columns": ["position"], "hidden": [8]})
    assert named.policy.name == "actor_critic"
    assert named.policy.options["hidden"] == [8]
    with pytest.raises(
        ConfigError, match=r"policy\.hiden: unknown option.*Nearest: policy\.hidden"
    ):
        config(policy={"hiden": [8]})


@pytest.mark.parametrize("model", [TrainConfig, SweepConfig])
def test_names_of_other_libraries_are_understood(model):
    with pytest.raises(ConfigError) as error:
        make_config(model, {"learning_rate": 1e-3, "n_envs": 8, "total_timesteps": 100})
    inside = "train." if model is SweepConfig else ""
    assert f"learning_rate: unknown key. Here it is {inside}algorithm.lr" in str(error.value)
    assert f"Here it is {inside}width or {inside}instances" in str(error.value)
    assert f"Here it is {inside}env_steps" in str(error.value)
    assert ".; " not in str(error.value), "a sentence ends before the semicolon"


def test_a_name_of_another_library_in_the_section_of_a_plugin():
    with pytest.raises(ConfigError, match=r"algorithm\.ent_coef.*Here it is algorithm\.entropy"):
        config(algorithm={"ent_coef": 0.1})


def test_every_synonym_stands_for_keys_that_exist():
    valid = {*valid_keys(TrainConfig, {}), *valid_keys(CollectConfig, {})}
    assert not {key for keys in SYNONYMS.values() for key in keys} - valid
    ours = [key for key in valid if key in SYNONYMS and key not in SYNONYMS[key]]
    assert not ours


def test_a_resumed_training_may_be_longer_but_not_shorter(tmp_path):
    RunDirectory.create(tmp_path / "run", config(env_steps=1000), resume=False)
    longer = RunDirectory.create(tmp_path / "run", config(env_steps=2000), resume=True)
    assert longer.resume_count == 1
    with pytest.raises(RunDirectoryError, match="env_steps: 2000 -> 1000"):
        RunDirectory.create(tmp_path / "run", config(env_steps=1000), resume=True)


SEEDS = {
    "twice": ({"seeds": [3, 1, 3]}, r"seeds: 3 is given more than once"),
    "none": ({"seeds": []}, "seeds: is empty; give a number of seeds"),
    "zero": ({"seeds": 0}, r"seeds: expected 1 to 1000, or a list of seeds, got 0"),
    "text": ({"seeds": "five"}, "or a list of seeds, got 'five'"),
    "true": ({"seeds": True}, "or a list of seeds, got True"),
    "negative": ({"seeds": [0, -1]}, r"seeds\[1\]: .*got -1"),
    "both": ({"seeds": 2, "seed": 7}, r"seed=7 and seeds=\[0, 1\]: .*leave seed out"),
    "measured": ({"seeds": 2, "measure": 1.0}, "measure: runs that are compared have the same"),
}


@pytest.mark.parametrize(("changes", "said"), SEEDS.values(), ids=SEEDS)
def test_wrong_seeds_are_refused(changes, said):
    with pytest.raises(ConfigError, match=said):
        config(**changes)


def test_a_number_of_seeds_is_that_many_from_0():
    assert config(seeds=3).seeds == (0, 1, 2)
    assert config(seeds=[7, 2]).seeds == (7, 2)
    again = make_config(TrainConfig, resolved(config(seeds=3)))
    assert again.seeds == (0, 1, 2)
    assert again.measured_s is None, "runs that are compared have the same sizes"


def test_seeds_of_a_sweep_or_a_search_are_keys_of_these(tmp_path):
    train = {k: v for k, v in resolved(config()).items() if k in ("bridge", "env_steps")}
    sweep = {"output": "x", "train": {**train, "seeds": 3}, "sizes": [1, 2]}
    with pytest.raises(ConfigError, match=r"seeds.* are keys of the sweep itself"):
        make_config(SweepConfig, sweep)
    search = {"output": "x", "train": {**train, "seeds": 3}, "space": {"algorithm.lr": [1e-3]}}
    with pytest.raises(ConfigError, match=r"space\.seed=\[0, 1, 2\]"):
        make_config(SearchConfig, search)
    with pytest.raises(ConfigError, match=r"only gamut train makes a run for each.*space\.seed"):
        TrainPlan.make(config(seeds=2, output=str(tmp_path)))


def test_each_seed_is_an_ordinary_training(tmp_path):
    whole = config(seeds=[5, 2], output=str(tmp_path / "ppo"), learners={"threads": 0})
    first, second = seed_runs(whole, tmp_path / "ppo")
    assert [run.name for run in (first, second)] == ["seed-5", "seed-2"]
    assert first.folder == tmp_path / "ppo" / "runs" / "seed-5"
    own = first.config
    assert (own.seed, own.seeds, own.measured_s) == (5, None, None)
    assert (own.wandb.group, own.wandb.name) == ("ppo", "ppo/seed-5")
    assert own.learners.threads == 1, "as many runs as processors run at once"
    assert (first.processes, first.gpus) == (1, 0.0)
    placed = config(seeds=2, runners=2, learners={"count": 1, "gpus": 1.0})
    assert (seed_runs(placed, tmp_path)[0].processes, seed_runs(placed, tmp_path)[0].gpus) == (4, 0)
    plain = config(seed=5, output=str(first.folder), measure=None)
    kept = {"learners", "wandb"}
    assert {k: v for k, v in resolved(own).items() if k not in kept} == {
        k: v for k, v in resolved(plain).items() if k not in kept
    }


def test_functions_of_the_caller_are_refused_with_seeds(tmp_path):
    with pytest.raises(ConfigError, match="name a function in callbacks"):
        train_seeds(config(seeds=2, output=str(tmp_path)), None, [print])


def test_the_job_of_a_training_with_seeds_is_another():
    data = resolved(config(seeds=2))
    assert job_of(data) == (train_seeds, TrainConfig)
    assert job_of({**data, "seeds": None})[0] is not train_seeds
    assert job_of({"seeds": 2, "algorithm": "bc"}) == (train_seeds, OfflineConfig)


def test_a_misspelled_name_of_another_library_is_understood():
    data = {"output": "x", "env_steps": 5, "bridge": {"name": "fake"}, "task": "t"}
    with pytest.raises(ConfigError, match=r"Nearest: algorithm\.lr\b"):
        make_config(TrainConfig, {**data, "algorithm": {"name": "ppo", "leraning_rate": 1}})
