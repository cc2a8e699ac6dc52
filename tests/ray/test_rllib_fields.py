"""What is set in RLlib's configuration is used or refused, never ignored."""

from typing import ClassVar

import numpy as np
import pytest
from ray.rllib.callbacks.callbacks import RLlibCallback

from rollout.errors import ConfigError
from rollout.train.rllib.algorithm import ColumnAlgorithm, config_of, plan_of
from rollout.train.rllib.module import NetworkModule
from rollout.vector_env import RemoteVectorEnv
from tests.ray.training import SMALL, merged, same_weights, whole_episodes
from tests.ray.training import plan_of as plan_from

pytestmark = [
    pytest.mark.ray,
    # A process that starts learners copies Ray Data's settings, those it has deprecated too.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.data.context"),
]


class Watching(RLlibCallback):
    """Notes which of its methods are called."""

    seen: ClassVar[list[str]] = []

    def on_algorithm_init(self, **kwargs):
        self.seen.append("init")

    def on_train_result(self, *, algorithm, result, **kwargs):
        self.seen.append(f"train {result['training_iteration']}")

    def on_evaluate_end(self, *, evaluation_metrics, **kwargs):
        self.seen.append(f"evaluated {evaluation_metrics['env_runners']['num_episodes']}")


class Unheard(RLlibCallback):
    def on_episode_end(self, **kwargs):
        raise AssertionError("is never called")


@pytest.fixture
def config():
    return config_of(plan_from(whole_episodes()))


def test_every_field_that_is_used_changes_the_plan(config):
    c = plan_of(
        config.training(
            lr=0.5,
            gamma=0.1,
            lambda_=0.2,
            clip_param=0.3,
            vf_loss_coeff=0.35,
            entropy_coeff=0.4,
            grad_clip=0.6,
            num_epochs=7,
            minibatch_size=8,
            train_batch_size_per_learner=40,
        )
        .env_runners(num_env_runners=3, num_envs_per_env_runner=5, rollout_fragment_length=16)
        .learners(num_learners=2)
        .debugging(seed=11)
    ).config
    options = c.algorithm.options
    names = (
        "lr",
        "gamma",
        "gae_lambda",
        "clip",
        "value_coef",
        "entropy",
        "max_grad_norm",
        "epochs",
    )
    assert [options[name] for name in names] == [0.5, 0.1, 0.2, 0.3, 0.7, 0.4, 0.6, 7]
    assert (options["minibatch"], options["batch"]) == (16, 80)  # of both learners
    assert (c.runners, c.width, c.fragment.steps) == (3, 5, 16)
    assert (c.learners.count, c.seed) == (2, 11)


def test_fields_show_the_values_of_the_plan_and_change_nothing_by_themselves(config):
    steps = config.env_config["gamut_plan"].config.env_steps
    assert config.lr == [[0, 3e-3], [steps, 0.0]]  # the schedule of the plan
    assert (config.num_epochs, config.train_batch_size_per_learner) == (2, 64)
    assert plan_of(config) is config.env_config["gamut_plan"]


@pytest.mark.parametrize(
    ("name", "option", "kind"),
    [("lr", "lr", "schedule"), ("entropy_coeff", "entropy", "entropy_schedule")],
)
def test_a_number_is_constant_and_the_one_schedule_is_linear(config, name, option, kind):
    steps = config.env_config["gamut_plan"].config.env_steps
    options = plan_of(config.training(**{name: 0.1})).config.algorithm.options
    assert (options[option], options[kind]) == (0.1, "constant")
    falling = config.training(**{name: [[0, 0.1], [steps, 0.0]]})
    options = plan_of(falling).config.algorithm.options
    assert (options[option], options[kind]) == (0.1, "linear")
    said = rf"expected a number, or \[\[0, {name}\], \[{steps}, 0.0\]\]"
    with pytest.raises(ConfigError, match=said):
        plan_of(config.training(**{name: [[0, 0.1], [10, 0.2]]}))


def test_sizes_of_one_learner_are_kept_when_learners_are_added(config):
    options = plan_of(config.learners(num_learners=2)).config.algorithm.options
    assert (options["batch"], options["minibatch"]) == (128, 64)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.training(kl_coeff=0.2), r"training\(kl_coeff=0.2\): there is no such field"),
        (lambda c: c.training(clip_parm=0.2), r"Nearest: clip_param"),
        (lambda c: c.env_runners(env_to_module_connector=list), "env_to_module_connector"),
        (lambda c: c.env_runners(explore=False), "explore=False"),
        (lambda c: setattr(c, "num_env_runners", 3), "RLlib's num_env_runners=3"),
        (lambda c: c.fault_tolerance(restart_failed_env_runners=False), "restart_failed_env"),
        (lambda c: c.evaluation(evaluation_num_env_runners=2), "evaluation_num_env_runners=2"),
        (lambda c: c.evaluation(evaluation_duration_unit="timesteps"), "evaluation_duration_unit"),
        (lambda c: c.multi_agent(count_steps_by="agent_steps"), "count_steps_by"),
        (lambda c: c.callbacks(Unheard), r"Unheard\.on_episode_end would never be called"),
        (lambda c: c.callbacks(on_episode_start=print), "callbacks_on_episode_start"),
        (lambda c: c.training(lr=-1.0), "lr"),
        (lambda c: c.environment(env_config={"size": 3}), r"env_config\['size'\]=3"),
        (lambda c: c.debugging(log_sys_usage=False), "log_sys_usage"),
    ],
)
def test_what_is_not_used_is_refused(config, change, said):
    with pytest.raises(ConfigError, match=said):  # noqa: PT012 - some at once, others when built
        change(config)
        plan_of(config)


@pytest.mark.usefixtures("local_ray")
def test_it_trains_calls_back_evaluates_and_gives_its_module():
    states = {"size": 24, "validation": 40, "test": 0}
    bridge = {"name": "fake", "max_steps": 12}  # an evaluation plays episodes to their end
    plan = plan_from(merged(SMALL, {"bridge": bridge, "state_set": states}))
    made = []
    Watching.seen.clear()
    for lr in (3e-3, 0.5):
        config = config_of(plan).training(lr=lr).callbacks(Watching)
        config.evaluation(evaluation_interval=2, evaluation_duration=6)
        algorithm = config.build_algo()
        try:
            first, second = algorithm.train(), algorithm.train()
            made.append(algorithm.weights())
            module = algorithm.get_module()
            assert isinstance(module, NetworkModule)
            assert same_weights(module.network.state_dict(), algorithm.weights())
            assert algorithm.get_module("other") is None
        finally:
            algorithm.stop()
        assert "evaluation" not in first
        found = second["evaluation"]["env_runners"]
        assert found["num_episodes"] == 6
        assert np.isfinite(found["episode_return_mean"])
    assert not same_weights(*made)
    assert Watching.seen == ["init", "train 1", "evaluated 6", "train 2"] * 2


@pytest.mark.long
@pytest.mark.usefixtures("local_ray")
def test_a_search_of_tune_over_the_learning_rate_trains_with_different_ones(tmp_path):
    from ray import tune

    config = config_of(plan_from(whole_episodes()))
    tuner = tune.Tuner(
        ColumnAlgorithm,
        param_space=config.training(lr=tune.grid_search([1e-3, 0.5])),
        run_config=tune.RunConfig(
            name="rates", storage_path=str(tmp_path), stop={"training_iteration": 2}, verbose=0
        ),
    )
    results = tuner.fit()
    assert [result.error for result in results] == [None, None]
    norms = {r.metrics["learners"]["default_policy"]["learning_rate"] for r in results}
    assert len(norms) == 2


@pytest.mark.long
@pytest.mark.usefixtures("local_ray")
@pytest.mark.parametrize("name", ["DQN", "SAC", "APPO"])
@pytest.mark.filterwarnings("ignore:.*Overriding environment")
def test_stock_algorithms_train_on_our_games(name):
    from ray.rllib.algorithms import APPOConfig, DQNConfig, SACConfig

    from rollout.vector_env import bare

    class Games(RemoteVectorEnv):  # RLlib needs a class; a local one is sent by value
        def __init__(self, context):
            plan, many = context["plan"], context["num_envs"]
            super().__init__(plan.bridge, plan.task, num_envs=many, states=plan.states, seed=0)

    game = "Pendulum-v1" if name == "SAC" else "CartPole-v1"
    plan = plan_from({"bridge": {"name": "gymnasium", "id": game}, "env_steps": 1000, "width": 4})
    spec = plan.bridge.spec
    config = {"DQN": DQNConfig, "SAC": SACConfig, "APPO": APPOConfig}[name]()
    config.environment(
        env=Games,
        observation_space=bare(spec.observation_space),
        action_space=bare(spec.action_space),
        env_config={"plan": plan},
        disable_env_checking=True,
    )
    config.env_runners(
        num_env_runners=1 if name == "APPO" else 0,
        num_envs_per_env_runner=4,
        gym_env_vectorize_mode="vector_entry_point",
    )
    if name != "APPO":
        config.training(num_steps_sampled_before_learning_starts=64, train_batch_size=32)
    algorithm = config.build_algo()
    try:
        for _ in range(30):  # APPO's learner runs beside its iterations, so an early one has none
            result = algorithm.train()
            if result.get("learners"):
                break
    finally:
        algorithm.stop()
    assert result["num_env_steps_sampled_lifetime"] > 0
    assert result.get("learners")
