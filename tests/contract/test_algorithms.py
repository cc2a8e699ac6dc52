"""Every algorithm keeps the contract; the suite finds those that do not."""

from dataclasses import dataclass

import pytest

from bridges.blockworld import BlockworldBridge
from bridges.gymnasium import GymnasiumBridge
from policies.actor_critic import ActorCriticPolicy, QNetworkPolicy
from rollout.api import Progress
from rollout.evaluators import GameReward
from rollout.testing import FakeBridge, check_algorithm, check_step_algorithm
from rollout.train.gradients import Optimizer
from rollout.train.off_policy import Appo, Dagger, Dqn, Sac
from rollout.train.offline_config import Bc, Iql, Marwil
from rollout.train.ppo import Ppo
from rollout.train.ppo.learner import PpoLearner
from tests.ray.toy_cloning import Cloning

pytestmark = pytest.mark.heavy

BRIDGE = FakeBridge(side=4)
POLICY = ActorCriticPolicy(hidden=(8,), columns=("position",))
SMALL = Ppo(batch=3, minibatch=1, epochs=2, bptt=4)


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_ppo_keeps_the_contract(memory):
    policy = ActorCriticPolicy(hidden=(8,), columns=("position",), memory=memory, memory_size=4)
    check_algorithm(SMALL, policy, BRIDGE).raise_if_failed()


def test_behaviour_cloning_keeps_the_contract():
    check_algorithm(Cloning(), POLICY, BRIDGE).raise_if_failed()


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_appo_keeps_the_contract(memory):
    policy = ActorCriticPolicy(hidden=(8,), columns=("position",), memory=memory, memory_size=4)
    small = Appo(batch=3, minibatch=1, epochs=2, bptt=4)
    check_algorithm(small, policy, BRIDGE).raise_if_failed()


REPLAY = {"batch": 8, "minibatch": 4, "passes": 1.0, "memory": 20, "warmup": 0}


def test_dqn_keeps_the_contract():
    policy = QNetworkPolicy(hidden=(8,), columns=("position",))
    check_algorithm(Dqn(**REPLAY), policy, BRIDGE).raise_if_failed()


def test_sac_keeps_the_contract():
    policy = ActorCriticPolicy(hidden=(8,), continuous="squashed")
    bridge = GymnasiumBridge(id="Pendulum-v1")
    check_algorithm(Sac(**REPLAY), policy, bridge, evaluator=GameReward()).raise_if_failed()


@pytest.mark.parametrize("memory", ["none", "gru"])
def test_dagger_keeps_the_contract(memory):
    bridge = BlockworldBridge(oracle="hunt_sheep")
    policy = ActorCriticPolicy(hidden=(8,), columns=("rgb",), memory=memory, memory_size=4)
    check_algorithm(Dagger(**REPLAY), policy, bridge, evaluator=GameReward()).raise_if_failed()


@pytest.mark.parametrize("memory", ["none", "gru"])
@pytest.mark.parametrize("algorithm", [Bc(), Marwil()], ids=["bc", "marwil"])
def test_what_learns_from_sequences_keeps_the_contract(algorithm, memory):
    policy = ActorCriticPolicy(hidden=(8,), columns=("position",), memory=memory, memory_size=4)
    check_step_algorithm(algorithm, policy, BRIDGE).raise_if_failed()


def test_iql_keeps_the_contract():
    check_step_algorithm(Iql(), POLICY, BRIDGE).raise_if_failed()


@dataclass(frozen=True)
class Careless(Iql):
    """IQL with one thing wrong."""

    fault: str = ""

    def learner(self, network):
        learner = super().learner(network)
        if self.fault == "forgets":
            learner.restore = lambda state: None
        elif self.fault == "learns":
            progress = Progress(0, 0, 1, seed=0)
            learner.measure = lambda batch, memory: learner.update(batch, memory, progress)
        return learner


@pytest.mark.parametrize(
    ("fault", "check"),
    [("forgets", "state is whole"), ("learns", "measures without learning")],
)
def test_what_is_wrong_with_learning_from_steps_is_found(fault, check):
    assert check in check_step_algorithm(Careless(fault=fault), POLICY, BRIDGE).names("failed")


@dataclass(frozen=True)
class Broken(Ppo):
    """PPO with one thing wrong."""

    fault: str = ""

    def gather(self, fragment, network, *, reads, steps):
        batch = super().gather(fragment, network, reads=reads, steps=steps)
        return {k: v[:1] for k, v in batch.items()} if self.fault == "rows" else batch

    def learner(self, network, *, references, reduce_gradients):
        learner = super().learner(network, references=references, reduce_gradients=reduce_gradients)
        learner.__class__ = FAULTY.get(self.fault, PpoLearner)
        return learner


class Forgetful(PpoLearner):
    def restore(self, state):
        """Takes nothing back."""


class Idle(PpoLearner):
    def update(self, batch, progress):
        return {}


class Eager(PpoLearner):
    def update(self, batch, progress):
        self.optimizer.apply = self._apply
        return super().update(batch, progress)

    def _apply(self):
        own = any(p.grad is not None for p in self.network.parameters())
        return Optimizer.apply(self.optimizer) if own else None


FAULTY = {"forgetful": Forgetful, "idle": Idle, "eager": Eager}


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("rows", "gathers"),
        ("idle", "updates"),
        ("forgetful", "state is whole"),
        ("eager", "every share calls for gradients equally often"),
    ],
)
def test_what_is_wrong_is_found(fault, check):
    broken = Broken(batch=3, minibatch=1, epochs=2, bptt=4, fault=fault)
    assert check in check_algorithm(broken, POLICY, BRIDGE).names("failed")
